/**
 * Leaves images and files that a model cannot take out of a request: a note stands in place of each. One refused image would
 * otherwise make the vendor refuse each later request of the conversation.
 */
import { memoize } from "effect/Function"
import type { ModelMessage } from "../../Message.ts"
import type { Adjustment } from "../../ModelEvent.ts"
import type { ModelRequest } from "../../Provider.ts"
import * as Recovery from "../../internal/recovery.ts"
import * as ImageFile from "../../media/ImageFile.ts"
import type { MediaLimits, Rule } from "./models/rule.ts"
import type { Server } from "./support.ts"

type Media = Recovery.Media

const limitsOf = ({ protocol }: Server, model: string, rule: Rule | undefined): MediaLimits =>
  rule?.media ?? protocol.media?.(model) ?? {}

/** Makes a function that returns why a model cannot take an image or a file, in words that end a sentence. */
export const refusals = (
  server: Server,
  model: string,
  rule: Rule | undefined
): ((media: Media) => string | undefined) => {
  const { length = Infinity, pixels = Infinity } = limitsOf(server, model, rule)
  const find = (media: Media): string | undefined => {
    const { input, isSecondHand = false } = rule ?? {}
    const unread = input === undefined || isSecondHand ? undefined : unreadable(model, input, media)
    if (unread !== undefined) return unread
    const data = dataOf(media)
    if (isImage(media) && data.length > length)
      return `it has ${data.length} bytes in base64, and ${model} takes images of at most ${length}`
    const image = imageOf(media)
    if (image !== null && "fault" in image) return image.fault
    if (image !== null && Math.max(image.width, image.height) > pixels)
      return `it has ${image.width} × ${image.height} pixels, and ${model} takes images of at most ${pixels} a side`
    return server.protocol.refuses?.(media)
  }
  const found = memoize((media: Media) => find(media) ?? null)
  return (media) => found(media) ?? undefined
}

const unreadable = (model: string, input: NonNullable<Rule["input"]>, media: Media): string | undefined => {
  if (isImage(media))
    return input.includes("image") ? undefined : `${model} takes no images: it reads ${input.join(", ")}`
  const isPdf = Recovery.mediaType(media) === "application/pdf"
  return isPdf && !input.includes("pdf") ? `${model} takes no PDF: it reads ${input.join(", ")}` : undefined
}

const isImage = (media: Media): boolean =>
  media.type === "image" || (Recovery.mediaType(media) ?? "").startsWith("image/")

/** The data in base64, `""` for media at an address. */
const dataOf = ({ source }: Media): string =>
  "data" in source ? source.data : "url" in source ? (readDataUrl(source.url)?.data ?? "") : ""

const imageOf = memoize((media: Media) => (isImage(media) ? (ImageFile.read(dataOf(media)) ?? null) : null))

/** The messages that a model takes, and a report of each kind that is left out. */
export interface Readable {
  readonly messages: ReadonlyArray<ModelMessage>
  readonly adjusted: ReadonlyArray<Adjustment>
}

export type Read = (messages: ModelRequest["messages"]) => Readable

/** Makes a function that leaves out what a model cannot take. It returns the same objects for the same messages. */
export const reader = (server: Server, model: string, rule: Rule | undefined): Read => {
  const { crowd = Infinity, crowdedPixels = Infinity, total = Infinity } = limitsOf(server, model, rule)
  const refusal = refusals(server, model, rule)
  const alone = Recovery.replacing(refusal)
  const crowded = Recovery.replacing((media) => {
    const image = imageOf(media)
    return image !== null && !("fault" in image) && Math.max(image.width, image.height) > crowdedPixels
      ? `it has more than ${crowdedPixels} pixels a side, and the request more than ${crowd} images`
      : undefined
  })
  const surplus = Recovery.replacing(
    () => `the files of a request may have ${total} bytes in base64 together`
  )
  return (messages) => {
    if (!messages.some((message) => Recovery.mediaIn(message).length > 0)) return { messages, adjusted: [] }
    const read = messages.map(alone)
    const isCrowded = read.flatMap(({ message }) => Recovery.mediaIn(message)).filter(isImage).length > crowd
    const fitting = isCrowded ? read.map((each) => Recovery.again(each, crowded)) : read
    let left = total
    const bounded = fitting
      .toReversed()
      .map((each) => {
        left -= Recovery.mediaIn(each.message).reduce((sum, media) => sum + dataOf(media).length, 0)
        return left < 0 ? Recovery.again(each, surplus) : each
      })
      .toReversed()
    return { messages: bounded.map(({ message }) => message), adjusted: Recovery.report(bounded) }
  }
}

/** Files in `data:` URLs. */
export interface Inline {
  /** The bytes, in base64. */
  readonly data: string
  readonly mediaType: string
}

/** The file in a URL, `undefined` for any other URL. */
export const readDataUrl = (url: string): Inline | undefined => {
  const [, mediaType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
  return mediaType === undefined || data === undefined ? undefined : { data, mediaType }
}
