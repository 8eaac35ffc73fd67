/**
 * Listeners of an agent that is built at its first use, and the names of the events that they listen to.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Agent from "../Agent.ts"
import * as AgentEvent from "../AgentEvent.ts"
import * as NearestName from "../internal/nearestName.ts"
import type { PromiseRejected } from "../internal/promiseTool.ts"
import type { ToolOutcome } from "../Message.ts"
import * as Awaited from "./Awaited.ts"

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
export type Listener<E extends AgentEvent.AgentEvent = AgentEvent.AgentEvent> = (
  event: E,
  context: ListenerContext
) => unknown

type Tag = AgentEvent.AgentEvent["_tag"]
type OfTag<T extends Tag> = AgentEvent.OfTag<T>

/**
 * The names of oneringai's events, and the events of this library that they mean.
 *
 * **Gotchas**
 *
 * Only the names are those of oneringai. For its events use `OneRingEmitter` of `effect-agent/compat`.
 *
 * @category models
 * @since 0.2.0
 */
export interface EventAliases {
  /** A run begins. */
  readonly "execution:start": OfTag<"RunStart">
  /** A run ended, neither failed nor cancelled. */
  readonly "execution:complete": OfTag<"RunEnd">
  /** A run failed. */
  readonly "execution:error": OfTag<"RunError">
  /** A run waits. */
  readonly "execution:paused": OfTag<"RunPaused">
  /** A run continues after a pause. */
  readonly "execution:resumed": OfTag<"RunResumed">
  /** The application cancelled a run. */
  readonly "execution:cancelled": OfTag<"RunCancelled">
  /** A turn begins. */
  readonly "iteration:start": OfTag<"TurnStart">
  /** A turn ended. */
  readonly "iteration:complete": OfTag<"TurnEnd">
  /** The run asks the model. */
  readonly "llm:request": OfTag<"ModelCallStart">
  /** The model answered. */
  readonly "llm:response": OfTag<"ModelCallEnd">
  /** A model call failed. */
  readonly "llm:error": OfTag<"ModelCallError">
  /** An answer has tool calls. */
  readonly "tool:detected": OfTag<"ToolsDetected">
  /** A tool begins. A call that a guard rejected does not begin. */
  readonly "tool:start": OfTag<"ToolInvoked">
  /** A tool succeeded. */
  readonly "tool:complete": OfTag<"ToolExecutionEnd">
  /** A tool failed, has no such name, or does not take its arguments. */
  readonly "tool:error": OfTag<"ToolExecutionEnd">
  /** A tool took longer than its time limit. */
  readonly "tool:timeout": OfTag<"ToolExecutionEnd">
  /** A hook failed. */
  readonly "hook:error": OfTag<"HookError">
}

type Named = { readonly [T in Tag]: OfTag<T> } & EventAliases

/**
 * The name of an event: its tag, or its name in oneringai.
 *
 * @category models
 * @since 0.2.0
 */
export type EventName = keyof Named

/**
 * The event that a name means.
 *
 * @category models
 * @since 0.2.0
 */
export type EventOf<N extends EventName> = Named[N]

type Selects = (event: AgentEvent.AgentEvent) => boolean

const tagged =
  (tag: Tag): Selects =>
  (event) =>
    event._tag === tag

const toolEnded =
  (...outcomes: ReadonlyArray<ToolOutcome>): Selects =>
  (event) =>
    event._tag === "ToolExecutionEnd" && outcomes.includes(event.outcome)

const unanswered: ReadonlyArray<AgentEvent.RunStatus> = ["failed", "cancelled", "suspended"]

const aliases: Readonly<Record<keyof EventAliases, Selects>> = {
  "execution:start": tagged("RunStart"),
  "execution:complete": (event) => event._tag === "RunEnd" && !unanswered.includes(event.status),
  "execution:error": tagged("RunError"),
  "execution:paused": tagged("RunPaused"),
  "execution:resumed": tagged("RunResumed"),
  "execution:cancelled": tagged("RunCancelled"),
  "iteration:start": tagged("TurnStart"),
  "iteration:complete": tagged("TurnEnd"),
  "llm:request": tagged("ModelCallStart"),
  "llm:response": tagged("ModelCallEnd"),
  "llm:error": tagged("ModelCallError"),
  "tool:detected": tagged("ToolsDetected"),
  "tool:start": tagged("ToolInvoked"),
  "tool:complete": toolEnded("success"),
  "tool:error": toolEnded("error", "unknownTool", "invalidArguments"),
  "tool:timeout": toolEnded("timeout"),
  "hook:error": tagged("HookError")
}

const names: ReadonlyArray<string> = [...Object.keys(AgentEvent.AgentEvent.cases), ...Object.keys(aliases)]

const isAlias = (name: string): name is keyof EventAliases => Object.hasOwn(aliases, name)

/** Says that no event has the name, and suggests another. Returns `undefined` for a name that an event has. */
export const faultOf = (name: unknown): string | undefined => {
  if (typeof name !== "string") return `expected the name of an event, got ${typeof name}`
  if (names.includes(name)) return undefined
  const nearest = NearestName.of(name, names)
  const advice = nearest === undefined ? `Events: ${names.join(", ")}` : `Did you mean ${nearest}?`
  return `there is no event ${JSON.stringify(name.slice(0, 100))}. ${advice}`
}

/** Returns whether an event has the name, and belongs to a run of the agent: those inside of it have a `path`. */
export const isNamed =
  <N extends EventName>(name: N) =>
  (event: AgentEvent.AgentEvent): event is Named[N] =>
    event.path === undefined && (isAlias(name) ? aliases[name](event) : event._tag === name)

/** Calls a listener for the events that it wants. */
const listening =
  <E extends AgentEvent.AgentEvent>(
    isWanted: (event: AgentEvent.AgentEvent) => event is E,
    listener: Listener<E>
  ) =>
  (event: AgentEvent.AgentEvent): Effect.Effect<void, PromiseRejected> =>
    isWanted(event) ? Effect.asVoid(Awaited.call((signal) => listener(event, { signal }))) : Effect.void

type Subscribe = (agent: Agent.Agent) => Effect.Effect<void>

/** The listeners of an agent: those that subscribe before it is built are subscribed, in their order, by `attach`. */
export class Listeners {
  /** The agent, once it is built. */
  agent: Agent.Agent | undefined
  private early: ReadonlyArray<Subscribe> = []

  /** Subscribes a listener until the function that this returns is called. */
  add<E extends AgentEvent.AgentEvent>(
    isWanted: (event: AgentEvent.AgentEvent) => event is E,
    listener: Listener<E>,
    options: Agent.SubscribeOptions = {}
  ): () => void {
    const scope = Scope.makeUnsafe()
    const name = options.name ?? listener.name
    const named = name === "" ? options : { ...options, name }
    const subscribe: Subscribe = (agent) =>
      Scope.provide(agent.subscribe(listening(isWanted, listener), named), scope)
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
