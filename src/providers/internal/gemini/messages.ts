/** Encodes messages as parts of Gemini: https://ai.google.dev/api/caching#Part, read in November 2026. */
import type * as Message from "../../../Message.ts"
import { type Reason, UnsupportedContent } from "../../../ProviderError.ts"
import { isReason } from "../../Protocol.ts"
import { paramsIn, keptFor, membersOf, over } from "../writing.ts"
import * as Json from "../json.ts"
import { generation } from "./api.ts"

/** A message as JSON, empty if there is nothing to send. */
export interface Encoded {
  /** The parts, joined. For a result the members after the id of its call. */
  readonly json: string
  /** The parts, joined, that come after all results of an answer. */
  readonly attached: string
  /** The ids that Gemini gave its calls, and its names of actions on a screen, which their results contain too. */
  readonly calls: ReadonlyMap<string, Named>
}

interface Named {
  readonly id: string | undefined
  readonly name: string | undefined
}

/** Encodes a message for one model of one provider. `isNamed`: the server takes names of files. */
export const encodeMessage =
  (provider: string, model: string, isNamed: boolean) =>
  (message: Message.ModelMessage): Encoded | Reason => {
    switch (message.role) {
      case "user":
        return encodeUser(provider, model, message, isNamed)
      case "assistant":
        return encodeAssistant(provider, model, message)
      case "toolResult":
        return encodeResult(provider, model, message)
    }
  }

const nothing: Encoded = { json: "", attached: "", calls: new Map() }

const encodeUser = (
  provider: string,
  model: string,
  message: Message.User,
  isNamed: boolean
): Encoded | Reason => {
  const parts: Array<object> = []
  for (const block of message.content) {
    if (block.type === "text" && block.text === "") continue
    const part =
      block.type === "text"
        ? { text: block.text }
        : block.type === "image"
          ? detailed(model, block)
          : isNamed
            ? named(toFile(block), block.name)
            : toFile(block)
    if (isReason(part)) return part
    parts.push(over(provider, block, part))
  }
  return { ...nothing, json: joined(lastWith(provider, message, parts)) }
}

/** An image, and the detail in which Gemini 3 and later see it: one with all of its pixels. */
const detailed = (model: string, image: Message.Image): object | Reason => {
  const part = toImage(image)
  const level = levels[image.detail ?? "auto"]
  return isReason(part) || level === undefined || generation(model) < 3
    ? part
    : { ...part, mediaResolution: { level } }
}

const levels: Partial<Readonly<Record<Message.ImageDetail, string>>> = {
  low: "MEDIA_RESOLUTION_LOW",
  high: "MEDIA_RESOLUTION_HIGH",
  original: "MEDIA_RESOLUTION_ULTRA_HIGH"
}

/** The parts of a message, the last of them with the members of the message: those of Google have no others. */
const lastWith = (
  provider: string,
  message: Message.ModelMessage,
  parts: ReadonlyArray<object>
): ReadonlyArray<object> =>
  parts.map((part, index) => (index === parts.length - 1 ? over(provider, message, part) : part))

const joined = (parts: ReadonlyArray<object>): string => parts.map(Json.encode).join(",")

/**
 * A signature returns on the part that it came with, and only to the model that made it. Other models reject
 * it.
 */
const encodeAssistant = (provider: string, model: string, message: Message.Assistant): Encoded => {
  const isOwn = message.provider === provider && message.model === model
  const calls = new Map<string, Named>()
  const parts: Array<object> = []
  let isFirst = true
  for (const block of message.content) {
    const kept = keptFor(provider, block)
    const from = parts.length
    if (block.type === "toolCall") {
      const call = { id: Json.text(kept?.["id"]), name: Json.text(kept?.["action"]) }
      calls.set(block.id, call)
      const signature = isOwn ? Json.text(kept?.["thoughtSignature"]) : undefined
      parts.push(toCall(block, call, signature ?? (isFirst && generation(model) >= 3 ? unsigned : undefined)))
      isFirst = false
    } else if (block.type === "media") {
      if (message.provider === provider) parts.push(...toKept({ ...toMedia(block), ...bare(kept) }, isOwn))
    } else if (block.type !== "thinking" || isOwn) {
      const part = Json.object(kept?.["part"])
      if (part !== undefined) parts.push(...toKept(part, isOwn))
      else if (block.type === "text" || block.type === "thinking")
        parts.push(...toProse(block, isOwn ? kept : undefined))
    }
    if (block.type !== "source" && membersOf(provider, block) !== undefined)
      parts.push(...parts.splice(from).map((part) => over(provider, block, part)))
  }
  return { ...nothing, json: joined(lastWith(provider, message, parts)), calls }
}

/**
 * Gemini 3 rejects the first call of an answer without a signature. For calls of other models, this value
 * replaces it: https://ai.google.dev/gemini-api/docs/thought-signatures
 */
const unsigned = "skip_thought_signature_validator"

const toCall = (call: Message.ToolCall, { id, name }: Named, signature: string | undefined): object => ({
  functionCall: {
    ...(id === undefined ? {} : { id }),
    name: name ?? toName(call.name),
    args: Json.without(paramsIn(call.rawArguments), ...(name === undefined ? [] : ["action"]))
  },
  ...(signature === undefined ? {} : { thoughtSignature: signature })
})

/** The name in the characters that Gemini accepts. A model may call a name that no tool has. */
const toName = (name: string): string => {
  const spelt = name.replace(/[^\w.-]/g, "_").slice(0, 64)
  return /^[a-z_]/i.test(spelt) ? spelt : `_${spelt}`.slice(0, 64)
}

/** Each signed range becomes its own part again, and so does the text before, between and after. */
const toProse = (
  { text, type }: Message.Text | Message.Thinking,
  kept: Json.JsonObject | undefined
): ReadonlyArray<object> => {
  const kind = type === "thinking" ? { thought: true } : {}
  const parts: Array<object> = []
  let sent = 0
  const plain = (to: number) => {
    if (to > sent) parts.push({ text: text.slice(sent, to), ...kind })
  }
  for (const signed of Json.array(kept?.["signed"])) {
    const { from, thoughtSignature, to } = Json.object(signed) ?? {}
    if (typeof from !== "number" || typeof to !== "number" || typeof thoughtSignature !== "string") continue
    plain(from)
    parts.push({ text: text.slice(from, to), ...kind, thoughtSignature })
    sent = to
  }
  plain(text.length)
  return parts
}

/** The data of a block, without the mark of its provider. */
const bare = (kept: Json.JsonObject | undefined): Json.JsonObject =>
  kept === undefined ? {} : Json.without(kept, "provider")

/**
 * Leaves out function responses, because the call has its own result in this conversation, and for another model thoughts and
 * the calls of Google's tools, which have to return with their signatures.
 */
const toKept = (part: Json.JsonObject, isOwn: boolean): ReadonlyArray<object> => {
  if ("functionResponse" in part) return []
  if (!isOwn && (part["thought"] === true || "toolCall" in part || "toolResponse" in part)) return []
  const { thoughtSignature: _, ...bare } = part
  return [isOwn ? part : bare]
}

/** `action` is the call of an action on a screen, whose result is an object with the address of the page. */
export const encodeResult = (
  provider: string,
  model: string,
  message: Message.ToolResult,
  action?: Named
): Encoded | Reason => {
  const { content, isError, toolName } = message
  const within: Array<object> = []
  const attached: Array<object> = []
  for (const block of content) {
    if (block.type !== "image") continue
    const image = detailed(model, block)
    if (isReason(image)) return image
    const part = over(provider, block, image)
    // Before Gemini 3 a result contains no images, and it never contains linked files.
    if ((generation(model) >= 3 || action !== undefined) && "inlineData" in part) within.push(part)
    else attached.push({ text: `Image from the result of ${toolName}:` }, part)
  }
  const text = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")
  const shown = text === "" && within.length + attached.length > 0 ? "(see attached image)" : text
  const response = {
    name: action?.name ?? toName(toolName),
    response:
      (action === undefined ? undefined : Json.object(Json.parse(text))) ??
      (isError ? { error: shown } : { output: shown }),
    ...(within.length === 0 ? {} : { parts: within })
  }
  const json = Json.encode(over(provider, message, response)).slice(1, -1)
  return { ...nothing, json, attached: joined(attached) }
}

// ───────────────────────── Images and files

// Encodes images and files for Gemini:
// https://ai.google.dev/gemini-api/docs/generate-content/file-input-methods, read in November 2026.

type Inline = { readonly inlineData: { readonly mimeType: string; readonly data: string } }
type Linked = { readonly fileData: { readonly fileUri: string; readonly mimeType?: string } }

/** An inline image, or a link from which Google loads it. */
export const toImage = ({ source }: Message.Image): Inline | Linked | Reason => {
  if ("data" in source) return inline(source.mediaType, source.data)
  if (!source.url.startsWith("data:")) return linked(source.url, typeOf(source.url))
  const [, mediaType, data] = /^data:([^;,]+)[^,]*;base64,([^]*)$/.exec(source.url) ?? []
  return mediaType === undefined || data === undefined
    ? new UnsupportedContent({ detail: "Gemini takes an image in a data URL only as base64" })
    : inline(mediaType, data)
}

const inline = (mimeType: string, data: string): Inline => ({ inlineData: { mimeType, data } })

/** The media type of an address by its ending, which Google requires of addresses outside of its file service. */
const typeOf = (url: string): string | undefined =>
  mediaTypes.get(/\.(\w+)(?:[?#]|$)/.exec(url)?.[1]?.toLowerCase() ?? "")

const mediaTypes: ReadonlyMap<string, string> = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["heic", "image/heic"],
  ["heif", "image/heif"],
  ["pdf", "application/pdf"],
  ["txt", "text/plain"],
  ["md", "text/markdown"],
  ["csv", "text/csv"],
  ["html", "text/html"],
  ["mp3", "audio/mp3"],
  ["wav", "audio/wav"],
  ["aac", "audio/aac"],
  ["ogg", "audio/ogg"],
  ["flac", "audio/flac"],
  ["mp4", "video/mp4"],
  ["mov", "video/mov"],
  ["mpeg", "video/mpeg"],
  ["webm", "video/webm"]
])

/** The id of an uploaded file is its URL, which may omit the address of the file service. */
const toFile = ({ source }: Message.File): Inline | Linked =>
  "data" in source
    ? inline(source.mediaType, source.data)
    : "url" in source
      ? linked(source.url, source.mediaType ?? typeOf(source.url))
      : linked(
          source.fileId.includes("://") ? source.fileId : `${files}${source.fileId.replace(/^files\//, "")}`
        )

const linked = (fileUri: string, mimeType?: string): Linked => ({
  fileData: { fileUri, ...(mimeType === undefined ? {} : { mimeType }) }
})

const files = "https://generativelanguage.googleapis.com/v1beta/files/"

/** The file with its name. */
const named = (file: Inline | Linked, displayName: string | undefined): object => {
  if (displayName === undefined) return file
  return "inlineData" in file
    ? { inlineData: { ...file.inlineData, displayName } }
    : { fileData: { ...file.fileData, displayName } }
}

/** A file that the model made. */
const toMedia = ({ source }: Message.Media): Inline | Linked =>
  "data" in source ? inline(source.mediaType, source.data) : linked(source.url, source.mediaType)
