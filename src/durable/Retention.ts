/**
 * Removes the runs and the sessions of a cluster that are old, and the messages of the cluster about them.
 *
 * @since 0.2.0
 */
import * as Clock from "effect/Clock"
import * as MachineId from "effect/cluster/MachineId"
import * as Snowflake from "effect/cluster/Snowflake"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type RunLogError, RunLogStore } from "../runs/RunLogStore.ts"
import type { SessionError } from "../Session.ts"
import { SessionStore } from "../sessions/SessionStore.ts"
import * as SqlTransaction from "../sql/SqlTransaction.ts"
import * as OldArtifacts from "./internal/OldArtifacts.ts"
import * as OldWorkflows from "./internal/OldWorkflows.ts"
import { SessionEntity } from "./internal/SessionEntity.ts"

/**
 * The numbers of removed things.
 *
 * @category models
 * @since 0.2.0
 */
export interface Swept {
  /** The logs of ended runs, without those of sessions that were removed. */
  readonly runs: number
  /** The sessions, with the logs of their runs. */
  readonly sessions: number
  /** The requests to sessions, with their replies. */
  readonly messages: number
  /** The finished executions of `AgentRun`. */
  readonly workflows: number
  /** The large results of tools that no session names. */
  readonly artifacts: number
}

type Stores = SessionStore | RunLogStore | SqlClient.SqlClient

/**
 * Removes what is older than a duration.
 *
 * **Details**
 *
 * - The log of a run that ended so long ago. Its session stays.
 * - A session whose last entry is so old, unless a process has it open, or it has a run that has not ended: one that waits, or is parked.
 * - The stored requests of the cluster to sessions, once they have a reply.
 * - The executions of `AgentRun` that ended so long ago, unless a workflow that goes on waits for them. The id of one then stands for a new run.
 *   Executions of your own workflows stay.
 * - The large results of tools (`LargeResults` in `SqlArtifactStore`) that were stored so long ago, and at least a day ago, and that no session
 *   names.
 *
 * Any process may do so at any time.
 *
 * **Example** (Removing what is older than 30 days)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Retention } from "effect-agent/durable"
 *
 * export const cleanUp = Effect.map(Retention.sweep("30 days"), ({ sessions }) => `${sessions} sessions removed`)
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const sweep = Effect.fnUntraced(function* (
  maxAge: Duration.Input
): Effect.fn.Return<Swept, RunLogError | SessionError | SqlError, Stores> {
  return { ...(yield* records(maxAge)), artifacts: yield* OldArtifacts.sweep(maxAge) }
})

const records = Effect.fnUntraced(function* (maxAge: Duration.Input) {
  const logs = yield* RunLogStore
  const store = yield* SessionStore
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const timestamp = (yield* Clock.currentTimeMillis) - Duration.toMillis(maxAge)
  const end = Snowflake.make({ timestamp, machineId: MachineId.make(0), sequence: 0 })
  const runs = yield* logs.retain(maxAge)
  const keep = (yield* logs.unended).map(({ sessionId }) => sessionId)
  const sessions = yield* store.retain({ maxAge, keep })
  yield* Effect.forEach(sessions, logs.remove, { discard: true })
  return {
    runs: runs.length,
    sessions: sessions.length,
    messages: yield* messages(sql, end),
    workflows: yield* OldWorkflows.sweep(sql, end)
  }
})

/** Requests that one transaction removes. */
const most = 500

/** Removes the requests to sessions that have a reply, with it. Their ids have the time at which they were made. */
const messages = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, end: bigint) {
  const old = sql`entity_type = ${SessionEntity.type} AND processed AND id = request_id AND id < ${end} ORDER BY id LIMIT ${most}`
  const some = Effect.gen(function* () {
    yield* sql`DELETE FROM cluster_replies WHERE request_id IN (SELECT id FROM cluster_messages WHERE ${old})`
    const removed = yield* sql`DELETE FROM cluster_messages
      WHERE request_id IN (SELECT id FROM cluster_messages WHERE ${old})
      AND NOT EXISTS (SELECT 1 FROM cluster_replies WHERE request_id = cluster_messages.request_id)
      RETURNING kind`
    return removed.length
  })
  let count = 0
  yield* Effect.repeat(SqlTransaction.run(sql, some), {
    while: (removed) => {
      count += removed
      return removed > 0
    }
  })
  return count
})

/**
 * Makes a layer that removes what is older than a duration when it starts, and every hour; large results of tools every day.
 *
 * **Details**
 *
 * A failure is logged, and the next hour tries again.
 *
 * **Example** (Keeping 30 days in a worker)
 *
 * ```ts
 * import { Retention } from "effect-agent/durable"
 *
 * export const retention = Retention.layer("30 days")
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (maxAge: Duration.Input): Layer.Layer<never, never, Stores> =>
  Layer.effectDiscard(
    Effect.forkScoped(
      Effect.all(
        [
          often(records(maxAge), "1 hour"),
          // It reads the sessions.
          often(OldArtifacts.sweep(maxAge), "1 day")
        ],
        { concurrency: "unbounded", discard: true }
      )
    )
  )

const often = <A, R>(sweep: Effect.Effect<A, Error, R>, pause: Duration.Input) =>
  sweep.pipe(
    Effect.tap((swept) => Effect.logDebug("Removed old records", swept)),
    Effect.catch((error) => Effect.logWarning(`Retention could not remove old records: ${error.message}`)),
    Effect.andThen(Effect.sleep(pause)),
    Effect.forever
  )
