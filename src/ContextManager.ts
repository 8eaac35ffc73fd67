/**
 * The part of a transcript that goes into a request.
 *
 * **Details**
 *
 * By default a request has the whole transcript. A layer can leave messages out; the run then emits `ContextTransformed`. The
 * transcript itself stays as it is.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { TransformFailed } from "./internal/failureReason.ts"
import type { Message } from "./Message.ts"
import type { RunOptions } from "./RunOptions.ts"
import * as Transcript from "./Transcript.ts"

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
  /** Chooses the messages of the next request. */
  readonly view: (
    messages: ReadonlyArray<Message>,
    options: RunOptions
  ) => Effect.Effect<View, TransformFailed>
  /**
   * Shortens a conversation that is longer than the model can read. Default: none.
   *
   * The run calls it once in a turn, after the provider has failed with `ContextOverflow`, and continues from its view. Without it,
   * and if it fails or its view is no shorter, the run fails with that error.
   */
  readonly compact?: (messages: ReadonlyArray<Message>, options: RunOptions) => Effect.Effect<View, unknown>
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
 *   const agent = yield* Agent.make({ model: "gpt-5-mini" })
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
 *   const agent = yield* Agent.make({ model: "gpt-5-mini" }).pipe(
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
