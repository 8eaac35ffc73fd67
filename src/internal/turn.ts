/**
 * One model call, and the tool calls of its answer.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Batch } from "./batch.ts"
import type { FailureReason } from "./failureReason.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import * as ModelCall from "./modelCall.ts"
import { errorOf } from "./reply.ts"
import * as Request from "./request.ts"
import { type Run, Stopped } from "./run.ts"
import * as ToolBatch from "./toolBatch.ts"

type Reason = FailureReason | Stopped

/** An answer and the results of its calls. */
export interface Turn {
  readonly message: Message.Assistant
  /** One for each call of the answer. */
  readonly toolResults: ReadonlyArray<Message.ToolResult>
  /** Every result asks to end the run. */
  readonly isTerminated: boolean
}

/**
 * Makes the transcript ready by `prepare`, asks the model and runs its tools. Publishes `TurnStart`, an answer and `TurnEnd`
 * on every path.
 */
export const run = Effect.fnUntraced(function* (
  run: Run,
  prepare: Effect.Effect<void, Reason>
): Effect.fn.Return<Turn, Reason> {
  run.beginTurn()
  yield* run.delivered
  const asked = yield* ModelCall.ask(run, Effect.andThen(prepare, Request.make(run)))
  const { message } = asked
  const reviewed = Exit.isSuccess(asked.exit) ? yield* Effect.exit(review(run, asked)) : asked.exit
  const hasCalls = Exit.isSuccess(asked.exit) && Message.toolCalls(message).length > 0
  // The calls get their results even if the review ends the run.
  const batch = hasCalls ? yield* ToolBatch.execute(run, message, reviewed) : undefined
  const { isTerminated = false, results: toolResults = [] } = batch ?? {}
  const exit = yield* Effect.exit(batch === undefined ? whole(run, reviewed) : verdict(run, batch))
  if (Exit.isFailure(exit) && errorOf(exit.cause) instanceof Stopped) run.announceCancel()
  run.emit({
    _tag: "TurnEnd",
    messageId: message.id,
    stopReason: message.stopReason,
    toolResultIds: toolResults.map(({ id }) => id),
    ...run.spent.turn,
    toolCallCount: toolResults.length,
    toolsContinue: batch !== undefined && !isTerminated && batch.fatal === undefined
  })
  run.handOver()
  yield* run.delivered
  return yield* Effect.as(exit, { message, toolResults, isTerminated })
})

/** Asks the hooks about an answer of the model. */
const review = (run: Run, { durationMs, message }: ModelCall.Asked): Effect.Effect<void, Reason> =>
  durationMs === undefined
    ? Effect.void
    : run.ask("afterModel", () => ({ ...run.turnInput, message, durationMs }))

/** An answer without calls, unless the run is stopped. */
const whole = (run: Run, reviewed: Exit.Exit<void, Reason>): Effect.Effect<void, Reason> =>
  Exit.isSuccess(reviewed) ? run.checkStopped : reviewed

/** Fails if the run must not continue after these calls. */
const verdict = Effect.fnUntraced(function* (
  run: Run,
  { failure, fatal }: Batch
): Effect.fn.Return<void, Reason> {
  if (fatal !== undefined) return yield* Effect.failCause(fatal)
  if (failure !== undefined) return yield* failure
  yield* run.checkStopped
  const tooMany = Limits.tooManyToolCalls(run)
  if (tooMany !== undefined) return yield* tooMany
  yield* Limits.checkRepetition(run)
})
