/**
 * The lock of an SQLite file for one process.
 *
 * Effect 4.1 does not protect a file from a second process: with the same address, which is the default, each of them owns all shards and
 * runs each call.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as NodeSqliteLock from "../../sql/NodeSqliteLock.ts"
import * as SqlOwner from "../../sql/SqlOwner.ts"
import { ClusterRefused } from "./ClusterRefused.ts"

/** A process has one lock, so that its file has one name. */
const only = 1

/** Locks the database until the scope closes. The system takes the lock back from a process that ends, in whatever way. */
export const take: Effect.Effect<void, ClusterRefused, SqlClient.SqlClient | Scope.Scope> = Effect.gen(
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

const storage = ({ message }: SqlError) => new ClusterRefused({ reason: "Storage", detail: message })
