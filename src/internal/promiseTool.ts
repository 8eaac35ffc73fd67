/**
 * Runs a plain function as the `execute` of a tool.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Schema from "effect/Schema"
import type { ToolOutput } from "../AgentEvent.ts"
import * as FailureText from "./failureText.ts"
import { ToolContext } from "./toolContext.ts"
import { TaggedError } from "./errors.ts"

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
  /**
   * Has the call continue in the background: the model reads a handle and the note as its result, and the end in a later message. Does
   * nothing if `blocking` of the tool is `true`, as by default.
   */
  readonly background: (note?: string) => void
  /** Emits a `ToolExecutionProgress` event. The model reads only the final result. Does nothing once the call has ended. */
  readonly progress: (partial: string | ToolOutput) => void
}

/**
 * The function of a tool threw, or its promise was rejected.
 *
 * @since 0.1.0
 * @category errors
 */
export class PromiseRejected extends TaggedError<PromiseRejected>()("PromiseRejected", {
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
export const execution = <Params, Success>(
  name: string,
  execute: (params: Params, context: PromiseContext) => PromiseLike<Success> | Success
) =>
  Effect.fnUntraced(function* (params: Params): Effect.fn.Return<Success, PromiseRejected, ToolContext> {
    const context = yield* ToolContext
    const controller = new AbortController()
    const steps: Array<Effect.Effect<void>> = []
    let ended: Exit.Exit<Success, PromiseRejected> | undefined
    const news = Latch.makeUnsafe(false)
    const step = (taken: Effect.Effect<void>): void => {
      if (ended !== undefined || controller.signal.aborted) return
      steps.push(taken)
      news.openUnsafe()
    }
    const given: PromiseContext = {
      ...context,
      signal: controller.signal,
      progress: (partial) => step(context.progress(partial)),
      background: (note) => step(context.background?.(note) ?? Effect.void)
    }
    const call = async () => execute(params, given)
    void call()
      .then(Exit.succeed, (thrown) =>
        Exit.fail(new PromiseRejected({ detail: FailureText.of(thrown), thrown }))
      )
      .then((exit) => {
        ended = exit
        news.openUnsafe()
      })
    const next: Effect.Effect<Success, PromiseRejected> = Effect.suspend(() => {
      news.closeUnsafe()
      if (steps.length === 0) return ended ?? Effect.andThen(news.await, next)
      return Effect.andThen(Effect.all(steps.splice(0), { discard: true }), next)
    })
    return yield* Effect.onInterrupt(next, () => {
      controller.abort()
      return Effect.forkDetach(reportDeaf(name, () => ended !== undefined))
    })
  })

/** Logs a warning if the promise is still pending 100 ms after its signal was aborted. */
const reportDeaf = (name: string, isSettled: () => boolean): Effect.Effect<void> =>
  Effect.delay(
    Effect.suspend(() =>
      isSettled() ? Effect.void : Effect.logWarning(`Tool ${name} ignored its interruption`)
    ),
    "100 millis"
  )
