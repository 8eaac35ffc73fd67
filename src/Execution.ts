/**
 * Carries a run: a fiber nobody interrupts, what it starts from, and what is left of it.
 *
 * Leaving the stream, interrupting the effect and closing the scope all stop a run the same way: through its control, so
 * that its events are balanced and its transcript whole, and then they wait for it.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { AgentEvent, RunStatus } from "./AgentEvent.ts"
import { ContextManager } from "./ContextManager.ts"
import { Control } from "./Control.ts"
import * as Emitter from "./Emitter.ts"
import type { EventError } from "./FailureReason.ts"
import * as Handoff from "./Handoff.ts"
import { HookManager } from "./HookManager.ts"
import * as Message from "./Message.ts"
import { Provider } from "./Provider.ts"
import type { QueueName, Queues } from "./Queues.ts"
import type { Run } from "./Run.ts"
import * as Running from "./Run.ts"
import type { RunFailed } from "./RunFailed.ts"
import type { RunOptions } from "./RunOptions.ts"
import * as RunReport from "./RunReport.ts"
import type { RunResult } from "./RunResult.ts"
import { ToolContext } from "./Tool.ts"
import { ToolRegistry } from "./ToolRegistry.ts"
import * as Usage from "./Usage.ts"
import { attempt, StopSignal } from "./Work.ts"

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
export interface Audience extends Emitter.Audience {
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
  const id = `run_${Message.makeId().slice("msg_".length)}`
  const parent = caller._tag === "Some" ? { parent: parentOf(caller.value) } : {}
  const emitter = Emitter.make({ runId: id, ...parent }, clock, {
    ...audience,
    observe: (event) => {
      if (event._tag !== "MessageDelta") run.report = RunReport.fold(run.report, event)
      audience.observe(event)
    }
  })
  const hooks = Context.get(context, HookManager).forRun({
    options: () => run.options,
    onError: (error) => Running.emit(run, { _tag: "HookError", ...error })
  })
  const run: Run = {
    id,
    clock,
    startedAt: clock.currentTimeMillisUnsafe(),
    provider: Context.get(context, Provider),
    registry: Context.get(context, ToolRegistry),
    contextManager: Context.get(context, ContextManager),
    hooks,
    metadata: new Map(),
    control: audience.control,
    queues: task.queues,
    emitter,
    options: task.options,
    messages: task.messages,
    newMessages: [],
    open: undefined,
    turn: 0,
    usage: Usage.zero,
    toolCalls: 0,
    recentCalls: [],
    report: RunReport.empty,
    cancelAnnounced: false
  }
  audience.onRun(run)
  return run
})

/** A run started inside a tool is a sub-agent's. */
const parentOf = ({ runId, toolCallId }: ToolContext["Service"]) => ({ runId, toolCallId })

/** How a run ended, before its last hooks. */
export interface Ending {
  readonly status: RunStatus
  readonly error: EventError | undefined
  readonly message?: Message.Assistant
}

/**
 * Tells the hooks how it ended. They run although the run may have been stopped. One that fails the run (mode "fail") can
 * still do that here.
 */
export const afterExecution = Effect.fnUntraced(function* (
  run: Run,
  ending: Ending
): Effect.fn.Return<Ending> {
  let message = lastAnswer(run)
  const { error, status } = ending
  const told = Effect.gen(function* () {
    if (error !== undefined) {
      yield* run.hooks.ask(
        "onError",
        () => ({ ...Running.baseInput(run), scope: "run", error }),
        () => "next"
      )
    }
    yield* run.hooks.ask(
      "afterExecution",
      () => ({
        ...Running.baseInput(run),
        status,
        ...(error === undefined ? {} : { error }),
        ...(message === undefined ? {} : { message }),
        report: run.report,
        durationMs: run.clock.currentTimeMillisUnsafe() - run.startedAt
      }),
      (verdict) => {
        if (verdict._tag === "Said" && error === undefined) message = verdict.output.modified ?? message
        return "next"
      }
    )
  })
  const asked = yield* attempt(new StopSignal(), Effect.result(told))
  const failure = asked._tag === "Done" && Exit.isSuccess(asked.exit) ? asked.exit.value : undefined
  const failed = failure?._tag === "Failure" && error === undefined ? failure.failure : undefined
  const withMessage = message === undefined ? {} : { message }
  if (failed === undefined) return { status, error, ...withMessage }
  yield* Running.emit(run, { _tag: "RunError", error: failed, retryable: false })
  return { status: "failed", error: failed, ...withMessage }
})

const lastAnswer = (run: Run): Message.Assistant | undefined =>
  run.newMessages.findLast((message) => message.role === "assistant")

/** What is handed to the caller. */
export const resultOf = (
  run: Run,
  { message, status }: Ending,
  undelivered: ReadonlyArray<Message.Message>
): RunResult => ({
  runId: run.id,
  status,
  ...(message === undefined ? {} : { message }),
  newMessages: run.newMessages,
  usage: run.usage,
  turns: run.turn,
  duration: Duration.millis(run.clock.currentTimeMillisUnsafe() - run.startedAt),
  report: run.report,
  undelivered
})

/** Makes the run of an audience. */
export type Executor = (audience: Audience) => Effect.Effect<RunResult, RunFailed, Provider | ToolRegistry>

/** Nobody listens. */
export const unheard = (): Audience => ({
  control: new Control(),
  onRun: () => {},
  observe: () => {},
  settle: () => Effect.void,
  listeners: () => [],
  offer: () => Effect.void
})

/** A run that goes on, and what stops it. */
export interface Started {
  readonly fiber: Fiber.Fiber<RunResult, RunFailed>
  readonly control: Control
}

/** Starts a run in a fiber of its own, which only its control stops. */
export const fork = (
  execute: Executor,
  audience: Audience
): Effect.Effect<Started, never, Provider | ToolRegistry> =>
  Effect.contextWith((context: Context.Context<Provider | ToolRegistry>) =>
    Effect.sync(() => ({
      control: audience.control,
      fiber: Effect.runForkWith(context)(execute(audience).pipe(Effect.withSpan("invoke_agent")), {
        uninterruptible: true
      })
    }))
  )

/** Stops a run and waits until it has come to its end. */
export const stopAndWait = ({ control, fiber }: Started, reason: string): Effect.Effect<void> =>
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

/** How far a run may be ahead of the reader of its stream, in events. */
const readAhead = 256

/** A run for its events; leaving the stream stops the run. `start` is given what takes the events to the reader. */
export const stream = <E, R>(
  start: (offer: Audience["offer"]) => Effect.Effect<Started, E, R>
): Stream.Stream<AgentEvent, RunFailed | E, R> =>
  Stream.unwrap(
    Effect.suspend(() => {
      const handoff = Handoff.make<AgentEvent, RunFailed>(readAhead)
      return Effect.acquireRelease(start(handoff.offer), (started) => {
        handoff.close()
        return stopAndWait(started, "the reader left")
      }).pipe(
        Effect.map(({ control, fiber }) => {
          // A run told to stop must reach its end although nobody may be reading.
          control.signal.onStop(handoff.unbound)
          fiber.addObserver((exit) => handoff.end(Exit.asVoid(exit)))
          return Stream.fromPull(Effect.succeed(handoff.pull))
        })
      )
    })
  )
