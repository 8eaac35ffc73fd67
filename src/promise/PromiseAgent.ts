/**
 * The interface of an agent for code without Effect: promises, `for await` and `AbortSignal`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type * as Approval from "../Approval.ts"
import type * as Agent from "../Agent.ts"
import * as AgentEvent from "../AgentEvent.ts"
import type * as Hook from "../Hook.ts"
import type * as Message from "../Message.ts"
import type { ToolDefinition } from "../Provider.ts"
import type { Update } from "../RunOptions.ts"
import type { RunReport } from "../RunReport.ts"
import type { RunResult } from "../Run.ts"
import type * as Tool from "../Tool.ts"
import type { PromiseRejected } from "../Tool.ts"
import type * as ToolRegistry from "../ToolRegistry.ts"
import * as HookFunctions from "./HookFunctions.ts"
import * as OneRingEmitter from "../compat/OneRingEmitter.ts"
import * as NearestName from "../internal/nearestName.ts"

/**
 * The options of one run.
 *
 * **Details**
 *
 * They replace the options of the agent for this run. `signal` cancels the run: the promise or the iteration then fails with the
 * reason of the signal, after the run has ended. With `output` the result has an output of type `A`.
 *
 * @category options
 * @since 0.1.0
 */
export type PromptOptions<A = never> = Agent.PromptOptions<A> & ContinueOptions

/**
 * The options of a run that continues the conversation.
 *
 * @category options
 * @since 0.2.0
 */
export interface ContinueOptions {
  /** Cancels the run. Default none. */
  readonly signal?: AbortSignal
}

/**
 * A run that `start` or `startContinue` began.
 *
 * **Details**
 *
 * `O` are the members that an `output` schema adds to the result.
 *
 * @category models
 * @since 0.2.0
 */
export interface StartedPromiseRun<out O = {}> {
  /** The id of the run, as in its events. */
  readonly runId: string
  /**
   * The events of the run from its first one, for each iteration all of them. Fails with `RunFailed` after those of a run that failed.
   * `break` does not cancel the run.
   */
  readonly events: AsyncIterable<AgentEvent.AgentEvent>
  /** Resolves with the result of the run. Rejects with `RunFailed` if the run fails. */
  readonly result: () => Promise<RunResult & O>
  /** Ends the run. Does not wait for the end. */
  readonly cancel: (reason?: string) => Promise<void>
}

/**
 * The state of a promise agent.
 *
 * @category models
 * @since 0.2.0
 */
export interface PromiseState {
  /**
   * The state as it is now, without waiting: an agent that no call has built yet has the messages and options that it was made with.
   */
  readonly current: Agent.AgentState
  /** The answer that streams at the moment, without waiting, or `undefined`. */
  readonly partial: Message.Assistant | undefined
  /** Resolves with the state as it is now. */
  readonly get: () => Promise<Agent.AgentState>
  /** The state as it is now, and each later one. Ends when the agent closes. */
  readonly changes: AsyncIterable<Agent.AgentState>
}

/**
 * The tools of a promise agent.
 *
 * **Details**
 *
 * Changes count from the next turn.
 *
 * @category models
 * @since 0.2.0
 */
export interface PromiseTools {
  /** Adds a tool. Rejects if the name is taken, and with `InvalidTool` if the tool cannot work. */
  readonly register: (tool: Tool.Runnable) => Promise<void>
  /** Removes a tool. Resolves with `false` if no tool has the name. */
  readonly unregister: (name: string) => Promise<boolean>
  /** Removes all tools. */
  readonly clear: () => Promise<void>
  /** Resolves with whether a tool has the name. */
  readonly has: (name: string) => Promise<boolean>
  /** Resolves with the tool of the name, or `undefined`. */
  readonly get: (name: string) => Promise<Tool.Any | undefined>
  /** Resolves with the descriptions of all tools for the model, in the order of their registration. */
  readonly definitions: () => Promise<ReadonlyArray<ToolDefinition>>
  /**
   * Calls a tool by its name, without the hooks, approvals and limits of runs. A failure of the tool is a result with another outcome
   * than `"success"`. Rejects with `ToolNotFound`, and with `InvalidArguments` for params that the tool does not take.
   */
  readonly call: (name: string, params: Schema.Json) => Promise<ToolRegistry.Executed>
}

/**
 * A hook of a promise agent.
 *
 * @category models
 * @since 0.2.0
 */
export interface ListedHook {
  /** The id of the hook, for `unregister`, `enable` and `disable`. */
  readonly id: string
  /** The point of the hook. */
  readonly point: Hook.Point
  /** The name of the hook, if it has one. */
  readonly name?: string
  /** Whether runs call the hook. */
  readonly isEnabled: boolean
}

/**
 * The hooks of a promise agent.
 *
 * @category models
 * @since 0.2.0
 */
export interface PromiseHooks {
  /** Resolves with all hooks, in the order in which a run calls those of one point. */
  readonly list: () => Promise<ReadonlyArray<ListedHook>>
  /** Adds a hook, which runs call from its next point on. Resolves with its id. */
  readonly register: {
    <N extends HookFunctions.HookName>(name: N, run: HookFunctions.NamedHook<N>): Promise<string>
    (hook: Hook.Runnable): Promise<string>
  }
  /** Removes a hook. Resolves with `false` if the agent has none with that id. */
  readonly unregister: (id: string) => Promise<boolean>
  /** Lets runs call a hook again, also one that failed too often in a run. Resolves with `false` if the agent has none with that id. */
  readonly enable: (id: string) => Promise<boolean>
  /** Keeps runs from calling a hook. Resolves with `false` if the agent has none with that id. */
  readonly disable: (id: string) => Promise<boolean>
}

/**
 * The queues of a promise agent.
 *
 * @category models
 * @since 0.2.0
 */
export interface PromiseQueues {
  /** Resolves with the number of messages in each queue. */
  readonly sizes: () => Promise<Agent.Sizes>
  /** Resolves with the messages that wait in each queue, oldest first. */
  readonly messages: () => Promise<Agent.Queued>
  /** Resolves with the mode of each queue. Default `"one-at-a-time"` for both. */
  readonly modes: () => Promise<Agent.QueueModes>
  /** Removes the messages of one queue, or of both, and resolves with them. */
  readonly clear: (which: Agent.QueueName | "all") => Promise<Agent.Queued>
  /** Sets how many messages of a queue a turn takes: one, or all. */
  readonly setMode: (which: Agent.QueueName, mode: Agent.QueueMode) => Promise<void>
}

/**
 * An agent with promises: one conversation, and one run at a time.
 *
 * **Details**
 *
 * Methods have the names of `Agent.Agent`. Each promise rejects with the errors of the method there, with an `Error` after `close`,
 * and with the failures of `layer` and `provider`. `O` are the members that the `output` schema of the agent adds to each result, such
 * as `{ readonly output: Review }`. Default: none.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromiseAgent<out O = {}> {
  /**
   * Starts a run and resolves with its result. A cancelled run is a result, too.
   *
   * Rejects with `RunFailed` if the run fails, and with `AgentBusy` during another run. With an `output` schema, of the agent or of
   * this prompt, the result has the decoded `output`, and a run that ends without one rejects.
   */
  readonly prompt: <A = never>(
    input: Message.Input,
    options?: PromptOptions<A>
  ) => Promise<RunResult & Agent.OutputOf<A, O>>
  /** Returns the events of a run. Each iteration starts a run; `break` cancels it and waits for its end. */
  readonly stream: (
    input: Message.Input,
    options?: PromptOptions<unknown>
  ) => AsyncIterable<AgentEvent.AgentEvent>
  /**
   * Returns the text of the answers of a run, as it comes: `stream` without the other events.
   *
   * A retry after a part of an answer repeats that part. For an exact text use `prompt`, or `stream` with `MessageRetracted`.
   */
  readonly streamText: (input: Message.Input, options?: PromptOptions<unknown>) => AsyncIterable<string>
  /**
   * Returns the events of a run for a server: a failure is an event, not an exception.
   *
   * A failed run ends with `RunError` and `RunEnd`, and so does one that could not begin. Only `signal` makes the iteration fail, with
   * its reason.
   */
  readonly streamEvents: (
    input: Message.Input,
    options?: PromptOptions<unknown>
  ) => AsyncIterable<AgentEvent.AgentEvent>
  /**
   * Starts a run without a prompt: with queued messages after a complete answer, else from the transcript as it stands.
   *
   * Rejects with `InvalidContinuation` if the model has nothing to answer.
   */
  readonly continue: (options?: ContinueOptions) => Promise<RunResult & O>
  /** Returns the events of `continue`. Each iteration starts a run. */
  readonly continueStream: (options?: ContinueOptions) => AsyncIterable<AgentEvent.AgentEvent>
  /** Starts a run and resolves with its handle, before the run has ended. */
  readonly start: <A = never>(
    input: Message.Input,
    options?: Agent.PromptOptions<A>
  ) => Promise<StartedPromiseRun<Agent.OutputOf<A, O>>>
  /** Starts the run of `continue` and resolves with its handle, before the run has ended. */
  readonly startContinue: () => Promise<StartedPromiseRun<O>>
  /** Queues a message for the end of the current turn, or for the next run if there is none. */
  readonly steer: (message: Message.Input, options?: Agent.SteerOptions) => Promise<void>
  /** Queues a message for the end of the run, or for the next run if there is none. */
  readonly followUp: (message: Message.Input) => Promise<void>
  /** Holds the run before its next turn or tool call. It does nothing if there is no run. */
  readonly pause: (reason?: string) => Promise<void>
  /** Releases a paused run. Rejects with `NotPaused` if no run is paused. */
  readonly resume: (reason?: string) => Promise<void>
  /** Ends the current run: its promise resolves with status `"cancelled"`. It does nothing if there is no run. */
  readonly cancel: (reason?: string) => Promise<void>
  /**
   * Puts a summary in place of the older messages of later requests. The transcript keeps them.
   *
   * Rejects with `AgentBusy` during a run, and with `RunFailed` of reason `CompactionFailed` if the summary failed.
   */
  readonly compact: (instructions?: string, options?: ContinueOptions) => Promise<Agent.CompactionResult>
  /** Clears messages, queues, the summary and the last error. Rejects with `AgentBusy` during a run. */
  readonly reset: () => Promise<void>
  /** Resolves when the agent has no run, and listeners have received all events. */
  readonly waitForIdle: () => Promise<void>
  /** Changes options for later turns, those of the current run too; `null` unsets one. Rejects with `InvalidInput`. */
  readonly update: (changes: Update) => Promise<void>
  /** Replaces the transcript. The current run takes it from its next turn. Rejects with `InvalidInput`. */
  readonly setMessages: (messages: ReadonlyArray<Message.Message>) => Promise<void>
  /** Resolves with the approvals and questions that wait for a person, oldest first. */
  readonly requests: () => Promise<Approval.OpenRequests>
  /**
   * Answers a request by its `approvalId` or `questionId`, and resolves with the answer that counts: the first one.
   *
   * Rejects with `RequestNotFound`, with `AnswerConflict` for another `argumentsHash` or another answer to a question, and with
   * `InvalidAnswer` for params that the tool, or an answer that the schema does not take.
   */
  readonly answer: {
    (id: string, reply: Approval.Reply): Promise<Approval.Answer>
    (id: string, reply: Approval.QuestionReply): Promise<Approval.QuestionAnswer>
  }
  /** The messages that wait for the end of the turn, and for the end of the run. */
  readonly queues: PromiseQueues
  /** Resolves with the transcript, oldest message first. */
  readonly messages: () => Promise<ReadonlyArray<Message.Message>>
  /** The state of the agent, which changes at the boundaries of messages, tools and runs. */
  readonly state: PromiseState
  /** Resolves with the answer that streams at the moment, or `undefined`. */
  readonly partial: () => Promise<Message.Assistant | undefined>
  /**
   * The events of all runs, from the first `next` of an iteration until the agent closes.
   *
   * No run waits for an iteration. One that is more than 1024 events behind loses the oldest.
   */
  readonly events: AsyncIterable<AgentEvent.AgentEvent>
  /** Resolves with the number of events that iterations of `events` have lost. */
  readonly droppedEvents: () => Promise<number>
  /**
   * Calls a function for each event of each run, and awaits it before the next event. Returns a function that unsubscribes it.
   *
   * A listener that takes longer than `timeout` (default 5 seconds) for an event is unsubscribed.
   */
  readonly subscribe: (listener: Listener, options?: Agent.SubscribeOptions) => () => void
  /**
   * Subscribes to the events of one name: a tag such as `"ToolExecutionEnd"`, or a name of oneringai such as `"tool:start"`, whose
   * listeners get the events of oneringai. Events of sub-agents do not count: `subscribe` has them.
   *
   * Returns a function that unsubscribes the listener. Throws `InvalidInput` for a name that no event has.
   */
  readonly on: <N extends EventName>(
    name: N,
    listener: Listener<EventOf<N>>,
    options?: Agent.SubscribeOptions
  ) => () => void
  /** Resolves with the report of the current run, or of the last one. `undefined` before the first. */
  readonly report: () => Promise<RunReport | undefined>
  /** The tools of the agent. */
  readonly tools: PromiseTools
  /** The hooks of the agent. */
  readonly hooks: PromiseHooks
  /** Resolves with the hooks that failed too often in a row in the current run, or the last one: the run does not call them again. */
  readonly disabledHooks: () => Promise<ReadonlyArray<ListedHook>>
  /** Cancels the current run and releases the agent, which is of no use after that. */
  readonly close: () => Promise<void>
  /** Closes the agent, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

// ───────────────────────── Listeners

/** The name of an event of oneringai. */
type Name = OneRingEmitter.Event["type"]

/** The events of oneringai by their names. */
type ByName = { readonly [N in Name]: Extract<OneRingEmitter.Event, { readonly type: N }> }

/** All names. The type has each of them. */
const oneRingNames: Readonly<Record<Name, null>> = {
  "execution:start": null,
  "execution:complete": null,
  "execution:error": null,
  "execution:paused": null,
  "execution:resumed": null,
  "execution:cancelled": null,
  "iteration:start": null,
  "iteration:complete": null,
  "llm:request": null,
  "llm:response": null,
  "llm:error": null,
  "tool:detected": null,
  "tool:start": null,
  "tool:complete": null,
  "tool:error": null,
  "tool:timeout": null,
  "hook:error": null
}

/** The names as a list. */
const list: ReadonlyArray<string> = Object.keys(oneRingNames)

/** Whether oneringai has an event of the name. */
const isName = (name: string): name is Name => Object.hasOwn(oneRingNames, name)

type Events = ReadonlyArray<OneRingEmitter.Event>

const nothing: Effect.Effect<Events> = Effect.succeed([])

/** The state for a run of which no listener received the start: its turn begins with the first event that one receives. */
const begunAt = ({ runId, timestamp }: AgentEvent.AgentEvent): OneRingEmitter.State => ({
  ...OneRingEmitter.initial,
  runId,
  turnStartedAt: timestamp
})

/** Converts each event of an agent once, for however many listeners. */
class OneRingEvents {
  private state = OneRingEmitter.initial
  private last: AgentEvent.AgentEvent | undefined
  private events: Events = []

  /** The events of oneringai for one event, of which an agent delivers one after another. */
  of(agent: Agent.Agent, event: AgentEvent.AgentEvent): Effect.Effect<Events> {
    // Deltas are many, and oneringai has no event for them, nor for runs inside of a run.
    if (event._tag === "MessageDelta" || event.path !== undefined) return nothing
    return Effect.map(agent.tools.definitions, (tools) => {
      if (event === this.last) return this.events
      const { messages, options } = agent.state.getUnsafe()
      // The application may change them between runs, and between turns.
      const known = this.state.runId === event.runId ? this.state : begunAt(event)
      const current = { ...known, context: { system: options.system, tools }, messages }
      const isRequest = event._tag === "RunStart" || event._tag === "ModelCallStart"
      const [state, events] = OneRingEmitter.step(isRequest ? current : known, event)
      this.state = state
      this.last = event
      this.events = events
      return events
    })
  }
}

/**
 * The second argument of a listener.
 *
 * @category models
 * @since 0.2.0
 */
export interface ListenerContext {
  /** Aborts when the listener takes longer than its `timeout`, and 100 milliseconds after the run was cancelled. */
  readonly signal: AbortSignal
}

/**
 * A function that an agent calls for each event, and awaits before the next event.
 *
 * **Details**
 *
 * Its result is ignored. A listener cannot change a run: the agent logs the first failure of each listener.
 *
 * @category models
 * @since 0.2.0
 */
export type Listener<E = AgentEvent.AgentEvent> = (event: E, context: ListenerContext) => unknown

type Tag = AgentEvent.AgentEvent["_tag"]

/**
 * The name of an event: its tag, or the name of an event of oneringai.
 *
 * @category models
 * @since 0.2.0
 */
export type EventName = Tag | Name

/**
 * The event that a name means: that of this library for a tag, that of oneringai, with its members, for a name such as `"tool:start"`.
 *
 * **Details**
 *
 * The events of oneringai are those of `OneRingEmitter` of `effect-agent/compat`.
 *
 * @category models
 * @since 0.2.0
 */
export type EventOf<N extends EventName> = Named[N]

type Named = { readonly [T in Tag]: AgentEvent.OfTag<T> } & ByName

type AnyEvent = Named[EventName]

const isNamed =
  <N extends EventName>(name: N) =>
  (event: AnyEvent): event is Named[N] =>
    "_tag" in event ? event._tag === name && event.path === undefined : event.type === name

const names: ReadonlyArray<string> = [...Object.keys(AgentEvent.AgentEvent.cases), ...list]

/** Says that no event has the name, and suggests another. Returns `undefined` for a name that an event has. */
export const faultOf = (name: unknown): string | undefined => {
  if (typeof name !== "string") return `expected the name of an event, got ${typeof name}`
  if (names.includes(name)) return undefined
  const nearest = NearestName.of(name, names)
  const advice = nearest === undefined ? `Events: ${names.join(", ")}` : `Did you mean ${nearest}?`
  return `there is no event ${JSON.stringify(name.slice(0, 100))}. ${advice}`
}

type Receive = (event: AgentEvent.AgentEvent, agent: Agent.Agent) => Effect.Effect<void, PromiseRejected>

const called = <E>(listener: Listener<E>, event: E): Effect.Effect<void, PromiseRejected> =>
  Effect.asVoid(HookFunctions.awaited((signal) => listener(event, { signal })))

type Subscribe = (agent: Agent.Agent) => Effect.Effect<void>

/** The listeners of an agent: those that subscribe before it is built are subscribed, in their order, by `attach`. */
export class Listeners {
  /** The agent, once it is built. */
  agent: Agent.Agent | undefined
  private early: ReadonlyArray<Subscribe> = []

  private readonly oneRing = new OneRingEvents()

  /** Subscribes a listener to all events until the function that this returns is called. */
  all(listener: Listener, options?: Agent.SubscribeOptions): () => void {
    return this.add((event) => called(listener, event), listener, options)
  }

  /** Subscribes a listener to the events of a name, of the runs of the agent: those inside of them have a `path`. */
  named<N extends EventName>(
    name: N,
    listener: Listener<EventOf<N>>,
    options?: Agent.SubscribeOptions
  ): () => void {
    const isWanted = isNamed(name)
    const receive = (event: AnyEvent) => (isWanted(event) ? called(listener, event) : Effect.void)
    const receiveAll: Receive = (event, agent) =>
      Effect.flatMap(this.oneRing.of(agent, event), (events) =>
        Effect.forEach(events, receive, { discard: true })
      )
    return this.add(isName(name) ? receiveAll : receive, listener, options)
  }

  private add(
    receive: Receive,
    listener: { readonly name: string },
    options: Agent.SubscribeOptions = {}
  ): () => void {
    const scope = Scope.makeUnsafe()
    const name = options.name ?? listener.name
    const named = name === "" ? options : { ...options, name }
    const subscribe: Subscribe = (agent) =>
      Scope.provide(
        agent.subscribe((event) => receive(event, agent), named),
        scope
      )
    if (this.agent === undefined) this.early = [...this.early, subscribe]
    else Effect.runSync(subscribe(this.agent))
    return () => Effect.runSync(Scope.close(scope, Exit.void))
  }

  readonly attach = (agent: Agent.Agent): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { early } = this
      this.agent = agent
      this.early = []
      return Effect.forEach(early, (subscribe) => subscribe(agent), { discard: true })
    })
}
