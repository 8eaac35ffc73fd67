/**
 * How a run ends: every way leads through here, so that `RunEnd` is there once, and last.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { RunStatus } from "../AgentEvent.ts"
import { errorOf } from "./reply.ts"
import type { Defect, EventError, FailureReason, LimitExceeded } from "./failureReason.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import type { Run } from "./run.ts"
import { Stopped } from "./run.ts"
import * as Inspection from "./inspection.ts"
import { RunFailed } from "../RunFailed.ts"
import type { RunResult } from "../RunResult.ts"
import { attempt } from "./interruption.ts"

type Reason = FailureReason | Stopped

/** How a run ended, before its last hooks. */
interface Ending {
  readonly status: RunStatus
  readonly error: FailureReason | Defect | undefined
  readonly message?: Message.Assistant
}

/** Asks the last hooks, publishes `RunEnd`, and returns the result, or fails with it. */
export const finish = Effect.fnUntraced(function* (
  run: Run,
  undelivered: ReadonlyArray<Message.Message>,
  exit: Exit.Exit<RunStatus, Reason>
): Effect.fn.Return<RunResult, RunFailed> {
  const ending = endingOf(run, exit)
  if (ending.status === "cancelled") run.announceCancel()
  if (ending.error !== undefined) announceError(run, ending.error)
  yield* run.delivered
  const ended = yield* afterExecution(run, ending)
  yield* run.delivered
  run.events.turn = undefined
  const duration = Duration.millis(run.elapsed)
  const given = ended.status === "completed" ? run.output?.accepted : undefined
  if (given !== undefined) run.emit({ _tag: "Output", value: given.json })
  run.emitLast({
    _tag: "RunEnd",
    status: ended.status,
    ...messageIdOf(run),
    newMessageIds: run.newMessages.map((message) => message.id),
    usage: run.usage,
    turns: run.turn,
    durationMs: Duration.toMillis(duration),
    hookMs: Math.floor(run.hooks.millis),
    ...(ended.error === undefined ? {} : { error: ended.error })
  })
  yield* run.delivered
  // The report has the end too.
  const result = resultOf(run, ended, { duration, undelivered })
  if (ended.error === undefined) return result
  if (ended.error._tag !== "Defect") return yield* failed(ended.error, result)
  return yield* Effect.die(Exit.isFailure(exit) ? Cause.squash(exit.cause) : ended.error)
})

/** The failure of a run. */
export const failed = (reason: FailureReason, result: RunResult): RunFailed => {
  const failed = new RunFailed({ reason, result })
  // Node prints all that an uncaught error holds: of a run, that is the whole conversation.
  Inspection.hide(failed, "reason", "result")
  Inspection.strip(failed)
  return failed
}

const endingOf = (run: Run, exit: Exit.Exit<RunStatus, Reason>): Ending => {
  if (Exit.isSuccess(exit)) return { status: exit.value, error: undefined }
  const error = errorOf(exit.cause)
  if (!(error instanceof Stopped)) return { status: "failed", error }
  if (error.stop.cause === "cancel") return { status: "cancelled", error: undefined }
  return { status: "failed", error: Limits.outOfTime(run) }
}

const announceError = (run: Run, error: EventError): void => {
  if (error._tag === "LimitExceeded") announceLimit(run, error)
  run.emit({
    _tag: "RunError",
    error,
    retryable: error._tag === "ProviderError" && error.isRetryable
  })
}

export const announceLimit = (run: Run, { estimated, limit, max, value }: LimitExceeded): void =>
  run.emit({
    _tag: "LimitReached",
    limit,
    value,
    max,
    ...(estimated === undefined ? {} : { estimated })
  })

/** Asks the last hooks, although the run may be stopped. One that fails the run (mode "fail") can still do that here. */
const afterExecution = Effect.fnUntraced(function* (run: Run, ending: Ending): Effect.fn.Return<Ending> {
  const { error, status } = ending
  const answer = { message: lastAnswer(run) }
  const asked = yield* attempt(askLastHooks(run, ending, answer))
  const ended = answer.message === undefined ? { status, error } : { status, error, message: answer.message }
  if (asked._tag !== "Done" || Exit.isSuccess(asked.exit) || error !== undefined) return ended
  const failure = Cause.findErrorOption(asked.exit.cause)
  if (Option.isNone(failure)) return ended
  run.emit({ _tag: "RunError", error: failure.value, retryable: false })
  return { ...ended, status: "failed", error: failure.value }
})

/** `answer.message` is the last answer, which a hook may replace. */
const askLastHooks = Effect.fnUntraced(function* (
  run: Run,
  { error, status }: Ending,
  answer: { message: Message.Assistant | undefined }
) {
  if (error !== undefined) {
    yield* run.hooks.ask<"onError", void>("onError", undefined, {
      input: () => Effect.succeed({ ...run.baseInput, scope: "run", error }),
      output: () => Effect.void
    })
  }
  yield* run.hooks.ask<"afterExecution", void>("afterExecution", undefined, {
    input: () =>
      Effect.sync(() => ({
        ...run.baseInput,
        status,
        ...(error === undefined ? {} : { error }),
        ...(answer.message === undefined ? {} : { message: answer.message }),
        report: run.report,
        durationMs: run.elapsed
      })),
    output: (_, { modified }) =>
      Effect.sync(() => {
        if (error === undefined) answer.message = modified ?? answer.message
      })
  })
})

/** An `afterExecution` hook replaces the answer for the caller alone: the event names the one observers saw. */
const messageIdOf = (run: Run): { readonly messageId?: Message.MessageId } => {
  const answer = lastAnswer(run)
  return answer === undefined ? {} : { messageId: answer.id }
}

const lastAnswer = (run: Run): Message.Assistant | undefined =>
  run.newMessages.findLast((message) => message.role === "assistant")

const resultOf = (
  run: Run,
  { message, status }: Ending,
  rest: Pick<RunResult, "duration" | "undelivered">
): RunResult => ({
  runId: run.id,
  status,
  ...(message === undefined ? {} : { message }),
  text: message === undefined ? "" : Message.textOf(message),
  newMessages: run.newMessages,
  usage: run.usage,
  turns: run.turn,
  report: run.report,
  ...rest
})
