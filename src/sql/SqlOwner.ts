/**
 * The owner of sessions in an SQL database: a store of a process, whose sessions no other store may write as long as it lives.
 *
 * A lease that has to be renewed would either hold sessions of a dead process for long, or lose those of a slow one. So each owner
 * holds one lock of the system, for all its sessions, which the system itself takes back from a process that ends:
 *
 * - PostgreSQL: an advisory lock of a session of the database, on a connection of its own.
 * - SQLite: an exclusive transaction in a file beside the database.
 *
 * If a lock is lost while the process lives, the fence of each session still refuses the writes of an owner that another one followed.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as SynchronizedRef from "effect/SynchronizedRef"
import * as NodeSqliteLock from "./NodeSqliteLock.ts"

/** A store that may have sessions open. */
export interface Owner {
  readonly id: number
  /** A name for people. */
  readonly name: string
}

/** The owners of the sessions of a database. */
export interface Owners {
  /** This store. The first use takes its lock, which it keeps until the scope of `make` closes. */
  readonly self: Effect.Effect<Owner, SqlError>
  /** Whether another owner lives. Runs in the transaction that takes over its session. */
  readonly isAlive: (id: number) => Effect.Effect<boolean, SqlError>
}

/** The first key of the advisory locks, so that they are not those of the application. */
const space = 0x6561_6765

/** Independent of the seed of an application, which another process may have too. */
const newId = Effect.sync(() => Math.max(1, (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) >>> 1))

/** Makes the owners of the database of a client. */
export const make = (sql: SqlClient.SqlClient): Effect.Effect<Owners, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const known = yield* SynchronizedRef.make<Owner | undefined>(undefined)
    const take = Effect.provideService(
      sql.onDialectOrElse({ pg: () => advisory(sql), orElse: () => beside(sql) }),
      Scope.Scope,
      scope
    )
    return {
      self: SynchronizedRef.modifyEffect(known, (owner) =>
        owner === undefined
          ? Effect.map(take, (taken) => [taken, taken] as const)
          : Effect.succeed([owner, owner] as const)
      ),
      isAlive: (id) =>
        sql.onDialectOrElse({
          // Shared, so that two stores that ask at one time do not take each other for the owner.
          pg: () =>
            Effect.map(
              sql`SELECT pg_try_advisory_xact_lock_shared(${space}::int, ${id}::int)`.values,
              ([row]) => row?.[0] !== true
            ),
          orElse: () =>
            Effect.flatMap(fileOf(sql), (file) =>
              file === undefined ? Effect.succeed(false) : NodeSqliteLock.isHeld(`${locksOf(file)}${id}`)
            )
        })
    }
  })

/** Takes an advisory lock on a connection of its own, and takes it again on another one if that is lost. */
const advisory = (sql: SqlClient.SqlClient): Effect.Effect<Owner, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const id = yield* newId
    const lock = Effect.tap(sql.reserve, (connection) =>
      Effect.acquireRelease(lockOn(connection, id), () => unlockOn(connection, id))
    )
    const first = yield* Scope.fork(scope)
    const connection = yield* Effect.onExit(Scope.provide(lock, first), (exit) =>
      Exit.isFailure(exit) ? Scope.close(first, exit) : Effect.void
    )
    const [row] = yield* connection.executeValues(nameQuery, [])
    const again = Effect.retry(Effect.scoped(Effect.flatMap(lock, watch)), Schedule.spaced("500 millis"))
    yield* watch(connection).pipe(
      Effect.onExit((exit) => Scope.close(first, exit)),
      Effect.ignore,
      Effect.andThen(again),
      Effect.forkIn(scope)
    )
    return { id, name: String(row?.[0]) }
  })

const nameQuery = "SELECT current_setting('application_name') || ', PostgreSQL session ' || pg_backend_pid()"

/** The keep-alive ends the lock of a host that is gone without a word in about 10 seconds. */
const lockOn = (connection: SqlConnection.Connection, id: number): Effect.Effect<void, SqlError> =>
  Effect.andThen(
    connection.execute(
      "SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false), " +
        "set_config('tcp_keepalives_count', '3', false)",
      [],
      undefined
    ),
    connection.execute("SELECT 1 FROM pg_advisory_lock($1::int, $2::int)", [space, id], undefined)
  )

/** The pool keeps the connection. */
const unlockOn = (connection: SqlConnection.Connection, id: number): Effect.Effect<void> =>
  Effect.ignore(connection.execute("SELECT pg_advisory_unlock($1::int, $2::int)", [space, id], undefined))

/** Fails when the connection is lost. */
const watch = (connection: SqlConnection.Connection): Effect.Effect<never, SqlError> =>
  Effect.forever(Effect.andThen(Effect.sleep("1 second"), connection.execute("SELECT 1", [], undefined)))

/** Locks a file beside the database. A database in memory has no file, and no other process that could open it. */
const beside = (sql: SqlClient.SqlClient): Effect.Effect<Owner, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const file = yield* fileOf(sql)
    if (file === undefined) return { id: yield* newId, name: "this process" }
    const take = Effect.flatMap(newId, (id) =>
      Effect.map(NodeSqliteLock.take(locksOf(file), id), (name) => ({ id, name }))
    )
    // Another process that removes the files of dead ones may be quicker than the lock.
    return yield* Effect.retry(take, { times: 3 })
  })

/** The file of an SQLite database; `undefined` for one in memory. */
export const fileOf = (sql: SqlClient.SqlClient): Effect.Effect<string | undefined, SqlError> =>
  Effect.map(
    sql<{ readonly name: string; readonly file: string | null }>`PRAGMA database_list`,
    (databases) => {
      const file = databases.find(({ name }) => name === "main")?.file
      return file === null || file === "" ? undefined : file
    }
  )

const locksOf = (file: string): string => `${file}-owner-`
