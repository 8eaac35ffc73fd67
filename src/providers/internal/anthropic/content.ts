/** Encodes messages as blocks of Anthropic Messages: https://docs.anthropic.com/en/api/messages */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type * as Message from "../../../Message.ts"
import type { Reason } from "../../../ProviderError.ts"
import { UnsupportedContent } from "../../../ProviderError.ts"
import * as CallArguments from "../callArguments.ts"
import * as CallName from "../callName.ts"
import * as DataUrl from "../dataUrl.ts"
import * as Json from "../json.ts"
import * as Members from "../members.ts"
import * as Opaque from "../opaque.ts"
import { isReason } from "../../Protocol.ts"
import * as ToolSearch from "./toolSearch.ts"

/** A block as JSON, without the id of a call, which depends on the rest of the conversation. */
export interface Block {
  readonly kind: "plain" | "thinking" | "call" | "result" | "search"
  readonly json: string
  /** The id of a call, or of the call to which a result belongs, else empty. */
  readonly id: string
  /** The set of tools to one of which a call goes. Its result names the set too. */
  readonly toolset?: string
  /** The tools that a search of the vendor found. */
  readonly found?: ReadonlyArray<string>
}

/** The blocks of a message, none if there is nothing to send. */
export const encodeMessage = (
  provider: string,
  message: Message.ModelMessage,
  keepsUnsigned: boolean
): ReadonlyArray<Block> | Reason => {
  switch (message.role) {
    case "user":
      return encodeUser(provider, message)
    case "assistant":
      return lastWith(provider, message, encodeAssistant(provider, message, keepsUnsigned))
    case "toolResult":
      return encodeResult(provider, message)
  }
}

/** The answer without white space at its end. The vendor rejects it at the end of the last message. */
export const trimmed = (message: Message.Assistant): Message.Assistant => {
  const { content } = message
  const at = content.findLastIndex(({ type }) => type !== "source" && type !== "media")
  const last = content[at]
  return last?.type === "text" && last.text !== last.text.trimEnd()
    ? { ...message, content: content.with(at, { ...last, text: last.text.trimEnd() }) }
    : message
}

interface WireBlock {
  readonly type: string
  readonly [field: string]: unknown
}

const plain = (block: object): Block => ({ kind: "plain", json: Json.encode(block), id: "" })

/** A block of the vendor as it came. */
const theirs = (block: Json.JsonObject): Block =>
  ToolSearch.isPart(block)
    ? { kind: "search", json: Json.encode(block), id: "", found: ToolSearch.found(block) }
    : plain(block)

/** The blocks of a message, the last of them with the members of the message: those of the vendor have no others. */
const lastWith = (
  provider: string,
  message: Message.ModelMessage,
  blocks: ReadonlyArray<Block>
): ReadonlyArray<Block> =>
  blocks.map((block, index) => (index === blocks.length - 1 ? within(provider, message, block) : block))

/** A block with the members of what it stands for. */
const within = (provider: string, from: Pick<Message.Text, "vendor">, block: Block): Block =>
  Members.of(provider, from) === undefined
    ? block
    : { ...block, json: Members.into(provider, from, block.json) }

const isBlank = (text: string): boolean => text.trim() === ""

const encodeUser = (provider: string, message: Message.User): ReadonlyArray<Block> | Reason => {
  const blocks: Array<Block> = []
  for (const part of message.content) {
    if (part.type === "text" && isBlank(part.text)) continue
    const block = part.type === "text" ? { type: "text", text: part.text } : toMedia(part)
    if (isReason(block)) return block
    blocks.push(within(provider, part, plain(block)))
  }
  // The vendor requires a text that is not empty, and content in each message.
  if (blocks.length === 0) blocks.push(plain({ type: "text", text: "(empty message)" }))
  return lastWith(provider, message, blocks)
}

export const toMedia = (part: Message.Image | Message.File): WireBlock | Reason => {
  if (part.type === "image") return toImage(part)
  const { citations, source } = part
  const document = (source: object): WireBlock => ({ type: "document", source, citations })
  if ("fileId" in source) return document({ type: "file", file_id: source.fileId })
  if ("url" in source) return document({ type: "url", url: source.url })
  const { data, mediaType } = source
  if (mediaType.startsWith("image/")) return toImage({ type: "image", source: { data, mediaType } })
  if (mediaType === "application/pdf") {
    return document({ type: "base64", media_type: mediaType, data })
  }
  const text = /^text\/|[/+]json$/.test(mediaType) ? Base64.decodeString(data) : undefined
  return text !== undefined && Result.isSuccess(text)
    ? document({ type: "text", media_type: "text/plain", data: text.success })
    : new UnsupportedContent({ detail: `Anthropic does not take files of type ${mediaType}` })
}

const imageTypes: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"])

const toImage = ({ source }: Message.Image): WireBlock | Reason => {
  const inline = "url" in source ? DataUrl.read(source.url) : source
  if (inline === undefined) return { type: "image", source: { type: "url", ...source } }
  const mediaType = inline.mediaType === "image/jpg" ? "image/jpeg" : inline.mediaType
  return imageTypes.has(mediaType)
    ? { type: "image", source: { type: "base64", media_type: mediaType, data: inline.data } }
    : new UnsupportedContent({ detail: `Anthropic does not take images of type ${mediaType}` })
}

/** The vendor rejects thinking at the end of a message, where it has no effect. */
const encodeAssistant = (
  provider: string,
  message: Message.Assistant,
  keepsUnsigned: boolean
): ReadonlyArray<Block> => {
  const blocks = message.content.flatMap((block, index) =>
    encodeBlock(provider, message, block, index, keepsUnsigned).map((encoded) =>
      block.type === "source" ? encoded : within(provider, block, encoded)
    )
  )
  return blocks.slice(0, blocks.findLastIndex(({ kind }) => kind !== "thinking") + 1)
}

const encodeBlock = (
  provider: string,
  message: Message.Assistant,
  block: Message.Assistant["content"][number],
  index: number,
  keepsUnsigned: boolean
): ReadonlyArray<Block> => {
  switch (block.type) {
    case "text":
      return encodeText(provider, message, block, index)
    case "thinking":
      return encodeThinking(provider, block, keepsUnsigned)
    case "toolCall":
      return [encodeCall(provider, block)]
    case "hostedTool":
      return encodeHosted(provider, message, block, index)
    // The text that cites a source, or the result of the search that found it, holds what the vendor wants back.
    case "source":
    case "media":
      return []
  }
}

const encodeText = (
  provider: string,
  message: Message.Assistant,
  text: Message.Text,
  index: number
): ReadonlyArray<Block> => {
  const own = Opaque.of(provider, text)
  const block = Json.object(own?.["block"])
  if (block !== undefined) return isUnanswered(provider, message, block, index) ? [] : [theirs(block)]
  const citations = own?.["citations"]
  return isBlank(text.text) ? [] : [plain({ type: "text", text: text.text, citations })]
}

/** A call or a result of a tool that this vendor ran. */
const encodeHosted = (
  provider: string,
  message: Message.Assistant,
  tool: Message.HostedTool,
  index: number
): ReadonlyArray<Block> => {
  const block = Json.object(Opaque.of(provider, tool)?.["block"])
  if (block === undefined || isUnanswered(provider, message, block, index)) return []
  const { params: input, result: content } = tool
  return [theirs({ ...block, ...Json.defined({ input, content }) })]
}

/**
 * Whether an answer was cut between the use of a vendor's tool and its result. The vendor rejects the use
 * without the result.
 */
const isUnanswered = (
  provider: string,
  { content, stopReason }: Message.Assistant,
  { id, type }: Json.JsonObject,
  index: number
): boolean =>
  stopReason !== "stop" &&
  stopReason !== "toolUse" &&
  (type === "server_tool_use" || type === "mcp_tool_use") &&
  !content
    .slice(index)
    .some((later) => Json.object(Opaque.of(provider, later)?.["block"])?.["tool_use_id"] === id)

/** The vendor accepts only thinking with a signature, and redacted thinking. */
const encodeThinking = (
  provider: string,
  thinking: Message.Thinking,
  keepsUnsigned: boolean
): ReadonlyArray<Block> => {
  const { data, signature } = Opaque.of(provider, thinking) ?? {}
  const block =
    signature !== undefined && (keepsUnsigned || signature !== "")
      ? { type: "thinking", thinking: thinking.text, signature }
      : data !== undefined
        ? { type: "redacted_thinking", data }
        : undefined
  return block === undefined ? [] : [{ kind: "thinking", json: Json.encode(block), id: "" }]
}

const encodeCall = (provider: string, call: Message.ToolCall): Block => {
  const name = CallName.spelt(call.name, 128)
  const input = CallArguments.object(call.rawArguments)
  const { caller, toolset } = Opaque.of(provider, call) ?? {}
  const { action, ...rest } = input
  if (typeof toolset === "string" && typeof action === "string") {
    const member = { type: "tool_use", name: action, toolset_name: toolset, input: rest, caller }
    return { kind: "call", json: Json.encode(member), id: call.id, toolset }
  }
  return {
    kind: "call",
    json: Json.encode({ type: "tool_use", name, input, caller }),
    id: call.id
  }
}

/** An error result must not be empty and cannot contain images, which come after all results of the turn. */
const encodeResult = (provider: string, message: Message.ToolResult): ReadonlyArray<Block> | Reason => {
  const { content, isError, toolCallId: id } = message
  const all: Array<object> = []
  for (const part of content) {
    if (part.type === "text" && isBlank(part.text)) continue
    const block = part.type === "text" ? { type: "text", text: part.text } : toImage(part)
    if (isReason(block)) return block
    all.push(Members.over(provider, part, block))
  }
  const result = (fields: object): Block =>
    within(provider, message, {
      kind: "result",
      json: Json.encode({ type: "tool_result", ...fields }),
      id
    })
  if (!isError) return [result(all.length === 0 ? {} : { content: all })]
  const texts = all.filter(isText)
  const images = all.filter((block) => !isText(block))
  return [
    result({
      content: texts.length === 0 ? [{ type: "text", text: "(no message)" }] : texts,
      is_error: true
    }),
    ...(images.length === 0 ? [] : [plain(attached), ...images.map(plain)])
  ]
}

const isText = (block: object): boolean => "text" in block

const attached = { type: "text", text: "Attached image(s) from tool result:" }
