/**
 * The events of one answer of a provider, and the fold of those events into an assistant message.
 *
 * **Details**
 *
 * ```text
 * Attempt* Start Block* Finish
 * Block    TextStart TextDelta* TextEnd | ThinkingStart ThinkingDelta* ThinkingEnd
 *        | ToolCallStart ToolCallDelta* ToolCallEnd | HostedToolStart HostedToolEnd | Source | Media
 * ```
 *
 * `contentIndex` numbers the blocks of an answer from 0; blocks may interleave. `Finish` proves that the answer is complete: a
 * stream that ends without it was cut. Decorators such as `Retry` emit `Attempt` and `Retracted`. An HTTP provider emits `Attempt`
 * where it repeats a request because the socket that the client had kept was closed.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { parse } from "./internal/json.ts"
import {
  type Assistant,
  HostedTool,
  Media,
  Source,
  StopReason,
  type Text,
  type Thinking,
  type ToolCall
} from "./Message.ts"
import { ProviderError } from "./ProviderError.ts"
import { sane, Usage } from "./Usage.ts"

const index = { contentIndex: Schema.Int }
const delta = { ...index, delta: Schema.String }
const end = { ...index, opaque: Schema.optionalKey(Schema.Json) }

/**
 * An option of a request that the provider changed or left out, because the model does not accept it.
 *
 * @category models
 * @since 0.2.0
 */
export const Adjustment = Schema.Struct({
  /** The name of the option, such as `"temperature"`, `"toolChoice"` or `"thinkingLevel"`. */
  option: Schema.String,
  /** The value that the application gave, or `null` if it gave none. */
  asked: Schema.Json,
  /** The value that the provider sent, or `null` if it left the option out. */
  sent: Schema.Json,
  /** One sentence for people. */
  reason: Schema.String
})
export type Adjustment = typeof Adjustment.Type

/**
 * The struct field `adjusted`: the options that the provider changed, absent if it changed none.
 *
 * @category schemas
 * @since 0.2.0
 */
export const adjusted = { adjusted: Schema.optionalKey(Schema.Array(Adjustment)) }

/**
 * The struct field `responseModel`: the id of the model that answered, as the vendor reports it, such as `"gpt-5.4-mini-2025-08-07"`.
 *
 * **Details**
 *
 * The field is absent if the vendor reports no id, or the id of the request.
 *
 * @category schemas
 * @since 0.2.0
 */
export const responseModel = { responseModel: Schema.optionalKey(Schema.String) }

/**
 * The struct field `unrepresented`: names of the parts of an answer that no block stands for, such as `"images"`, and of what the
 * reader forgave, such as `"an end without a stop reason"`.
 *
 * **Details**
 *
 * The message keeps parts of the vendor in `opaque`. The field is absent if there are none.
 *
 * @category schemas
 * @since 0.2.0
 */
export const unrepresented = { unrepresented: Schema.optionalKey(Schema.Array(Schema.String)) }

/**
 * The struct field `unanswered`: types of calls of the vendor's tools that the application would have to run, such as
 * `"apply_patch_call"`.
 *
 * **Details**
 *
 * Nothing in this package runs them, so the run fails with `Protocol` of the kind `"unanswered"`. The field is absent if there are none.
 *
 * @category schemas
 * @since 0.2.0
 */
export const unanswered = { unanswered: Schema.optionalKey(Schema.Array(Schema.String)) }

/**
 * The struct field `lacksCalls`: whether the answer ends for its tool calls and has none.
 *
 * **Details**
 *
 * The run asks once more. After a second such answer it fails with `Protocol` of the kind `"noToolCalls"`. The field is absent for any other answer.
 *
 * @category schemas
 * @since 0.2.0
 */
export const lacksCalls = { lacksCalls: Schema.optionalKey(Schema.Boolean) }

/**
 * The struct field `headers`: the headers of the response, by names in lower case, such as `"x-request-id"`.
 *
 * **Details**
 *
 * A provider leaves out cookies and other headers that may be secret. The field is absent if the provider reports none.
 *
 * @category schemas
 * @since 0.2.0
 */
export const headers = { headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)) }

/**
 * One rate limit of the vendor, as far as a response reports it.
 *
 * @category models
 * @since 0.2.0
 */
export const RateLimit = Schema.Struct({
  /** The most requests or tokens in one period. */
  limit: Schema.optionalKey(Schema.Finite),
  /** The requests or tokens that are left in the period. */
  remaining: Schema.optionalKey(Schema.Finite),
  /** The time until `remaining` is `limit` again. */
  resetAfter: Schema.optionalKey(Schema.Duration)
})
export interface RateLimit extends Schema.Schema.Type<typeof RateLimit> {}

/**
 * The rate limits of the vendor, as a response reports them.
 *
 * @category models
 * @since 0.2.0
 */
export const RateLimits = Schema.Struct({
  /** The limit on the number of requests. */
  requests: Schema.optionalKey(RateLimit),
  /** The limit on the tokens of requests and answers together. */
  tokens: Schema.optionalKey(RateLimit),
  /** The limit on the tokens of requests, where the vendor counts them apart. */
  inputTokens: Schema.optionalKey(RateLimit),
  /** The limit on the tokens of answers, where the vendor counts them apart. */
  outputTokens: Schema.optionalKey(RateLimit)
})
export interface RateLimits extends Schema.Schema.Type<typeof RateLimits> {}

/**
 * The struct field `rateLimits`: the rate limits of the vendor, absent if the response reports none.
 *
 * @category schemas
 * @since 0.2.0
 */
export const rateLimits = { rateLimits: Schema.optionalKey(RateLimits) }

/**
 * The struct field `serviceTier`: the service tier that answered, such as `"flex"`, absent if the vendor reports none.
 *
 * @category schemas
 * @since 0.2.0
 */
export const serviceTier = { serviceTier: Schema.optionalKey(Schema.String) }

/**
 * Why the model refused to answer, as far as its vendor names a reason.
 *
 * @category models
 * @since 0.2.0
 */
export const Refusal = Schema.Struct({
  /** The policy behind the refusal, by its name at the vendor, such as `"cyber"`. */
  category: Schema.optionalKey(Schema.String),
  /** The reason in words. */
  explanation: Schema.optionalKey(Schema.String),
  /** The id of a model that the vendor recommends for the request. */
  recommendedModel: Schema.optionalKey(Schema.String)
})
export interface Refusal extends Schema.Schema.Type<typeof Refusal> {}

/**
 * The struct field `refusal`: why the model refused to answer, absent if it did not or its vendor does not say why.
 *
 * @category schemas
 * @since 0.2.0
 */
export const refusal = { refusal: Schema.optionalKey(Refusal) }

const token = { token: Schema.String, logprob: Schema.Finite }

/**
 * A token of an answer, and its probability.
 *
 * @category models
 * @since 0.2.0
 */
export const Logprob = Schema.Struct({
  /** The text of the token, and the natural logarithm of its probability. */
  ...token,
  /** The most probable tokens at this place. Default none. */
  top: Schema.optionalKey(Schema.Array(Schema.Struct(token)))
})
export interface Logprob extends Schema.Schema.Type<typeof Logprob> {}

/**
 * The struct field `logprobs`: the tokens of the text and their probabilities, absent without the option `logprobs`.
 *
 * @category schemas
 * @since 0.2.0
 */
export const logprobs = { logprobs: Schema.optionalKey(Schema.Array(Logprob)) }

/**
 * An event of one answer.
 *
 * **Example** (Writing a provider)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, Message, type ModelEvent, Provider } from "effect-agent"
 *
 * const events: ReadonlyArray<ModelEvent.ModelEvent> = [
 *   { _tag: "Start", provider: "echo", model: "echo-1", protocol: "none" },
 *   { _tag: "TextStart", contentIndex: 0 },
 *   { _tag: "TextDelta", contentIndex: 0, delta: "Hello" },
 *   { _tag: "TextEnd", contentIndex: 0 },
 *   { _tag: "Finish", stopReason: "stop" }
 * ]
 * const echo = Provider.Provider.of({ id: "echo", stream: () => Stream.fromIterable(events) })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "echo-1" })
 *   const { newMessages } = yield* agent.prompt("Hi")
 *   return newMessages.map(Message.textOf)
 * }).pipe(Effect.provideService(Provider.Provider, echo), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 'Hi', 'Hello' ]
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const ModelEvent = Schema.TaggedUnion({
  /**
   * The answer begins, and names its provider, model and protocol. If it is missing, the loop takes them from the request. `note` is
   * data that the provider wants with later requests of the conversation, in their `notes`: no message and no event of a run has it.
   */
  Start: {
    provider: Schema.String,
    model: Schema.String,
    protocol: Schema.String,
    responseId: Schema.optionalKey(Schema.String),
    note: Schema.optionalKey(Schema.Json),
    ...responseModel,
    ...adjusted,
    ...headers,
    ...rateLimits
  },
  /** A block of text begins. */
  TextStart: index,
  /** A piece of text. */
  TextDelta: delta,
  /** A block of text ends. `opaque` is the data that the provider wants back unchanged. */
  TextEnd: end,
  /** A block of thinking begins. */
  ThinkingStart: index,
  /** A piece of thinking. */
  ThinkingDelta: delta,
  /** A block of thinking ends. With `redacted` the vendor hides the text, and the block has `opaque` alone. */
  ThinkingEnd: { ...end, redacted: Schema.optionalKey(Schema.Boolean) },
  /** A tool call begins, and gives its id and the name of its tool. */
  ToolCallStart: { ...index, id: Schema.String, name: Schema.String },
  /** A piece of the JSON text of the arguments. */
  ToolCallDelta: delta,
  /**
   * A tool call ends. `rawArguments` is the whole JSON text, which replaces that of the deltas. `hosted`: the vendor runs the call once
   * it is approved.
   */
  ToolCallEnd: { ...end, rawArguments: Schema.String, hosted: Schema.optionalKey(Schema.Boolean) },
  /** The vendor begins to run a tool of its own, or gives the result of the call with this id. */
  HostedToolStart: { ...index, id: Schema.String, name: Schema.String },
  /** The block of the call ends, with the params of the call, its result, or both. */
  HostedToolEnd: { ...end, ...Struct.pick(HostedTool.fields, ["params", "result", "isError"]) },
  /** A source, as a whole block. */
  Source: { ...index, source: Source },
  /** An image, a recording or another file that the model made, as a whole block. */
  Media: { ...index, media: Media },
  /**
   * The answer is complete. `usage` is absent if the provider reports no tokens. `responseModel` is that of a model that took over in
   * the middle of the answer, and replaces that of `Start`.
   */
  Finish: {
    stopReason: StopReason,
    usage: Schema.optionalKey(Usage),
    ...responseModel,
    ...refusal,
    ...unrepresented,
    ...unanswered,
    ...lacksCalls,
    ...logprobs,
    ...serviceTier
  },
  /** Attempt number `attempt`, from 1, failed with `error`, and the next one follows after `delay`. */
  Attempt: { attempt: Schema.Int, delay: Schema.Duration, error: ProviderError },
  /** All events since `Start` are void, and a new answer follows. */
  Retracted: {}
})
export type ModelEvent = typeof ModelEvent.Type

/**
 * An answer as far as it has come.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reply {
  /** The event `Start`, or `undefined` before it. */
  readonly start: Extract<ModelEvent, { readonly _tag: "Start" }> | undefined
  /** The blocks so far, by `contentIndex`. */
  readonly content: Assistant["content"]
  /** The event `Finish`, or `undefined` before it. */
  readonly finish: Extract<ModelEvent, { readonly _tag: "Finish" }> | undefined
}

/**
 * An answer without any event.
 *
 * @category constants
 * @since 0.1.0
 */
export const emptyReply: Reply = { start: undefined, content: [], finish: undefined }

/**
 * A reply that {@link add} changes in place.
 *
 * @category models
 * @since 0.1.0
 */
export interface Draft {
  /** The event `Start`, or `undefined` before it. */
  start: Reply["start"]
  /** The blocks so far, by `contentIndex`. */
  content: Array<Assistant["content"][number]>
  /** The event `Finish`, or `undefined` before it. */
  finish: Reply["finish"]
}

/**
 * Makes an empty draft.
 *
 * **Example** (Adding events in place)
 *
 * ```ts
 * import { ModelEvent } from "effect-agent"
 *
 * const draft = ModelEvent.draft()
 * ModelEvent.add(draft, { _tag: "TextDelta", contentIndex: 0, delta: "Hel" })
 * ModelEvent.add(draft, { _tag: "TextDelta", contentIndex: 0, delta: "lo" })
 *
 * console.log(draft.content) // => [ { type: 'text', text: 'Hello' } ]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const draft = (): Draft => ({ start: undefined, content: [], finish: undefined })

/**
 * Returns a reply with one more event.
 *
 * **Details**
 *
 * The function is pure and accepts every sequence of events: a delta for a block that has not begun begins it, so that no text of
 * a provider that omits a start is lost.
 *
 * **Gotchas**
 *
 * It copies the list of blocks. Use {@link add} where an answer has many deltas.
 *
 * **Example** (Folding events)
 *
 * ```ts
 * import { ModelEvent } from "effect-agent"
 *
 * const events: ReadonlyArray<ModelEvent.ModelEvent> = [
 *   { _tag: "TextDelta", contentIndex: 0, delta: "Hel" },
 *   { _tag: "TextDelta", contentIndex: 0, delta: "lo" }
 * ]
 * const reply = events.reduce(ModelEvent.append, ModelEvent.emptyReply)
 *
 * console.log(reply.content) // => [ { type: 'text', text: 'Hello' } ]
 * ```
 *
 * @category folding
 * @since 0.1.0
 */
export const append = (reply: Reply, event: ModelEvent): Reply => {
  const next: Draft = { ...reply, content: reply.content.slice() }
  add(next, event)
  return next
}

/**
 * Adds one event to a draft, in place.
 *
 * **Details**
 *
 * It replaces blocks and does not change them, so a block that was read before stays as it was.
 *
 * **Example** (Taking back an answer)
 *
 * ```ts
 * import { ModelEvent } from "effect-agent"
 *
 * const draft = ModelEvent.draft()
 * ModelEvent.add(draft, { _tag: "TextDelta", contentIndex: 0, delta: "Hel" })
 * ModelEvent.add(draft, { _tag: "Retracted" })
 *
 * console.log(draft.content.length) // => 0
 * ```
 *
 * @category folding
 * @since 0.1.0
 */
export const add = (to: Draft, event: ModelEvent): void => {
  switch (event._tag) {
    case "Start":
      to.start = event
      break
    case "Finish":
      to.finish = event.usage === undefined ? event : { ...event, usage: sane(event.usage) }
      break
    case "Retracted":
      Object.assign(to, draft())
      break
    case "Attempt":
      break
    default:
      to.content[event.contentIndex] = changed(to.content[event.contentIndex], event)
  }
}

type Block = Reply["content"][number]
type BlockEvent = Extract<ModelEvent, { readonly contentIndex: number }>

/** Applies an event to its block. A block that has not begun, or is of another kind, counts as empty. */
const changed = (block: Block | undefined, event: BlockEvent): Block => {
  switch (event._tag) {
    case "TextStart":
      return noText
    case "TextDelta":
      return grow(block?.type === "text" ? block : noText, event.delta)
    case "TextEnd":
      return close(block?.type === "text" ? block : noText, event)
    case "ThinkingStart":
      return noThinking
    case "ThinkingDelta":
      return grow(block?.type === "thinking" ? block : noThinking, event.delta)
    case "ThinkingEnd": {
      const thinking = close(block?.type === "thinking" ? block : noThinking, event)
      return event.redacted === true ? { ...thinking, redacted: true } : thinking
    }
    case "ToolCallStart":
      return { ...noCall, id: event.id, name: event.name }
    case "ToolCallDelta": {
      const call = block?.type === "toolCall" ? block : noCall
      return { ...call, rawArguments: call.rawArguments + event.delta }
    }
    case "ToolCallEnd": {
      const { rawArguments } = event
      const params = parseArguments(rawArguments)
      return {
        ...close(block?.type === "toolCall" ? block : noCall, event),
        rawArguments,
        ...(params === undefined ? {} : { params }),
        ...(event.hosted === true ? { hosted: true } : {})
      }
    }
    case "HostedToolStart":
      return { ...noHostedTool, id: event.id, name: event.name }
    case "HostedToolEnd":
      return {
        ...(block?.type === "hostedTool" ? block : noHostedTool),
        ...Struct.omit(event, ["_tag", "contentIndex"])
      }
    case "Source":
      return event.source
    case "Media":
      return event.media
  }
}

const noText: Text = { type: "text", text: "" }
const noThinking: Thinking = { type: "thinking", text: "" }
const noCall: ToolCall = { type: "toolCall", id: "", name: "", rawArguments: "" }
const noHostedTool: HostedTool = { type: "hostedTool", id: "", name: "" }

/**
 * Appends to the text of a block. V8 keeps a text that grew by concatenation as a tree of its pieces, which takes ten times the memory of
 * the text. When the length passes a power of two, this makes V8 join the pieces.
 */
const grow = <B extends Text | Thinking>(block: B, delta: string): B => {
  const text = block.text + delta
  const isLong = Math.clz32(text.length) !== Math.clz32(block.text.length)
  return { ...block, text: isLong ? ` ${text}`.slice(1) : text }
}

const close = <B extends Block>(block: B, { opaque }: { readonly opaque?: Schema.Json }): B =>
  opaque === undefined ? block : { ...block, opaque }

/**
 * Parses the JSON text of a tool call.
 *
 * **Details**
 *
 * Empty text counts as `{}`. Returns `undefined` for text that is not valid JSON, or that nests deeper than 256 levels.
 *
 * **Example** (Parsing arguments)
 *
 * ```ts
 * import { ModelEvent } from "effect-agent"
 *
 * console.log(ModelEvent.parseArguments('{"city":"Oslo"}')) // => { city: 'Oslo' }
 * console.log(ModelEvent.parseArguments('{"city":')) // => undefined
 * ```
 *
 * @category decoding
 * @since 0.1.0
 */
export const parseArguments = (rawArguments: string): Schema.Json | undefined =>
  ["", "null"].includes(rawArguments.trim()) ? {} : parse(rawArguments)

/**
 * Makes an assistant message of a reply, complete or not.
 *
 * **Details**
 *
 * `fields` has the id and the time of the message. Its `provider`, `model` and `protocol` count only for a reply without `Start`.
 * Its `stopReason` wins over that of `Finish`; a reply without either has `"stop"`.
 *
 * **Example** (Making a message of events)
 *
 * ```ts
 * import { Message, ModelEvent } from "effect-agent"
 *
 * const reply = ModelEvent.append(ModelEvent.emptyReply, {
 *   _tag: "TextDelta",
 *   contentIndex: 0,
 *   delta: "Hello"
 * })
 * const message = ModelEvent.toAssistant(reply, {
 *   id: Message.makeId(),
 *   timestamp: Date.now(),
 *   provider: "",
 *   model: "",
 *   protocol: "",
 *   stopReason: "aborted"
 * })
 *
 * console.log(Message.textOf(message), message.stopReason) // => Hello aborted
 * ```
 *
 * @category converting
 * @since 0.1.0
 */
export const toAssistant = (
  reply: Reply,
  fields: Pick<Assistant, "id" | "timestamp" | "provider" | "model" | "protocol"> &
    Partial<Pick<Assistant, "stopReason" | "errorMessage" | "leftOut" | "refused">>
): Assistant => {
  const { start, finish } = reply
  return {
    role: "assistant",
    // Blocks may arrive out of order: `Object.values` skips the gaps.
    content: Object.values(reply.content),
    stopReason: "stop",
    ...(finish && Struct.pick(finish, ["stopReason", "usage"])),
    ...fields,
    ...(start && Struct.pick(start, ["provider", "model", "protocol", "responseId", "responseModel"])),
    ...(finish && Struct.pick(finish, ["responseModel"]))
  }
}
