/**
 * The entries of a transcript. Plain JSON-safe objects; the system prompt and the tools are not messages.
 *
 * `opaque` is whatever a vendor wants back verbatim (signatures, encrypted reasoning, item ids). It is tagged by the
 * provider that made it and only ever replayed to that provider.
 */
import * as Schema from "effect/Schema"
import { Usage } from "./Usage.ts"

export const Text = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  opaque: Schema.optionalKey(Schema.Json)
})
export type Text = typeof Text.Type

/** `data` is base64. */
const Inline = Schema.Struct({ data: Schema.String, mediaType: Schema.String })

export const Image = Schema.Struct({
  type: Schema.Literal("image"),
  source: Schema.Union([Inline, Schema.Struct({ url: Schema.String })])
})
export type Image = typeof Image.Type

export const File = Schema.Struct({
  type: Schema.Literal("file"),
  source: Schema.Union([Inline, Schema.Struct({ fileId: Schema.String })])
})
export type File = typeof File.Type

/** What the model thought before it answered. `redacted` thinking has no text, only `opaque`. */
export const Thinking = Schema.Struct({
  type: Schema.Literal("thinking"),
  text: Schema.String,
  redacted: Schema.optionalKey(Schema.Boolean),
  opaque: Schema.optionalKey(Schema.Json)
})
export type Thinking = typeof Thinking.Type

/** `rawArguments` is the JSON text as the model wrote it; `params` is its value, absent when it does not parse. */
export const ToolCall = Schema.Struct({
  type: Schema.Literal("toolCall"),
  id: Schema.String,
  name: Schema.String,
  rawArguments: Schema.String,
  params: Schema.optionalKey(Schema.Json),
  opaque: Schema.optionalKey(Schema.Json)
})
export type ToolCall = typeof ToolCall.Type

export const StopReason = Schema.Literals([
  "stop",
  "length",
  "toolUse",
  "contentFilter",
  "refusal",
  "error",
  "aborted"
])
export type StopReason = typeof StopReason.Type

export const ToolOutcome = Schema.Literals([
  "success",
  "error",
  "timeout",
  "unknownTool",
  "invalidArguments",
  "blocked",
  "rejected",
  "skipped",
  "aborted",
  "truncated"
])
export type ToolOutcome = typeof ToolOutcome.Type

/** Unique in its transcript; events name messages by it. */
export const MessageId = Schema.String
export type MessageId = string

export const User = Schema.Struct({
  role: Schema.Literal("user"),
  id: MessageId,
  content: Schema.Array(Schema.Union([Text, Image, File])),
  timestamp: Schema.Finite
})
export type User = typeof User.Type

export const Assistant = Schema.Struct({
  role: Schema.Literal("assistant"),
  id: MessageId,
  content: Schema.Array(Schema.Union([Text, Thinking, ToolCall])),
  stopReason: StopReason,
  usage: Schema.optionalKey(Usage),
  provider: Schema.String,
  model: Schema.String,
  protocol: Schema.String,
  responseId: Schema.optionalKey(Schema.String),
  errorMessage: Schema.optionalKey(Schema.String),
  timestamp: Schema.Finite
})
export type Assistant = typeof Assistant.Type

export const ToolResult = Schema.Struct({
  role: Schema.Literal("toolResult"),
  id: MessageId,
  toolCallId: Schema.String,
  toolName: Schema.String,
  content: Schema.Array(Schema.Union([Text, Image])),
  details: Schema.optionalKey(Schema.Json),
  isError: Schema.Boolean,
  outcome: ToolOutcome,
  timestamp: Schema.Finite
})
export type ToolResult = typeof ToolResult.Type

/** Whatever the application adds. Never sent to a model, unless a `toModelMessages` hook makes a user message of it. */
export const Custom = Schema.Struct({
  role: Schema.Literal("custom"),
  kind: Schema.String,
  id: MessageId,
  data: Schema.Json,
  timestamp: Schema.Finite
})
export type Custom = typeof Custom.Type

/** What a model can be sent. */
export const ModelMessage = Schema.Union([User, Assistant, ToolResult])
export type ModelMessage = typeof ModelMessage.Type

export const Message = Schema.Union([User, Assistant, ToolResult, Custom])
export type Message = typeof Message.Type

/** What `prompt`, `steer` and their like take: text, one message or several, or the content of a user message. */
export type Input = string | Message | ReadonlyArray<Message> | User["content"]

// Unique in and across processes: a random prefix per process, then a count. The prefix is made with the first id: Node
// loads its cryptography for it, which an import should not wait for.
let prefix: string | undefined
let count = 0

const makePrefix = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(36)).join("")

/** A new message id. */
export const makeId = (): MessageId => `msg_${(prefix ??= makePrefix())}_${(++count).toString(36)}`

export const text = (text: string): Text => ({ type: "text", text })

/** An image from base64 data. */
export const image = (data: string, mediaType: string): Image => ({
  type: "image",
  source: { data, mediaType }
})

export const user = (content: string | User["content"], timestamp = Date.now()): User => ({
  role: "user",
  id: makeId(),
  content: typeof content === "string" ? [text(content)] : content,
  timestamp
})

/** An answer by hand, for tests, imports and hooks that supply one. */
export const assistant = (
  content: string | Assistant["content"],
  options?: Partial<Omit<Assistant, "role" | "content">>
): Assistant => ({
  role: "assistant",
  id: makeId(),
  content: typeof content === "string" ? [text(content)] : content,
  stopReason: "stop",
  provider: "",
  model: "",
  protocol: "",
  timestamp: Date.now(),
  ...options
})

export const toolResult = (
  call: { readonly id: string; readonly name: string },
  content: string | ToolResult["content"],
  options?: Partial<Pick<ToolResult, "details" | "isError" | "outcome" | "timestamp">>
): ToolResult => ({
  role: "toolResult",
  id: makeId(),
  toolCallId: call.id,
  toolName: call.name,
  content: typeof content === "string" ? [text(content)] : content,
  isError: false,
  outcome: options?.isError === true ? "error" : "success",
  timestamp: options?.timestamp ?? Date.now(),
  ...options
})

export const custom = (kind: string, data: Schema.Json, timestamp = Date.now()): Custom => ({
  role: "custom",
  kind,
  id: makeId(),
  data,
  timestamp
})

/** Input as messages; text or content becomes a user message of the given time, in milliseconds. */
export const fromInput = (input: Input, timestamp?: number): ReadonlyArray<Message> => {
  if (typeof input === "string") return [user(input, timestamp)]
  if (isMessage(input)) return [input]
  if (isMessages(input)) return input
  return [user(input, timestamp)]
}

const isMessage = (input: Exclude<Input, string>): input is Message => "role" in input

const isMessages = (input: ReadonlyArray<Message> | User["content"]): input is ReadonlyArray<Message> =>
  input.every((one) => "role" in one)

/** The text blocks of a message or of a tool's output, joined. */
export const textOf = (message: Message | Pick<ToolResult, "content">): string =>
  "content" in message
    ? message.content.reduce((joined, block) => (block.type === "text" ? joined + block.text : joined), "")
    : ""

/** The tool calls of an answer, in the order the model made them. */
export const toolCalls = (message: Assistant): ReadonlyArray<ToolCall> =>
  message.content.filter((block) => block.type === "toolCall")
