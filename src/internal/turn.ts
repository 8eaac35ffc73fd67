/**
 * One model call and the tools it asked for.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Answer from "./reply.ts"
import type { FailureReason } from "../FailureReason.ts"
import { LimitExceeded } from "../FailureReason.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import * as ModelCall from "./modelCall.ts"
import { ProviderError, ServerError } from "../ProviderError.ts"
import * as RequestView from "./request.ts"
import type { Run, Stopped } from "./run.ts"
import * as Running from "./run.ts"
import * as ToolBatch from "./toolBatch.ts"
import * as Usage from "../Usage.ts"

/** A turn that ended well. */
export interface Completed {
  readonly message: Message.Assistant
  readonly toolResults: ReadonlyArray<Message.ToolResult>
  /** The model wants to go on: it made calls, and not all of them ended the run. */
  readonly toolsContinue: boolean
  /** Every result asked to end the run. */
  readonly terminated: boolean
}

/** What is known of a turn for its `TurnEnd`, however it ends. */
interface Progress {
  message: Message.Assistant | undefined
  /** Grows until the turn ends. */
  readonly toolResults: Array<Message.ToolResult>
  toolsContinue: boolean
}

/**
 * Puts in what is pending, asks the model and runs its tools. `TurnStart` and `TurnEnd` are there on every path, and so
 * is an answer.
 */
export const run = Effect.fnUntraced(function* (
  run: Run,
  pending: () => Effect.Effect<void, FailureReason | Stopped>
): Effect.fn.Return<Completed, FailureReason | Stopped> {
  run.turn++
  run.turnUsage = Usage.zero
  run.emitter.turn = run.turn
  const progress: Progress = { message: undefined, toolResults: [], toolsContinue: false }
  yield* Running.emit(run, { _tag: "TurnStart" })
  const exit = yield* Effect.exit(Effect.flatMapEager(pending(), () => askAndAct(run, progress)))
  if (progress.message === undefined && Exit.isFailure(exit)) {
    progress.message = yield* ModelCall.unasked(run, exit.cause)
  }
  if (Exit.isFailure(exit) && Answer.errorOf(exit.cause)._tag === "Stopped")
    yield* Running.announceCancel(run)
  yield* end(run, progress)
  return yield* exit
})

const askAndAct = Effect.fnUntraced(function* (
  run: Run,
  progress: Progress
): Effect.fn.Return<Completed, FailureReason | Stopped> {
  const request = yield* RequestView.make(run)
  const { durationMs, message } = yield* ModelCall.ask(run, request, (answer) => {
    progress.message = answer
  })
  if (message.stopReason === "error" || message.stopReason === "aborted") return yield* endedBadly(message)
  const reviewed = yield* Effect.exit(review(run, message, durationMs))
  // Its calls get their results even if the run ends here.
  if (Message.toolCalls(message).length > 0) return yield* act(run, message, reviewed, progress)
  yield* Effect.andThen(reviewed, Running.checkStopped(run))
  return { message, toolResults: [], toolsContinue: false, terminated: false }
})

const review = (run: Run, message: Message.Assistant, durationMs: number | undefined) =>
  durationMs === undefined
    ? Effect.void
    : Running.observe(run, "afterModel", () => ({ ...Running.turnInput(run), message, durationMs }))

const act = Effect.fnUntraced(function* (
  run: Run,
  message: Message.Assistant,
  reviewed: Exit.Exit<void, FailureReason | Stopped>,
  progress: Progress
): Effect.fn.Return<Completed, FailureReason | Stopped> {
  const batch = yield* ToolBatch.execute(run, message, reviewed, (results) => {
    progress.toolResults.push(...results)
  })
  const terminated = batch.settled.every(({ output }) => output.terminate === true)
  progress.toolsContinue = !terminated
  if (batch.failure !== undefined) return yield* batch.failure
  yield* Running.checkStopped(run)
  if (batch.tooMany) return yield* tooManyCalls(run)
  yield* Limits.checkRepetition(run)
  return {
    message,
    toolResults: progress.toolResults,
    toolsContinue: !terminated,
    terminated
  }
})

/** A provider that names its failure only in the stop reason. */
const endedBadly = (message: Message.Assistant) =>
  new ProviderError({
    provider: message.provider,
    reason: new ServerError({ detail: message.errorMessage ?? "the provider ended its answer with an error" })
  })

const tooManyCalls = (run: Run) =>
  new LimitExceeded({
    limit: "toolCalls",
    value: run.toolCalls,
    max: run.options.limits?.maxToolCalls ?? Infinity
  })

const end = (run: Run, { message, toolResults, toolsContinue }: Progress): Effect.Effect<void> =>
  Running.emit(run, {
    _tag: "TurnEnd",
    messageId: message?.id ?? "",
    stopReason: message?.stopReason ?? "error",
    toolResultIds: toolResults.map((result) => result.id),
    usage: run.turnUsage,
    toolCallCount: toolResults.length,
    toolsContinue
  })
