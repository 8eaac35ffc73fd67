/**
 * One model call, and the tool calls of its answer.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Batch } from "./batch.ts"
import type { FailureReason } from "./failureReason.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import * as ModelCall from "./modelCall.ts"
import type { InterruptedTurn, OpenTurn } from "./openTurn.ts"
import * as Request from "./request.ts"
import type { Run } from "./run.ts"
import * as ToolBatch from "./toolBatch.ts"

/** An answer and the results of its calls. */
export interface Turn {
  readonly message: Message.Assistant
  /** One for each call of the answer. */
  readonly toolResults: ReadonlyArray<Message.ToolResult>
  /** Every result asks to end the run. */
  readonly isTerminated: boolean
  /** The turn stays open, since calls of it wait for a person. */
  readonly isSuspended: boolean
}

/**
 * Makes the transcript ready by `prepare`, asks the model and runs its tools. Publishes `TurnStart`, an answer and `TurnEnd`
 * on every path.
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
  const batch = hasCalls ? yield* ToolBatch.execute(run, message, reviewed) : undefined
  return yield* end(run, message, batch, reviewed)
})

/** Ends the turn that an earlier run, or this one before its process ended, left open. Does not ask the model. */
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
  const batch = hasCalls ? yield* ToolBatch.execute(run, message, reviewed, open, begun) : undefined
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
  // Calls that wait belong to the agent that made them.
  if (isSuspended) run.team.forget()
  else run.handOver()
  yield* run.mailbox.delivered
  return yield* Effect.as(exit, { message, toolResults, isTerminated, isSuspended })
})

/** Asks the hooks about an answer of the model. */
const review = (run: Run, { durationMs, message }: ModelCall.Asked): Effect.Effect<void, FailureReason> =>
  durationMs === undefined
    ? Effect.void
    : run.ask("afterModel", () => ({ ...run.turnInput, message, durationMs }))

/** An answer without calls, unless the run is stopped. */
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
