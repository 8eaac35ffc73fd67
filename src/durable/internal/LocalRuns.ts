/**
 * The runs of a worker: those of the sessions that the cluster has given it.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Payload from "../../api/Payload.ts"
import type * as Problem from "../../api/Problem.ts"
import type { RunKey } from "../../runs/RunLogStore.ts"
import type * as Runs from "../../runs/Runs.ts"

/**
 * A session as it stands in a worker.
 *
 * @category models
 * @since 0.2.0
 */
export interface State {
  /** The run that has begun and not ended; `undefined` if there is none. */
  readonly current: RunKey | undefined
  /** That run, or the first one that waits; `undefined` if there is none. */
  readonly first: RunKey | undefined
  /** Waits until a session that is open and has no run stands otherwise; `undefined` for one that is not open or has a run. */
  readonly idle: Effect.Effect<void> | undefined
}

/**
 * The functions of the runs of a worker, which `DurableRuns` itself uses.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** The runs, as a server in one process has them. */
  readonly runs: Runs.Service
  /**
   * Continues or begins a run that has not ended, and succeeds when it is over, when the worker has left its session, or when the run rests:
   * it waits for a person. Fails with `RunNotReady` for one that is parked.
   */
  readonly adopt: (
    run: RunKey
  ) => Effect.Effect<
    "over" | "left" | "resting",
    | Problem.SessionNotFound
    | Problem.SessionLocked
    | Problem.StorageUnavailable
    | Problem.MalformedRequest
    | Problem.RunNotFound
    | Problem.RunNotReady
  >
  /** Lets go of a session: it takes no more writes, and its run stops without an end. */
  readonly leave: (sessionId: string) => Effect.Effect<void>
  /** A session as it stands in this process. */
  readonly state: (sessionId: string) => State
  /** The id of the session of a run that this process has. */
  readonly sessionOf: (runId: string) => string | undefined
  /** A run that has ended in this process, and whose end the store has refused so far. */
  readonly owed: (runId: string) => Payload.Run | undefined
  /** Waits until no tool call of the run of a session goes on in this process. */
  readonly called: (sessionId: string) => Effect.Effect<void>
  /** The ids of the messages of a session: those of each of its branches, and those that were put in its queues. */
  readonly messageIds: (sessionId: string) => Effect.Effect<ReadonlySet<string>, Problem.StorageUnavailable>
}

/**
 * The runs of a worker, which `DurableRuns.layer` drains where it is given them.
 *
 * **Example** (Looking for the run of a session in this process)
 *
 * ```ts
 * import { Effect } from "effect"
 * import type { DurableRuns } from "effect-agent/durable"
 *
 * export const isHere = (local: DurableRuns.LocalRunsService, sessionId: string) =>
 *   Effect.sync(() => local.state(sessionId).current !== undefined)
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class LocalRuns extends Context.Service<LocalRuns, Service>()("effect-agent/durable/LocalRuns") {}
