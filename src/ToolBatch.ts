/**
 * The tool calls of one answer: each looked up, guarded, run and answered. Every call gets exactly one result, in the
 * order of the calls, on every path.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { FailureReason, ToolFailed } from "./FailureReason.ts"
import * as Gate from "./Gate.ts"
import * as Guards from "./Guards.ts"
import type * as Message from "./Message.ts"
import type { Run, Stopped } from "./Run.ts"
import * as Running from "./Run.ts"
import type { Settled, Settlement } from "./Settlement.ts"
import * as Settling from "./Settlement.ts"
import { find } from "./ToolRegistry.ts"
import * as ToolExecution from "./ToolExecution.ts"
import type { Outcome } from "./Unrun.ts"
import * as Unrun from "./Unrun.ts"

/** What came of all of them. `failure` is set in fail mode. */
export interface Batch {
  readonly settled: ReadonlyArray<Settled>
  readonly failure: ToolFailed | undefined
  readonly tooMany: boolean
}

/**
 * Runs the calls of an answer, or only answers them when its review says that the run ends. Results are in the transcript
 * when this returns, even when it fails, which it does only when a hook fails the run.
 */
export const execute = Effect.fnUntraced(function* (
  run: Run,
  message: Message.Assistant,
  reviewed: Exit.Exit<void, FailureReason | Stopped>,
  onResults: (results: ReadonlyArray<Message.ToolResult>) => void
): Effect.fn.Return<Batch, FailureReason | Stopped> {
  const settlement = Settling.make(run, message, reviewed)
  const { calls, signal } = settlement
  yield* Running.emit(run, { _tag: "ToolsDetected", toolCalls: calls })
  const answer = (some: ReadonlyArray<Message.ToolCall>) =>
    Effect.mapEager(Settling.answer(settlement, some), onResults)
  if (Unrun.cut(message.stopReason) !== undefined || isSequential(run, calls)) {
    // One call from start to end, before the next one is looked at.
    for (const call of calls) {
      const allowed = yield* preflight(settlement, call)
      yield* allowed === undefined ? Settling.pollSteering(settlement) : performed(settlement, allowed)
      yield* answer([call])
    }
  } else {
    yield* together(settlement)
    yield* answer(calls)
  }
  signal.release()
  const { failure, hookFailure, settled, tooMany } = settlement
  if (hookFailure !== undefined) return yield* Effect.failCause(hookFailure)
  return { failure, tooMany, settled: calls.flatMap((call) => settled.get(call) ?? []) }
})

/** A single call is neither: the shorter way does for it. */
const isSequential = (run: Run, calls: ReadonlyArray<Message.ToolCall>): boolean =>
  calls.length === 1 ||
  run.options.toolExecution === "sequential" ||
  calls.some((call) => find(run.offered, call.name)?.executionMode === "sequential")

/** All looked at first, in order; then those that may run, side by side. */
const together = Effect.fnUntraced(function* (settlement: Settlement) {
  const allowed: Array<Guards.Allowed> = []
  for (const call of settlement.calls) {
    const one = yield* preflight(settlement, call)
    if (one !== undefined) allowed.push(one)
  }
  const { toolConcurrency: concurrency = defaultConcurrency } = settlement.run.options
  const [first] = allowed
  // A single call needs no fiber beside the run's.
  if (first !== undefined && allowed.length === 1) yield* performed(settlement, first)
  else yield* Effect.forEach(allowed, (one) => performed(settlement, one), { concurrency, discard: true })
})

const performed = (settlement: Settlement, allowed: Guards.Allowed): Effect.Effect<void> =>
  settlement.run.options.steeringPolicy === "skipRemaining"
    ? Effect.flatMap(perform(settlement, allowed), () => Settling.pollSteering(settlement))
    : perform(settlement, allowed)

const defaultConcurrency = 16

/** Looks at one call. Gives what may run; anything else is settled on the spot. */
const preflight = (
  settlement: Settlement,
  call: Message.ToolCall
): Effect.Effect<Guards.Allowed | undefined> => {
  const { run } = settlement
  const label = find(run.offered, call.name)?.label
  run.toolCalls++
  const begun = { toolCallId: call.id, toolName: call.name, params: call.params ?? {} }
  const told = Running.emit(run, {
    _tag: "ToolExecutionStart",
    ...(label === undefined ? begun : { ...begun, label })
  })
  return Effect.flatMapEager(told, () => {
    const unrunnable = notToBeRun(settlement)
    if (unrunnable !== undefined) return refuse(settlement, call, unrunnable)
    // The pause gate before each call, then whether there is still a run to go on with.
    if (Gate.isOpen(run)) return guarded(settlement, call)
    return Effect.matchEffect(Gate.open(run), {
      onSuccess: () => guarded(settlement, call),
      onFailure: () => refuse(settlement, call, Unrun.runStopped)
    })
  })
}

const guarded = (settlement: Settlement, call: Message.ToolCall): Effect.Effect<Guards.Allowed | undefined> =>
  Effect.flatMapEager(Effect.exit(Guards.check(settlement.run, settlement.message, call)), (exit) => {
    if (Exit.isSuccess(exit)) {
      return exit.value._tag === "Allowed" ? Effect.succeed(exit.value) : refuse(settlement, call, exit.value)
    }
    // A hook that fails the run, or a stop while a guard was thinking: the call is over, and so will be the batch.
    Settling.keepFailure(settlement, exit)
    return refuse(settlement, call, Unrun.aborted(call))
  })

const refuse = (settlement: Settlement, call: Message.ToolCall, outcome: Outcome): Effect.Effect<undefined> =>
  Effect.mapEager(Settling.settle(settlement, call, outcome), () => undefined)

/** Reasons that hold before anybody is asked. */
const notToBeRun = (settlement: Settlement): Outcome | undefined => {
  const { message, run } = settlement
  const cut = Unrun.cut(message.stopReason)
  if (cut !== undefined) return cut
  if (settlement.hookFailure !== undefined) return Unrun.runEnds
  if (settlement.failure !== undefined) return Unrun.skippedByFailure
  if (run.toolCalls > (run.options.limits?.maxToolCalls ?? Infinity)) {
    settlement.tooMany = true
    return Unrun.immediate("aborted", "Not run: the limit on tool calls is reached")
  }
  return Settling.isMoot(settlement) ? Unrun.skippedBySteering : undefined
}

/** Runs one call, as often as its hooks ask for, and ends it. */
const perform = (settlement: Settlement, allowed: Guards.Allowed): Effect.Effect<void> => {
  const { run } = settlement
  const { call, input } = allowed.prepared
  if (settlement.failure !== undefined) return Settling.settle(settlement, call, Unrun.skippedByFailure)
  if (settlement.signal.current !== undefined) return Settling.settle(settlement, call, Unrun.aborted(call))
  if (Settling.isMoot(settlement)) return Settling.settle(settlement, call, Unrun.skippedBySteering)
  const told = Running.emit(run, {
    _tag: "ToolInvoked",
    toolCallId: call.id,
    toolName: call.name,
    params: input,
    modified: allowed.modified,
    approved: allowed.approved
  })
  return Effect.flatMapEager(told, () => tried(settlement, allowed, Running.elapsed(run), 0))
}

const tried = (
  settlement: Settlement,
  allowed: Guards.Allowed,
  startedAt: number,
  retries: number
): Effect.Effect<void> => {
  const { message, run, signal } = settlement
  const { prepared } = allowed
  return Effect.flatMap(ToolExecution.execute(run, message, signal, prepared), (reviewed) => {
    settlement.hookFailure ??= reviewed.hookFailure
    return reviewed.retry && retries < (run.options.limits?.maxToolRetries ?? 1)
      ? tried(settlement, allowed, startedAt, retries + 1)
      : Settling.settle(settlement, prepared.call, reviewed, Running.elapsed(run) - startedAt)
  })
}
