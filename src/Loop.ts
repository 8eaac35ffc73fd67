/**
 * The agent loop: ask the model, run the tools it calls, ask again, until it stops calling.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { AgentEvent, RunStatus } from "./AgentEvent.ts"
import * as Event from "./AgentEvent.ts"
import * as Budget from "./internal/budget.ts"
import * as Continuation from "./internal/continuation.ts"
import * as Ending from "./internal/ending.ts"
import * as Execution from "./internal/execution.ts"
import type { FailureReason } from "./FailureReason.ts"
import * as Gate from "./internal/gate.ts"
import type * as Hook from "./Hook.ts"
import type { InvalidInput } from "./internal/invalidInput.ts"
import * as Input from "./internal/invalidInput.ts"
import * as Limits from "./internal/limits.ts"
import * as Message from "./Message.ts"
import type { Provider } from "./Provider.ts"
import { Queues } from "./internal/queues.ts"
import * as Pending from "./internal/pending.ts"
import type { Reader } from "./internal/events.ts"
import type { Run } from "./internal/run.ts"
import { Stopped } from "./internal/run.ts"
import type { RunFailed } from "./RunFailed.ts"
import type { RunOptions } from "./RunOptions.ts"
import type { RunResult } from "./RunResult.ts"
import type { ToolRegistry } from "./ToolRegistry.ts"
import * as Turn from "./internal/turn.ts"

export { InvalidContinuation } from "./internal/continuation.ts"
export { InvalidInput } from "./internal/invalidInput.ts"

/** What happened before the prompt. */
export interface Context {
  readonly messages: ReadonlyArray<Message.Message>
}

/**
 * A run as a stream of its events. Cold: each execution is one run. Ends after `RunEnd`, or fails after
 * `RunEnd{status: "failed"}` with `RunFailed`. A slow reader slows the model. Leaving early cancels the run by its
 * controlled path, and waits for its end.
 */
export const stream = (
  prompt: Message.Input,
  context: Context,
  options: RunOptions
): Stream.Stream<AgentEvent, RunFailed | InvalidInput, Provider | ToolRegistry> =>
  streamOf((now) => fresh(Input.prompt(prompt, now), context, options))

/** The same run for its result. A cancelled run is a result; only a failed one fails. */
export const run = (
  prompt: Message.Input,
  context: Context,
  options: RunOptions
): Effect.Effect<RunResult, RunFailed | InvalidInput, Provider | ToolRegistry> =>
  Execution.join(start((now) => fresh(Input.prompt(prompt, now), context, options)))

/**
 * Runs without a new prompt, from a transcript that the model has not answered.
 *
 * The transcript may end with a user message, a tool result or a custom message; with calls that have no result, which get
 * an error result first and are not run; or with an answer that failed or was cancelled, for which the model is asked again.
 * Fails with `InvalidContinuation` before any event when it has no messages, or ends with a complete answer.
 */
export const resume = (
  context: Context,
  options: RunOptions
): Stream.Stream<
  AgentEvent,
  RunFailed | InvalidInput | Continuation.InvalidContinuation,
  Provider | ToolRegistry
> => {
  const { messages } = context
  if (messages.length === 0) {
    return Stream.fail(
      new Continuation.InvalidContinuation({ detail: "Cannot continue: no messages in context" })
    )
  }
  if (!Continuation.isUnanswered(messages)) return Stream.fail(Continuation.answered())
  return streamOf((now) =>
    Result.map(
      fresh(Result.succeed(Continuation.missingResults(messages, now)), context, options),
      (task) => ({ ...task, continued: true })
    )
  )
}

type Reading<A> = Result.Result<A, InvalidInput>

const streamOf = (task: (now: number) => Reading<Execution.Task>) =>
  Execution.stream((reader) => start(task, reader))

const start = (task: (now: number) => Reading<Execution.Task>, reader?: Reader) =>
  Effect.gen(function* () {
    const made = yield* Effect.fromResult(task(yield* Clock.currentTimeMillis))
    return yield* Execution.fork((seat) => execute(made, seat), Execution.seatOf(reader))
  })

const fresh = (
  prompts: Reading<ReadonlyArray<Message.Message>>,
  context: Context,
  options: RunOptions
): Reading<Execution.Task> =>
  Result.gen(function* () {
    return {
      prompts: yield* prompts,
      messages: yield* Input.messages(context.messages),
      options: yield* Input.options(options),
      continued: false,
      pollFirst: true,
      queues: new Queues(),
      nextTurn: () => undefined
    }
  })

/**
 * One run from start to end. Never to be interrupted: `Execution` sees to that, and stops it through its control.
 *
 * @internal
 */
export const execute = Effect.fnUntraced(function* (
  task: Execution.Task,
  seat: Execution.Seat
): Effect.fn.Return<RunResult, RunFailed, Provider | ToolRegistry> {
  const run = yield* Execution.makeRun(task, seat)
  run.queues.takeChange()
  run.emit({
    _tag: "RunStart",
    v: Event.version,
    prompts: task.prompts,
    model: run.options.model,
    continued: task.continued
  })
  yield* run.delivered
  const deadline = new Limits.Deadline(run)
  const exit = yield* Effect.exit(
    Effect.andThen(beforeExecution(run, task), turns(run, task, deadline)).pipe(
      Effect.provideService(Budget.Outer, run.budget)
    )
  )
  yield* deadline.unset
  return yield* Ending.finish(run, Pending.restore(run), exit)
})

type Reason = FailureReason | Stopped

const beforeExecution = (run: Run, task: Execution.Task): Effect.Effect<void, Reason> =>
  run.ask(
    "beforeExecution",
    () => ({ ...run.baseInput, options: run.options, prompts: task.prompts }),
    ({ modified }) => {
      run.change(modified, undefined)
      return "next"
    }
  )

/** Takes turns until the run ends, and returns how. */
const turns = Effect.fnUntraced(function* (
  run: Run,
  task: Execution.Task,
  deadline: Limits.Deadline
): Effect.fn.Return<RunStatus, Reason> {
  const takeChanges = Effect.suspend(() => {
    const changes = task.nextTurn()
    run.change(changes?.options, changes?.messages)
    return deadline.set
  })
  yield* deadline.set
  for (let isFirst = true; ; isFirst = false) {
    yield* Gate.open(run)
    yield* takeChanges
    if (run.turn >= Limits.maxTurns(run)) return yield* outOfTurns(run)
    yield* Gate.beforeTurn(run)
    yield* takeChanges
    const turn = yield* completed(Turn.run(run, Pending.deliver(run, isFirst && task.pollFirst)))
    if (yield* betweenTurns(run, turn)) return "stopped"
    const status = yield* next(run, turn)
    if (status !== undefined) return status
  }
})

/** A turn that ended well; fails with the reason of any other. */
const completed = Effect.fnUntraced(function* (
  running: Effect.Effect<Turn.Outcome>
): Effect.fn.Return<Turn.Completed, Reason> {
  const turn = yield* running
  if (turn._tag === "Failed") return yield* Effect.failCause(turn.cause)
  return turn._tag === "Stopped" ? yield* Effect.fail(new Stopped(turn.stop)) : turn
})

/** Lets hooks prepare the next turn, then asks them whether the run stops here. */
const betweenTurns = Effect.fnUntraced(function* (
  run: Run,
  turn: Turn.Completed
): Effect.fn.Return<boolean, Reason> {
  yield* run.checkStopped
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
  let isStopped = false
  yield* run.ask("shouldStopAfterTurn", input, (answer) => {
    isStopped ||= answer
  })
  return isStopped
})

/** Takes queued messages for the next turn, or returns how the run ended. */
const next = Effect.fnUntraced(function* (
  run: Run,
  turn: Turn.Completed
): Effect.fn.Return<RunStatus | undefined, Reason> {
  const toolsContinue = turn._tag === "Called" && !turn.isTerminated
  if (run.turn >= Limits.maxTurns(run)) return toolsContinue ? yield* outOfTurns(run) : naturalEnd(turn)
  // Steering may have been taken during the tools.
  if (run.pending.messages.length === 0) yield* Pending.takeSteering(run, "turnEnd")
  if (toolsContinue || run.pending.messages.length > 0) return undefined
  yield* Pending.takeFollowUps(run)
  return run.pending.messages.length > 0 ? undefined : naturalEnd(turn)
})

const naturalEnd = (turn: Turn.Completed): RunStatus =>
  turn._tag === "Called" && turn.isTerminated ? "terminated" : "completed"

const outOfTurns = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<RunStatus, Reason> {
  const { onMaxTurns = "fail", wrapUpInstruction = defaultWrapUp } = run.options.limits ?? {}
  const limit = Limits.outOfTurns(run)
  if (onMaxTurns === "fail") return yield* limit
  Ending.announceLimit(run, limit)
  if (onMaxTurns === "wrapUp") {
    run.change({ activeTools: [] }, undefined)
    const instruction = Message.user(wrapUpInstruction, run.clock.currentTimeMillisUnsafe())
    yield* completed(
      Turn.run(
        run,
        Effect.sync(() => run.append([instruction]))
      )
    )
    yield* run.checkStopped
  }
  return "incomplete"
})

const defaultWrapUp =
  "You have reached the limit of turns and cannot call tools any more. Say what is done, what is not, and what you found."
