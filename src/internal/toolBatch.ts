/**
 * The tool calls of one answer: each looked up, guarded, run and answered. Every call gets exactly one result, in the
 * order of the calls, on every path.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { after, goOn, starter } from "./begin.ts"
import type { FailureReason, ToolFailed } from "../FailureReason.ts"
import * as Gate from "./gate.ts"
import * as Guards from "./guards.ts"
import type * as Message from "../Message.ts"
import type { Run, Stopped } from "./run.ts"
import * as Running from "./run.ts"
import type { Settled, Settlement } from "./settlement.ts"
import * as Settling from "./settlement.ts"
import type * as Tool from "../Tool.ts"
import * as ToolExecution from "./toolExecution.ts"
import { find } from "./toolName.ts"
import type { Outcome } from "./unrun.ts"
import * as Unrun from "./unrun.ts"

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
      yield* allowed === undefined ? Settling.pollSteering(settlement) : sideBySide(settlement, [allowed])
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
  ([...run.offered.values()].some(isAlone) && calls.some((call) => isAlone(find(run.offered, call.name))))

const isAlone = (tool: Tool.Any | undefined): boolean => tool?.executionMode === "sequential"

/** All looked at first, in order; then those that may run, side by side. */
const together = Effect.fnUntraced(function* (settlement: Settlement) {
  const allowed: Array<Guards.Allowed> = []
  for (const call of settlement.calls) {
    const one = yield* preflight(settlement, call)
    if (one !== undefined) allowed.push(one)
  }
  yield* sideBySide(settlement, allowed)
})

/** So many at once, in their order. No call has a fiber beside that of its tool, where that needs one. */
const sideBySide = (settlement: Settlement, allowed: ReadonlyArray<Guards.Allowed>): Effect.Effect<void> =>
  Effect.contextWith((services: Context.Context<never>) =>
    // Nobody interrupts it: a run that is to stop stops its tools.
    Effect.callback<void>((resume) => {
      const { message, run, signal } = settlement
      const place = { run, message, signal, services, start: starter(services) }
      const atOnce = Math.max(1, run.options.toolConcurrency ?? defaultConcurrency)
      let begun = 0
      let running = 0
      let isFilling = false
      const fill = () => {
        isFilling = true
        for (let next = allowed[begun]; next !== undefined && running < atOnce; next = allowed[++begun]) {
          running++
          perform(settlement, place, next, tell)
        }
        isFilling = false
        if (running === 0) resume(Exit.void)
      }
      const tell = (exit: Exit.Exit<void>) => {
        running--
        if (Exit.isFailure(exit)) Settling.die(settlement, exit.cause)
        if (!isFilling) fill()
      }
      fill()
    })
  )

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
  after(Guards.check(settlement.run, settlement.message, call), (exit) => {
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

/** Runs one call, as often as its hooks ask for, and ends it. Tells when that is done. */
const perform = (
  settlement: Settlement,
  place: ToolExecution.Place,
  { approved, modified, prepared }: Guards.Allowed,
  tell: (exit: Exit.Exit<void>) => void
): void => {
  const { run, services } = place
  const { call, input } = prepared
  const settle = (outcome: Outcome, durationMs?: number) => {
    const settled = () => Settling.settle(settlement, call, outcome, durationMs)
    const polled = () => Effect.flatMapEager(settled(), () => Settling.pollSteering(settlement))
    goOn(services, Settling.isPolled(settlement) ? polled : settled, tell)
  }
  const reviewed = (startedAt: number, retries: number) => (exit: Exit.Exit<ToolExecution.Reviewed>) => {
    if (Exit.isFailure(exit)) return tell(Exit.asVoid(exit))
    const { value } = exit
    settlement.hookFailure ??= value.hookFailure
    if (!value.retry || retries >= (run.options.limits?.maxToolRetries ?? 1)) {
      return settle(value, Running.elapsed(run) - startedAt)
    }
    // By a task: a tool that is done at once may be asked for a thousand times.
    goOn(
      services,
      () => Effect.yieldNow,
      () => execute(startedAt, retries + 1)
    )
  }
  const execute = (startedAt: number, retries: number): void => {
    try {
      ToolExecution.execute(place, prepared, reviewed(startedAt, retries))
    } catch (defect) {
      // There is no fiber here to die of it. The call has its result first.
      Settling.die(settlement, Cause.die(defect))
      settle(Unrun.aborted(call))
    }
  }
  const moot = notToBeBegun(settlement, call)
  if (moot !== undefined) return settle(moot)
  const invoked = () =>
    Running.emit(run, {
      _tag: "ToolInvoked",
      toolCallId: call.id,
      toolName: call.name,
      params: input,
      modified,
      approved
    })
  goOn(services, invoked, (exit) => (Exit.isFailure(exit) ? tell(exit) : execute(Running.elapsed(run), 0)))
}

/** Reasons that came up since it was looked at. */
const notToBeBegun = (settlement: Settlement, call: Message.ToolCall): Outcome | undefined => {
  if (settlement.failure !== undefined) return Unrun.skippedByFailure
  if (settlement.signal.current !== undefined) return Unrun.aborted(call)
  return Settling.isMoot(settlement) ? Unrun.skippedBySteering : undefined
}
