/**
 * The agent loop: ask the model, run the tools it calls, ask again, until it stops calling.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { AgentEvent, RunStatus } from "./AgentEvent.ts"
import * as Event from "./AgentEvent.ts"
import * as Budget from "./internal/budget.ts"
import * as Continuation from "./internal/continuation.ts"
import type * as Delivery from "./internal/delivery.ts"
import * as Ending from "./internal/ending.ts"
import * as Execution from "./internal/execution.ts"
import type { FailureReason } from "./FailureReason.ts"
import { LimitExceeded } from "./FailureReason.ts"
import * as Gate from "./internal/gate.ts"
import type * as Hook from "./Hook.ts"
import type { InvalidInput } from "./internal/invalidInput.ts"
import * as Input from "./internal/invalidInput.ts"
import * as Limits from "./internal/limits.ts"
import * as Message from "./Message.ts"
import type { Provider } from "./Provider.ts"
import { Queues } from "./internal/queues.ts"
import * as Pending from "./internal/pending.ts"
import type { Run, Stopped } from "./internal/run.ts"
import * as Running from "./internal/run.ts"
import type { RunFailed } from "./RunFailed.ts"
import type { RunOptions } from "./RunOptions.ts"
import * as Options from "./RunOptions.ts"
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

const start = (task: (now: number) => Reading<Execution.Task>, reader?: Delivery.Reader) =>
  Effect.clockWith((clock) => {
    const unheard = Execution.unheard()
    return Effect.flatMap(Effect.fromResult(task(clock.currentTimeMillisUnsafe())), (made) =>
      Execution.fork(
        (audience) => execute(made, audience),
        reader === undefined ? unheard : { ...unheard, reader }
      )
    )
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
  audience: Execution.Audience
): Effect.fn.Return<RunResult, RunFailed, Provider | ToolRegistry> {
  const run = yield* Execution.makeRun(task, audience)
  Running.announceQueues(run)
  yield* Running.emit(run, {
    _tag: "RunStart",
    v: Event.version,
    prompts: task.prompts,
    model: run.options.model,
    continued: task.continued
  })
  const deadline = new Limits.Deadline(run)
  const exit = yield* Effect.exit(
    Effect.andThen(beforeExecution(run, task), turns(run, task, deadline)).pipe(
      Effect.provideService(Budget.Outer, run.budget)
    )
  )
  deadline.unset()
  return yield* Ending.finish(run, Pending.restore(run), exit)
})

type Reason = FailureReason | Stopped

const beforeExecution = (run: Run, task: Execution.Task): Effect.Effect<void, Reason> =>
  Running.observe(
    run,
    "beforeExecution",
    () => ({ ...Running.baseInput(run), options: run.options, prompts: task.prompts }),
    ({ modified }) => {
      run.options = Options.patch(run.options, modified)
      return "next"
    }
  )

const turns = Effect.fnUntraced(function* (
  run: Run,
  task: Execution.Task,
  deadline: Limits.Deadline
): Effect.fn.Return<RunStatus, Reason> {
  deadline.set()
  for (let first = true; ; first = false) {
    yield* Gate.open(run)
    takeChanges(run, task, deadline)
    if (run.turn >= Limits.maxTurns(run)) return yield* outOfTurns(run)
    yield* Gate.beforeTurn(run)
    takeChanges(run, task, deadline)
    const done = yield* Turn.run(run, () => Pending.deliver(run, first && task.pollFirst))
    if (yield* betweenTurns(run, done)) return "stopped"
    const status = yield* next(run, done)
    if (status !== undefined) return status
  }
})

/** What the application changed while the last turn went on, or the run was paused before this one. */
const takeChanges = (run: Run, task: Execution.Task, deadline: Limits.Deadline): void => {
  const changes = task.nextTurn()
  run.options = Options.patch(run.options, changes?.options)
  run.messages = changes?.messages ?? run.messages
  deadline.set()
}

/** Lets hooks prepare the next turn, then asks whether there should be one. */
const betweenTurns = Effect.fnUntracedEager(function* (
  run: Run,
  done: Turn.Completed
): Effect.fn.Return<boolean, Reason> {
  yield* Running.checkStopped(run)
  const input = (): Hook.AfterTurnInput => ({
    ...Running.turnInput(run),
    message: done.message,
    toolResults: done.toolResults,
    newMessages: Running.newMessages(run)
  })
  yield* Running.shape(run, "prepareNextTurn", input, ({ messages, thinkingLevel, ...options }) => {
    run.messages = messages ?? run.messages
    run.options = Options.patch(run.options, {
      ...options,
      ...(thinkingLevel === undefined ? {} : { modelOptions: { ...run.options.modelOptions, thinkingLevel } })
    })
  })
  let stop = false
  yield* Running.shape(run, "shouldStopAfterTurn", input, (answer) => {
    stop ||= answer
  })
  return stop
})

/** Takes what comes next and goes on, or says how the run ended. */
const next = Effect.fnUntracedEager(function* (
  run: Run,
  done: Turn.Completed
): Effect.fn.Return<RunStatus | undefined, Reason> {
  if (run.turn >= Limits.maxTurns(run)) return done.toolsContinue ? yield* outOfTurns(run) : naturalEnd(done)
  // Steering may have been taken during the tools.
  if (run.pending.messages.length === 0) yield* Pending.takeSteering(run, "turnEnd")
  if (done.toolsContinue || run.pending.messages.length > 0) return undefined
  yield* Pending.takeFollowUps(run)
  return run.pending.messages.length > 0 ? undefined : naturalEnd(done)
})

const naturalEnd = (done: Turn.Completed): RunStatus => (done.terminated ? "terminated" : "completed")

const outOfTurns = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<RunStatus, Reason> {
  const { onMaxTurns = "fail", wrapUpInstruction } = run.options.limits ?? {}
  const limit = new LimitExceeded({ limit: "maxTurns", value: run.turn, max: Limits.maxTurns(run) })
  if (onMaxTurns === "fail") return yield* limit
  yield* Ending.announceLimit(run, limit)
  if (onMaxTurns === "wrapUp") {
    run.options = { ...run.options, activeTools: [] }
    const instruction = Message.user(wrapUpInstruction ?? defaultWrapUp, run.clock.currentTimeMillisUnsafe())
    yield* Turn.run(run, () => Running.append(run, [instruction]))
    yield* Running.checkStopped(run)
  }
  return "incomplete"
})

const defaultWrapUp =
  "You have reached the limit of turns and cannot call tools any more. Say what is done, what is not, and what you found."
