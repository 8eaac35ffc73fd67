/** Encodes messages as blocks of Converse: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html */
import type * as Message from "../../../Message.ts"
import type { Reason } from "../../../ProviderError.ts"
import * as CallArguments from "../callArguments.ts"
import * as CallName from "../callName.ts"
import * as Json from "../json.ts"
import * as Members from "../members.ts"
import * as Opaque from "../opaque.ts"
import { merge } from "../question.ts"
import { isReason } from "../../Protocol.ts"
import * as Media from "./media.ts"

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
  if (last === undefined || Members.of(provider, from) === undefined) return blocks
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
  const { cachePoint, ...members } = Members.of(provider, from) ?? {}
  return [merged(members, json), ...(cachePoint === undefined ? [] : [Json.encode({ cachePoint })])]
}

/** The JSON of a block with further members. A hole is no JSON. */
const merged = (members: Json.JsonObject, json: string): string => {
  if (Object.keys(members).length === 0) return json
  const block = Json.object(Json.parse(json.replace(hole, spelt))) ?? {}
  const whole = Json.encode(merge(block, members))
  return json.includes(hole) ? whole.replace(spelt, hole) : whole
}

const spelt = "\\u0000"

const encodeMedia = (part: Message.Image | Message.File): Block | Reason => {
  const media = Media.of(part)
  if (isReason(media)) return media
  const { kind, ...fields } = media
  if (kind !== "document") return plain({ [kind]: fields })
  const cited = part.type === "file" && part.citations !== undefined ? { citations: part.citations } : {}
  const json = `{"document":{"name":"${hole}",${Json.encode({ ...fields, ...cited }).slice(1)}}`
  return { kind, json, key: Media.documentName(part.type === "file" ? part.name : undefined) }
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
  const { redactedContent, signature } = Opaque.of(provider, thinking) ?? {}
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
  const { toolResult, toolUse } = Opaque.of(provider, tool) ?? {}
  const isAnswered = content.some(
    (other) =>
      other.type === "hostedTool" &&
      other.id === tool.id &&
      Opaque.of(provider, other)?.["toolResult"] !== undefined
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
  const name = CallName.spelt(call.name, 64)
  const input = CallArguments.object(call.rawArguments)
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
    images.push({ ...block, json: Members.into(provider, part, block.json) })
  }
  const attached = images.length === 0 ? [] : [text("Attached image(s) from tool result:"), ...images]
  if (isFlat) {
    const words = texts.map((part) => part.text).join("\n")
    return [text(`[Result of the tool ${CallName.spelt(toolName, 64)}]\n${words}`), ...attached]
  }
  const hasImages = hasRichResults && !isError
  const spoken = texts.map((part) => plain(Members.over(provider, part, { text: part.text })))
  const inside = [...spoken, ...(hasImages ? images : [])]
  const blocks = inside.length === 0 ? [text(isError ? "(no message)" : "(no output)")] : inside
  const status = hasRichResults && isError ? `,"status":"error"` : ""
  const json = `{"toolResult":{"toolUseId":"${hole}","content":[${blocks.map((block) => block.json).join(",")}]${status}}}`
  const result = within(provider, message, [{ kind: "result", json, key: toolCallId }])
  return [...result, ...(hasImages ? [] : attached)]
}
