/**
 * Runs a plain function as the `execute` of a tool.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type { ToolOutput } from "../AgentEvent.ts"
import * as FailureText from "./failureText.ts"
import { ToolContext } from "./toolContext.ts"
import { output } from "./toolOutput.ts"

/**
 * The call that a plain function runs for.
 *
 * @since 0.1.0
 * @category models
 */
export interface PromiseContext {
  /** Id of the call, as the provider made it. */
  readonly toolCallId: string
  /** Id of the run. */
  readonly runId: string
  /** Number of the turn, from 1. */
  readonly turn: number
  /** Aborts when the call is cancelled or times out. */
  readonly signal: AbortSignal
  /** Emits a `ToolExecutionProgress` event. The model reads only the final result. Does nothing once the call has ended. */
  readonly progress: (partial: string | ToolOutput) => void
}

/**
 * The function of a tool threw, or its promise was rejected.
 *
 * @since 0.1.0
 * @category errors
 */
export class PromiseRejected extends Schema.TaggedError<PromiseRejected>()("PromiseRejected", {
  /** Text of what was thrown, for the model. */
  detail: Schema.String,
  /** The thrown value. */
  thrown: Schema.Defect()
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * Makes an `execute` that calls a plain function and waits for its promise. Partial results are shown in their order, and
 * all of them before the call ends. Interruption aborts the signal and does not wait for the promise. `name` is the name of
 * the tool.
 */
export const execution = <Params>(
  name: string,
  execute: (params: Params, context: PromiseContext) => PromiseLike<unknown> | unknown
) =>
  Effect.fnUntraced(function* (params: Params): Effect.fn.Return<unknown, PromiseRejected, ToolContext> {
    const context = yield* ToolContext
    const partials = yield* Queue.unbounded<ToolOutput, Cause.Done>()
    const showing = yield* Queue.take(partials).pipe(
      Effect.flatMap(context.progress),
      Effect.forever({ disableYield: true }),
      Effect.forkChild({ startImmediately: true })
    )
    const progress = (partial: string | ToolOutput): void => {
      Queue.offerUnsafe(partials, typeof partial === "string" ? output(partial) : partial)
    }
    let isSettled = false
    const called = Effect.tryPromise({
      try: async (signal) => {
        try {
          return await execute(params, { ...context, signal, progress })
        } finally {
          isSettled = true
        }
      },
      catch: (thrown) => new PromiseRejected({ detail: FailureText.of(thrown), thrown })
    })
    const exit = yield* called.pipe(
      Effect.onInterrupt(() => Effect.forkDetach(reportDeaf(name, () => isSettled))),
      Effect.ensuring(Queue.end(partials)),
      Effect.exit
    )
    yield* Fiber.await(showing)
    return yield* exit
  })

/** Logs a warning if the promise is still pending 100 ms after its signal was aborted. */
const reportDeaf = (name: string, isSettled: () => boolean): Effect.Effect<void> =>
  Effect.delay(
    Effect.suspend(() =>
      isSettled() ? Effect.void : Effect.logWarning(`Tool ${name} ignored its interruption`)
    ),
    "100 millis"
  )
