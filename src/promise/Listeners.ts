/**
 * Listeners of an agent that is built at its first use, and the names of the events that they listen to.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Agent from "../Agent.ts"
import * as AgentEvent from "../AgentEvent.ts"
import * as NearestName from "../internal/nearestName.ts"
import type { PromiseRejected } from "../Tool.ts"
import * as Awaited from "./internal/Awaited.ts"
import * as OneRing from "./internal/OneRingEvents.ts"

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
export type EventName = Tag | OneRing.Name

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

type Named = { readonly [T in Tag]: AgentEvent.OfTag<T> } & OneRing.ByName

type AnyEvent = Named[EventName]

const isNamed =
  <N extends EventName>(name: N) =>
  (event: AnyEvent): event is Named[N] =>
    "_tag" in event ? event._tag === name && event.path === undefined : event.type === name

const names: ReadonlyArray<string> = [...Object.keys(AgentEvent.AgentEvent.cases), ...OneRing.list]

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

  private readonly oneRing = new OneRing.OneRingEvents()

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
    return this.add(OneRing.isName(name) ? receiveAll : receive, listener, options)
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
