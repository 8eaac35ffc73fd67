/**
 * What has come of the calls of one answer so far: each is settled once, and what ends them all before their time is kept.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ToolOutput } from "../AgentEvent.ts"
import type { FailureReason } from "../FailureReason.ts"
import { ToolFailed } from "../FailureReason.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import * as Pending from "./pending.ts"
import type { Run, Stopped } from "./run.ts"
import * as Running from "./run.ts"
import * as Output from "./toolOutput.ts"
import type { Outcome } from "./unrun.ts"
import * as Unrun from "./unrun.ts"
import type { StopSignal } from "./work.ts"

/** What came of one call. */
export interface Settled extends Outcome {
  readonly call: Message.ToolCall
}

export interface Settlement {
  readonly run: Run
  readonly message: Message.Assistant
  readonly calls: ReadonlyArray<Message.ToolCall>
  /** Stops with the run, and in fail mode with the first failure. */
  readonly signal: StopSignal
  readonly settled: Map<Message.ToolCall, Settled>
  /** Of a tool, in fail mode. */
  failure: ToolFailed | undefined
  /** Of a hook that fails the run, or a defect of the batch: the run ends with it, once each call has its result. */
  hookFailure: Cause.Cause<FailureReason | Stopped> | undefined
  tooMany: boolean
  polling: boolean
}

/** Of nothing yet. */
export const make = (
  run: Run,
  message: Message.Assistant,
  reviewed: Exit.Exit<void, FailureReason | Stopped>
): Settlement => ({
  run,
  message,
  calls: Message.toolCalls(message),
  signal: run.control.signal.child(),
  settled: new Map(),
  failure: undefined,
  hookFailure: Exit.isFailure(reviewed) ? reviewed.cause : undefined,
  tooMany: false,
  polling: false
})

/** Ends one call: its result stands, and in fail mode a failure stops the others. */
export const settle = (
  settlement: Settlement,
  call: Message.ToolCall,
  { outcome, output: given }: Outcome,
  durationMs = 0
): Effect.Effect<void> => {
  const output = Output.plain(given)
  const isError = output.isError === true
  settlement.settled.set(call, { call, output, outcome })
  const emit = settlement.settled.size < settlement.calls.length ? Running.emitAmongMany : Running.emit
  const told = () =>
    emit(settlement.run, {
      _tag: "ToolExecutionEnd",
      toolCallId: call.id,
      toolName: call.name,
      result: output,
      isError,
      outcome,
      durationMs
    })
  return isError && Unrun.failures.has(outcome)
    ? Effect.flatMapEager(failedCall(settlement, call, output), told)
    : told()
}

const failedCall = (
  settlement: Settlement,
  call: Message.ToolCall,
  error: ToolOutput
): Effect.Effect<void> => {
  const { run } = settlement
  if (run.options.toolFailureMode === "fail" && !settlement.failure) {
    const detail = Message.textOf(error)
    settlement.failure = new ToolFailed({ toolCallId: call.id, toolName: call.name, detail })
    settlement.signal.stop({ cause: "cancel", reason: "another tool failed" })
  }
  const told = Running.observe(run, "onError", () => ({ ...Running.baseInput(run), scope: "tool", error }))
  return Effect.mapEager(Effect.exit(told), (exit) => keepFailure(settlement, exit))
}

/** Keeps a defect of the batch, and stops the calls that go on. */
export const die = (settlement: Settlement, cause: Cause.Cause<never>): void => {
  settlement.hookFailure ??= cause
  settlement.signal.stop({ cause: "cancel", reason: "another tool died" })
}

/** What is written of a call into the transcript. */
const resultOf = (settlement: Settlement, call: Message.ToolCall): Message.ToolResult => {
  const { outcome, output } = settlement.settled.get(call) ?? Unrun.aborted(call)
  return Message.toolResult(call, Limits.record(settlement.run, { call, output }), {
    isError: output.isError === true,
    outcome,
    timestamp: settlement.run.clock.currentTimeMillisUnsafe(),
    ...(output.details === undefined ? {} : { details: output.details })
  })
}

/** Writes the results of calls into the transcript, and gives them. */
export const answer = (
  settlement: Settlement,
  calls: ReadonlyArray<Message.ToolCall>
): Effect.Effect<ReadonlyArray<Message.ToolResult>> => {
  const results = calls.map((call) => resultOf(settlement, call))
  return Effect.mapEager(Running.append(settlement.run, results), () => results)
}

/** With `skipRemaining`, a message from the user makes the calls that have not begun moot. */
export const isPolled = ({ run }: Settlement): boolean => run.options.steeringPolicy === "skipRemaining"

/** Asks for that message. */
export const pollSteering = (settlement: Settlement): Effect.Effect<void> => {
  const isOff = !isPolled(settlement) || settlement.run.control.signal.current !== undefined
  if (isOff || settlement.polling || isMoot(settlement)) return Effect.void
  settlement.polling = true
  return Effect.map(Effect.exit(Pending.takeSteering(settlement.run, "tools")), (exit) => {
    keepFailure(settlement, exit)
    settlement.polling = false
  })
}

/** Whether the user has said something that comes before the calls that have not begun. */
export const isMoot = ({ run }: Settlement): boolean => run.pending.messages.length > 0

/** Keeps the failure of a hook that fails the run, unless the run is being stopped anyway. */
export const keepFailure = (
  settlement: Settlement,
  exit: Exit.Exit<unknown, FailureReason | Stopped>
): void => {
  if (Exit.isFailure(exit) && settlement.run.control.signal.current === undefined)
    settlement.hookFailure ??= exit.cause
}
