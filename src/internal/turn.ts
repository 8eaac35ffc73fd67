/**
 * One turn: a model call, and the tool calls of its answer. Every call gets exactly one result, in the order of the calls, on every path.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import * as Message from "../Message.ts"
import { Batch } from "./batch.ts"
import * as Consent from "./consent.ts"
import type { FailureReason } from "./failureReason.ts"
import * as Limits from "./limits.ts"
import * as ModelCall from "./modelCall.ts"
import type { InterruptedTurn, OpenTurn } from "./openTurn.ts"
import * as Request from "./request.ts"
import type { Run } from "./run.ts"
import * as ToolCall from "./toolCall.ts"
import * as ToolOutcome from "./toolOutcome.ts"

/** An answer and the results of its calls. */
export interface Turn {
  readonly message: Message.Assistant
  /** The results, one for each call of the answer. */
  readonly toolResults: ReadonlyArray<Message.ToolResult>
  /** Whether the run ends with this turn: every result has `terminate`, or a call gave the output of the run. */
  readonly isTerminated: boolean
  /** Whether the turn stays open, because deferred calls wait for a person. */
  readonly isSuspended: boolean
}

/**
 * Takes a turn: prepares the transcript by `prepare`, asks the model and runs the tools. Publishes `TurnStart`, an answer and `TurnEnd` on
 * every path.
 */
export const run = Effect.fnUntraced(function* (
  run: Run,
  prepare: Effect.Effect<void, FailureReason>
): Effect.fn.Return<Turn, FailureReason> {
  run.beginTurn()
  yield* run.mailbox.delivered
  const asked = yield* ModelCall.ask(run, Effect.andThen(prepare, Request.make(run)))
  const { message } = asked
  const reviewed = Exit.isSuccess(asked.exit) ? yield* Effect.exit(review(run, asked)) : asked.exit
  const hasCalls = Exit.isSuccess(asked.exit) && Message.toolCalls(message).length > 0
  // The calls get their results even if the review ends the run.
  const batch = hasCalls ? yield* callTools(run, message, reviewed) : undefined
  return yield* end(run, message, batch, reviewed)
})

/** Completes the turn that was left open by an earlier run, or by this run before its process ended. It does not ask the model. */
export const resume = Effect.fnUntraced(function* (
  run: Run,
  open: OpenTurn,
  begun?: InterruptedTurn
): Effect.fn.Return<Turn, FailureReason> {
  const { message } = open
  run.beginTurn()
  yield* run.mailbox.delivered
  yield* Request.offer(run)
  const asked = { message, durationMs: 0, exit: Exit.void }
  const reviewed = begun?.isReviewed === false ? yield* Effect.exit(review(run, asked)) : Exit.void
  const hasCalls = Message.toolCalls(message).length > 0
  const batch = hasCalls ? yield* callTools(run, message, reviewed, open, begun) : undefined
  return yield* end(run, message, batch, reviewed)
})

/** Publishes the end of a turn, and returns the turn unless the run ends with it. */
const end = Effect.fnUntraced(function* (
  run: Run,
  message: Message.Assistant,
  batch: Batch | undefined,
  reviewed: Exit.Exit<void, FailureReason>
): Effect.fn.Return<Turn, FailureReason> {
  const exit = yield* Effect.exit(batch === undefined ? whole(run, reviewed) : verdict(run, batch))
  const { isSuspended = false, isTerminated = false, results: toolResults = [] } = batch ?? {}
  run.waiting.turn = isSuspended ? batch?.openTurn : undefined
  if (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)) run.announceCancel()
  run.emit({
    _tag: "TurnEnd",
    messageId: message.id,
    stopReason: message.stopReason,
    toolResultIds: toolResults.map(({ id }) => id),
    ...run.spent.turn,
    toolCallCount: toolResults.length,
    toolsContinue: batch !== undefined && !isTerminated && !isSuspended && batch.fatal === undefined
  })
  if (run.background !== undefined) run.spent.endTurn()
  // A suspended turn does not hand off: its waiting calls need the tools of the agent that made them.
  if (isSuspended) run.team.forget()
  else run.handOver()
  yield* run.mailbox.delivered
  return yield* Effect.as(exit, { message, toolResults, isTerminated, isSuspended })
})

/** Asks the `afterModel` hooks about an answer of the model. */
const review = (run: Run, { durationMs, message }: ModelCall.CallEnd): Effect.Effect<void, FailureReason> =>
  durationMs === undefined
    ? Effect.void
    : run.ask("afterModel", () => ({ ...run.turnInput, message, durationMs }))

/** The end of an answer without calls: interrupts if the run was stopped. */
const whole = (run: Run, reviewed: Exit.Exit<void, FailureReason>): Effect.Effect<void, FailureReason> =>
  Exit.isSuccess(reviewed) ? run.interruptible : reviewed

/** Fails if the run must not continue after these calls. */
const verdict = Effect.fnUntraced(function* (
  run: Run,
  { failure, fatal, isSuspended }: Batch
): Effect.fn.Return<void, FailureReason> {
  // The run ends anyway: a stop that comes now is too late.
  if (isSuspended) return
  if (fatal !== undefined) return yield* Effect.failCause(fatal)
  if (failure !== undefined) return yield* failure
  yield* run.interruptible
  const tooMany = Limits.tooManyToolCalls(run)
  if (tooMany !== undefined) return yield* tooMany
  yield* Limits.checkRepetition(run)
})

// ───────────────────────── The tool calls of an answer

/**
 * Runs the calls of an answer. If the `afterModel` hooks end the run, it only gives them results. All results are in the transcript when
 * this returns, unless the batch `isSuspended`; `fatal` and `failure` of the batch fail the run. `earlier` is the turn that was left open;
 * `begun` has more of it where this run itself left it.
 */
const callTools = Effect.fnUntraced(function* (
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
      const ready = batch.isEnded(call) ? undefined : yield* ToolCall.preflight(batch, call)
      yield* ready === undefined ? batch.pollSteering : perform(batch, [ready])
      if (batch.isDeferring) yield* suspend(batch)
      if (batch.isSuspended) break
      yield* batch.answer([call])
    }
  } else {
    const ready = yield* Effect.forEach(open, (call) => ToolCall.preflight(batch, call))
    yield* perform(
      batch,
      ready.filter((call) => call !== undefined)
    )
    if (batch.isDeferring) yield* suspend(batch)
    if (!batch.isSuspended) yield* batch.answer(batch.unanswered)
  }
  return batch
})

/** Waits for the background calls, then leaves the turn open for the deferred calls, or ends these if the run must not be suspended. */
const suspend = Effect.fnUntraced(function* (batch: Batch) {
  const { background } = batch.run
  if (background !== undefined) {
    yield* Effect.exit(batch.run.attempt(background.ends))
    for (const { call, outcome } of background.release(batch.calls))
      if (outcome !== undefined) batch.keep(call, outcome)
  }
  if (!batch.suspend()) yield* ToolCall.closeWaiting(batch)
})

type Perform = (batch: Batch, ready: ReadonlyArray<ToolCall.Ready>) => Effect.Effect<void>

/** Performs calls concurrently; a single call runs in the fiber of the run. */
const performAll: Perform = (batch, ready) =>
  ready.length === 1
    ? Effect.forEach(ready, (call) => ToolCall.perform(batch, call), { discard: true })
    : sideBySide(batch, ready, (call) => ToolCall.perform(batch, call), concurrencyOf(batch))

/** Performs calls that may have to wait for a person. A waiting call does not count against `toolConcurrency`. */
const performAsking: Perform = (batch, ready) => {
  const places = Semaphore.makeUnsafe(concurrencyOf(batch))
  return sideBySide(batch, ready, (call) => ToolCall.performApproved(batch, call, places), "unbounded")
}

/** Performs calls concurrently. A stop of the run interrupts those that run, and settles those that have not begun. */
const sideBySide = (
  batch: Batch,
  ready: ReadonlyArray<ToolCall.Ready>,
  perform: (call: ToolCall.Ready) => Effect.Effect<void>,
  concurrency: number | "unbounded"
): Effect.Effect<void> =>
  Effect.interruptible(
    Effect.forEach(ready, (call) => Effect.uninterruptible(batch.fibers.including(perform(call))), {
      concurrency,
      discard: true
    })
  ).pipe(
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? ToolCall.closeUnbegun(batch, ready) : Effect.failCause(cause)
    )
  )

const concurrencyOf = ({ run }: Batch): number =>
  Math.max(1, run.options.toolConcurrency ?? defaultConcurrency)

/** Whether each call must end before the guards of the next one run. */
const isSequential = ({ calls, message, run }: Batch): boolean =>
  calls.length === 1 ||
  ToolOutcome.cut(message.stopReason) !== undefined ||
  run.options.toolExecution === "sequential" ||
  calls.some((call) => run.toolOf(call)?.executionMode === "sequential")

const defaultConcurrency = 16
