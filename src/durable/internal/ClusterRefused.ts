/**
 * The conditions on which a process takes part in a cluster.
 *
 * @since 0.2.0
 */
import * as Schema from "effect/Schema"
import { TaggedError } from "../../internal/errors.ts"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type * as Scope from "effect/Scope"
import * as NodeSqliteLock from "../../sql/NodeSqliteLock.ts"
import * as SqlOwner from "../../sql/SqlOwner.ts"

/**
 * A process cannot take part in the cluster.
 *
 * **Details**
 *
 * `reason` is `"AlreadyRunning"` if another process uses the SQLite file, `"TimeZone"` if the sessions of PostgreSQL do not have the time
 * zone UTC, and `"Storage"` if the database cannot be used.
 *
 * @category errors
 * @since 0.2.0
 */
export class ClusterRefused extends TaggedError<ClusterRefused>()("ClusterRefused", {
  /** The kind of failure. */
  reason: Schema.Literals(["AlreadyRunning", "TimeZone", "Storage"]),
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

// ───────────────────────── The time zone of the sessions of PostgreSQL

// Effect 4.1 keeps the times at which runners were last seen as TIMESTAMP without a zone, in the zone of the session that wrote them. A
// runner that has another one, or a zone with summer time, takes living runners for dead, and dead ones for living.

const utc: ReadonlyArray<unknown> = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Zulu"]

/** Fails unless the sessions of PostgreSQL have the time zone UTC. */
export const checkTimeZone: Effect.Effect<void, ClusterRefused, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const zone = yield* Effect.mapError(zoneOf(sql), storage)
    if (utc.includes(zone)) return
    const detail =
      `The sessions of PostgreSQL have the time zone ${String(zone)}. Set that of the client to UTC: ` +
      "PgClient.layer({ startupParameters: { timezone: \"UTC\" } }), or ALTER DATABASE … SET timezone = 'UTC'."
    return yield* new ClusterRefused({ reason: "TimeZone", detail })
  }
)

const zoneOf = (sql: SqlClient.SqlClient): Effect.Effect<unknown, SqlError> =>
  sql.onDialectOrElse({
    pg: () => Effect.map(sql`SELECT current_setting('TimeZone')`.values, ([row]) => row?.[0]),
    orElse: () => Effect.succeed("UTC")
  })

const storage = ({ message }: SqlError) => new ClusterRefused({ reason: "Storage", detail: message })

// ───────────────────────── The lock of an SQLite file for one process

// Effect 4.1 does not protect a file from a second process: with the same address, which is the default, each of them owns all shards and
// runs each call.

/** A process has one lock, so that its file has one name. */
const only = 1

/** Locks the database until the scope closes. The system takes the lock back from a process that ends, in whatever way. */
export const takeFile: Effect.Effect<void, ClusterRefused, SqlClient.SqlClient | Scope.Scope> = Effect.gen(
  function* () {
    const sql = (yield* SqlClient.SqlClient).withoutTransforms()
    const file = yield* Effect.mapError(fileOf(sql), storage)
    if (file === undefined) return
    if (yield* hasOtherName(file)) return yield* linked(file)
    const prefix = `${file}-durable-`
    yield* Effect.catch(NodeSqliteLock.take(prefix, only), (error) =>
      Effect.flatMap(Effect.mapError(NodeSqliteLock.isHeld(`${prefix}${only}`), storage), (isHeld) =>
        isHeld ? alreadyRunning(file) : storage(error)
      )
    )
  }
)

const fileOf = (sql: SqlClient.SqlClient) =>
  sql.onDialectOrElse({
    sqlite: () => SqlOwner.fileOf(sql),
    orElse: () => Effect.undefined
  })

/** Whether a file has a second name: a process that uses it by that one has another lock and another log, which damages the file. */
const hasOtherName = (file: string) =>
  Effect.try({
    try: () => process.getBuiltinModule("node:fs").statSync(file).nlink > 1,
    catch: (error) => new ClusterRefused({ reason: "Storage", detail: String(error) })
  })

const linked = (file: string) =>
  new ClusterRefused({
    reason: "Storage",
    detail: `${file} has a second name, a hard link, by which another process may damage it. Remove that name, or copy the file.`
  })

const alreadyRunning = (file: string) =>
  new ClusterRefused({
    reason: "AlreadyRunning",
    detail:
      `Another process uses ${file}. An SQLite file serves one process: ` +
      "end the other one, or keep the runs in PostgreSQL."
  })
