/**
 * The state of an agent between and during its runs: the transcript, the queues, the subscribers, and its one current
 * on. `Agent` is its public face.
 */
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { AgentEvent } from "../AgentEvent.ts"
import type { AgentState } from "./agentState.ts"
import * as State from "./agentState.ts"
import * as Continuation from "./continuation.ts"
import type { Reader } from "./delivery.ts"
import { noReader } from "./delivery.ts"
import { Control } from "./interruption.ts"
import { AgentBusy, AgentClosed, NotPaused } from "./agentError.ts"
import * as Execution from "./execution.ts"
import type { InvalidInput } from "./invalidInput.ts"
import * as Input from "./invalidInput.ts"
import { execute } from "./loop.ts"
import * as Message from "../Message.ts"
import type { Prompted } from "./promptOptions.ts"
import type { Provider } from "../Provider.ts"
import type { QueueMode, QueueName } from "./queues.ts"
import { Queues } from "./queues.ts"
import type { Run } from "./run.ts"
import type { RunOptions } from "../RunOptions.ts"
import * as Options from "../RunOptions.ts"
import { Subscriptions } from "./subscriptions.ts"
import type { ToolRegistry } from "../ToolRegistry.ts"

interface Active {
  readonly control: Control
  /** Opened when the run is over and its subscribers have received all events. */
  readonly ended: Latch.Latch
}

type Begun<E> = Effect.Effect<Execution.Started, AgentBusy | AgentClosed | InvalidInput | E>

type Task = Pick<Execution.Task, "prompts" | "continued" | "pollFirst" | "promptsFrom">

/** Makes the task of a run that begins at `now`, in milliseconds since the epoch. */
export type MakeTask<E> = (now: number) => Result.Result<Task, E>

export class AgentRuntime {
  readonly queues: Queues
  private readonly state: State.Changing<AgentState>
  /** Lays the agent's services over the caller's. */
  private readonly services: (caller: Context.Context<never>) => Context.Context<Provider | ToolRegistry>
  private active: Active | undefined
  private isClosed = false
  /** The current run, or the last one. */
  run: Run | undefined
  readonly subscriptions: Subscriptions
  /** The state, as others see it. */
  readonly watched: State.Subscribable<AgentState>
  /** Changes that the application made since the last turn began. */
  private changes: { options?: Partial<RunOptions>; replaced?: boolean } | undefined

  constructor(
    state: AgentState,
    modes: Partial<Record<QueueName, QueueMode>>,
    scope: Scope.Scope,
    services: (caller: Context.Context<never>) => Context.Context<Provider | ToolRegistry>
  ) {
    this.state = new State.Changing(state)
    this.watched = this.state.subscribable
    this.queues = new Queues(modes)
    this.subscriptions = new Subscriptions(scope)
    this.services = services
  }

  get control(): Control | undefined {
    return this.active?.control
  }

  get current(): AgentState {
    return this.state.current
  }

  /**
   * Starts a run, if there is no current one: both in one step, so that two callers cannot both be first, and none can be
   * interrupted between being first and having started.
   */
  begin<E>(
    makeTask: MakeTask<E>,
    prompted: Prompted<Partial<RunOptions>>,
    reader: Reader = noReader
  ): Begun<E> {
    return Effect.uninterruptible(
      Effect.gen({ self: this }, function* () {
        if (this.isClosed) return yield* new AgentClosed()
        if (this.active !== undefined) return yield* new AgentBusy()
        const task = yield* Effect.fromResult(makeTask(yield* Clock.currentTimeMillis))
        return yield* this.fork(task, prompted, reader)
      })
    )
  }

  private fork(
    task: Task,
    { options, typed }: Prompted<Partial<RunOptions>>,
    reader: Reader
  ): Effect.Effect<Execution.Started> {
    const active: Active = { control: new Control(), ended: Latch.makeUnsafe(false) }
    this.active = active
    this.changes = undefined
    const full: Execution.Task = {
      ...task,
      messages: this.current.messages,
      options: Options.patch(this.current.options, options),
      output: typed.output,
      queues: this.queues,
      nextTurn: () => this.takeChanges()
    }
    const executor: Execution.Executor = (connections) =>
      Effect.ensuring(execute(full, connections), this.rest(active))
    const connections: Execution.Connections = {
      runId: Execution.makeRunId(),
      control: active.control,
      onRun: (run) => {
        this.run = run
      },
      observe: (events) => this.observe(events),
      subscriptions: this.subscriptions,
      reader
    }
    return Effect.updateContext(Execution.fork(executor, connections, full), this.services)
  }

  private takeChanges() {
    const { changes } = this
    this.changes = undefined
    // The messages that the run has added since they were replaced stand behind them.
    return changes?.replaced === true ? { ...changes, messages: this.current.messages } : changes
  }

  private observe(events: ReadonlyArray<AgentEvent>): void {
    if (this.subscriptions.hasReaders) this.subscriptions.observe(events)
    const { current } = this
    const next = State.afterAll(current, events)
    if (next !== current) this.state.set(next)
  }

  /** A run is over when its last subscriber has received its end. */
  private rest(active: Active): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.active = undefined
      this.state.set({ ...this.current, phase: "idle" })
      return active.ended.open
    })
  }

  /**
   * The task of `resume`: unanswered calls get error results; after an answer, complete or broken off, queued messages are
   * the prompt; without any the model answers again in place of an answer that broke off.
   */
  readonly continuation = (timestamp: number): Result.Result<Task, Continuation.InvalidContinuation> => {
    const { messages } = this.current
    if (messages.length === 0) {
      return Result.fail(new Continuation.InvalidContinuation({ detail: "No messages to continue from" }))
    }
    const isUnanswered = Continuation.isUnanswered(messages)
    if (!isUnanswered || Continuation.isBrokenOff(messages)) {
      const queued = this.queuedPrompts()
      if (queued !== undefined) return Result.succeed(queued)
    }
    if (!isUnanswered) return Result.fail(Continuation.answered())
    const prompts = Continuation.missingResults(messages, timestamp)
    return Result.succeed({ prompts, continued: true, pollFirst: true })
  }

  private queuedPrompts(): Task | undefined {
    for (const promptsFrom of ["steering", "followUp"] as const) {
      const prompts = this.queues.drain(promptsFrom)
      const pollFirst = promptsFrom === "followUp"
      if (prompts.length > 0) return { prompts, promptsFrom, continued: true, pollFirst }
    }
    return undefined
  }

  /** Waits until there is no run, and subscribers have received all events. */
  readonly waitForIdle: Effect.Effect<void> = Effect.suspend(() => this.active?.ended.await ?? Effect.void)

  /** Releases a paused run. */
  resume(reason: string | undefined): Effect.Effect<void, NotPaused> {
    return Effect.suspend(() => {
      const { control } = this
      if (control?.paused === undefined) return new NotPaused()
      control.resume(reason)
      return Effect.void
    })
  }

  /** Puts messages in a queue. */
  enqueue(name: QueueName, input: Message.Input): Effect.Effect<void> {
    return Effect.clockWith((clock) =>
      Effect.map(Effect.fromResult(Input.prompt(input, clock.currentTimeMillisUnsafe())), (messages) =>
        this.queues.add(name, messages)
      ).pipe(Effect.orDie)
    )
  }

  update(patch: Partial<RunOptions>): Effect.Effect<void, InvalidInput> {
    return Effect.suspend(() =>
      Effect.map(Effect.fromResult(Input.patch(patch)), (patch) => {
        this.change({ options: Options.patch(this.changes?.options ?? {}, patch) })
        this.state.set({ ...this.current, options: Options.patch(this.current.options, patch) })
      })
    )
  }

  setMessages(messages: ReadonlyArray<Message.Message>): Effect.Effect<void, InvalidInput> {
    return Effect.suspend(() =>
      Effect.map(Effect.fromResult(Input.messages(messages)), (messages) => {
        this.change({ replaced: true })
        this.state.set({ ...this.current, messages })
      })
    )
  }

  private change(changes: NonNullable<AgentRuntime["changes"]>): void {
    if (this.active !== undefined) this.changes = { ...this.changes, ...changes }
  }

  readonly reset: Effect.Effect<void, AgentBusy> = Effect.suspend(() => {
    if (this.active !== undefined) return Effect.fail(new AgentBusy())
    this.queues.clear("all")
    this.state.set({
      messages: [],
      phase: "idle",
      pendingToolCalls: new Set(),
      options: this.current.options
    })
    return Effect.void
  })

  /** Ends the current run, and takes no other. */
  readonly close = Effect.gen({ self: this }, function* () {
    this.isClosed = true
    if (this.active !== undefined) yield* this.active.control.cancel("the agent was closed")
    yield* this.waitForIdle
    this.state.close()
    yield* this.subscriptions.close()
  })
}
