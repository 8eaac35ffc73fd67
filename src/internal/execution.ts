/**
 * Starts a run in a fiber of its own, and gives it to callers as a result, as a stream or as a handle.
 *
 * Nothing interrupts that fiber. A caller that leaves the stream, is interrupted or closes its scope stops the run through
 * its control, and waits for its end: its events are balanced then, and its transcript whole.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import * as Budget from "./budget.ts"
import { ContextManager } from "../ContextManager.ts"
import type { Audience, Reader } from "./delivery.ts"
import { noReader } from "./delivery.ts"
import { Events } from "./events.ts"
import { Handoff, opened } from "./handoff.ts"
import { RunHooks } from "./hookCalls.ts"
import { HookManager } from "../HookManager.ts"
import { Control } from "./interruption.ts"
import * as Message from "../Message.ts"
import type { Output } from "./output.ts"
import { Provider } from "../Provider.ts"
import type { QueueName, Queues } from "./queues.ts"
import { Run } from "./run.ts"
import type { RunFailed } from "../RunFailed.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { RunResult } from "../RunResult.ts"
import * as Spans from "./spans.ts"
import { ToolContext } from "../Tool.ts"
import { ToolRegistry } from "../ToolRegistry.ts"

/** The start of a run, and the changes to it between turns. */
export interface Task {
  readonly prompts: ReadonlyArray<Message.Message>
  /** The transcript so far. Never changed. */
  readonly messages: ReadonlyArray<Message.Message>
  readonly options: RunOptions
  readonly continued: boolean
  /** Whether steering is polled after the prompts. */
  readonly pollFirst: boolean
  readonly queues: Queues
  /** The output that the model must give. Default: the run ends with any answer. */
  readonly output?: Output<unknown> | undefined
  /** The queue the prompts were taken from, if they were. */
  readonly promptsFrom?: QueueName
  /** Called before each turn: the application's changes since the last one. */
  readonly nextTurn: () =>
    | { readonly options?: Partial<RunOptions>; readonly messages?: ReadonlyArray<Message.Message> }
    | undefined
}

/** The switches of a run, and all that receive its events. */
export interface Connections extends Audience {
  readonly runId: string
  readonly control: Control
  /** Called once, before the first event. */
  readonly onRun: (run: Run) => void
}

type Services = Provider | ToolRegistry

/** Makes the run of a task. Children of the fiber that makes it serve its subscribers and watch its queues. */
export const makeRun = Effect.fnUntraced(function* (
  task: Task,
  connections: Connections
): Effect.fn.Return<Run, never, Services> {
  const context = yield* Effect.context<Services>()
  const run: Run = new Run(
    {
      id: connections.runId,
      clock: Context.get(context, Clock.Clock),
      provider: Context.get(context, Provider),
      registry: Context.get(context, ToolRegistry),
      contextManager: Context.get(context, ContextManager),
      hooks: new RunHooks(Context.get(context, HookManager), {
        options: () => run.options,
        onError: (error) => run.emit({ _tag: "HookError", ...error })
      }),
      control: connections.control,
      queues: task.queues,
      events: eventsOf(connections, context, (events) => run.record(events)),
      budget: new Budget.Budget(() => run.options.limits, Context.get(context, Budget.Outer)),
      output: task.output
    },
    task
  )
  for (const service of [run.events.serve, run.announceQueues, releaseReader(connections)]) {
    yield* Effect.forkChild(service, { startImmediately: true })
  }
  connections.onRun(run)
  return run
})

/** `record` receives the events before all others. */
const eventsOf = (
  connections: Connections,
  context: Context.Context<never>,
  record: (events: ReadonlyArray<AgentEvent>) => void
): Events => {
  const base = { runId: connections.runId, ...callersOf(Context.getOption(context, ToolContext)) }
  return new Events(base, Context.get(context, Clock.Clock), connections.control, {
    ...connections,
    observe: (events) => {
      record(events)
      connections.observe(events)
    }
  })
}

/** The tool calls around a run that starts inside a tool, as its events have them. */
const callersOf = (caller: Option.Option<ToolContext["Service"]>): Pick<AgentEvent, "parent" | "path"> => {
  if (Option.isNone(caller)) return {}
  const { path = [], runId, toolCallId } = caller.value
  const parent = { runId, toolCallId }
  return { parent, path: [...path, parent] }
}

/** After a stop has interrupted the work in flight, lets no event wait for a reader that may have left. */
const releaseReader = ({ control, reader }: Connections): Effect.Effect<void> =>
  Effect.andThen(
    Effect.andThen(control.stopped, Effect.yieldNow),
    Effect.sync(() => reader.release())
  )

/** Runs a task to its end. */
export type Executor = (connections: Connections) => Effect.Effect<RunResult, RunFailed, Services>

/** Unique, like the ids of messages. */
export const makeRunId = (): string => `run_${Message.makeId().slice("msg_".length)}`

/** For a run without an agent. */
export const connect = (reader: Reader = noReader): Connections => ({
  runId: makeRunId(),
  control: new Control(),
  onRun: () => {},
  observe: () => {},
  subscriptions: { subscribers: [], hasReaders: false },
  reader
})

/** A run in its fiber, and its switches. */
export interface Started {
  readonly runId: string
  readonly fiber: Fiber.Fiber<RunResult, RunFailed>
  readonly control: Control
}

/** Starts a run, before this returns, in a fiber that nothing interrupts. */
export const fork = (
  execute: Executor,
  connections: Connections,
  task: Task
): Effect.Effect<Started, never, Services> =>
  Effect.map(
    Spans.run({ id: connections.runId, ...task }, (onRun) => execute(watched(connections, onRun))).pipe(
      Effect.forkDetach({ startImmediately: true, uninterruptible: true })
    ),
    (fiber) => ({ runId: connections.runId, control: connections.control, fiber })
  )

const watched = (connections: Connections, onRun: Connections["onRun"]): Connections => ({
  ...connections,
  onRun: (run) => {
    onRun(run)
    connections.onRun(run)
  }
})

/**
 * A run that belongs to the scope of the agent, not to the fiber that started it.
 *
 * **Details**
 *
 * `O` are the members that an `output` schema adds to the result.
 *
 * @category models
 * @since 0.1.0
 */
export interface StartedRun<out O = {}> {
  /** The id of the run, as in its events. */
  readonly runId: string
  /** The run's result, or its failure. A failure is logged if no fiber awaits the result by then. */
  readonly result: Effect.Effect<RunResult & O, RunFailed>
  /** Ends the run, balanced: its `result` then has status "cancelled". Does not wait for that. */
  readonly cancel: (reason?: string) => Effect.Effect<void>
}

/** The handle of a run that an application started. */
export const handle = Effect.fnUntraced(function* ({
  control,
  fiber,
  runId
}: Started): Effect.fn.Return<StartedRun> {
  let isAwaited = false
  const report = Effect.gen(function* () {
    const exit = yield* Fiber.await(fiber)
    // Code that continues when the run ends may await the result only then.
    yield* Effect.yieldNow
    if (Exit.isFailure(exit) && !isAwaited)
      yield* Effect.logError(`Run ${runId} failed, and no fiber awaits its result`, exit.cause)
  })
  yield* Effect.forkDetach(report, { startImmediately: true })
  return {
    runId,
    result: Effect.suspend(() => {
      isAwaited = true
      return Fiber.join(fiber)
    }),
    cancel: (reason) => control.cancel(reason)
  }
})

/** Stops a run and waits for its end. */
const stopAndWait = ({ control, fiber }: Started, reason: string): Effect.Effect<void> =>
  Effect.andThen(control.cancel(reason), Effect.asVoid(Fiber.await(fiber)))

/** A run for its result; interrupting the wait stops the run. */
export const join = <E, R>(start: Effect.Effect<Started, E, R>): Effect.Effect<RunResult, RunFailed | E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(start, (started) =>
      Effect.onInterrupt(restore(Fiber.join(started.fiber)), () => stopAndWait(started, "interrupted"))
    )
  )

/** Events that may wait for the reader of a stream before its run waits with the next delta. */
const readAhead = 64

/** A run for its events; leaving the stream stops the run. `start` gets the reader of the run. */
export const stream = <E, R>(
  start: (reader: Reader) => Effect.Effect<Started, E, R>
): Stream.Stream<AgentEvent, RunFailed | E, R> =>
  opened((scope) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        const handoff = new Handoff<AgentEvent, RunFailed>(readAhead)
        const started = yield* start(handoff)
        yield* Effect.forkDetach(
          Effect.map(Fiber.await(started.fiber), (exit) => handoff.end(Exit.asVoid(exit))),
          { startImmediately: true }
        )
        yield* Scope.addFinalizer(
          scope,
          Effect.gen(function* () {
            yield* started.control.cancel("the reader left")
            handoff.close()
            yield* Fiber.await(started.fiber)
          })
        )
        return handoff.pull
      })
    )
  )
