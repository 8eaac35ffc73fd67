/**
 * One model call, and the tool calls of its answer.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Batch } from "./batch.ts"
import type { FailureReason } from "./failureReason.ts"
import type { Stop } from "./interruption.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import * as ModelCall from "./modelCall.ts"
import { errorOf } from "./reply.ts"
import * as Request from "./request.ts"
import type { Run } from "./run.ts"
import { Stopped } from "./run.ts"
import * as ToolBatch from "./toolBatch.ts"

type Reason = FailureReason | Stopped

/** The model answered and called no tool. */
export interface Answered {
  readonly _tag: "Answered"
  readonly message: Message.Assistant
  readonly toolResults: readonly []
}

/** The model called tools, and all have their results. */
export interface Called {
  readonly _tag: "Called"
  readonly message: Message.Assistant
  readonly toolResults: ReadonlyArray<Message.ToolResult>
  /** Every result asks to end the run. */
  readonly isTerminated: boolean
}

/** A turn that ended well. */
export type Completed = Answered | Called

/** How a turn ended. */
export type Outcome =
  | Completed
  | { readonly _tag: "Failed"; readonly cause: Cause.Cause<Reason> }
  | { readonly _tag: "Stopped"; readonly stop: Stop }

/**
 * Makes the transcript ready by `prepare`, asks the model and runs its tools. Publishes `TurnStart`, an answer and `TurnEnd`
 * on every path.
 */
export const run = Effect.fnUntraced(function* (
  run: Run,
  prepare: Effect.Effect<void, Reason>
): Effect.fn.Return<Outcome> {
  run.beginTurn()
  yield* run.delivered
  const asked = yield* ModelCall.ask(run, Effect.andThen(prepare, Request.make(run)))
  const { message } = asked
  const acted = asked._tag === "Answered" ? yield* act(run, asked) : noResults(Exit.failCause(asked.cause))
  const outcome = outcomeOf(acted.exit)
  if (outcome._tag === "Stopped") run.announceCancel()
  run.emit({
    _tag: "TurnEnd",
    messageId: message.id,
    stopReason: message.stopReason,
    toolResultIds: acted.results.map(({ id }) => id),
    usage: run.turnUsage,
    toolCallCount: acted.results.length,
    toolsContinue: acted.toolsContinue
  })
  yield* run.delivered
  return outcome
})

/** The part of a turn behind the answer: results are there on every path. */
interface Acted {
  readonly results: ReadonlyArray<Message.ToolResult>
  readonly toolsContinue: boolean
  readonly exit: Exit.Exit<Completed, Reason>
}

const noResults = (exit: Acted["exit"]): Acted => ({ results: [], toolsContinue: false, exit })

const act = Effect.fnUntraced(function* (
  run: Run,
  { durationMs, message }: Extract<ModelCall.Asked, { readonly _tag: "Answered" }>
): Effect.fn.Return<Acted> {
  if (message.stopReason === "error" || message.stopReason === "aborted") {
    return noResults(Exit.fail(ModelCall.failedBy(message)))
  }
  const reviewed = yield* Effect.exit(review(run, message, durationMs))
  // The calls get their results even if the run ends here.
  if (Message.toolCalls(message).length > 0) return yield* call(run, message, reviewed)
  const answered = { _tag: "Answered", message, toolResults: [] } as const
  return noResults(yield* Effect.exit(Effect.as(Effect.andThen(reviewed, run.checkStopped), answered)))
})

const review = (run: Run, message: Message.Assistant, durationMs: number | undefined) =>
  durationMs === undefined
    ? Effect.void
    : run.ask("afterModel", () => ({ ...run.turnInput, message, durationMs }))

const call = Effect.fnUntraced(function* (
  run: Run,
  message: Message.Assistant,
  reviewed: Exit.Exit<void, Reason>
): Effect.fn.Return<Acted> {
  const batch = yield* ToolBatch.execute(run, message, reviewed)
  const { isTerminated, results: toolResults } = batch
  const called = { _tag: "Called", message, toolResults, isTerminated } as const
  const exit = yield* Effect.exit(Effect.as(verdict(run, batch), called))
  return { results: toolResults, toolsContinue: !isTerminated && batch.fatal === undefined, exit }
})

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

const outcomeOf = (exit: Acted["exit"]): Outcome => {
  if (Exit.isSuccess(exit)) return exit.value
  const error = errorOf(exit.cause)
  return error instanceof Stopped
    ? { _tag: "Stopped", stop: error.stop }
    : { _tag: "Failed", cause: exit.cause }
}
