/**
 * An agent: a transcript that goes on from prompt to prompt, one run at a time, with queues, control and a state to watch.
 *
 * It takes its tools and hooks as values, so two agents of one application have their own.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { AgentOptions, Hooks, Tools } from "./internal/agentOptions.ts"
import { read } from "./internal/agentOptions.ts"
import type { AgentEvent } from "./AgentEvent.ts"
import * as Event from "./AgentEvent.ts"
import type { AgentState, Subscribable } from "./internal/agentState.ts"
import * as State from "./internal/agentState.ts"
import { Conversation } from "./internal/agentRuntime.ts"
import { eventsOnly } from "./internal/eventsOnly.ts"
import type { StartedRun } from "./internal/execution.ts"
import * as Execution from "./internal/execution.ts"
import type { AgentBusy } from "./FailureReason.ts"
import type * as Hook from "./Hook.ts"
import * as HookManager from "./HookManager.ts"
import type { InvalidInput } from "./internal/invalidInput.ts"
import * as Input from "./internal/invalidInput.ts"
import type * as Loop from "./Loop.ts"
import type * as Message from "./Message.ts"
import { Provider } from "./Provider.ts"
import type { QueueMode, QueueName, Queues, Sizes } from "./internal/queues.ts"
import type { RunFailed } from "./RunFailed.ts"
import type { RunOptions } from "./RunOptions.ts"
import type { RunReport } from "./RunReport.ts"
import type { RunResult } from "./RunResult.ts"
import type { SubscribeOptions } from "./internal/subscriptions.ts"
import type * as Tool from "./Tool.ts"
import * as ToolRegistry from "./ToolRegistry.ts"

export type { QueueMode, QueueName, Sizes } from "./internal/queues.ts"
export { AgentBusy } from "./FailureReason.ts"
export { InvalidInput } from "./internal/invalidInput.ts"
export type { AgentOptions, Hooks, Tools } from "./internal/agentOptions.ts"
export type { StartedRun } from "./internal/execution.ts"
export type { AgentState, Subscribable } from "./internal/agentState.ts"
export type { SubscribeOptions } from "./internal/subscriptions.ts"

export interface Agent {
  /** Runs until the answer is there. Interrupting it cancels the run, and waits for its balanced end. */
  readonly prompt: (
    input: Message.Input,
    options?: Partial<RunOptions>
  ) => Effect.Effect<RunResult, RunFailed | AgentBusy | InvalidInput>
  /** The same run, as its events. Fails after the events of a failed run. A slow reader slows the model; leaving cancels. */
  readonly stream: (
    input: Message.Input,
    options?: Partial<RunOptions>
  ) => Stream.Stream<AgentEvent, RunFailed | AgentBusy | InvalidInput>
  /** `stream` that never fails: `RunError` and `RunEnd` end a failed run, and stand for one that could not begin. */
  readonly streamEvents: (input: Message.Input, options?: Partial<RunOptions>) => Stream.Stream<AgentEvent>
  /**
   * Runs without a new prompt: with queued messages after an answer, else from the transcript as it stands. A broken answer
   * is kept, not sent, and asked for again; a call without a result gets an error result and is not run.
   */
  readonly resume: Effect.Effect<RunResult, RunFailed | AgentBusy | InvalidInput | Loop.InvalidContinuation>
  /** The only hot form: the run starts now, and ends with the agent's scope at the latest. */
  readonly start: (
    input: Message.Input,
    options?: Partial<RunOptions>
  ) => Effect.Effect<StartedRun, AgentBusy | InvalidInput>
  /** Put in after the current turn; kept for the next run when idle. */
  readonly steer: (message: Message.Input) => Effect.Effect<void>
  /** Put in when the run would end; kept for the next run when idle. */
  readonly followUp: (message: Message.Input) => Effect.Effect<void>
  /** Holds the run at its next gate. Nothing when idle. */
  readonly pause: (reason?: string) => Effect.Effect<void>
  /** Lets a paused run go on; `RunResumed` names the reason. Nothing when idle: `resume` starts a new run. */
  readonly resumeRun: (reason?: string) => Effect.Effect<void>
  /** Interrupts what is in flight and ends the run, balanced. Does not wait for that; nothing when idle. */
  readonly cancel: (reason?: string) => Effect.Effect<void>
  /** Forgets messages, queues and the last error. */
  readonly reset: Effect.Effect<void, AgentBusy>
  /** Until no run goes on, its subscribers included. */
  readonly waitForIdle: Effect.Effect<void>
  /** Changes options for later turns, of a run that goes on too. */
  readonly update: (patch: Partial<RunOptions>) => Effect.Effect<void, InvalidInput>
  /** Replaces the transcript; a run that goes on takes it from its next turn. */
  readonly setMessages: (messages: ReadonlyArray<Message.Message>) => Effect.Effect<void, InvalidInput>
  readonly queueSizes: Effect.Effect<Sizes>
  readonly clearQueue: (which: QueueName | "all") => Effect.Effect<void>
  readonly setQueueMode: (which: QueueName, mode: QueueMode) => Effect.Effect<void>
  /** What can be seen of the agent: read it with `state.get`, watch it with `state.changes`. */
  readonly state: Subscribable<AgentState>
  /** The answer being said, made when asked. */
  readonly partial: Effect.Effect<Option.Option<Message.Assistant>>
  /** The events of all runs until the agent closes. A reader that is 1024 behind loses the oldest: no run waits. */
  readonly events: Stream.Stream<AgentEvent>
  /** How many events readers of `events` have lost. */
  readonly droppedEvents: Effect.Effect<number>
  /**
   * Calls the listener for each event of each run, until the scope closes, and awaits it before the next event. Subscribers
   * are called in order of subscription. One that subscribes in the agent's own scope hears the end of the last run too.
   *
   * A listener changes nothing: its first failure is logged; one that takes longer than `timeout` (default 5 seconds) for an
   * event is interrupted and unsubscribed, and one that is busy when the run is told to stop is interrupted after 100 ms
   * and hears only `RunEnd` of that run. Interruption is its abort signal: `Effect.tryPromise((signal) => …)`.
   */
  readonly subscribe: <E, R>(
    listener: (event: AgentEvent) => Effect.Effect<void, E, R>,
    options?: SubscribeOptions
  ) => Effect.Effect<void, never, R | Scope.Scope>
  /** The report of the run that goes on, or of the last one. */
  readonly report: Effect.Effect<Option.Option<RunReport>>
  /** This agent's tools. Changes count from the next turn. */
  readonly tools: ToolRegistry.ToolRegistry["Service"]
  /** This agent's hooks. */
  readonly hooks: HookManager.HookManager
}

/** Makes an agent that lives as long as its scope. It requires a provider, and what its tools and hooks need. Fails with
 * `InvalidInput` for options or messages that mean nothing. */
export const make = <const T extends Tools = readonly [], const H extends Hooks = readonly []>(
  options: AgentOptions<T, H>
): Effect.Effect<
  Agent,
  InvalidInput,
  Scope.Scope | Provider | Tool.Requirements<T[number]> | Hook.Requirements<H[number]>
> =>
  Effect.gen(function* () {
    const { hooks, messages, modes, runOptions, tools } = yield* Effect.fromResult(read(options))
    const registry = yield* ToolRegistry.make(...tools)
    const manager = yield* HookManager.make(...hooks)
    const made = yield* Effect.context<Provider | Scope.Scope>()
    const own = Context.make(Provider, Context.get(made, Provider)).pipe(
      Context.add(ToolRegistry.ToolRegistry, registry),
      Context.add(HookManager.HookManager, manager)
    )
    const state = State.initial(messages, runOptions)
    const scope = Context.get(made, Scope.Scope)
    const conversation = new Conversation(state, modes, scope, (caller) =>
      // Services of the agent under the caller's, so that its span and its request-scoped services win; but the
      // provider, the tools and the hooks are the agent's.
      Context.mergeAll(made, caller, own)
    )
    yield* Scope.addFinalizer(scope, conversation.close)
    return new Facade(conversation, registry, manager)
  })

/** An agent behind a tag of your own: `class Coder extends Context.Service<Coder, Agent.Agent>()("Coder") {}`. */
export const layer = <Self, const T extends Tools = readonly [], const H extends Hooks = readonly []>(
  tag: Context.Service<Self, Agent>,
  options: AgentOptions<T, H>
): Layer.Layer<
  Self,
  InvalidInput,
  Exclude<Provider | Tool.Requirements<T[number]> | Hook.Requirements<H[number]>, Scope.Scope>
> => Layer.effect(tag, make(options))

/** Functions are its own, for whoever takes an agent apart; the effects are made when they are asked for. */
class Facade implements Agent {
  readonly tools: Agent["tools"]
  readonly hooks: Agent["hooks"]
  private readonly conversation: Conversation

  constructor(conversation: Conversation, tools: Agent["tools"], hooks: Agent["hooks"]) {
    this.conversation = conversation
    this.tools = tools
    this.hooks = hooks
  }

  readonly prompt: Agent["prompt"] = (input, options) =>
    Execution.join(this.conversation.begin(prompted(input), options))
  readonly stream: Agent["stream"] = (input, options) =>
    Execution.stream((reader) => this.conversation.begin(prompted(input), options, reader))
  readonly streamEvents: Agent["streamEvents"] = (input, options) => eventsOnly(this.stream(input, options))
  readonly start: Agent["start"] = (input, options) =>
    Effect.flatMap(this.conversation.begin(prompted(input), options), Execution.handle)
  readonly steer: Agent["steer"] = (message) => this.conversation.enqueue("steering", message)
  readonly followUp: Agent["followUp"] = (message) => this.conversation.enqueue("followUp", message)
  readonly pause: Agent["pause"] = (reason) => Effect.sync(() => this.conversation.control?.pause(reason))
  readonly resumeRun: Agent["resumeRun"] = (reason) =>
    Effect.sync(() => this.conversation.control?.resume(reason))
  readonly cancel: Agent["cancel"] = (reason) =>
    Effect.suspend(() => this.conversation.control?.cancel(reason) ?? Effect.void)
  readonly update: Agent["update"] = (patch) => this.conversation.update(patch)
  readonly setMessages: Agent["setMessages"] = (messages) => this.conversation.setMessages(messages)
  readonly clearQueue: Agent["clearQueue"] = (which) => Effect.sync(() => this.queues.clear(which))
  readonly setQueueMode: Agent["setQueueMode"] = (which, mode) =>
    Effect.sync(() => this.queues.setMode(which, mode))
  readonly subscribe: Agent["subscribe"] = (listener, options) =>
    this.conversation.subscriptions.subscribe(listener, options)

  get state(): Agent["state"] {
    return this.conversation.watched
  }
  get resume(): Agent["resume"] {
    return Execution.join(this.conversation.begin(this.conversation.continuation, undefined))
  }
  get reset(): Agent["reset"] {
    return this.conversation.reset
  }
  get waitForIdle(): Agent["waitForIdle"] {
    return this.conversation.waitForIdle
  }
  get queueSizes(): Agent["queueSizes"] {
    return Effect.sync(() => this.queues.sizes)
  }
  get partial(): Agent["partial"] {
    return Effect.sync(() => Option.fromUndefinedOr(Event.partial({ open: this.conversation.run?.open })))
  }
  get events(): Agent["events"] {
    return this.conversation.subscriptions.events
  }
  get droppedEvents(): Agent["droppedEvents"] {
    return Effect.sync(() => this.conversation.subscriptions.dropped)
  }
  get report(): Agent["report"] {
    return Effect.sync(() => Option.fromUndefinedOr(this.conversation.run?.report))
  }

  private get queues(): Queues {
    return this.conversation.queues
  }
}

const prompted = (input: Message.Input) => (now: number) =>
  Result.map(Input.prompt(input, now), (prompts) => ({ prompts, continued: false, pollFirst: true }))
