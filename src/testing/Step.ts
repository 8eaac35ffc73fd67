/**
 * The steps of a scripted answer, in the order in which they happen: events, failures, and time that passes.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { HostedTool, Media, Source, StopReason } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import type { ProviderError, Reason } from "../ProviderError.ts"
import * as Usage from "../Usage.ts"

/**
 * One step of an answer.
 *
 * **Details**
 *
 * The blocks `Text`, `Thinking`, `ToolCall`, `Source`, `Media` and `HostedTool` get the numbers 0, 1, … in the order of their steps.
 *
 * @category models
 * @since 0.1.0
 */
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
  | { readonly _tag: "Source"; readonly source: Source }
  | { readonly _tag: "Media"; readonly media: Media }
  | { readonly _tag: "HostedTool"; readonly hostedTool: HostedTool }
  | { readonly _tag: "Event"; readonly event: ModelEvent }
  | { readonly _tag: "Finish"; readonly stopReason: StopReason; readonly usage?: Usage.Usage }
  | { readonly _tag: "Fail"; readonly error: ProviderError | Reason }
  | { readonly _tag: "Run"; readonly effect: Effect.Effect<unknown, ProviderError> }
  | { readonly _tag: "Eof" }

/**
 * The options of a block.
 *
 * @category options
 * @since 0.1.0
 */
export interface Opaque {
  /** Data that the provider wants back unchanged, such as a signature. Default none. */
  readonly opaque?: Schema.Json
}

/**
 * The options of a tool call.
 *
 * @category options
 * @since 0.1.0
 */
export interface ToolCallOptions extends Opaque {
  /** The id of the call. Default: `call-1`, `call-2`, … over the whole script. */
  readonly id?: string
}

/**
 * The start of an answer, which names the provider, the model of the request and the protocol `"scripted"`.
 *
 * @category constants
 * @since 0.1.0
 */
export const start: Step = { _tag: "Start" }

/**
 * A block of text: its start, one delta for each string, and its end.
 *
 * **Example** (Writing an answer step by step)
 *
 * ```ts
 * import { ScriptedProvider, Step } from "effect-agent/testing"
 *
 * const turn = ScriptedProvider.turn(
 *   Step.start,
 *   Step.thinking("Rain, so yes."),
 *   Step.text(["Take ", "a coat."]),
 *   Step.finish("stop", { input: 100, output: 20 })
 * )
 *
 * console.log(turn.steps.length) // => 4
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (deltas: string | ReadonlyArray<string>, options?: Opaque): Step => ({
  _tag: "Text",
  deltas: toDeltas(deltas),
  ...options
})

/**
 * A block of thinking: its start, one delta for each string, and its end.
 *
 * **Details**
 *
 * With `redacted`, default `false`, the vendor hides the text and the block has `opaque` alone.
 *
 * **Example** (Hiding the text of a thought)
 *
 * ```ts
 * import { Step } from "effect-agent/testing"
 *
 * const step = Step.thinking("", { redacted: true, opaque: { signature: "s" } })
 *
 * console.log(step._tag) // => Thinking
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const thinking = (
  deltas: string | ReadonlyArray<string>,
  options?: Opaque & { readonly redacted?: boolean }
): Step => ({ _tag: "Thinking", deltas: toDeltas(deltas), ...options })

/**
 * A tool call whose arguments arrive as JSON in one piece.
 *
 * **Example** (Calling a tool after a sentence)
 *
 * ```ts
 * import { ScriptedProvider, Step } from "effect-agent/testing"
 *
 * const turn = ScriptedProvider.turn(
 *   Step.start,
 *   Step.text("I look it up."),
 *   Step.toolCall("weather", { city: "Oslo" }),
 *   Step.finish("toolUse")
 * )
 *
 * console.log(turn.steps.length) // => 4
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolCall = (name: string, params: Schema.Json, options?: ToolCallOptions): Step =>
  rawToolCall(name, [JSON.stringify(params)], options)

/**
 * A tool call whose arguments arrive in these pieces, which need not be valid JSON.
 *
 * **Example** (Sending arguments that are not valid JSON)
 *
 * ```ts
 * import { Step } from "effect-agent/testing"
 *
 * const step = Step.rawToolCall("weather", ['{"city":', '"Os'])
 *
 * console.log(step._tag) // => ToolCall
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const rawToolCall = (
  name: string,
  deltas: ReadonlyArray<string>,
  options?: ToolCallOptions
): Step => ({ _tag: "ToolCall", name, deltas, ...options })

/**
 * A source, as one event.
 *
 * **Example** (Citing a page)
 *
 * ```ts
 * import { ScriptedProvider, Step } from "effect-agent/testing"
 *
 * const turn = ScriptedProvider.turn(
 *   Step.start,
 *   Step.text("It rains."),
 *   Step.source({ sourceType: "url", url: "https://weather.test/oslo", title: "Weather in Oslo" }),
 *   Step.finish()
 * )
 *
 * console.log(turn.steps.length) // => 4
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const source = (source: Omit<Source, "type">): Step => ({
  _tag: "Source",
  source: { type: "source", ...source }
})

/**
 * A file that the model made, as one event.
 *
 * **Example** (Drawing an image)
 *
 * ```ts
 * import { Step } from "effect-agent/testing"
 *
 * const step = Step.media({ source: { data: "iVBORw0KGgo=", mediaType: "image/png" } })
 *
 * console.log(step._tag) // => Media
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const media = (media: Omit<Media, "type">): Step => ({
  _tag: "Media",
  media: { type: "media", ...media }
})

/**
 * A call of a tool that the vendor ran, its result, or both: its start and its end.
 *
 * **Example** (Searching the web)
 *
 * ```ts
 * import { Step } from "effect-agent/testing"
 *
 * const step = Step.hostedTool({ id: "search-1", name: "web_search", params: { query: "Oslo" }, result: ["Rain"] })
 *
 * console.log(step._tag) // => HostedTool
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const hostedTool = (hostedTool: Omit<HostedTool, "type">): Step => ({
  _tag: "HostedTool",
  hostedTool: { type: "hostedTool", ...hostedTool }
})

/**
 * Any event, for streams that the other steps cannot make.
 *
 * **Example** (Announcing a retry)
 *
 * ```ts
 * import { Step } from "effect-agent/testing"
 *
 * const step = Step.event({ _tag: "Retracted" })
 *
 * console.log(step._tag) // => Event
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const event = (event: ModelEvent): Step => ({ _tag: "Event", event })

/**
 * The end of a complete answer.
 *
 * **Details**
 *
 * `stopReason` is `"stop"` by default. Missing numbers of `usage` are 0; without `usage` the provider reports no tokens.
 *
 * **Example** (Cutting an answer at its limit)
 *
 * ```ts
 * import { ScriptedProvider, Step } from "effect-agent/testing"
 *
 * const turn = ScriptedProvider.turn(Step.start, Step.text("It is"), Step.finish("length"))
 *
 * console.log(turn.steps.length) // => 3
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const finish = (stopReason: StopReason = "stop", usage?: Partial<Usage.Usage>): Step => ({
  _tag: "Finish",
  stopReason,
  ...(usage === undefined ? {} : { usage: Usage.make(usage) })
})

/**
 * A failure of the stream.
 *
 * **Details**
 *
 * A reason becomes a `ProviderError` of the scripted provider.
 *
 * **Example** (Failing in mid-answer)
 *
 * ```ts
 * import { ProviderError } from "effect-agent"
 * import { ScriptedProvider, Step } from "effect-agent/testing"
 *
 * const turn = ScriptedProvider.turn(
 *   Step.start,
 *   Step.text("It is"),
 *   Step.fail(new ProviderError.Overloaded({ detail: "at capacity" }))
 * )
 *
 * console.log(turn.steps.length) // => 3
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fail = (error: ProviderError | Reason): Step => ({ _tag: "Fail", error })

/**
 * A defect of the stream, as a bug in a provider causes it.
 *
 * **Example** (Dying in mid-answer)
 *
 * ```ts
 * import { ScriptedProvider, Step } from "effect-agent/testing"
 *
 * const turn = ScriptedProvider.turn(Step.start, Step.die(new Error("a bug")))
 *
 * console.log(turn.steps.length) // => 2
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const die = (defect: unknown): Step => run(Effect.die(defect))

/**
 * The end of the stream, which ignores all steps that follow.
 *
 * **Details**
 *
 * Without a `finish` before it, the answer was cut.
 *
 * @category constants
 * @since 0.1.0
 */
export const eof: Step = { _tag: "Eof" }

/**
 * A wait by the clock of the test.
 *
 * **Example** (Answering slowly)
 *
 * ```ts
 * import { ScriptedProvider, Step } from "effect-agent/testing"
 *
 * const turn = ScriptedProvider.turn(Step.start, Step.sleep("2 seconds"), Step.text("Hello"), Step.finish())
 *
 * console.log(turn.steps.length) // => 4
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const sleep = (duration: Duration.Input): Step => run(Effect.sleep(duration))

/**
 * A wait that ends only when the reader leaves the stream.
 *
 * @category constants
 * @since 0.1.0
 */
export const never: Step = { _tag: "Run", effect: Effect.never }

/**
 * An effect between two events.
 *
 * **Example** (Waiting until an answer has come so far)
 *
 * ```ts
 * import { Deferred, Effect, Fiber } from "effect"
 * import { Agent } from "effect-agent"
 * import { ScriptedProvider, Step } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const begun = yield* Deferred.make<void>()
 *   const turn = ScriptedProvider.turn(Step.start, Step.run(Deferred.succeed(begun, undefined)), Step.never)
 *   const agent = yield* Agent.make({ model: "any" }).pipe(Effect.provide(ScriptedProvider.layer([turn])))
 *   const run = yield* Effect.forkChild(agent.prompt("Hello"))
 *   yield* Deferred.await(begun)
 *   yield* agent.cancel("enough")
 *   return (yield* Fiber.join(run)).status
 * }).pipe(Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => cancelled
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const run = (effect: Effect.Effect<unknown, ProviderError>): Step => ({ _tag: "Run", effect })

const toDeltas = (deltas: string | ReadonlyArray<string>): ReadonlyArray<string> =>
  typeof deltas === "string" ? [deltas] : deltas
