/**
 * Ends a run. `finish` runs on every path, so that `RunEnd` comes once, and last. Before it, `hasOutput` decides whether the run has its
 * typed output.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { OfTag, RunStatus } from "../AgentEvent.ts"
import type * as Hook from "../Hook.ts"
import * as Message from "../Message.ts"
import { RunFailed, type RunResult } from "../Run.ts"
import { hide, strip } from "./errors.ts"
import {
  type Defect,
  type EventError,
  type FailureReason,
  type LimitExceeded,
  type OutputInvalid,
  OutputMissing
} from "./failureReason.ts"
import { attempt } from "./interruption.ts"
import * as Limits from "./limits.ts"
import { Output, type OutputOf, type OutputOptions } from "./output.ts"
import { errorOf } from "./reply.ts"
import type { Run } from "./run.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import type { Turn } from "./turn.ts"

interface Ending {
  readonly status: RunStatus
  readonly error: FailureReason | Defect | undefined
  /** The last answer, which an `afterExecution` hook may replace for the caller. */
  readonly message?: Message.Assistant | undefined
}

/** Asks the last hooks, publishes `RunEnd`, and returns the result. Fails with `RunFailed` for a run that failed. */
export const finish = Effect.fnUntraced(function* (
  run: Run,
  undelivered: ReadonlyArray<Message.Message>,
  exit: Exit.Exit<RunStatus, FailureReason>
): Effect.fn.Return<RunResult, RunFailed> {
  const ending = endingOf(run, exit)
  if (ending.status === "cancelled") run.announceCancel()
  if (ending.error !== undefined) announceError(run, ending.error)
  yield* run.mailbox.delivered
  const { error, message, status } = yield* afterExecution(run, ending)
  yield* run.mailbox.delivered
  run.mailbox.turn = undefined
  const durationMs = run.elapsed
  const given = status === "completed" ? run.output?.accepted : undefined
  if (given !== undefined) run.emit({ _tag: "Output", value: given.json })
  // A hook may have replaced the answer of the result. The event names the one in the transcript.
  const messageId = lastAnswer(run)?.id
  run.mailbox.emitLast({
    _tag: "RunEnd",
    status,
    ...(messageId === undefined ? {} : { messageId }),
    newMessageIds: run.newMessages.map((message) => message.id),
    ...run.spent.total,
    turns: run.turn,
    durationMs,
    hookMs: Math.floor(run.hooks.millis),
    ...(error === undefined ? {} : { error }),
    ...(status === "suspended" ? { resume: resumeOf(run) } : {})
  })
  yield* run.mailbox.delivered
  // The result is made after `RunEnd`, so that its report counts that event too.
  const result = { ...resultOf(run, status, message), duration: Duration.millis(durationMs), undelivered }
  const unwritten = run.journal?.failure
  if (error === undefined && unwritten !== undefined)
    return yield* failed(unwritten, { ...result, status: "failed" })
  if (error === undefined) return result
  if (error._tag !== "Defect") return yield* failed(error, result)
  return yield* Effect.die(Exit.isFailure(exit) ? Cause.squash(exit.cause) : error)
})

/** The ids by which another process can resume the run. */
const resumeOf = ({ id: runId, journal }: Run): NonNullable<OfTag<"RunEnd">["resume"]> =>
  journal === undefined ? { runId } : { sessionId: journal.session.id, runId }

const resultOf = (run: Run, status: RunStatus, message: Message.Assistant | undefined) => ({
  runId: run.id,
  status,
  ...(message === undefined ? {} : { message }),
  text: message === undefined ? "" : Message.textOf(message),
  newMessages: run.newMessages,
  usage: run.spent.total.usage,
  ...(run.compactions.current === undefined ? {} : { compaction: run.compactions.current }),
  turns: run.turn,
  report: run.mailbox.report,
  ...(run.waiting.turn === undefined ? {} : { open: run.waiting.turn })
})

export const failed = (reason: FailureReason, result: RunResult): RunFailed => {
  const failed = new RunFailed({ reason, result })
  // Node prints all fields of an uncaught error: here that would be the whole conversation.
  hide(failed, "reason", "result")
  strip(failed)
  return failed
}

const endingOf = (run: Run, exit: Exit.Exit<RunStatus, FailureReason>): Ending => {
  if (Exit.isSuccess(exit)) return { status: exit.value, error: undefined }
  const { stop } = run.control
  if (stop === undefined || !Cause.hasInterrupts(exit.cause))
    return { status: "failed", error: errorOf(exit.cause) }
  if (stop.cause === "cancel") return { status: "cancelled", error: undefined }
  return { status: "failed", error: stop.cause === "session" ? stop.error : Limits.outOfTime(run) }
}

const announceError = (run: Run, error: EventError): void => {
  if (error._tag === "LimitExceeded") announceLimit(run, error)
  run.emit({
    _tag: "RunError",
    error,
    retryable: error._tag === "ProviderError" ? error.isRetryable : isOutOfTime(error)
  })
}

/** The limit of time counts as retryable, since another run has the whole time again. */
const isOutOfTime = (error: EventError): boolean =>
  error._tag === "LimitExceeded" && error.limit === "executionTime"

export const announceLimit = (run: Run, { estimated, limit, max, value }: LimitExceeded): void =>
  run.emit({
    _tag: "LimitReached",
    limit,
    value,
    max,
    ...(estimated === undefined ? {} : { estimated })
  })

/** Asks the last hooks, also in a run that was stopped. With `hookFailureMode: "fail"` a failing hook fails the run here too. */
const afterExecution = Effect.fnUntraced(function* (
  run: Run,
  { error, status }: Ending
): Effect.fn.Return<Ending> {
  let message = lastAnswer(run)
  const asking = Effect.gen(function* () {
    if (error !== undefined) {
      yield* run.hooks.each("onError", () => ({ ...run.baseInput, scope: "run", error }))
    }
    const input = (): Hook.Input<"afterExecution"> => ({
      ...run.baseInput,
      status,
      ...(error === undefined ? {} : { error }),
      ...(message === undefined ? {} : { message }),
      report: run.mailbox.report,
      durationMs: run.elapsed
    })
    yield* run.hooks.each("afterExecution", input, ({ modified }) => {
      if (error === undefined) message = modified ?? message
    })
  })
  const asked = yield* attempt(asking)
  const failure = asked._tag === "Done" ? Exit.findErrorOption(asked.exit) : Option.none()
  if (error !== undefined || Option.isNone(failure)) return { status, error, message }
  run.emit({ _tag: "RunError", error: failure.value, retryable: false })
  return { status: "failed", error: failure.value, message }
})

const lastAnswer = (run: Run): Message.Assistant | undefined =>
  run.newMessages.findLast((message) => message.role === "assistant")

// ───────────────────────── The output of a run

/** Counts an invalid output that the model gave by a call, whose result names the faults. Fails after the last repair. */
export const checkOutput = (run: Run, { message, toolResults }: Turn): Effect.Effect<void, OutputInvalid> => {
  const { output } = run
  const calls = Message.toolCalls(message)
  if (output === undefined || output.isGivenBy(calls)) return Effect.void
  const call = calls.findLast((call) => output.isCall(call))
  const result = toolResults.find(({ toolCallId }) => toolCallId === call?.id)
  if (call === undefined || result?.outcome === undefined || !isFault(result.outcome)) return Effect.void
  const fault = { detail: Message.textOf(result), text: call.rawArguments }
  return Effect.asVoid(output.refuse(fault, true))
}

const isFault = (outcome: Message.ToolOutcome): boolean =>
  outcome === "truncated" || ToolOutcome.failures.has(outcome)

/** Reads the typed output where the run would end. Returns `false` after it has asked the model for a repair. Fails after the last one. */
export const hasOutput = Effect.fnUntraced(function* (run: Run, output: Output<unknown>, { message }: Turn) {
  const read = yield* run.attempt(Effect.result(output.read(message)))
  if (read._tag === "Success") {
    output.accepted = read.success
    return true
  }
  const instruction = yield* output.refuse(read.failure, false)
  run.addPending(undefined, [Message.user(instruction, run.clock.currentTimeMillisUnsafe())])
  return false
})

/** The typed output of one run, and the function that adds it to the result. */
export interface Typed<O> {
  readonly output: Output<unknown> | undefined
  /** Adds the output to the result. Fails with `OutputMissing` if the run ended without one. */
  readonly result: (result: RunResult) => Effect.Effect<RunResult & O, RunFailed>
}

/** Makes the typed output for a schema. A run without a schema ends with any answer. */
export function typed<A>(schema: Schema, retries: number | undefined): Typed<OutputOf<A>>
export function typed(schema: Schema, retries: number | undefined): Typed<{}> {
  if (schema === undefined) return { output: undefined, result: Effect.succeed }
  const output = new Output(schema, retries)
  return {
    output,
    result: (result) =>
      result.status === "completed" && output.accepted !== undefined
        ? Effect.succeed({ ...result, output: output.accepted.value })
        : Effect.fail(failed(new OutputMissing({ status: result.status }), result))
  }
}

type Schema = OutputOptions<unknown>["output"] | undefined
