/**
 * How a run ends: every way leads through here, so that `RunEnd` is there once, and last.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { RunStatus } from "../AgentEvent.ts"
import * as Answer from "./reply.ts"
import type { Defect, EventError, FailureReason } from "../FailureReason.ts"
import { LimitExceeded } from "../FailureReason.ts"
import * as Limits from "./limits.ts"
import type * as Message from "../Message.ts"
import type { Run } from "./run.ts"
import * as Running from "./run.ts"
import { Stopped } from "./run.ts"
import * as Inspection from "./inspection.ts"
import { RunFailed } from "../RunFailed.ts"
import type { RunResult } from "../RunResult.ts"
import { attempt, StopSignal } from "./work.ts"

type Reason = FailureReason | Stopped

/** How a run ended, before its last hooks. */
interface Ending {
  readonly status: RunStatus
  readonly error: FailureReason | Defect | undefined
  readonly message?: Message.Assistant
}

/** The end of every run: hooks hear of it, `RunEnd` is last. */
export const finish = Effect.fnUntraced(function* (
  run: Run,
  undelivered: ReadonlyArray<Message.Message>,
  exit: Exit.Exit<RunStatus, Reason>
): Effect.fn.Return<RunResult, RunFailed> {
  const ending = endingOf(run, exit)
  if (ending.status === "cancelled") yield* Running.announceCancel(run)
  if (ending.error !== undefined) yield* announceError(run, ending.error)
  const ended = yield* afterExecution(run, ending)
  run.emitter.turn = undefined
  run.queues.onChange = undefined
  const result = resultOf(run, ended, undelivered)
  yield* Running.emit(run, {
    _tag: "RunEnd",
    status: ended.status,
    ...messageIdOf(run),
    newMessageIds: run.added.map((message) => message.id),
    usage: run.usage,
    turns: run.turn,
    durationMs: Duration.toMillis(result.duration),
    ...(ended.error === undefined ? {} : { error: ended.error })
  })
  if (ended.error === undefined) return result
  if (ended.error._tag !== "Defect") {
    const failed = new RunFailed({ reason: ended.error, result })
    // Node prints all that an uncaught error holds: of a run, that is the whole conversation.
    Inspection.hide(failed, "reason", "result")
    Inspection.strip(failed)
    return yield* failed
  }
  return yield* Effect.die(Exit.isFailure(exit) ? Cause.squash(exit.cause) : ended.error)
})

const endingOf = (run: Run, exit: Exit.Exit<RunStatus, Reason>): Ending => {
  if (Exit.isSuccess(exit)) return { status: exit.value, error: undefined }
  const error = Answer.errorOf(exit.cause)
  if (!(error instanceof Stopped)) return { status: "failed", error }
  if (error.stop.cause === "cancel") return { status: "cancelled", error: undefined }
  const [value, max] = [Running.elapsed(run), Limits.executionTime(run)]
  return { status: "failed", error: new LimitExceeded({ limit: "executionTime", value, max }) }
}

const announceError = Effect.fnUntraced(function* (run: Run, error: EventError) {
  if (error._tag === "LimitExceeded") yield* announceLimit(run, error)
  yield* Running.emit(run, {
    _tag: "RunError",
    error,
    retryable: error._tag === "ProviderError" && error.isRetryable
  })
})

export const announceLimit = (run: Run, { estimated, limit, max, value }: LimitExceeded) =>
  Running.emit(run, {
    _tag: "LimitReached",
    limit,
    value,
    max,
    ...(estimated === undefined ? {} : { estimated })
  })

/**
 * Tells the hooks how it ended. They run although the run may have been stopped. One that fails the run (mode "fail") can
 * still do that here.
 */
const afterExecution = Effect.fnUntraced(function* (run: Run, ending: Ending): Effect.fn.Return<Ending> {
  let message = lastAnswer(run)
  const { error, status } = ending
  if (!run.hooks.has("onError") && !run.hooks.has("afterExecution")) {
    return { status, error, ...(message === undefined ? {} : { message }) }
  }
  const told = Effect.gen(function* () {
    if (error !== undefined) {
      yield* run.hooks.ask<"onError", void>("onError", undefined, {
        input: () => Effect.succeed({ ...Running.baseInput(run), scope: "run", error }),
        output: () => Effect.void
      })
    }
    yield* run.hooks.ask<"afterExecution", void>("afterExecution", undefined, {
      input: () =>
        Effect.sync(() => ({
          ...Running.baseInput(run),
          status,
          ...(error === undefined ? {} : { error }),
          ...(message === undefined ? {} : { message }),
          report: run.report,
          durationMs: Running.elapsed(run)
        })),
      output: (_, { modified }) =>
        Effect.sync(() => {
          if (error === undefined) message = modified ?? message
        })
    })
  })
  const asked = yield* attempt(new StopSignal(), Effect.result(told))
  const failure = asked._tag === "Done" && Exit.isSuccess(asked.exit) ? asked.exit.value : undefined
  const failed = failure?._tag === "Failure" && error === undefined ? failure.failure : undefined
  const withMessage = message === undefined ? {} : { message }
  if (failed === undefined) return { status, error, ...withMessage }
  yield* Running.emit(run, { _tag: "RunError", error: failed, retryable: false })
  return { status: "failed", error: failed, ...withMessage }
})

/** An `afterExecution` hook replaces the answer for the caller alone: the event names the one observers saw. */
const messageIdOf = (run: Run): { readonly messageId?: Message.MessageId } => {
  const answer = lastAnswer(run)
  return answer === undefined ? {} : { messageId: answer.id }
}

const lastAnswer = (run: Run): Message.Assistant | undefined =>
  run.added.findLast((message) => message.role === "assistant")

/** What is handed to the caller. */
const resultOf = (
  run: Run,
  { message, status }: Ending,
  undelivered: ReadonlyArray<Message.Message>
): RunResult => ({
  runId: run.id,
  status,
  ...(message === undefined ? {} : { message }),
  newMessages: Running.newMessages(run),
  usage: run.usage,
  turns: run.turn,
  duration: Duration.millis(Running.elapsed(run)),
  report: run.report,
  undelivered
})
