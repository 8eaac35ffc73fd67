/**
 * The part of a transcript that goes into a request.
 *
 * **Details**
 *
 * By default a request has the whole transcript. A layer can leave messages out; the run then emits `ContextTransformed`. A layer can
 * also compact: a summary takes the place of older messages in this request and all later ones, and the run emits `Compaction`. The
 * transcript itself stays as it is. `effect-agent/context` has layers of both kinds.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { TransformFailed } from "./internal/failureReason.ts"
import type { Assistant, Message } from "./Message.ts"
import type { ModelRequest, Provider } from "./Provider.ts"
import type { RunOptions } from "./RunOptions.ts"
import * as Transcript from "./Transcript.ts"
import type { Usage } from "./Usage.ts"

/**
 * The messages of a request.
 *
 * @category models
 * @since 0.1.0
 */
export interface View extends Transcript.Trimmed {
  /** The reason why messages are left out: a window of the newest messages, or a summary of older ones. */
  readonly reason: "window" | "compaction"
}

/**
 * The functions that choose the messages of a request.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** Chooses the messages of the next request. After a compaction it gets the summary in place of the messages before it. */
  readonly view: (
    messages: ReadonlyArray<Message>,
    options: RunOptions
  ) => Effect.Effect<View, TransformFailed>
  /**
   * Plans a compaction; `undefined` if none is due, or nothing is left to compact. Default: none, so that no run compacts.
   *
   * The run asks before each request (`"threshold"`), and once in a turn after the provider has failed with `ContextOverflow`
   * (`"overflow"`), or refused the request in words that name no part of it (`"refusal"`); `agent.compact` asks by hand (`"manual"`). The
   * run also asks (`"overflow"` with `size`) after an answer to a request larger than the `contextWindow` in `Prices`, and keeps that
   * answer if no compaction makes the request shorter. The run then carries out the plan and continues from its summary. If that fails
   * after a `ContextOverflow`, the run fails with that error; else it continues without it, and ignores plans for a threshold until
   * `tokensBefore` has grown by a tenth.
   */
  readonly compact?: (
    conversation: Conversation,
    trigger: Trigger
  ) => Effect.Effect<Plan | undefined, never, Provider>
}

/**
 * A conversation that a manager may compact.
 *
 * @category models
 * @since 0.2.0
 */
export interface Conversation {
  /** The transcript without messages that a guard refused, oldest message first. `Transcript.compacted` makes the messages that requests start from now. */
  readonly messages: ReadonlyArray<Message>
  /** The last compaction; `undefined` before the first. */
  readonly compaction: Transcript.Compaction | undefined
  /**
   * The last answer whose `usage` measures the conversation as requests hold it now; `undefined` if the provider reported no tokens
   * since the last compaction.
   */
  readonly measured: Assistant | undefined
  /** The parts of the request besides the messages, which count too. */
  readonly request: Pick<ModelRequest, "model" | "system" | "tools">
  /** The options of the run. */
  readonly options: RunOptions
}

/**
 * The cause of a compaction.
 *
 * @category models
 * @since 0.2.0
 */
export type Trigger =
  | { readonly reason: "threshold" }
  | {
      readonly reason: "overflow"
      /** The most tokens of a request, as the provider named them, or as `Prices` has them. Default: not known. */
      readonly limit?: number
      /** The tokens of a request that the provider answered, although they exceed `limit`. Default: it refused the request. */
      readonly size?: number
    }
  /** The provider refused the request in words that name no part of it: the conversation may be too long. */
  | { readonly reason: "refusal" }
  | {
      readonly reason: "manual"
      /** Instructions of the application for the summary. Default none. */
      readonly instructions?: string
    }

/**
 * A compaction before it is carried out.
 *
 * @category models
 * @since 0.2.0
 */
export interface Plan {
  /** The tokens of the request without the compaction, measured or estimated. */
  readonly tokensBefore: number
  /**
   * Makes the summary. The run interrupts it when it is stopped. It fails the compaction with any error; a `RunFailed` and a
   * `CompactionFailed` keep their reason and usage. A summary that is empty, or not shorter than the messages that it stands for,
   * counts as a failure.
   */
  readonly summarize: Effect.Effect<Compacted, unknown, Provider>
}

/**
 * A compaction that was carried out.
 *
 * @category models
 * @since 0.2.0
 */
export interface Compacted extends Transcript.Compaction {
  /** The tokens of the request with the compaction, measured or estimated. */
  readonly tokensAfter: number
  /** The tokens of the model calls that made the summary. Default: none. */
  readonly usage?: Usage
}

/**
 * The service that chooses the messages of a request.
 *
 * **Details**
 *
 * By default it chooses the whole transcript.
 *
 * **Example** (Leaving out old tool results)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, ContextManager, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const shortResults = Layer.succeed(ContextManager.ContextManager, {
 *   view: (messages) =>
 *     Effect.succeed({
 *       messages: messages.map((message) =>
 *         message.role === "toolResult" ? { ...message, content: [Message.text("[left out]")] } : message
 *       ),
 *       dropped: 0,
 *       reason: "compaction"
 *     })
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   const { status } = yield* agent.prompt("Hello")
 *   return status
 * }).pipe(
 *   Effect.provide([ScriptedProvider.layer([ScriptedProvider.text("Hi")]), shortResults]),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => completed
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const ContextManager = Context.Reference<Service>("effect-agent/ContextManager", {
  defaultValue: () => ({ view: (messages) => Effect.succeed({ messages, dropped: 0, reason: "window" }) })
})

/**
 * Sends the newest messages only, and never a call without its result.
 *
 * **Details**
 *
 * `maxMessages`, default 50, is the number of messages; a view may have more where a call and its result belong together.
 * `keepFirstUser`, default `false`, keeps the first user message, which mostly is the task. A custom message of the kind
 * `"developer"` at the start always stays.
 *
 * **Example** (Sending the last two messages)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, ContextManager } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const script = yield* ScriptedProvider.make([ScriptedProvider.text("1"), ScriptedProvider.text("2")])
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" }).pipe(
 *     Effect.provide([script.layer, ContextManager.slidingWindow({ maxMessages: 2 })])
 *   )
 *   yield* agent.prompt("One")
 *   yield* agent.prompt("Two")
 *   return (yield* script.requests).map(({ messages }) => messages.length)
 * }).pipe(Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 1, 2 ]
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const slidingWindow = (options?: {
  readonly maxMessages?: number
  readonly keepFirstUser?: boolean
}): Layer.Layer<never> =>
  Layer.succeed(ContextManager, {
    view: (messages) =>
      Effect.sync(() => ({
        ...Transcript.window(messages, options?.maxMessages ?? 50, options),
        reason: "window" as const
      }))
  })
