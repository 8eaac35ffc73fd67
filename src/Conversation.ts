/**
 * What an agent keeps between and during its runs: the transcript, the queues, who listens, and the one run that may go
 * on. `Agent` is its public face.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as PubSub from "effect/PubSub"
import * as Schema from "effect/Schema"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { AgentEvent, View } from "./AgentEvent.ts"
import * as Event from "./AgentEvent.ts"
import { Control } from "./Control.ts"
import * as Emitter from "./Emitter.ts"
import * as Execution from "./Execution.ts"
import * as Loop from "./Loop.ts"
import * as Message from "./Message.ts"
import type { Provider } from "./Provider.ts"
import type { QueueMode, QueueName } from "./Queues.ts"
import { Queues } from "./Queues.ts"
import type { Run } from "./Run.ts"
import type { RunOptions } from "./RunOptions.ts"
import * as Options from "./RunOptions.ts"
import { Subscriptions } from "./Subscriptions.ts"
import type { ToolRegistry } from "./ToolRegistry.ts"
import * as Transcript from "./Transcript.ts"

/** The agent runs already. Steer it, or wait for it. */
export class AgentBusy extends Schema.TaggedError<AgentBusy>()("AgentBusy", {}) {
  override get message(): string {
    return "The agent is already processing a prompt. Use steer or followUp, or wait until it is idle."
  }
}

/** What can be seen of an agent. Changes at the boundaries of messages, tools and runs, never per delta. */
export interface AgentState {
  readonly messages: ReadonlyArray<Message.Message>
  readonly phase: View["phase"]
  readonly pendingToolCalls: ReadonlySet<string>
  readonly options: RunOptions
  readonly lastError?: string
}

interface Active {
  readonly control: Control
  /** Opened when the run and its last subscriber are done. */
  readonly ended: Latch.Latch
}

/** Where the state changes. */
const boundaries: ReadonlySet<AgentEvent["_tag"]> = new Set<AgentEvent["_tag"]>([
  "RunStart",
  "RunPaused",
  "RunResumed",
  "TurnStart",
  "MessageEnd",
  "ToolExecutionStart",
  "ToolExecutionEnd",
  "RunEnd"
])

type Task = Pick<Execution.Task, "prompts" | "continued" | "pollFirst" | "promptsFrom">

export class Conversation {
  readonly queues: Queues
  readonly state: SubscriptionRef.SubscriptionRef<AgentState>
  /** Lays the agent's services over the caller's. */
  private readonly services: (caller: Context.Context<never>) => Context.Context<Provider | ToolRegistry>
  private active: Active | undefined
  private closed = false
  /** The run that goes on, or the last one. */
  run: Run | undefined
  readonly subscriptions = new Subscriptions()
  /** What the application changed since the last turn began. */
  private changes: { options?: Partial<RunOptions>; replaced?: boolean } | undefined

  constructor(
    state: SubscriptionRef.SubscriptionRef<AgentState>,
    modes: Partial<Record<QueueName, QueueMode>>,
    services: (caller: Context.Context<never>) => Context.Context<Provider | ToolRegistry>
  ) {
    this.state = state
    this.queues = new Queues(modes)
    this.services = services
  }

  get control(): Control | undefined {
    return this.active?.control
  }

  get current(): AgentState {
    return SubscriptionRef.getUnsafe(this.state)
  }

  /**
   * Starts a run, if none goes on: both in one step, so that two callers cannot both be first, and none can be
   * interrupted between being first and having started.
   */
  begin<E>(
    makeTask: () => Effect.Effect<Task, E>,
    options: Partial<RunOptions> | undefined,
    reader?: Emitter.Reader
  ): Effect.Effect<Execution.Started, AgentBusy | E> {
    const begun = Effect.gen({ self: this }, function* () {
      if (this.closed) return yield* Effect.die(new Error("The agent's scope is closed"))
      if (this.active !== undefined) return yield* new AgentBusy()
      const active: Active = { control: new Control(), ended: Latch.makeUnsafe(false) }
      this.active = active
      this.changes = undefined
      const task = yield* Effect.onError(makeTask(), () => this.rest(active))
      return yield* this.fork(active, task, Options.patch(this.current.options, options), reader)
    })
    return Effect.uninterruptible(begun)
  }

  private fork(active: Active, task: Task, options: RunOptions, reader?: Emitter.Reader) {
    const full: Execution.Task = {
      ...task,
      messages: this.current.messages,
      options,
      queues: this.queues,
      nextTurn: () => {
        const { changes } = this
        this.changes = undefined
        // What the run has added since they were replaced stands behind them.
        return changes?.replaced === true ? { ...changes, messages: this.current.messages } : changes
      }
    }
    const executor: Execution.Executor = (audience) =>
      Effect.ensuring(Loop.execute(full, audience), this.rest(active))
    return Execution.fork(executor, {
      runId: Execution.makeRunId(),
      control: active.control,
      onRun: (run) => {
        this.run = run
      },
      observe: (event) => {
        this.subscriptions.observe(event)
        if (boundaries.has(event._tag)) this.settle(event)
      },
      listeners: () => this.subscriptions.listeners,
      reader: reader ?? Emitter.noReader
    }).pipe(Effect.updateContext(this.services))
  }

  /** A run is over when its last subscriber has heard of it. */
  private rest({ ended }: Active): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.active = undefined
      this.set({ ...this.current, phase: "idle" })
      return ended.open
    })
  }

  private settle(event: AgentEvent): void {
    const { messages, options, pendingToolCalls, phase, lastError } = this.current
    const view: View = {
      messages,
      open: undefined,
      phase,
      pendingToolCalls,
      lastError,
      status: undefined,
      usage: undefined
    }
    const next = Event.fold(view, event)
    this.set({
      messages: next.messages,
      // Until its subscribers have heard of the end, a run is not over.
      phase: event._tag === "RunEnd" ? phase : next.phase,
      pendingToolCalls: next.pendingToolCalls,
      options,
      ...(next.lastError === undefined ? {} : { lastError: next.lastError })
    })
  }

  /** In one step, so that whoever hears of an event sees its state: a run waits for nobody who looks at it. */
  private set(state: AgentState): void {
    this.state.value = state
    PubSub.publishUnsafe(this.state.pubsub, state)
  }

  /** What `resume` goes on from, taken from the queues if it has to be. */
  readonly continuation: Effect.Effect<Task, Loop.InvalidContinuation> = Effect.clockWith((clock) =>
    this.goingOn(clock.currentTimeMillisUnsafe())
  )

  private goingOn(timestamp: number): Effect.Effect<Task, Loop.InvalidContinuation> {
    const { messages } = this.current
    const last = messages.at(-1)
    if (last === undefined) return refuse("No messages to continue from")
    const prompts = Transcript.openCalls(messages).map((call) => unanswered(call, timestamp))
    if (prompts.length > 0 || last.role !== "assistant") {
      return Effect.succeed({ prompts, continued: true, pollFirst: true })
    }
    for (const promptsFrom of ["steering", "followUp"] as const) {
      const queued = this.queues.drain(promptsFrom)
      if (queued.length === 0) continue
      const pollFirst = promptsFrom === "followUp"
      return Effect.succeed({ prompts: queued, promptsFrom, continued: true, pollFirst })
    }
    return refuse("Cannot continue from message role: assistant")
  }

  readonly waitForIdle: Effect.Effect<void> = Effect.suspend(() => {
    return this.active === undefined ? Effect.void : this.active.ended.await
  })

  update(patch: Partial<RunOptions>): Effect.Effect<void> {
    return Effect.sync(() => {
      this.change({ options: Options.patch(this.changes?.options ?? {}, patch) })
      this.set({ ...this.current, options: Options.patch(this.current.options, patch) })
    })
  }

  setMessages(messages: ReadonlyArray<Message.Message>): Effect.Effect<void> {
    return Effect.sync(() => {
      this.change({ replaced: true })
      this.set({ ...this.current, messages })
    })
  }

  private change(changes: NonNullable<Conversation["changes"]>): void {
    if (this.active !== undefined) this.changes = { ...this.changes, ...changes }
  }

  readonly reset: Effect.Effect<void, AgentBusy> = Effect.suspend(() => {
    if (this.active !== undefined) return Effect.fail(new AgentBusy())
    this.queues.clear("all")
    this.set({ messages: [], phase: "idle", pendingToolCalls: new Set(), options: this.current.options })
    return Effect.void
  })

  /** Ends the run that goes on, and takes no other. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.closed = true
    this.active?.control.signal.stop({ cause: "cancel", reason: "the agent was closed" })
    return Effect.andThen(this.waitForIdle, this.subscriptions.close)
  })
}

const unanswered = (call: Message.ToolCall, timestamp: number): Message.ToolResult =>
  Message.toolResult(call, `Tool ${call.name} was not run: the run had ended.`, {
    isError: true,
    outcome: "aborted",
    timestamp
  })

const refuse = (detail: string) => Effect.fail(new Loop.InvalidContinuation({ detail }))
