/**
 * Listeners of an agent that is built at its first use, and the names of the events that they listen to.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Agent from "../Agent.ts"
import * as AgentEvent from "../AgentEvent.ts"
import type { PromiseRejected } from "../Tool.ts"
import * as OneRingEmitter from "../compat/OneRingEmitter.ts"
import * as NearestName from "../internal/nearestName.ts"
import * as Awaited from "./internal/Awaited.ts"

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
  Effect.asVoid(Awaited.call((signal) => listener(event, { signal })))

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
