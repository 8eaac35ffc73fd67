/**
 * The agent loop: takes turns until the model stops calling tools, a limit is reached, or the run is stopped.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type RunStatus, version } from "../AgentEvent.ts"
import * as Compact from "./compact.ts"
import * as Ending from "./ending.ts"
import type { FailureReason } from "./failureReason.ts"
import * as Gate from "./gate.ts"
import type * as Hook from "../Hook.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import * as Pending from "./pending.ts"
import type { ProviderError } from "../ProviderError.ts"
import * as EventParts from "./eventParts.ts"
import type { RunOptions } from "../RunOptions.ts"
import { Outer, type Run } from "./run.ts"
import type { RunFailed, RunResult } from "../Run.ts"
import * as Request from "./request.ts"
import type { RunSpec } from "./runSpec.ts"
import * as ToolCall from "./toolCall.ts"
import * as Turn from "./turn.ts"

/** One run from start to end. Its fiber can be interrupted only while it waits for foreign work. */
export const execute = Effect.fnUntraced(function* (
  run: Run,
  spec: RunSpec
): Effect.fn.Return<RunResult, RunFailed> {
  // These fibers are children of the fiber of the run, so that they end with it.
  for (const service of [run.mailbox.serve, run.mailbox.announceQueues]) {
    yield* Effect.forkChild(service, { startImmediately: true })
  }
  run.queues.takeChange()
  if (spec.interrupted === undefined) begin(run, spec)
  else for (const { call, output, turn } of spec.interrupted.calls) Limits.recordCall(run, call, output, turn)
  yield* run.mailbox.delivered
  const deadline = new Limits.Deadline(run)
  const exit = yield* Effect.exit(
    Effect.andThen(beforeExecution(run, spec), work(run, spec, deadline)).pipe(
      Effect.provideService(Outer, run)
    )
  )
  if (run.background !== undefined) yield* run.background.close
  // Ends of background calls follow the results of a turn, which a suspended turn does not have yet.
  if (run.waiting.turn === undefined) run.background?.report()
  yield* deadline.unset
  return yield* Ending.finish(run, Pending.restore(run), exit)
})

const begin = (run: Run, { continued, open, prompts }: RunSpec): void =>
  run.emit({
    _tag: "RunStart",
    v: version,
    prompts,
    model: run.options.model,
    options: EventParts.published(run.options),
    continued,
    ...(open === undefined ? {} : { resumes: open.runId })
  })

const beforeExecution = (run: Run, spec: RunSpec): Effect.Effect<void, FailureReason> =>
  run.ask(
    "beforeExecution",
    () => ({ ...run.baseInput, options: run.options, prompts: spec.prompts }),
    ({ modified }) => {
      run.change(modified, undefined)
      return "next"
    }
  )

const work = (run: Run, spec: RunSpec, deadline: Limits.Deadline): Effect.Effect<RunStatus, FailureReason> =>
  spec.byHand === undefined
    ? turns(run, spec, deadline)
    : Effect.as(Compact.byHand(run, spec.byHand), "completed")

/** Takes turns until the run ends, and returns the status. */
const turns = Effect.fnUntraced(function* (
  run: Run,
  spec: RunSpec,
  deadline: Limits.Deadline
): Effect.fn.Return<RunStatus, FailureReason> {
  const takeChanges = Effect.suspend(() => {
    const changes = spec.nextTurn()
    run.change(changes?.options, changes?.messages, changes?.unset)
    return deadline.set
  })
  yield* deadline.set
  if (spec.background !== undefined && spec.background.length > 0) {
    yield* Request.offer(run)
    for (const left of spec.background)
      yield* ToolCall.continueInBackground(run, left, spec.interrupted !== undefined)
  }
  for (let isFirst = true; ; isFirst = false) {
    const begun = isFirst ? spec.interrupted?.open : undefined
    // A turn that a crash interrupted is not held by the gate: its calls must get their results even if no other turn may begin.
    if (begun === undefined) {
      yield* Gate.open(run)
      yield* takeChanges
      if (run.turn >= Limits.maxTurns(run)) return yield* outOfTurns(run)
      yield* Gate.beforeTurn(run)
      yield* takeChanges
    }
    const open = isFirst ? spec.open : undefined
    const prepare = Pending.deliver(run, isFirst && spec.pollFirst)
    const turn = yield* run.control.takeTurn(
      open === undefined ? retrying(run, Turn.run(run, prepare)) : Turn.resume(run, open, begun)
    )
    if (turn === undefined) {
      yield* Pending.takeSteering(run, "turnEnd")
      continue
    }
    if (turn.isSuspended) return "suspended"
    if (yield* betweenTurns(run, turn)) return "stopped"
    const status = yield* next(run, turn)
    if (status !== undefined) return status
  }
})

/** Takes a turn. If its model call fails and the option `retry` allows another turn, waits for the delay and returns `undefined`. */
const retrying = (
  run: Run,
  turn: Effect.Effect<Turn.Turn, FailureReason>
): Effect.Effect<Turn.Turn | undefined, FailureReason> => {
  const { output, retry } = run
  if (retry === undefined) return turn
  const wait = Effect.fnUntraced(function* (error: ProviderError) {
    const delay = yield* run.attempt(retry.delay(error))
    if (delay === undefined) return yield* error
    output?.repeat()
    run.emit({ _tag: "RunRetry", attempt: retry.attempt, delayMs: Duration.toMillis(delay), error })
    yield* run.mailbox.delivered
    yield* run.attempt(Effect.sleep(delay))
    return undefined
  })
  return Effect.tap(turn, retry.reset).pipe(Effect.catchTag("ProviderError", wait))
}

/** Runs the hooks between two turns: `prepareNextTurn`, which may change options, then `shouldStopAfterTurn`. */
const betweenTurns = Effect.fnUntraced(function* (run: Run, turn: Turn.Turn) {
  yield* run.interruptible
  const input = (): Hook.AfterTurnInput => ({
    ...run.turnInput,
    message: turn.message,
    toolResults: turn.toolResults,
    newMessages: run.newMessages
  })
  yield* run.ask("prepareNextTurn", input, ({ messages, thinkingLevel, ...options }) => {
    run.change(options, messages)
    if (thinkingLevel !== undefined) run.change({ modelOptions: { thinkingLevel } }, undefined)
  })
  let isEnd = false
  let isContinued = false
  yield* run.ask("shouldStopAfterTurn", input, (answer) => {
    isEnd ||= answer === true
    isContinued ||= answer === "continue"
  })
  run.isContinued = isContinued
  return isEnd
})

/** The status of a run that ends; `undefined` if another turn follows. */
type Ended = Effect.fn.Return<RunStatus | undefined, FailureReason>

/** Takes queued messages for the next turn, or returns the status of a run that ends. */
const next = Effect.fnUntraced(function* (run: Run, turn: Turn.Turn): Ended {
  const toolsContinue = run.isContinued || (turn.toolResults.length > 0 && !turn.isTerminated)
  if (run.output !== undefined) yield* Ending.checkOutput(run, turn)
  if (run.background !== undefined) yield* run.background.check
  const { stopWhen } = run.options
  const isMet = stopWhen !== undefined && Limits.meetsStop(run, stopWhen, turn.message)
  if (isMet || run.turn >= Limits.maxTurns(run)) {
    const isOpen = toolsContinue || (run.background !== undefined && isExpected(run, turn))
    const status = isOpen ? undefined : yield* naturalEnd(run, turn)
    return status ?? (isMet ? "stopped" : yield* outOfTurns(run))
  }
  // With `skipRemaining` steering messages may have been taken between the tool calls.
  if (run.pending.messages.length === 0) yield* Pending.takeSteering(run, "turnEnd")
  if (toolsContinue || run.pending.messages.length > 0) return undefined
  yield* Pending.takeFollowUps(run)
  // Steering may have come while a hook worked.
  if (run.pending.messages.length === 0 && run.queues.queued.steering.length > 0)
    run.addPending("steering", run.queues.drain("steering"))
  if (run.pending.messages.length > 0) return undefined
  if (run.background !== undefined && isExpected(run, turn) && (yield* awaitNews(run))) return undefined
  return yield* naturalEnd(run, turn)
})

/** Whether the run waits for background calls, whose ends start another turn. If tools ended the run with `terminate`, it does not. */
const isExpected = ({ background, output }: Run, { isTerminated, message }: Turn.Turn): boolean =>
  background !== undefined &&
  (!isTerminated || output?.isGivenBy(Message.toolCalls(message)) === true) &&
  background.atWork.length + background.unread.length > 0

/** Waits for the end of a background call or for a message of the user. Returns whether there is news for the model. */
const awaitNews = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<boolean, FailureReason> {
  const { background, control, queues } = run
  while (background !== undefined) {
    const { arrival } = queues
    background.changed.closeUnsafe()
    yield* background.check
    if (background.unread.length > 0) return true
    if (background.atWork.length === 0) return false
    if (queues.sizes.steering + queues.sizes.followUp === 0)
      yield* run.attempt(Effect.raceAllFirst([background.changed.await, arrival.await, control.pausing]))
    yield* Gate.open(run)
    yield* Pending.takeSteering(run, "turnEnd")
    if (run.pending.messages.length === 0) yield* Pending.takeFollowUps(run)
    if (run.pending.messages.length > 0) return true
  }
  return false
})

/** Ends a run after its last turn: returns the status, or `undefined` if the model must repair its output first. */
const naturalEnd = Effect.fnUntraced(function* (run: Run, turn: Turn.Turn): Ended {
  const { output } = run
  const isGiven = output?.isGivenBy(Message.toolCalls(turn.message)) ?? false
  if (turn.toolResults.length > 0 && !isGiven) return "terminated"
  if (output === undefined) return "completed"
  return (yield* Ending.hasOutput(run, output, turn)) ? "completed" : undefined
})

const outOfTurns = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<RunStatus, FailureReason> {
  const { onMaxTurns = "fail", wrapUpInstruction = defaultWrapUp } = run.options.limits ?? {}
  const limit = Limits.outOfTurns(run)
  if (onMaxTurns === "fail") return yield* limit
  Ending.announceLimit(run, limit)
  if (onMaxTurns === "wrapUp") {
    run.change(withoutTools(run.options), undefined)
    run.output?.abandon()
    const instruction = Message.user(wrapUpInstruction, run.clock.currentTimeMillisUnsafe())
    const append = Effect.sync(() => run.append([instruction]))
    let turn = yield* retrying(run, Turn.run(run, append))
    while (turn === undefined) turn = yield* retrying(run, Turn.run(run, Effect.void))
    yield* run.interruptible
  }
  return "incomplete"
})

const withoutTools = ({ modelOptions }: RunOptions): Partial<RunOptions> => ({
  activeTools: [],
  ...(modelOptions?.hostedTools === undefined ? {} : { modelOptions: { hostedTools: [] } })
})

const defaultWrapUp =
  "You have reached the limit of turns and cannot call tools any more. Say what is done, what is not, and what you found."
