/**
 * What a scripted answer is made of, in the order it happens: things said, things that go wrong, things that take time.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { StopReason } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import type { ProviderError, Reason } from "../ProviderError.ts"
import * as Usage from "../Usage.ts"

/** One step of an answer. Blocks (`Text`, `Thinking`, `ToolCall`) are numbered from 0 in the order of their steps. */
export type Step =
  | { readonly _tag: "Start" }
  | { readonly _tag: "Text"; readonly deltas: ReadonlyArray<string>; readonly opaque?: Schema.Json }
  | {
      readonly _tag: "Thinking"
      readonly deltas: ReadonlyArray<string>
      readonly opaque?: Schema.Json
      readonly redacted?: boolean
    }
  | {
      readonly _tag: "ToolCall"
      readonly name: string
      readonly deltas: ReadonlyArray<string>
      readonly id?: string
      readonly opaque?: Schema.Json
    }
  | { readonly _tag: "Event"; readonly event: ModelEvent }
  | { readonly _tag: "Finish"; readonly stopReason: StopReason; readonly usage?: Usage.Usage }
  | { readonly _tag: "Fail"; readonly error: ProviderError | Reason }
  | { readonly _tag: "Run"; readonly effect: Effect.Effect<unknown, ProviderError> }
  | { readonly _tag: "Eof" }

/** What a vendor wants back verbatim, such as a signature. */
export interface Opaque {
  readonly opaque?: Schema.Json
}

/** What a tool call may have besides its name and its arguments. */
export interface ToolCallOptions extends Opaque {
  /** Default `call-1`, `call-2`, … over the whole script. */
  readonly id?: string
}

/** The answer begins: who says it. The model is the one of the request, the protocol `scripted`. */
export const start: Step = { _tag: "Start" }

/** A block of text: its start, one delta for each string, its end. */
export const text = (deltas: string | ReadonlyArray<string>, options?: Opaque): Step => ({
  _tag: "Text",
  deltas: toDeltas(deltas),
  ...options
})

/** A block of thinking. `redacted`: the vendor hides the text and gives `opaque` alone. */
export const thinking = (
  deltas: string | ReadonlyArray<string>,
  options?: Opaque & { readonly redacted?: boolean }
): Step => ({ _tag: "Thinking", deltas: toDeltas(deltas), ...options })

/** A tool call whose arguments come as JSON in one piece. */
export const toolCall = (name: string, params: Schema.Json, options?: ToolCallOptions): Step =>
  rawToolCall(name, [JSON.stringify(params)], options)

/** A tool call whose argument text comes in these pieces: split, empty, or not JSON at all. */
export const rawToolCall = (
  name: string,
  deltas: ReadonlyArray<string>,
  options?: ToolCallOptions
): Step => ({ _tag: "ToolCall", name, deltas, ...options })

/** Any event as it is, for streams the other steps cannot make. */
export const event = (event: ModelEvent): Step => ({ _tag: "Event", event })

/** The answer is complete. Tokens left out of `usage` are zero; no `usage` at all reports none. */
export const finish = (stopReason: StopReason = "stop", usage?: Partial<Usage.Usage>): Step => ({
  _tag: "Finish",
  stopReason,
  ...(usage === undefined ? {} : { usage: Usage.make(usage) })
})

/** The stream fails. A bare reason becomes a `ProviderError` of the scripted provider. */
export const fail = (error: ProviderError | Reason): Step => ({ _tag: "Fail", error })

/** The stream dies: a bug in a provider, not a failure it expects. */
export const die = (defect: unknown): Step => run(Effect.die(defect))

/** The stream ends here, whatever steps follow. Without a `finish` before it, the answer was cut. */
export const eof: Step = { _tag: "Eof" }

/** Waits, by the clock of the test. */
export const sleep = (duration: Duration.Input): Step => run(Effect.sleep(duration))

/** Waits until the stream is left. */
export const never: Step = { _tag: "Run", effect: Effect.never }

/** Runs an effect between two events, such as `Deferred.succeed` to say that the answer came this far. */
export const run = (effect: Effect.Effect<unknown, ProviderError>): Step => ({ _tag: "Run", effect })

const toDeltas = (deltas: string | ReadonlyArray<string>): ReadonlyArray<string> =>
  typeof deltas === "string" ? [deltas] : deltas
