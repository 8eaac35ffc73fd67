/**
 * What a provider says while it answers, and the fold of that into an assistant message.
 *
 * ```text
 * Attempt* Start (TextStart TextDelta* TextEnd | ThinkingStart … | ToolCallStart ToolCallDelta* ToolCallEnd)* Finish
 * ```
 *
 * Blocks are numbered by `contentIndex` from 0 and may interleave. `Finish` is the proof that the answer is complete: a
 * stream that ends without it was cut. `Attempt` and `Retracted` come from decorators, never from a wire; an HTTP provider
 * says `Attempt` too, where a request goes out again because the socket that was kept for it had died.
 */
import * as Schema from "effect/Schema"
import { nestsTooDeep } from "./internal/jsonDepth.ts"
import type { Assistant, Thinking, Text, ToolCall } from "./Message.ts"
import { StopReason } from "./Message.ts"
import { ProviderError } from "./ProviderError.ts"
import { sane, Usage } from "./Usage.ts"

const index = { contentIndex: Schema.Int }
const delta = { ...index, delta: Schema.String }
const end = { ...index, opaque: Schema.optionalKey(Schema.Json) }

/** An option of a request that the provider changed, since the model does not accept it as it was asked for. */
export const Adjustment = Schema.Struct({
  /** "temperature", "toolChoice", "thinkingLevel" … */
  option: Schema.String,
  /** `null`: nothing was asked for. */
  asked: Schema.Json,
  /** `null`: the option was left out. */
  sent: Schema.Json,
  /** One sentence for people. */
  reason: Schema.String
})
export type Adjustment = typeof Adjustment.Type

/** A member: the options that the provider changed. Absent: none. */
export const adjusted = { adjusted: Schema.optionalKey(Schema.Array(Adjustment)) }

/** A member: names of what an answer holds and no block stands for, such as "images". `opaque` keeps it. Absent: nothing. */
export const unrepresented = { unrepresented: Schema.optionalKey(Schema.Array(Schema.String)) }

export const ModelEvent = Schema.TaggedUnion({
  /** Who answers. A loop that misses it makes one from the request. */
  Start: {
    provider: Schema.String,
    model: Schema.String,
    protocol: Schema.String,
    responseId: Schema.optionalKey(Schema.String),
    ...adjusted
  },
  TextStart: index,
  TextDelta: delta,
  TextEnd: end,
  ThinkingStart: index,
  ThinkingDelta: delta,
  /** `redacted`: the vendor hides the text; `opaque` is all there is. */
  ThinkingEnd: { ...end, redacted: Schema.optionalKey(Schema.Boolean) },
  ToolCallStart: { ...index, id: Schema.String, name: Schema.String },
  ToolCallDelta: delta,
  /** `rawArguments` is the whole JSON text, which a provider may have repaired; it wins over the deltas. */
  ToolCallEnd: { ...end, rawArguments: Schema.String },
  Finish: {
    stopReason: StopReason,
    usage: Schema.optionalKey(Usage),
    ...unrepresented
  },
  /** Somebody is about to ask again, for the `attempt`th time; nothing of this answer has been shown yet. */
  Attempt: { attempt: Schema.Int, delay: Schema.Duration, error: ProviderError },
  /** Everything said since `Start` is void (turn-level retry). */
  Retracted: {}
})
export type ModelEvent = typeof ModelEvent.Type

/** An answer in the making. */
export interface Reply {
  readonly start: Extract<ModelEvent, { readonly _tag: "Start" }> | undefined
  readonly content: ReadonlyArray<Text | Thinking | ToolCall>
  readonly finish: Extract<ModelEvent, { readonly _tag: "Finish" }> | undefined
}

/** Nothing said yet. */
export const emptyReply: Reply = { start: undefined, content: [], finish: undefined }

/** A reply of one's own, to be added to in place: a copy for each delta would cost as much as the whole. */
export interface Draft {
  start: Reply["start"]
  content: Array<Text | Thinking | ToolCall>
  finish: Reply["finish"]
}

export const draft = (): Draft => ({ start: undefined, content: [], finish: undefined })

/**
 * Adds one event to a reply. Pure, and total: a delta for a block that was never opened opens it, so that a provider
 * which forgets a start loses nothing.
 */
export const append = (reply: Reply, event: ModelEvent): Reply => {
  const next: Draft = { ...reply, content: reply.content.slice() }
  add(next, event)
  return next
}

/** The same in place. Its blocks are replaced, never changed. */
export const add = (to: Draft, event: ModelEvent): void => {
  switch (event._tag) {
    case "Start":
      to.start = event
      break
    case "TextStart":
      to.content[event.contentIndex] = { type: "text", text: "" }
      break
    case "TextDelta":
      to.content[event.contentIndex] = grow(textAt(to, event.contentIndex), event.delta)
      break
    case "TextEnd":
      to.content[event.contentIndex] = close(textAt(to, event.contentIndex), event)
      break
    case "ThinkingStart":
      to.content[event.contentIndex] = { type: "thinking", text: "" }
      break
    case "ThinkingDelta":
      to.content[event.contentIndex] = grow(thinkingAt(to, event.contentIndex), event.delta)
      break
    case "ThinkingEnd":
      to.content[event.contentIndex] = closeThinking(thinkingAt(to, event.contentIndex), event)
      break
    case "ToolCallStart":
      to.content[event.contentIndex] = { type: "toolCall", id: event.id, name: event.name, rawArguments: "" }
      break
    case "ToolCallDelta":
      to.content[event.contentIndex] = growCall(callAt(to, event.contentIndex), event.delta)
      break
    case "ToolCallEnd":
      to.content[event.contentIndex] = closeCall(callAt(to, event.contentIndex), event)
      break
    case "Finish":
      to.finish = event.usage === undefined ? event : { ...event, usage: sane(event.usage) }
      break
    case "Attempt":
      break
    case "Retracted":
      Object.assign(to, draft())
      break
  }
}

/** Reads the JSON text of a tool call. No text at all means no arguments; `undefined` means it is not JSON to go by. */
export const parseArguments = (rawArguments: string): Schema.Json | undefined => {
  if (rawArguments.trim() === "") return {}
  if (nestsTooDeep(rawArguments)) return undefined
  try {
    return JSON.parse(rawArguments)
  } catch {
    return undefined
  }
}

/** The message a reply has become so far. Without `Finish` the caller says why it ended, in `fields`. */
export const toAssistant = (
  reply: Reply,
  fields: Pick<Assistant, "id" | "timestamp" | "provider" | "model" | "protocol"> &
    Partial<Pick<Assistant, "stopReason" | "errorMessage">>
): Assistant => {
  const { start, finish } = reply
  return {
    role: "assistant",
    content: reply.content.filter((block) => block !== undefined),
    stopReason: finish?.stopReason ?? "stop",
    ...(finish?.usage === undefined ? {} : { usage: finish.usage }),
    ...fields,
    ...(start === undefined
      ? {}
      : { provider: start.provider, model: start.model, protocol: start.protocol }),
    ...(start?.responseId === undefined ? {} : { responseId: start.responseId })
  }
}

const textAt = (reply: Reply, index: number): Text => {
  const block = reply.content[index]
  return block?.type === "text" ? block : { type: "text", text: "" }
}

const thinkingAt = (reply: Reply, index: number): Thinking => {
  const block = reply.content[index]
  return block?.type === "thinking" ? block : { type: "thinking", text: "" }
}

const callAt = (reply: Reply, index: number): ToolCall => {
  const block = reply.content[index]
  return block?.type === "toolCall" ? block : { type: "toolCall", id: "", name: "", rawArguments: "" }
}

const grow = <Block extends Text | Thinking>(block: Block, delta: string): Block => ({
  ...block,
  text: block.text + delta
})

const growCall = (call: ToolCall, delta: string): ToolCall => ({
  ...call,
  rawArguments: call.rawArguments + delta
})

const close = <Block extends Text | Thinking | ToolCall>(
  block: Block,
  { opaque }: { readonly opaque?: Schema.Json }
): Block => (opaque === undefined ? block : { ...block, opaque })

const closeThinking = (
  block: Thinking,
  event: Extract<ModelEvent, { readonly _tag: "ThinkingEnd" }>
): Thinking => ({ ...close(block, event), ...(event.redacted === true ? { redacted: true } : {}) })

const closeCall = (
  call: ToolCall,
  event: Extract<ModelEvent, { readonly _tag: "ToolCallEnd" }>
): ToolCall => {
  const params = parseArguments(event.rawArguments)
  return {
    ...close(call, event),
    rawArguments: event.rawArguments,
    ...(params === undefined ? {} : { params })
  }
}
