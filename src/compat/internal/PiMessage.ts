/**
 * Converts messages to the types of pi-ai, which pi's events contain.
 *
 * Source: @earendil-works/pi-ai 1.5, its message types. `usage.input` of pi excludes tokens read from or
 * written to a cache, that of this library includes them. pi has only base64 images and no files, so other
 * images and files become text.
 */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import type { ToolOutput } from "../../AgentEvent.ts"
import type * as Message from "../../Message.ts"
import type * as ModelEvent from "../../ModelEvent.ts"
import * as Usage from "../../Usage.ts"

/**
 * A text.
 *
 * @since 0.1.0
 * @category models
 */
export interface TextContent {
  /** Always `text`. */
  readonly type: "text"
  /** The text. */
  readonly text: string
  /** The data of the vendor for this text (default: none). */
  readonly textSignature?: string
}

/**
 * A thinking text.
 *
 * @since 0.1.0
 * @category models
 */
export interface ThinkingContent {
  /** Always `thinking`. */
  readonly type: "thinking"
  /** The text. */
  readonly thinking: string
  /** The data of the vendor for this text (default: none). */
  readonly thinkingSignature?: string
  /** Whether the vendor withholds the text (default: `false`). */
  readonly redacted?: boolean
}

/**
 * An image.
 *
 * @since 0.1.0
 * @category models
 */
export interface ImageContent {
  /** Always `image`. */
  readonly type: "image"
  /** The image as base64. */
  readonly data: string
  /** The media type, such as `image/png`. */
  readonly mimeType: string
}

/**
 * A tool call.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolCall {
  /** Always `toolCall`. */
  readonly type: "toolCall"
  /** The id of the call. */
  readonly id: string
  /** The name of the tool. */
  readonly name: string
  /** The arguments as far as they are known: `{}` if they are not a JSON object, and until the call is complete in a run without `partialValues`. */
  readonly arguments: { readonly [key: string]: Schema.Json }
  /** The data of the vendor for this call (default: none). */
  readonly thoughtSignature?: string
}

/**
 * Token counts and the price, in the currency of the provider.
 *
 * @since 0.1.0
 * @category models
 */
export interface PiUsage {
  /** Input tokens, without cached ones. */
  readonly input: number
  /** Output tokens. */
  readonly output: number
  /** Input tokens read from a cache. */
  readonly cacheRead: number
  /** Input tokens written to a cache. */
  readonly cacheWrite: number
  /** Output tokens spent on thinking, if the provider reports them. */
  readonly reasoning?: number
  /** All tokens. */
  readonly totalTokens: number
  /** The price, of which only `total` is known. */
  readonly cost: {
    readonly input: number
    readonly output: number
    readonly cacheRead: number
    readonly cacheWrite: number
    readonly total: number
  }
}

/**
 * A message of the user.
 *
 * @since 0.1.0
 * @category models
 */
export interface UserMessage {
  /** Always `user`. */
  readonly role: "user"
  /** The texts and images. */
  readonly content: ReadonlyArray<TextContent | ImageContent>
  /** Milliseconds since the epoch. */
  readonly timestamp: number
}

/**
 * An answer of the model.
 *
 * @since 0.1.0
 * @category models
 */
export interface AssistantMessage {
  /** Always `assistant`. */
  readonly role: "assistant"
  /** The blocks of the answer. */
  readonly content: ReadonlyArray<TextContent | ThinkingContent | ToolCall>
  /** The protocol of the provider. */
  readonly api: string
  /** The id of the provider. */
  readonly provider: string
  /** The model that answered. */
  readonly model: string
  /** The id that the vendor gave the answer (default: none). */
  readonly responseId?: string
  /** The tokens of the model call. */
  readonly usage: PiUsage
  /** Why the answer ended, `pending` before its end. */
  readonly stopReason: "pending" | "stop" | "length" | "toolUse" | "error" | "aborted"
  /** The error of a failed answer (default: none). */
  readonly errorMessage?: string
  /** Milliseconds since the epoch. */
  readonly timestamp: number
}

/**
 * The result of a tool call.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolResultMessage {
  /** Always `toolResult`. */
  readonly role: "toolResult"
  /** The id of the call. */
  readonly toolCallId: string
  /** The name of the tool. */
  readonly toolName: string
  /** The texts and images. */
  readonly content: ReadonlyArray<TextContent | ImageContent>
  /** Data for the application, which the model does not see (default: none). */
  readonly details?: Schema.Json
  /** Whether the call failed. */
  readonly isError: boolean
  /** Milliseconds since the epoch. */
  readonly timestamp: number
}

/**
 * A message of the application, which the model does not see.
 *
 * @since 0.1.0
 * @category models
 */
export interface CustomMessage {
  /** Always `custom`. */
  readonly role: "custom"
  /** The kind of the message, as the application names it. */
  readonly kind: string
  /** The data of the message. */
  readonly data: Schema.Json
  /** Milliseconds since the epoch. */
  readonly timestamp: number
}

/**
 * A message of pi.
 *
 * @since 0.1.0
 * @category models
 */
export type PiMessage = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage

/**
 * The output of a tool.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolResult {
  /** The texts and images. */
  readonly content: ReadonlyArray<TextContent | ImageContent>
  /** Data for the application, which the model does not see (default: none). */
  readonly details?: Schema.Json
  /** Whether the tool failed (default: `false`). */
  readonly isError?: boolean
  /** Whether the tool ends the run (default: `false`). */
  readonly terminate?: boolean
}

/** Converts a message. */
export const from = (message: Message.Message): PiMessage => {
  const { timestamp } = message
  switch (message.role) {
    case "user":
      return { role: "user", content: message.content.map(shown), timestamp }
    case "assistant":
      return fromAssistant(message)
    case "toolResult":
      return fromToolResult(message)
    case "custom":
      return { role: "custom", kind: message.kind, data: message.data, timestamp }
  }
}

/** Converts an answer. */
export const fromAssistant = (message: Message.Assistant): AssistantMessage => ({
  role: "assistant",
  content: message.content.map(block),
  api: message.protocol,
  provider: message.provider,
  model: message.model,
  ...(message.responseId === undefined ? {} : { responseId: message.responseId }),
  usage: usageOf(message.usage ?? Usage.zero),
  stopReason: stopReasonOf(message.stopReason),
  ...(message.errorMessage === undefined ? {} : { errorMessage: message.errorMessage }),
  timestamp: message.timestamp
})

const fromToolResult = (message: Message.ToolResult): ToolResultMessage => ({
  role: "toolResult",
  toolCallId: message.toolCallId,
  toolName: message.toolName,
  content: message.content.map(shown),
  ...(message.details === undefined ? {} : { details: message.details }),
  isError: message.isError,
  timestamp: message.timestamp
})

/** Converts the output of a tool. */
export const fromOutput = ({ content, ...rest }: ToolOutput): ToolResult => ({
  content: content.map(shown),
  ...rest
})

/**
 * Converts one block of an answer. pi has no block for a source, media or a tool that the vendor ran: a text without a signature
 * keeps the numbers of the blocks after it.
 */
export const block = (
  part: Message.Assistant["content"][number]
): TextContent | ThinkingContent | ToolCall => {
  const signature = part.opaque === undefined ? undefined : signatureOf(part.opaque)
  switch (part.type) {
    case "text":
      return {
        type: "text",
        text: part.text,
        ...(signature === undefined ? {} : { textSignature: signature })
      }
    case "thinking":
      return {
        type: "thinking",
        thinking: part.text,
        ...(signature === undefined ? {} : { thinkingSignature: signature }),
        ...(part.redacted === undefined ? {} : { redacted: part.redacted })
      }
    case "toolCall":
      return { ...toolCall(part), ...(signature === undefined ? {} : { thoughtSignature: signature }) }
    case "media":
      return { type: "text", text: `(media: ${part.source.mediaType})` }
    case "source":
    case "hostedTool":
      return { type: "text", text: "" }
  }
}

const toolCall = ({ id, name, params }: Message.ToolCall): ToolCall => ({
  type: "toolCall",
  id,
  name,
  arguments: isRecord(params) ? params : {}
})

const isRecord = (params: Schema.Json | undefined): params is { readonly [key: string]: Schema.Json } =>
  Predicate.isObject(params) && !Array.isArray(params)

const shown = (part: Message.Text | Message.Image | Message.File): TextContent | ImageContent => {
  if (part.type === "text") return { type: "text", text: part.text }
  const { source } = part
  if ("url" in source) return { type: "text", text: `(${part.type}: ${source.url})` }
  if ("fileId" in source) return { type: "text", text: `(file: ${source.fileId})` }
  return part.type === "image"
    ? { type: "image", data: source.data, mimeType: source.mediaType }
    : { type: "text", text: `(file: ${source.mediaType})` }
}

// Keyed by the object, which is the same in each update of an answer and may contain a complete image.
const signatures = new WeakMap<object, string>()

const signatureOf = (opaque: Schema.Json): string => {
  if (typeof opaque === "string") return opaque
  if (typeof opaque !== "object" || opaque === null) return JSON.stringify(opaque)
  const signature = signatures.get(opaque) ?? JSON.stringify(opaque)
  signatures.set(opaque, signature)
  return signature
}

const usageOf = ({ cacheRead, cacheWrite, cost, input, output, reasoning, total }: Usage.Usage): PiUsage => ({
  input: Math.max(0, input - cacheRead - cacheWrite),
  output,
  cacheRead,
  cacheWrite,
  ...(reasoning === undefined ? {} : { reasoning }),
  totalTokens: total,
  // Only the sum is known, because providers report one price.
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: cost ?? 0 }
})

const stopReasonOf = (reason: Message.StopReason): AssistantMessage["stopReason"] =>
  reason === "contentFilter" || reason === "refusal" ? "error" : reason

// ───────────────────────── Updates

interface Block {
  readonly contentIndex: number
  readonly partial: AssistantMessage
}

interface Delta extends Block {
  readonly delta: string
}

interface End extends Block {
  readonly content: string
}

/**
 * A delta of an answer.
 *
 * pi's `start`, `done` and `error` are `message_start` and `message_end`.
 *
 * @since 0.1.0
 * @category models
 */
export type AssistantMessageEvent =
  | (Block & { readonly type: "text_start" })
  | (Delta & { readonly type: "text_delta" })
  | (End & { readonly type: "text_end" })
  | (Block & { readonly type: "thinking_start" })
  | (Delta & { readonly type: "thinking_delta" })
  | (End & { readonly type: "thinking_end" })
  | (Block & { readonly type: "toolcall_start" })
  | (Delta & { readonly type: "toolcall_delta" })
  | (Block & { readonly type: "toolcall_end"; readonly toolCall: ToolCall })

/** Converts a delta, `undefined` if it belongs to no block. */
export const updates = (
  delta: ModelEvent.ModelEvent,
  open: ModelEvent.Reply,
  partial: AssistantMessage
): AssistantMessageEvent | undefined => {
  if (!("contentIndex" in delta)) return undefined
  const { contentIndex } = delta
  const made = open.content[contentIndex]
  const content = made?.type === "text" || made?.type === "thinking" ? made.text : ""
  switch (delta._tag) {
    case "TextStart":
      return { type: "text_start", contentIndex, partial }
    case "TextDelta":
      return { type: "text_delta", contentIndex, delta: delta.delta, partial }
    case "TextEnd":
      return { type: "text_end", contentIndex, content, partial }
    case "ThinkingStart":
      return { type: "thinking_start", contentIndex, partial }
    case "ThinkingDelta":
      return { type: "thinking_delta", contentIndex, delta: delta.delta, partial }
    case "ThinkingEnd":
      return { type: "thinking_end", contentIndex, content, partial }
    case "ToolCallStart":
      return { type: "toolcall_start", contentIndex, partial }
    case "ToolCallDelta":
      return { type: "toolcall_delta", contentIndex, delta: delta.delta, partial }
    case "ToolCallEnd": {
      const toolCall = made === undefined ? undefined : block(made)
      return toolCall?.type === "toolCall"
        ? { type: "toolcall_end", contentIndex, toolCall, partial }
        : undefined
    }
    case "HostedToolStart":
    case "HostedToolEnd":
    case "Source":
    case "Media":
      return undefined
  }
}
