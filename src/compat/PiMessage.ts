/**
 * Messages in the shapes of pi-ai: what pi's events carry.
 *
 * Source: @earendil-works/pi-ai 1.5, its message types. pi's `usage.input` excludes what was read from or written to a
 * cache, ours includes it; pi knows images as base64 alone, and no files, so both are named in words.
 */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import type { ToolOutput } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import * as Usage from "../Usage.ts"

export interface TextContent {
  readonly type: "text"
  readonly text: string
  readonly textSignature?: string
}

export interface ThinkingContent {
  readonly type: "thinking"
  readonly thinking: string
  readonly thinkingSignature?: string
  readonly redacted?: boolean
}

/** `data` is base64. */
export interface ImageContent {
  readonly type: "image"
  readonly data: string
  readonly mimeType: string
}

/** `arguments` is `{}` while the call is being said, and when what was said is not a JSON object. */
export interface ToolCall {
  readonly type: "toolCall"
  readonly id: string
  readonly name: string
  readonly arguments: { readonly [key: string]: Schema.Json }
  readonly thoughtSignature?: string
}

/** Tokens, and their price in the currency the provider reports. */
export interface PiUsage {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly reasoning?: number
  readonly totalTokens: number
  readonly cost: {
    readonly input: number
    readonly output: number
    readonly cacheRead: number
    readonly cacheWrite: number
    readonly total: number
  }
}

export interface UserMessage {
  readonly role: "user"
  readonly content: ReadonlyArray<TextContent | ImageContent>
  readonly timestamp: number
}

export interface AssistantMessage {
  readonly role: "assistant"
  readonly content: ReadonlyArray<TextContent | ThinkingContent | ToolCall>
  readonly api: string
  readonly provider: string
  readonly model: string
  readonly responseId?: string
  readonly usage: PiUsage
  /** `pending` while the answer is being said. */
  readonly stopReason: "pending" | "stop" | "length" | "toolUse" | "error" | "aborted"
  readonly errorMessage?: string
  readonly timestamp: number
}

export interface ToolResultMessage {
  readonly role: "toolResult"
  readonly toolCallId: string
  readonly toolName: string
  readonly content: ReadonlyArray<TextContent | ImageContent>
  readonly details?: Schema.Json
  readonly isError: boolean
  readonly timestamp: number
}

export interface CustomMessage {
  readonly role: "custom"
  readonly kind: string
  readonly data: Schema.Json
  readonly timestamp: number
}

export type PiMessage = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage

/** What a tool gave back. */
export interface ToolResult {
  readonly content: ReadonlyArray<TextContent | ImageContent>
  readonly details?: Schema.Json
  readonly isError?: boolean
  readonly terminate?: boolean
}

/** A message in pi's shape. */
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

export const fromOutput = ({ content, ...rest }: ToolOutput): ToolResult => ({
  content: content.map(shown),
  ...rest
})

/** One block of an answer. */
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
  if ("url" in source) return { type: "text", text: `(image: ${source.url})` }
  if ("fileId" in source) return { type: "text", text: `(file: ${source.fileId})` }
  return part.type === "image"
    ? { type: "image", data: source.data, mimeType: source.mediaType }
    : { type: "text", text: `(file: ${source.mediaType})` }
}

// By the object, which is the same in each update of an answer, and may hold a whole image.
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
  // Only the sum is known: a provider reports one price.
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: cost ?? 0 }
})

const stopReasonOf = (reason: Message.StopReason): AssistantMessage["stopReason"] =>
  reason === "contentFilter" || reason === "refusal" ? "error" : reason
