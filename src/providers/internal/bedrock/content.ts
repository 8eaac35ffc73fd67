/** Encodes messages as blocks of Converse: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html */
import type * as Message from "../../../Message.ts"
import { type Reason, UnsupportedContent } from "../../../ProviderError.ts"
import { isReason } from "../../Protocol.ts"
import { nameFor, paramsIn, readDataUrl, into, keptFor, membersOf, over } from "../writing.ts"
import * as Json from "../json.ts"

/** A block as JSON, in which `hole` stands for a text that depends on the rest of the conversation. */
export interface Block {
  readonly kind: "plain" | "thinking" | "hosted" | "call" | "result" | "document"
  readonly json: string
  /** The id of a call, or of the call to which a result belongs, or the name of a document; else empty. */
  readonly key: string
}

/** The way in which a model takes messages. */
export interface Way {
  readonly provider: string
  /** Whether tool results may contain images and a status. */
  readonly hasRichResults: boolean
  /** Whether calls and results become text, because Converse takes neither in a request without tools. */
  readonly isFlat: boolean
}

/** Stands for the id or the name of a block. No text of a block contains it, because JSON escapes it. */
export const hole = "\u0000"

/** The blocks of a message, none if there is nothing to send. */
export const encodeMessage = (way: Way, message: Message.ModelMessage): ReadonlyArray<Block> | Reason => {
  switch (message.role) {
    case "user":
      return encodeUser(way, message)
    case "assistant":
      return encodeAssistant(way, message)
    case "toolResult":
      return encodeResult(way, message)
  }
}

const plain = (block: object): Block => ({ kind: "plain", json: Json.encode(block), key: "" })

const text = (text: string): Block => plain({ text })

const isBlank = (text: string): boolean => text.trim() === ""

const encodeUser = ({ provider }: Way, message: Message.User): ReadonlyArray<Block> | Reason => {
  const { content } = message
  const blocks: Array<Block> = []
  for (const part of content) {
    if (part.type === "text" && isBlank(part.text)) continue
    const block = part.type === "text" ? text(part.text) : encodeMedia(part)
    if (isReason(block)) return block
    blocks.push(...within(provider, part, [block]))
  }
  // The vendor requires content in each message, and a text in each message with a document.
  if (blocks.length === 0) return [text("(empty message)")]
  const isSilent = content.every((part) => part.type !== "text" || isBlank(part.text))
  const all =
    isSilent && blocks.some(({ kind }) => kind === "document")
      ? [text("(The documents are attached.)"), ...blocks]
      : blocks
  return within(provider, message, all)
}

/**
 * Blocks, the last of them with the members of what they stand for: messages of the vendor have no others. A mark for the cache is a
 * block of its own.
 */
const within = (
  provider: string,
  from: Pick<Message.Text, "vendor">,
  blocks: ReadonlyArray<Block>
): ReadonlyArray<Block> => {
  const last = blocks.at(-1)
  if (last === undefined || membersOf(provider, from) === undefined) return blocks
  const [json = "", ...marks] = withMembers(provider, from, last.json)
  return [...blocks.slice(0, -1), { ...last, json }, ...marks.map(mark)]
}

const mark = (json: string): Block => ({ kind: "plain", json, key: "" })

/** The JSON of a block or a tool with the members of what it stands for, and of the mark that follows it. */
export const withMembers = (
  provider: string,
  from: Pick<Message.Text, "vendor">,
  json: string
): ReadonlyArray<string> => {
  const { cachePoint, ...members } = membersOf(provider, from) ?? {}
  return [merged(members, json), ...(cachePoint === undefined ? [] : [Json.encode({ cachePoint })])]
}

/** The JSON of a block with further members. A hole is no JSON. */
const merged = (members: Json.JsonObject, json: string): string => {
  if (Object.keys(members).length === 0) return json
  const block = Json.object(Json.parse(json.replace(hole, spelt))) ?? {}
  const whole = Json.encode(Json.merge(block, members))
  return json.includes(hole) ? whole.replace(spelt, hole) : whole
}

const spelt = "\\u0000"

const encodeMedia = (part: Message.Image | Message.File): Block | Reason => {
  const media = mediaOf(part)
  if (isReason(media)) return media
  const { kind, ...fields } = media
  if (kind !== "document") return plain({ [kind]: fields })
  const cited = part.type === "file" && part.citations !== undefined ? { citations: part.citations } : {}
  const json = `{"document":{"name":"${hole}",${Json.encode({ ...fields, ...cited }).slice(1)}}`
  return { kind, json, key: documentName(part.type === "file" ? part.name : undefined) }
}

// ───────────────────────── Answers

/** Thinking at the end of a message has no effect, and the vendor rejects a message of thinking alone. */
const encodeAssistant = (way: Way, message: Message.Assistant): ReadonlyArray<Block> => {
  const { content } = message
  const blocks = content.flatMap((block) =>
    block.type === "source" ? [] : within(way.provider, block, encodeBlock(way, content, block))
  )
  const sent = blocks.slice(0, blocks.findLastIndex(({ kind }) => kind !== "thinking") + 1)
  return within(way.provider, message, sent)
}

const encodeBlock = (
  way: Way,
  content: Message.Assistant["content"],
  block: Exclude<Message.Assistant["content"][number], Message.Source>
): ReadonlyArray<Block> => {
  switch (block.type) {
    case "text":
      return isBlank(block.text) ? [] : [text(block.text)]
    case "thinking":
      return encodeThinking(way, block)
    case "toolCall":
      return [encodeCall(way, block)]
    case "hostedTool":
      return encodeHosted(way, content, block)
    case "media":
      return []
  }
}

/**
 * The vendor accepts only thinking with a signature, and redacted thinking. Models without signatures would repeat their
 * thoughts in the answer.
 */
const encodeThinking = ({ provider }: Way, thinking: Message.Thinking): ReadonlyArray<Block> => {
  const { redactedContent, signature } = keptFor(provider, thinking) ?? {}
  const contents = [
    ...(signature === undefined ? [] : [{ reasoningText: { text: thinking.text, signature } }]),
    ...(redactedContent === undefined ? [] : [{ redactedContent }])
  ]
  return contents.map((reasoningContent) => ({ ...plain({ reasoningContent }), kind: "thinking" }))
}

/** A call or a result of a tool that the vendor ran. The vendor rejects such a call without its result. */
const encodeHosted = (
  { isFlat, provider }: Way,
  content: Message.Assistant["content"],
  tool: Message.HostedTool
): ReadonlyArray<Block> => {
  const { toolResult, toolUse } = keptFor(provider, tool) ?? {}
  const isAnswered = content.some(
    (other) =>
      other.type === "hostedTool" &&
      other.id === tool.id &&
      keptFor(provider, other)?.["toolResult"] !== undefined
  )
  if (isFlat || !isAnswered) return []
  const block = Json.isObject(toolUse)
    ? { toolUse: { ...toolUse, input: tool.params ?? {} } }
    : Json.isObject(toolResult)
      ? { toolResult: { ...toolResult, content: tool.result ?? [] } }
      : undefined
  return block === undefined ? [] : [{ ...plain(block), kind: "hosted" }]
}

const encodeCall = ({ isFlat }: Way, call: Message.ToolCall): Block => {
  const name = nameFor(call.name, 64)
  const input = paramsIn(call.rawArguments)
  if (isFlat) return text(`[Called the tool ${name} with ${JSON.stringify(input)}]`)
  const json = `{"toolUse":{"toolUseId":"${hole}",${Json.encode({ name, input }).slice(1)}}`
  return { kind: "call", json, key: call.id }
}

// ───────────────────────── Results

/** Claude rejects images in the result of a failed call, and other models in any result: they come after the results. */
const encodeResult = (
  { hasRichResults, isFlat, provider }: Way,
  message: Message.ToolResult
): ReadonlyArray<Block> | Reason => {
  const { content, isError, toolCallId, toolName } = message
  const texts = content.flatMap((part) => (part.type === "text" && !isBlank(part.text) ? [part] : []))
  const images: Array<Block> = []
  for (const part of content) {
    if (part.type !== "image") continue
    const block = encodeMedia(part)
    if (isReason(block)) return block
    images.push({ ...block, json: into(provider, part, block.json) })
  }
  const attached = images.length === 0 ? [] : [text("Attached image(s) from tool result:"), ...images]
  if (isFlat) {
    const words = texts.map((part) => part.text).join("\n")
    return [text(`[Result of the tool ${nameFor(toolName, 64)}]\n${words}`), ...attached]
  }
  const hasImages = hasRichResults && !isError
  const spoken = texts.map((part) => plain(over(provider, part, { text: part.text })))
  const inside = [...spoken, ...(hasImages ? images : [])]
  const blocks = inside.length === 0 ? [text(isError ? "(no message)" : "(no output)")] : inside
  const status = hasRichResults && isError ? `,"status":"error"` : ""
  const json = `{"toolResult":{"toolUseId":"${hole}","content":[${blocks.map((block) => block.json).join(",")}]${status}}}`
  const result = within(provider, message, [{ kind: "result", json, key: toolCallId }])
  return [...result, ...(hasImages ? [] : attached)]
}

// ───────────────────────── Media

// Images, documents and videos as Converse takes them: bytes, or objects of S3.

interface Media {
  readonly kind: "image" | "document" | "video" | "audio"
  readonly format: string
  readonly source: { readonly bytes: string } | { readonly s3Location: { readonly uri: string } }
}

export const mediaOf = (part: Message.Image | Message.File): Media | Reason =>
  part.type === "image" ? image(part) : file(part)

const image = ({ source }: Message.Image): Media | Reason => {
  const inline = "url" in source ? readDataUrl(source.url) : source
  if (inline !== undefined) return known(inline.mediaType, "image", { bytes: inline.data })
  const { url } = { url: "", ...source }
  return linked(url, typeAt(url), "image")
}

const file = ({ source }: Message.File): Media | Reason => {
  if ("fileId" in source) return refused("Bedrock takes no ids of uploaded files")
  if ("url" in source) return linked(source.url, source.mediaType ?? typeAt(source.url), "document")
  return known(source.mediaType, "document", { bytes: source.data })
}

/**
 * The name of a document in the characters that the vendor accepts. It never contains the name's extension, which the format
 * says.
 */
const documentName = (name: string | undefined): string =>
  (name ?? "")
    .replace(/\.[^./\\]{1,8}$/, "")
    .replace(/[^a-zA-Z0-9\s()[\]-]/g, "-")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, 150)
    .trim() || "document"

const refused = (detail: string): Reason => new UnsupportedContent({ detail })

const linked = (url: string, mediaType: string, kind: Media["kind"]): Media | Reason => {
  if (url.startsWith("s3://")) return known(mediaType, kind, { s3Location: { uri: url } })
  const inline = readDataUrl(url)
  return inline === undefined
    ? refused("Bedrock takes files as bytes or at an s3:// address, and no other address")
    : known(inline.mediaType, kind, { bytes: inline.data })
}

/** The kind and format of a media type. `wanted` is the kind of a block whose type is none of the vendor's. */
const known = (mediaType: string, wanted: Media["kind"], source: Media["source"]): Media | Reason => {
  const [type = ""] = mediaType.toLowerCase().split(";")
  const [top = "", sub = ""] = type.trim().split("/")
  const format = formats.get(type.trim())
  if (format !== undefined) return { kind: kindOf(top), format, source }
  // The vendor reads all other text as such.
  if (wanted === "document" && (top === "text" || /(?:^|\+)(?:json|xml|yaml)$/.test(sub)))
    return { kind: "document", format: "txt", source }
  return refused(`Bedrock does not take ${wanted === "image" ? "images" : "files"} of type ${mediaType}`)
}

const kindOf = (top: string): Media["kind"] =>
  top === "image" || top === "video" || top === "audio" ? top : "document"

const formats: ReadonlyMap<string, string> = new Map([
  ...["jpeg", "png", "gif", "webp"].map((format) => [`image/${format}`, format] as const),
  ["image/jpg", "jpeg"],
  ["application/pdf", "pdf"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/plain", "txt"],
  ["text/markdown", "md"],
  ["application/msword", "doc"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
  ...["mp4", "webm", "mpeg", "flv"].map((format) => [`video/${format}`, format] as const),
  ["video/quicktime", "mov"],
  ["video/x-matroska", "mkv"],
  ["video/x-flv", "flv"],
  ["video/x-ms-wmv", "wmv"],
  ["video/3gpp", "three_gp"],
  ...["mp3", "wav", "flac", "ogg", "aac"].map((format) => [`audio/${format}`, format] as const),
  ["audio/mpeg", "mp3"],
  ["audio/mp4", "m4a"],
  ["audio/webm", "webm"]
])

/** The media type by the end of an address. */
const typeAt = (url: string): string => {
  const [, end = ""] = /\.(\w+)$/.exec(url) ?? []
  const format = end.toLowerCase().replace(/^jpg$/, "jpeg")
  const found = [...formats].find(([, known]) => known === format)
  return found?.[0] ?? end
}

/** The bytes of a file in an answer, and their media type. */
export const typeOf = (kind: string, format: string): string =>
  [...formats].find(([type, known]) => known === format && type.startsWith(`${kind}/`))?.[0] ??
  `${kind}/${format}`
