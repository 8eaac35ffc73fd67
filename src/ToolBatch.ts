/**
 * The tool calls of one answer: each looked up, guarded, run and answered. Every call gets exactly one result, in the
 * order of the calls, on every path.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { FailureReason } from "./FailureReason.ts"
import { ToolFailed } from "./FailureReason.ts"
import * as Gate from "./Gate.ts"
import * as Guards from "./Guards.ts"
import * as Limits from "./Limits.ts"
import * as Message from "./Message.ts"
import * as Pending from "./Pending.ts"
import type { Run, Stopped } from "./Run.ts"
import * as Running from "./Run.ts"
import { find } from "./ToolRegistry.ts"
import * as ToolExecution from "./ToolExecution.ts"
import type { Outcome } from "./Unrun.ts"
import * as Unrun from "./Unrun.ts"
import type { StopSignal } from "./Work.ts"

/** What came of one call. */
export interface Settled extends Outcome {
  readonly call: Message.ToolCall
}

/** What came of all of them. `failure` is set in fail mode. */
export interface Batch {
  readonly settled: ReadonlyArray<Settled>
  readonly failure: ToolFailed | undefined
  readonly tooMany: boolean
}

/** The batch while it goes on. */
interface State {
  readonly run: Run
  readonly message: Message.Assistant
  /** Stops with the run, and in fail mode with the first failure. */
  readonly signal: StopSignal
  readonly settled: Map<Message.ToolCall, Settled>
  failure: ToolFailed | undefined
  hookFailure: Cause.Cause<FailureReason | Stopped> | undefined
  tooMany: boolean
  polling: boolean
}

/**
 * Runs the calls of an answer, or only answers them when its review says that the run ends. Results are in the transcript
 * when this returns, even when it fails, which it does only when a hook fails the run.
 */
export const execute = Effect.fnUntraced(function* (
  run: Run,
  message: Message.Assistant,
  reviewed: Exit.Exit<void, FailureReason | Stopped>,
  onResult: (result: Message.ToolResult) => void
): Effect.fn.Return<Batch, FailureReason | Stopped> {
  const state: State = {
    run,
    message,
    signal: run.control.signal.child(),
    settled: new Map(),
    failure: undefined,
    hookFailure: Exit.isFailure(reviewed) ? reviewed.cause : undefined,
    tooMany: false,
    polling: false
  }
  const calls = Message.toolCalls(message)
  yield* Running.emit(run, { _tag: "ToolsDetected", toolCalls: calls })
  const tell = (call: Message.ToolCall) => Effect.mapEager(answer(state, call), onResult)
  if (Unrun.cut(message.stopReason) !== undefined || isSequential(run, calls)) {
    // One call from start to end, before the next one is looked at.
    for (const call of calls) {
      const allowed = yield* preflight(state, call)
      yield* allowed === undefined ? pollSteering(state) : performed(state, allowed)
      yield* tell(call)
    }
  } else {
    yield* together(state, calls)
    for (const call of calls) yield* tell(call)
  }
  state.signal.release()
  if (state.hookFailure !== undefined) return yield* Effect.failCause(state.hookFailure)
  return { ...state, settled: calls.flatMap((call) => state.settled.get(call) ?? []) }
})

/** A single call is neither: the shorter way does for it. */
const isSequential = (run: Run, calls: ReadonlyArray<Message.ToolCall>): boolean =>
  calls.length === 1 ||
  run.options.toolExecution === "sequential" ||
  calls.some((call) => find(run.offered, call.name)?.executionMode === "sequential")

/** All looked at first, in order; then those that may run, side by side. */
const together = Effect.fnUntraced(function* (state: State, calls: ReadonlyArray<Message.ToolCall>) {
  const allowed: Array<Guards.Allowed> = []
  for (const call of calls) {
    const one = yield* preflight(state, call)
    if (one !== undefined) allowed.push(one)
  }
  const { toolConcurrency: concurrency = defaultConcurrency } = state.run.options
  const [first] = allowed
  // A single call needs no fiber beside the run's.
  if (first !== undefined && allowed.length === 1) yield* performed(state, first)
  else yield* Effect.forEach(allowed, (one) => performed(state, one), { concurrency, discard: true })
})

const performed = (state: State, allowed: Guards.Allowed): Effect.Effect<void> =>
  Effect.flatMap(perform(state, allowed), () => pollSteering(state))

const defaultConcurrency = 16

/** Looks at one call. Gives what may run; anything else is settled on the spot. */
const preflight = Effect.fnUntracedEager(function* (
  state: State,
  call: Message.ToolCall
): Effect.fn.Return<Guards.Allowed | undefined> {
  const { message, run } = state
  const label = find(run.offered, call.name)?.label
  run.toolCalls++
  yield* Running.emit(run, {
    _tag: "ToolExecutionStart",
    toolCallId: call.id,
    toolName: call.name,
    ...(label === undefined ? {} : { label }),
    params: call.params ?? {}
  })
  const unrunnable = notToBeRun(state) ?? (yield* gate(state))
  if (unrunnable !== undefined) return yield* settle(state, call, unrunnable)
  const exit = yield* Effect.exit(Guards.check(run, message, call))
  if (Exit.isFailure(exit)) {
    // A hook that fails the run, or a stop while a guard was thinking: the call is over, and so will be the batch.
    failed(state, exit)
    return yield* settle(state, call, Unrun.aborted(call))
  }
  return exit.value._tag === "Allowed" ? exit.value : yield* settle(state, call, exit.value)
})

/** Reasons that hold before anybody is asked. */
const notToBeRun = (state: State): Outcome | undefined => {
  const { message, run } = state
  const cut = Unrun.cut(message.stopReason)
  if (cut !== undefined) return cut
  if (state.hookFailure !== undefined) return Unrun.runEnds
  if (state.failure !== undefined) return Unrun.skippedByFailure
  if (run.toolCalls > (run.options.limits?.maxToolCalls ?? Infinity)) {
    state.tooMany = true
    return Unrun.immediate("aborted", "Not run: the limit on tool calls is reached")
  }
  return isMoot(state) ? Unrun.skippedBySteering : undefined
}

/** The pause gate before each call, then whether there is still a run to go on with. */
const gate = ({ run }: State): Effect.Effect<Outcome | undefined> =>
  Effect.matchEager(Gate.open(run), { onSuccess: () => undefined, onFailure: () => Unrun.runStopped })

/** Runs one call, as often as its hooks ask for, and ends it. */
const perform = Effect.fnUntraced(function* (state: State, allowed: Guards.Allowed): Effect.fn.Return<void> {
  const { run } = state
  const { call } = allowed.prepared
  if (state.failure !== undefined) return yield* settle(state, call, Unrun.skippedByFailure)
  if (state.signal.current !== undefined) return yield* settle(state, call, Unrun.aborted(call))
  if (isMoot(state)) return yield* settle(state, call, Unrun.skippedBySteering)
  yield* Running.emit(run, {
    _tag: "ToolInvoked",
    toolCallId: call.id,
    toolName: call.name,
    params: allowed.prepared.input,
    modified: allowed.modified,
    approved: allowed.approved
  })
  const startedAt = Running.elapsed(run)
  const maxRetries = run.options.limits?.maxToolRetries ?? 1
  for (let tries = 0; ; tries++) {
    const done = yield* ToolExecution.invoke(run, state.signal, allowed.prepared)
    const reviewed = yield* ToolExecution.review(run, state.message, allowed.prepared, done)
    state.hookFailure ??= reviewed.hookFailure
    if (reviewed.retry && tries < maxRetries) continue
    return yield* settle(state, call, reviewed, Running.elapsed(run) - startedAt)
  }
})

/** Ends one call: its result stands, and in fail mode a failure stops the others. */
const settle = Effect.fnUntracedEager(function* (
  state: State,
  call: Message.ToolCall,
  { outcome, output }: Outcome,
  durationMs = 0
): Effect.fn.Return<undefined> {
  const { run } = state
  const isError = output.isError === true
  state.settled.set(call, { call, output, outcome })
  if (isError && Unrun.failures.has(outcome) && run.options.toolFailureMode === "fail" && !state.failure) {
    const detail = Message.textOf(output)
    state.failure = new ToolFailed({ toolCallId: call.id, toolName: call.name, detail })
    state.signal.stop({ cause: "cancel", reason: "another tool failed" })
  }
  if (isError && Unrun.failures.has(outcome)) {
    const told = Running.observe(run, "onError", () => ({
      ...Running.baseInput(run),
      scope: "tool",
      error: output
    }))
    failed(state, yield* Effect.exit(told))
  }
  yield* Running.emit(run, {
    _tag: "ToolExecutionEnd",
    toolCallId: call.id,
    toolName: call.name,
    result: output,
    isError,
    outcome,
    durationMs
  })
})

/** Writes the result of a call into the transcript. */
const answer = (state: State, call: Message.ToolCall): Effect.Effect<Message.ToolResult> => {
  const { outcome, output } = state.settled.get(call) ?? Unrun.aborted(call)
  const result = Message.toolResult(call, Limits.record(state.run, { call, output }), {
    isError: output.isError === true,
    outcome,
    timestamp: state.run.clock.currentTimeMillisUnsafe(),
    ...(output.details === undefined ? {} : { details: output.details })
  })
  return Effect.mapEager(Running.append(state.run, result), () => result)
}

/** With `skipRemaining`, a message from the user makes the calls that have not begun moot. */
const pollSteering = (state: State): Effect.Effect<void> => {
  const { control, options } = state.run
  const isOff = options.steeringPolicy !== "skipRemaining" || control.signal.current !== undefined
  if (isOff || state.polling || isMoot(state)) return Effect.void
  state.polling = true
  return Effect.map(Effect.exit(Pending.take(state.run, "steering")), (exit) => {
    failed(state, exit)
    state.polling = false
  })
}

const isMoot = ({ run }: State): boolean => run.pending.messages.length > 0

/** Keeps the failure of a hook that fails the run, unless the run is being stopped anyway. */
const failed = (state: State, exit: Exit.Exit<unknown, FailureReason | Stopped>): void => {
  if (Exit.isFailure(exit) && state.run.control.signal.current === undefined) state.hookFailure ??= exit.cause
}
