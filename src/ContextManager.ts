/**
 * What of a transcript goes into a request. The whole history by default; anything less is a layer, and announced by
 * `ContextTransformed`. The transcript itself never changes.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { TransformFailed } from "./FailureReason.ts"
import type { Message } from "./Message.ts"
import type { RunOptions } from "./RunOptions.ts"
import * as Transcript from "./Transcript.ts"

export interface View extends Transcript.Trimmed {
  /** Why something was left out. */
  readonly reason: "window" | "compaction"
}

export interface Service {
  readonly view: (
    messages: ReadonlyArray<Message>,
    options: RunOptions
  ) => Effect.Effect<View, TransformFailed>
  /**
   * Asked once in a turn, when the provider says that the conversation is longer than the model can read: what the run is
   * to go on from. Without it, when it fails, and when what it gives is no shorter, the run fails with `ContextOverflow`.
   */
  readonly compact?: (messages: ReadonlyArray<Message>, options: RunOptions) => Effect.Effect<View, unknown>
}

/** The whole history by default. */
export const ContextManager = Context.Reference<Service>("effect-agent/ContextManager", {
  defaultValue: () => ({ view: (messages) => Effect.succeed({ messages, dropped: 0, reason: "window" }) })
})

/**
 * Sends the newest `maxMessages`, default 50, and never splits a call from its result, even if that takes more.
 * `keepFirstUser`, default `false`, keeps the task in view; a leading developer message always stays.
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
