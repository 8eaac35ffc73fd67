/**
 * What requests leave out of a conversation, and the notes that stand in its place. The transcript keeps all of it.
 */
import { memoize } from "effect/Function"
import * as Message from "../Message.ts"
import type { Adjustment } from "../ModelEvent.ts"

export type Media = Message.Image | Message.File
type Kind = Message.LeftOut["kind"]

/** A message without what is left out of it: itself, if that is nothing. */
export interface Replaced {
  readonly message: Message.ModelMessage
  readonly left: ReadonlyArray<{ readonly kind: Kind; readonly reason: string }>
}

type Replace = (message: Message.ModelMessage) => Replaced

/** The images and files that a message brings to the model. */
export const mediaIn = (message: Message.ModelMessage): ReadonlyArray<Media> =>
  message.role === "assistant"
    ? []
    : message.content.flatMap((block): ReadonlyArray<Media> => (block.type === "text" ? [] : [block]))

/** The media type, `undefined` if only the file says it. */
export const mediaType = ({ source }: Media): string | undefined =>
  "mediaType" in source
    ? source.mediaType
    : "url" in source
      ? /^data:([^;,]+)/.exec(source.url)?.[1]
      : undefined

const noteOn = (media: Media, reason: string): string => {
  const name = media.type === "file" && media.name !== undefined ? ` ${JSON.stringify(media.name)}` : ""
  const type = mediaType(media)
  const what = `${media.type === "image" ? "An image" : "A file"}${name}${type === undefined ? "" : ` (${type})`}`
  return `[${what} is left out here: ${reason}.]`
}

/**
 * Makes a function that puts a note in place of the images and files for which `refusal` returns a reason, behind the text before it.
 * It returns the same object each time, so that an encoding can be cached.
 */
export const replacing = (refusal: (media: Media) => string | undefined): Replace =>
  memoize((message) => {
    const left: Array<Replaced["left"][number]> = []
    const noted = <Block extends Message.Text | Media>(
      content: ReadonlyArray<Block>
    ): ReadonlyArray<Block | Message.Text> => {
      const blocks: Array<Block | Message.Text> = []
      for (const block of content) {
        const reason = block.type === "text" ? undefined : refusal(block)
        if (block.type === "text" || reason === undefined) blocks.push(block)
        else {
          left.push({ kind: block.type, reason })
          const last = blocks.at(-1)
          const text = last?.type === "text" ? [last.text, noteOn(block, reason)] : [noteOn(block, reason)]
          blocks.splice(last?.type === "text" ? -1 : blocks.length, 1, {
            type: "text",
            text: text.join("\n\n")
          })
        }
      }
      return blocks
    }
    const replaced = (): Message.ModelMessage => {
      switch (message.role) {
        case "user":
          return { ...message, content: noted(message.content) }
        case "toolResult":
          return { ...message, content: noted(message.content) }
        case "assistant":
          return message
      }
    }
    const made = replaced()
    return { message: left.length === 0 ? message : made, left }
  })

/** Leaves out more of a message. */
export const again = (replaced: Replaced, replace: Replace): Replaced => {
  const { left, message } = replace(replaced.message)
  return message === replaced.message ? replaced : { message, left: [...replaced.left, ...left] }
}

/** Reports what is left out: each kind once for each reason. */
export const report = (replaced: ReadonlyArray<Replaced>): ReadonlyArray<Adjustment> => {
  const counts = new Map<string, { readonly kind: string; readonly reason: string; count: number }>()
  for (const { kind, reason } of replaced.flatMap(({ left }) => left)) {
    const key = `${kind} ${reason}`
    const known = counts.get(key) ?? { kind, reason, count: 0 }
    known.count++
    counts.set(key, known)
  }
  return [...counts.values()].map(({ count, kind, reason }) => ({
    option: kind,
    asked: kind === "thinking" ? `of ${plural(count, "answer")}` : plural(count, kind),
    sent: null,
    reason: `${reason}.`
  }))
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

// ───────────────────────── What a provider has refused

/** Whether a message has something of a kind that requests can leave out. */
export const has = (message: Message.ModelMessage, kind: Kind): boolean =>
  kind === "image" || kind === "file"
    ? mediaIn(message).some(({ type }) => type === kind)
    : kind === "result"
      ? message.role === "toolResult"
      : message.role === "assistant" && (kind === "answer" || message.content.some(isVendors))

/** Whether a block is thinking, or has data that only its vendor reads, such as a signature. */
const isVendors = (block: Message.Assistant["content"][number]): boolean =>
  block.type === "thinking" || block.opaque !== undefined

/** Leaves out what an entry names. */
const replacerOf = memoize(({ kind, reason }: Message.LeftOut): Replace => {
  if (kind === "image" || kind === "file")
    return replacing(({ type }) => (type === kind ? reason : undefined))
  return memoize((message) => ({
    message: message.role === "user" ? message : changes[kind](message),
    left: has(message, kind) ? [{ kind, reason }] : []
  }))
})

type Change = (message: Message.Assistant | Message.ToolResult) => Message.ModelMessage

/** The notes have no words of the vendor, which may quote what it refused. */
const changes: Readonly<Record<Exclude<Kind, Media["type"]>, Change>> = {
  thinking: (message) =>
    message.role === "assistant" && has(message, "thinking") ? withoutThinking(message) : message,
  result: (message) =>
    message.role === "assistant"
      ? { ...message, content: message.content.map(withoutArguments) }
      : { ...message, content: [note("The result of this call is left out, and so are its arguments")] },
  answer: (message) =>
    message.role === "assistant"
      ? { ...message, content: [note("This answer is left out")], vendor: {} }
      : asUser(message)
}

/** A result without its call. */
const asUser = ({ content, id, timestamp }: Message.ToolResult): Message.User => ({
  role: "user",
  id,
  content: [Message.text("[The result of a call:]"), ...content],
  timestamp
})

const note = (what: string): Message.Text => Message.text(`[${what}: the provider refused it.]`)

const withoutArguments = (block: Message.Assistant["content"][number]) =>
  block.type === "toolCall" ? { ...block, rawArguments: "{}", params: {} } : block

/** A signature may stand on any block: nothing that only the vendor reads goes back to it. */
const withoutThinking = (message: Message.Assistant): Message.Assistant => ({
  ...message,
  content: message.content.flatMap((block) => {
    if (block.type === "thinking") return []
    const { opaque: _, ...rest } = block
    return [rest]
  })
})

/**
 * The messages of a request without what the provider of its model has refused: by the answers of the transcript, and by `entries` of
 * the call that is made now.
 */
export const without = (
  { messages, model }: { readonly messages: ReadonlyArray<Message.ModelMessage>; readonly model: string },
  transcript: ReadonlyArray<Message.Message>,
  entries: ReadonlyArray<Message.LeftOut>
): {
  readonly messages: ReadonlyArray<Message.ModelMessage>
  readonly adjusted: ReadonlyArray<Adjustment>
} => {
  const known = transcript.flatMap((message, end) =>
    message.role === "assistant"
      ? // A server that refuses the thinking of earlier answers would refuse that of later ones too.
        (message.leftOut ?? []).map((entry) => ({ entry, end: entry.kind === "thinking" ? Infinity : end }))
      : []
  )
  const all = [...known, ...entries.map((entry) => ({ entry, end: transcript.length }))].filter(
    ({ entry }) => entry.model === model
  )
  if (all.length === 0) return { messages, adjusted: [] }
  const places = new Map(transcript.map(({ id }, place) => [id, place]))
  // A message that a hook or a compaction made has no place, and is older than the answers.
  const placeOf = (id: Message.MessageId | undefined) => (id === undefined ? -1 : (places.get(id) ?? -1))
  const replaced = messages.map((message) =>
    all
      .filter(({ end, entry }) => placeOf(message.id) >= placeOf(entry.since) && placeOf(message.id) < end)
      .reduce<Replaced>((each, { entry }) => again(each, replacerOf(entry)), { message, left: [] })
  )
  return { messages: replaced.map(({ message }) => message), adjusted: report(replaced) }
}
