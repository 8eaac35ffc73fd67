/**
 * Carries a run: a fiber nobody interrupts, what it starts from, and what is left of it.
 *
 * Leaving the stream, interrupting the effect and closing the scope all stop a run the same way: through its control, so
 * that its events are balanced and its transcript whole, and then they wait for it.
 */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import * as Alarm from "./alarm.ts"
import * as Budget from "./budget.ts"
import { ContextManager } from "../ContextManager.ts"
import { Control } from "./control.ts"
import type * as Delivery from "./delivery.ts"
import * as Emitter from "./events.ts"
import * as Handoff from "./handoff.ts"
import * as HookCalls from "./hookCalls.ts"
import { HookManager } from "../HookManager.ts"
import * as Message from "../Message.ts"
import { Provider } from "../Provider.ts"
import type { QueueName, Queues } from "./queues.ts"
import type { Run } from "./run.ts"
import * as Running from "./run.ts"
import type { RunFailed } from "../RunFailed.ts"
import type { RunOptions } from "../RunOptions.ts"
import * as RunReport from "../RunReport.ts"
import type { RunResult } from "../RunResult.ts"
import { ToolContext } from "../Tool.ts"
import { ToolRegistry } from "../ToolRegistry.ts"
import * as Usage from "../Usage.ts"
import { traced } from "./work.ts"

/** What a run is to do. */
export interface Task {
  readonly prompts: ReadonlyArray<Message.Message>
  /** The transcript so far. Never changed. */
  readonly messages: ReadonlyArray<Message.Message>
  readonly options: RunOptions
  readonly continued: boolean
  /** Whether steering is polled after the prompts. */
  readonly pollFirst: boolean
  readonly queues: Queues
  /** The queue the prompts were taken from, if they were. */
  readonly promptsFrom?: QueueName
  /** Asked before each turn: what the application changed meanwhile. */
  readonly nextTurn: () =>
    | { readonly options?: Partial<RunOptions>; readonly messages?: ReadonlyArray<Message.Message> }
    | undefined
}

/** Who controls a run, and who hears of it. */
export interface Audience extends Delivery.Audience {
  readonly runId: string
  readonly control: Control
  /** Called once, before the first event. */
  readonly onRun: (run: Run) => void
}

/** A run, ready to be told of. */
export const makeRun = Effect.fnUntraced(function* (
  task: Task,
  audience: Audience
): Effect.fn.Return<Run, never, Provider | ToolRegistry> {
  const context = yield* Effect.context<Provider | ToolRegistry>()
  const clock = Context.get(context, Clock.Clock)
  const caller = Context.getOption(context, ToolContext)
  const id = audience.runId
  const parent = caller._tag === "Some" ? { parent: parentOf(caller.value) } : {}
  const surroundings = { clock, services: context, signal: audience.control.signal }
  const emitter = Emitter.make({ runId: id, ...parent }, surroundings, {
    ...audience,
    observe: (events) => {
      run.report = events.reduce(RunReport.fold, run.report)
      audience.observe(events)
    }
  })
  const hooks = HookCalls.make(Context.get(context, HookManager), {
    options: () => run.options,
    onError: (error) => Running.emit(run, { _tag: "HookError", ...error })
  })
  const run: Run = {
    id,
    clock,
    startedAt: Alarm.now(clock),
    provider: Context.get(context, Provider),
    registry: Context.get(context, ToolRegistry),
    contextManager: Context.get(context, ContextManager),
    hooks,
    metadata: new Map(),
    control: audience.control,
    queues: task.queues,
    emitter,
    budget: new Budget.Budget(() => run.options.limits, Context.get(context, Budget.Outer)),
    options: task.options,
    messages: task.messages,
    added: [],
    pending: { messages: task.prompts, from: task.promptsFrom },
    offered: new Map(),
    open: undefined,
    turn: 0,
    usage: Usage.zero,
    turnUsage: Usage.zero,
    toolCalls: 0,
    recentCalls: [],
    warnedInTurn: undefined,
    report: RunReport.empty,
    cancelAnnounced: false
  }
  // First of all who wait for the stop, so last to hear of it: by then the work in flight has been halted.
  audience.control.signal.onStop(audience.reader.release)
  audience.onRun(run)
  return run
})

/** A run started inside a tool is a sub-agent's. */
const parentOf = ({ runId, toolCallId }: ToolContext["Service"]) => ({ runId, toolCallId })

/** Makes the run of an audience. */
export type Executor = (audience: Audience) => Effect.Effect<RunResult, RunFailed, Provider | ToolRegistry>

/** Unique, like the ids of messages. */
export const makeRunId = (): string => `run_${Message.makeId().slice("msg_".length)}`

/** Nobody listens. */
export const unheard = (): Audience => ({
  runId: makeRunId(),
  control: new Control(),
  onRun: () => {},
  observe: () => {},
  subscriptions: { subscribers: [], hasReaders: false },
  reader: Emitter.noReader
})

/** A run that goes on, and what stops it. */
export interface Started {
  readonly runId: string
  readonly fiber: Fiber.Fiber<RunResult, RunFailed>
  readonly control: Control
}

/** Starts a run in a fiber of its own, which only its control stops. */
export const fork = (
  execute: Executor,
  audience: Audience
): Effect.Effect<Started, never, Provider | ToolRegistry> =>
  Effect.contextWith((context: Context.Context<Provider | ToolRegistry>) =>
    Effect.succeed(forkWith(context, execute, audience))
  )

/** The same, at once and with these services. */
export const forkWith = (
  context: Context.Context<Provider | ToolRegistry>,
  execute: Executor,
  audience: Audience
): Started => {
  const done = Alarm.of(Context.get(context, Clock.Clock)).keep()
  const work = traced("invoke_agent")(execute(audience))
  const fiber = Effect.runForkWith(context)(work, { uninterruptible: true })
  fiber.addObserver(done)
  return { runId: audience.runId, control: audience.control, fiber }
}

/** A run that belongs to the agent's scope, not to the fiber that started it. */
export interface StartedRun {
  readonly runId: string
  /** The run's result, or its failure. A failure is logged if no fiber awaits the result by then. */
  readonly result: Effect.Effect<RunResult, RunFailed>
  /** Ends the run, balanced: its `result` then has status "cancelled". Does not wait for that. */
  readonly cancel: (reason?: string) => Effect.Effect<void>
}

/** What an application may do with a run it started. */
export const handle = ({ control, fiber, runId }: Started): Effect.Effect<StartedRun> =>
  Effect.contextWith((services: Context.Context<never>) => {
    let isAwaited = false
    const report = (cause: Cause.Cause<RunFailed>) =>
      // By then code that goes on at once awaits the result.
      Effect.andThen(
        Effect.yieldNow,
        Effect.suspend(() =>
          isAwaited
            ? Effect.void
            : Effect.logError(`Run ${runId} failed, and no fiber awaits its result`, cause)
        )
      )
    fiber.addObserver((exit) => {
      if (Exit.isFailure(exit)) Effect.runForkWith(services)(report(exit.cause))
    })
    return Effect.succeed({
      runId,
      result: Effect.suspend(() => {
        isAwaited = true
        return Fiber.join(fiber)
      }),
      cancel: (reason) => Effect.sync(() => control.cancel(reason))
    })
  })

/** Stops a run and waits until it has come to its end. */
const stopAndWait = ({ control, fiber }: Started, reason: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    control.signal.stop({ cause: "cancel", reason })
    return Effect.asVoid(Fiber.await(fiber))
  })

/** A run for its result; interrupting the wait stops the run. */
export const join = <E, R>(start: Effect.Effect<Started, E, R>): Effect.Effect<RunResult, RunFailed | E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(start, (started) =>
      Effect.onInterrupt(restore(Fiber.join(started.fiber)), () => stopAndWait(started, "interrupted"))
    )
  )

/** So many events may wait for the reader of a stream before its run waits with the next of an answer. */
const readAhead = 64

/** A run for its events; leaving the stream stops the run. `start` is given its reader. */
export const stream = <E, R>(
  start: (reader: Delivery.Reader) => Effect.Effect<Started, E, R>
): Stream.Stream<AgentEvent, RunFailed | E, R> =>
  Handoff.opened((scope) =>
    Effect.uninterruptible(
      Effect.suspend(() => {
        const handoff = Handoff.make<AgentEvent, RunFailed>(readAhead)
        return Effect.flatMap(start(handoff), (started) => {
          const leave = Effect.suspend(() => {
            started.control.signal.stop({ cause: "cancel", reason: "the reader left" })
            handoff.close()
            return stopAndWait(started, "the reader left")
          })
          started.fiber.addObserver((exit) => handoff.end(Exit.asVoid(exit)))
          return Effect.as(Scope.addFinalizer(scope, leave), handoff.pull)
        })
      })
    )
  )
