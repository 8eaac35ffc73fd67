/**
 * Runs the tool calls of one answer: each is looked up, guarded, executed and answered. Every call gets exactly one result,
 * in the order of the calls, on every path.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import { Batch } from "./batch.ts"
import * as Consent from "./consent.ts"
import type { FailureReason } from "./failureReason.ts"
import type { InterruptedTurn, OpenTurn } from "./openTurn.ts"
import type * as Message from "../Message.ts"
import type { Run } from "./run.ts"
import * as ToolCall from "./toolCall.ts"
import * as ToolOutcome from "./toolOutcome.ts"

/**
 * Runs the calls of an answer, or only answers them when its review ends the run. All results are in the transcript when
 * this returns, unless `isSuspended` of the batch says that the turn stays open; `fatal` and `failure` say how the run ends.
 * `earlier`: the turn, as an earlier run left it open. `begun`: absent if that was another run.
 */
export const execute = Effect.fnUntraced(function* (
  run: Run,
  message: Message.Assistant,
  reviewed: Exit.Exit<void, FailureReason>,
  earlier?: OpenTurn,
  begun?: InterruptedTurn
): Effect.fn.Return<Batch> {
  const batch = new Batch(run, message, earlier, begun)
  if (Exit.isFailure(reviewed)) batch.endRun(reviewed.cause)
  const open = batch.unanswered.filter((call) => !batch.isEnded(call))
  const perform = Consent.isNeeded(batch) ? performAsking : performAll
  run.emit({ _tag: "ToolsDetected", toolCalls: open })
  if (isSequential(batch)) {
    for (const call of batch.unanswered) {
      const looked = batch.isEnded(call) ? undefined : yield* ToolCall.preflight(batch, call)
      yield* looked === undefined ? batch.pollSteering : perform(batch, [looked])
      if (batch.isDeferring) yield* suspend(batch)
      if (batch.isSuspended) break
      yield* batch.answer([call])
    }
  } else {
    const looked = yield* Effect.forEach(open, (call) => ToolCall.preflight(batch, call))
    yield* perform(
      batch,
      looked.filter((call) => call !== undefined)
    )
    if (batch.isDeferring) yield* suspend(batch)
    if (!batch.isSuspended) yield* batch.answer(batch.unanswered)
  }
  return batch
})

/** Leaves the turn open for the calls that wait, once those in the background have ended, or ends the calls that wait. */
const suspend = Effect.fnUntraced(function* (batch: Batch) {
  const { background } = batch.run
  if (background !== undefined) {
    yield* Effect.exit(batch.run.attempt(background.ends))
    for (const { call, outcome } of background.release(batch.calls))
      if (outcome !== undefined) batch.keep(call, outcome)
  }
  if (!batch.suspend()) yield* ToolCall.closeWaiting(batch)
})

type Perform = (batch: Batch, looked: ReadonlyArray<ToolCall.Looked>) => Effect.Effect<void>

/** Performs calls side by side; a single call in the fiber of the run. */
const performAll: Perform = (batch, looked) =>
  looked.length === 1
    ? Effect.forEach(looked, (call) => ToolCall.perform(batch, call), { discard: true })
    : sideBySide(batch, looked, (call) => ToolCall.perform(batch, call), concurrencyOf(batch))

/** Performs calls that may have to wait for a person. While one waits, it takes no place of the others. */
const performAsking: Perform = (batch, looked) => {
  const places = Semaphore.makeUnsafe(concurrencyOf(batch))
  return sideBySide(batch, looked, (call) => ToolCall.performApproved(batch, call, places), "unbounded")
}

/** A stop of the run interrupts the calls at work, which end then; the others do not begin. */
const sideBySide = (
  batch: Batch,
  looked: ReadonlyArray<ToolCall.Looked>,
  perform: (call: ToolCall.Looked) => Effect.Effect<void>,
  concurrency: number | "unbounded"
): Effect.Effect<void> =>
  Effect.interruptible(
    Effect.forEach(looked, (call) => Effect.uninterruptible(batch.fibers.including(perform(call))), {
      concurrency,
      discard: true
    })
  ).pipe(
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? ToolCall.closeUnbegun(batch, looked) : Effect.failCause(cause)
    )
  )

const concurrencyOf = ({ run }: Batch): number =>
  Math.max(1, run.options.toolConcurrency ?? defaultConcurrency)

/** One call from start to end before the next one is looked at. */
const isSequential = ({ calls, message, run }: Batch): boolean =>
  calls.length === 1 ||
  ToolOutcome.cut(message.stopReason) !== undefined ||
  run.options.toolExecution === "sequential" ||
  calls.some((call) => run.toolOf(call)?.executionMode === "sequential")

const defaultConcurrency = 16
