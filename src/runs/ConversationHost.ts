/**
 * The host of a conversation.
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Agent from "../Agent.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"
import type { Service as Agents } from "./Agents.ts"
import type { LiveRun } from "./internal/LiveRun.ts"
import type { Service as Logs } from "./RunLogStore.ts"

/** The places of the runs that work at a time. */
export interface Places {
  /** Takes a place for a run, unless it has one. Whether the run has a place. */
  readonly reserve: (runId: string) => boolean
  /** Gives the place of a run to the next one. */
  readonly leave: (runId: string) => void
  /** A listener for an agent, whose runs wait for it: they have a place while they work. */
  readonly attend: () => (event: AgentEvent) => Effect.Effect<void>
}

/** The services and options of a conversation. */
export interface ConversationHost {
  readonly agents: Agents
  readonly logs: Logs
  readonly sessions: SessionStore.Service
  readonly scope: Scope.Scope
  /** The time without a run after which a conversation lets go of its session. */
  readonly idle: Duration.Input
  /** The places of runs. Default: there are enough. */
  readonly places: Places | undefined
  /** Whether a run that waits may begin when the one before it has ended. */
  readonly mayBegin: (runId: string) => boolean
  /** Lets go of the session. */
  readonly leave: Effect.Effect<void>
  /** Whether the process has a run. */
  readonly isLive: (runId: string) => boolean
  /** Called when a run has its first event. */
  readonly onId: (run: LiveRun) => void
  /** Called when the log of a run is whole. */
  readonly onEnd: (run: LiveRun) => void
  /** Called when the session was closed after a while without a run. */
  readonly onRested: () => void
  /** Run after a run that ended suspended, with the lock, unless another run has begun. */
  readonly onSuspended: (agent: Agent.Agent, run: LiveRun) => Effect.Effect<void>
}
