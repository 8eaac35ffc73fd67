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
import * as Stream from "effect/Stream"
import * as SqlArtifactStore from "../artifacts/SqlArtifactStore.ts"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { AgentRun } from "./AgentRun.ts"

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
  return { ...(yield* records(maxAge)), artifacts: yield* sweepArtifacts(maxAge) }
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
  const hasWorkflows = (yield* tableOfMessages(sql)).length > 0
  return {
    runs: runs.length,
    sessions: sessions.length,
    workflows: hasWorkflows ? yield* sweepWorkflows(sql, end) : 0
  }
})

/** A row if the database has messages of a cluster: those of workflows. */
const tableOfMessages = (sql: SqlClient.SqlClient) =>
  sql.onDialectOrElse({
    pg: () => sql`SELECT 1 FROM pg_class WHERE oid = to_regclass('cluster_messages')`,
    orElse: () => sql`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'cluster_messages'`
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
          often(sweepArtifacts(maxAge), "1 day")
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

// ───────────────────────── Large results of tools that no session names any more

/** The time within which a session names what one of its calls has stored, however short the time to keep is. */
const leastAge = Duration.days(1)

/** Removes those that are older than a duration, and returns their number. A session that cannot be read keeps all. */
const sweepArtifacts = Effect.fnUntraced(function* (
  maxAge: Duration.Input
): Effect.fn.Return<number, SessionError | SqlError, SessionStore | SqlClient.SqlClient> {
  const sessions = yield* SessionStore
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const age = Duration.toMillis(Duration.max(Duration.fromInputUnsafe(maxAge), leastAge))
  const old = yield* SqlArtifactStore.storedBefore(sql, (yield* Clock.currentTimeMillis) - age)
  const unnamed = new Map(old.map(({ created, id }) => [id, created]))
  if (unnamed.size === 0) return 0
  // A session without a newer entry cannot name any of them.
  const oldest = old.reduce((least, { created }) => Math.min(least, created), Infinity)
  // One page: a session that gets an entry moves to the first one.
  const { items } = yield* sessions.list({ limit: Number.MAX_SAFE_INTEGER })
  yield* Stream.fromIterable(items).pipe(
    Stream.filter(({ modified }) => modified >= oldest),
    Stream.flatMap(({ sessionId }) =>
      Stream.catchReason(sessions.export(sessionId, "jsonl"), "SessionError", "Missing", () => Stream.empty)
    ),
    Stream.takeWhile(() => unnamed.size > 0),
    Stream.runForEach((text) =>
      Effect.sync(() => {
        for (const [id] of text.matchAll(SqlArtifactStore.made)) unnamed.delete(id)
      })
    )
  )
  yield* SqlArtifactStore.removeAll(sql, [...unnamed.keys()])
  return unnamed.size
})

// ───────────────────────── Finished executions of `AgentRun` in the tables of the cluster

/** The entity in which the workflow engine of Effect 4.1 keeps the executions of a workflow, and the tag of the request of an execution. */
const typeOf = (workflow: string) => `Workflow/${workflow}`
const runTag = "run"
/** The execution that waits for another one. The payload of that one has it in a member of the engine. */
const Parent = Schema.Struct({ workflowName: Schema.String, executionId: Schema.String })
const readParent = Schema.decodeUnknownOption(Parent)
const readPayload = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))
)
const ownMembers: ReadonlyArray<string> = Object.keys(AgentRun.payloadSchema.fields)

/** An exit, which is that of a suspended execution if its value has that tag. */
const Exit = Schema.fromJsonString(
  Schema.Struct({
    _tag: Schema.String,
    value: Schema.optionalKey(Schema.Struct({ _tag: Schema.String }))
  })
)
const readExit = Schema.decodeUnknownOption(Exit)

/** Whether a stored reply is the end of an execution. One that cannot be read is none. */
const isEnd = (reply: string): boolean =>
  Option.exists(readExit(reply), ({ _tag, value }) => _tag === "Failure" || value?._tag === "Complete")

interface Row {
  readonly id: string
  readonly entity_id: string
  readonly payload: string
  readonly reply: string
}

/** Executions that one look reads. */
const mostExecutions = 200

/** Removes the executions whose end is older than an id of the cluster, and returns their number. */
const sweepWorkflows = (sql: SqlClient.SqlClient, end: bigint): Effect.Effect<number, SqlError> =>
  Effect.gen(function* () {
    let count = 0
    let after = "0"
    while (true) {
      const rows = yield* sql<Row>`SELECT CAST(m.id AS TEXT) AS id, m.entity_id, m.payload, r.payload AS reply
        FROM cluster_messages m JOIN cluster_replies r ON r.request_id = m.request_id AND r.kind = 0
        WHERE m.entity_type = ${typeOf(AgentRun._tag)} AND m.tag = ${runTag} AND m.processed
        AND r.id < ${end} AND m.id > CAST(${after} AS BIGINT) ORDER BY m.id LIMIT ${mostExecutions}`
      for (const row of rows) {
        if (!isEnd(row.reply) || (yield* isWanted(sql, row.payload))) continue
        if (yield* removeExecution(sql, row.entity_id)) count++
      }
      const last = rows.at(-1)
      if (last === undefined) return count
      after = last.id
    }
  })

/** Whether an execution of another workflow may read the result again: it goes on. */
const isWanted = (sql: SqlClient.SqlClient, payload: string): Effect.Effect<boolean, SqlError> => {
  const members = Object.entries(Option.getOrUndefined(readPayload(payload)) ?? { unreadable: true })
  const [other, ...more] = members.filter(([name]) => !ownMembers.includes(name))
  if (other === undefined) return Effect.succeed(false)
  const parent = Option.getOrUndefined(readParent(other[1]))
  return parent === undefined || more.length > 0 ? Effect.succeed(true) : goesOn(sql, parent)
}

const goesOn = (sql: SqlClient.SqlClient, { executionId, workflowName }: typeof Parent.Type) =>
  Effect.map(
    sql<{ readonly reply: string | null }>`SELECT r.payload AS reply FROM cluster_messages m
      LEFT JOIN cluster_replies r ON r.request_id = m.request_id AND r.kind = 0
      WHERE m.entity_type = ${typeOf(workflowName)} AND m.entity_id = ${executionId} AND m.tag = ${runTag}`,
    (rows) => rows.some(({ reply }) => reply === null || !isEnd(reply))
  )

/** Removes an execution, unless one of its messages waits. */
const removeExecution = (sql: SqlClient.SqlClient, executionId: string): Effect.Effect<boolean, SqlError> => {
  const its = sql`entity_type = ${typeOf(AgentRun._tag)} AND entity_id = ${executionId}`
  return SqlTransaction.run(
    sql,
    Effect.gen(function* () {
      const waiting = yield* sql`SELECT 1 FROM cluster_messages WHERE ${its} AND NOT processed LIMIT 1`
      if (waiting.length > 0) return false
      yield* sql`DELETE FROM cluster_replies WHERE request_id IN (SELECT request_id FROM cluster_messages WHERE ${its})`
      yield* sql`DELETE FROM cluster_messages WHERE ${its}`
      return true
    })
  )
}
