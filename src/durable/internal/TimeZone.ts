/**
 * The time zone of the sessions of PostgreSQL.
 *
 * Effect 4.1 keeps the times at which runners were last seen as TIMESTAMP without a zone, in the zone of the session that wrote them. A
 * runner that has another one, or a zone with summer time, takes living runners for dead, and dead ones for living.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ClusterRefused } from "./ClusterRefused.ts"

const utc: ReadonlyArray<unknown> = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Zulu"]

/** Fails unless the sessions of PostgreSQL have the time zone UTC. */
export const check: Effect.Effect<void, ClusterRefused, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const zone = yield* Effect.mapError(zoneOf(sql), storage)
  if (utc.includes(zone)) return
  const detail =
    `The sessions of PostgreSQL have the time zone ${String(zone)}. Set that of the client to UTC: ` +
    "PgClient.layer({ startupParameters: { timezone: \"UTC\" } }), or ALTER DATABASE … SET timezone = 'UTC'."
  return yield* new ClusterRefused({ reason: "TimeZone", detail })
})

const zoneOf = (sql: SqlClient.SqlClient): Effect.Effect<unknown, SqlError> =>
  sql.onDialectOrElse({
    pg: () => Effect.map(sql`SELECT current_setting('TimeZone')`.values, ([row]) => row?.[0]),
    orElse: () => Effect.succeed("UTC")
  })

const storage = ({ message }: SqlError) => new ClusterRefused({ reason: "Storage", detail: message })
