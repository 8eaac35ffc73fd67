/**
 * A `SqlClient` of `effect/sql` for SQLite over `node:sqlite`, which is a part of Node.
 *
 * @since 0.2.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import { closeSync, openSync, statSync } from "node:fs"
import type * as Sqlite from "node:sqlite"
import * as NodeSqliteConnection from "./internal/NodeSqliteConnection.ts"
import * as SqliteFailure from "./internal/NodeSqliteFailure.ts"

/**
 * The options of a client.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The path of the database, or `:memory:`. The client makes a file that is not there with mode 0600; its folder must exist. */
  readonly filename: string
  /** Whether the client only reads. The file must exist then. Default false. */
  readonly readOnly?: boolean
  /** Whether the file has a write-ahead log, so that readers and a writer do not wait for one another. Default true. */
  readonly wal?: boolean
  /**
   * The crash that a committed transaction survives: `"normal"` that of the process, also by SIGKILL, and `"full"` the loss of power as
   * well. Default `"normal"`.
   */
  readonly synchronous?: "normal" | "full"
  /** The time for which a statement waits while another connection writes. Default 5 seconds. */
  readonly busyTimeout?: Duration.Input
  /** The number of statements to keep prepared. Default 200. */
  readonly statementCacheSize?: number
  /** Returns the column name in results for that in the database. Default: the name as it is. */
  readonly transformResultNames?: (name: string) => string
  /** Returns the name in the database for an identifier in a query. Default: the name as it is. */
  readonly transformQueryNames?: (name: string) => string
  /** Attributes of the spans of statements, beside `db.system.name`. Default none. */
  readonly spanAttributes?: Readonly<Record<string, unknown>>
}

/** The names of databases that are no path of a file. */
const noPath = /^(?::memory:|file:|$)/

/** Makes the file for its owner alone. SQLite gives the log and the shared memory beside it the same mode. */
const touch = ({ filename, readOnly = false }: Options): Effect.Effect<void, SqlError> =>
  readOnly || noPath.test(filename)
    ? Effect.void
    : Effect.try({
        try: () => closeSync(openSync(filename, "a", 0o600)),
        catch: (cause) => SqliteFailure.unopened(cause)
      })

const open = (options: Options): Effect.Effect<Sqlite.DatabaseSync, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    // Node 22 prints a warning when it loads the module, so only a client does.
    const { DatabaseSync } = yield* Effect.promise(() => import("node:sqlite"))
    yield* touch(options)
    return yield* Effect.acquireRelease(
      Effect.try({
        try: () => new DatabaseSync(options.filename, { readOnly: options.readOnly ?? false, timeout: 0 }),
        catch: (cause) => SqliteFailure.unopened(cause)
      }),
      (db) => Effect.sync(() => db.close())
    )
  })

/** Fails once the path has no file or another one: the system would keep the writes in a file without a name, and no other process finds them. */
const staysAt = ({ filename }: Options): Effect.Effect<void, SqlError> => {
  const fileNow = () => statSync(filename, { throwIfNoEntry: false })?.ino
  if (noPath.test(filename)) return Effect.void
  const file = fileNow()
  return Effect.suspend(() =>
    fileNow() === file
      ? Effect.void
      : Effect.fail(SqliteFailure.make(new Error(`${filename} was removed or replaced. Start again`), "open"))
  )
}

const pragmas = ({
  readOnly = false,
  synchronous = "normal",
  wal = true
}: Options): ReadonlyArray<string> => [
  ...(wal && !readOnly ? ["PRAGMA journal_mode = WAL"] : []),
  `PRAGMA synchronous = ${synchronous.toUpperCase()}`
]

/**
 * Opens a database and makes a client for it, which closes with the scope.
 *
 * **When to use**
 *
 * Use `layer` to provide the client to a store. Use this for a client that is a value, such as one of several.
 *
 * **Details**
 *
 * - The client has one connection. Statements of fibers wait for one another, and for a transaction that is open.
 * - A transaction begins with `BEGIN IMMEDIATE`, so that it cannot fail halfway because another connection wrote. With
 *   `SqlClient.BeginTransaction` set to `BEGIN` it only takes the lock for writing when it writes.
 * - While another connection writes, a statement is tried again for up to `busyTimeout`; other fibers run meanwhile. Then it fails with a
 *   `LockTimeoutError`.
 * - Integers are numbers; one beyond 2^53 fails. With `SqlClient.SafeIntegers` set to true they are `bigint`s.
 * - Parameters are strings, numbers, bigints, booleans (1 and 0), dates (ISO 8601 text), bytes, `null` and `undefined` (null).
 * - Foreign keys hold.
 * - Statements fail once the file was removed, renamed or replaced.
 *
 * **Gotchas**
 *
 * `node:sqlite` blocks the process while a statement runs. A stream of rows keeps the connection until it ends: outside a transaction, a
 * statement that runs for each of its rows waits forever.
 *
 * **Example** (Writing and reading rows)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Reactivity } from "effect/reactivity"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 *
 * const program = Effect.gen(function* () {
 *   const sql = yield* NodeSqlite.make({ filename: ":memory:" })
 *   yield* sql`CREATE TABLE city (name TEXT PRIMARY KEY)`
 *   yield* sql`INSERT INTO city ${sql.insert([{ name: "Oslo" }, { name: "Rome" }])}`
 *   return yield* sql`SELECT name FROM city ORDER BY name`
 * }).pipe(Effect.provide(Reactivity.layer), Effect.scoped)
 *
 * console.log(JSON.stringify(await Effect.runPromise(program))) // => [{"name":"Oslo"},{"name":"Rome"}]
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (
  options: Options
): Effect.Effect<SqlClient.SqlClient, SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const db = yield* open(options)
    const connection = NodeSqliteConnection.make(db, {
      busyTimeout: Duration.toMillis(Duration.fromInputUnsafe(options.busyTimeout ?? "5 seconds")),
      cacheSize: options.statementCacheSize ?? 200
    })
    yield* Effect.forEach(pragmas(options), (pragma) => connection.executeUnprepared(pragma, [], undefined))
    return yield* clientOf(options, db, connection)
  })

const clientOf = Effect.fnUntraced(function* (
  options: Options,
  db: Sqlite.DatabaseSync,
  connection: SqlConnection.Connection
) {
  const { spanAttributes = {}, transformQueryNames, transformResultNames } = options
  const acquirers = SqlClient.makeSqliteAcquirers({
    connection: Effect.as(staysAt(options), connection),
    semaphore: yield* Semaphore.make(1),
    isTransaction: () => db.isTransaction
  })
  return yield* SqlClient.make({
    ...acquirers,
    beginTransaction: options.readOnly === true ? "BEGIN" : "BEGIN IMMEDIATE",
    compiler: Statement.makeCompilerSqlite(transformQueryNames),
    driver: "node:sqlite",
    prepareTransactionControls: true,
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    spanAttributes: [["db.system.name", "sqlite"], ...Object.entries(spanAttributes)],
    ...(transformResultNames === undefined
      ? {}
      : { transformRows: Statement.defaultTransforms(transformResultNames).array })
  })
})

/**
 * Provides a client for a SQLite database.
 *
 * **Details**
 *
 * The database closes with the layer. {@link make} says how the client behaves.
 *
 * **Example** (Running a transaction)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { SqlClient } from "effect/sql"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 *
 * const program = Effect.gen(function* () {
 *   const sql = yield* SqlClient.SqlClient
 *   yield* sql`CREATE TABLE counter (count INTEGER NOT NULL)`
 *   yield* sql.withTransaction(Effect.andThen(sql`INSERT INTO counter VALUES (1)`, Effect.fail("no"))).pipe(Effect.ignore)
 *   return yield* sql`SELECT count FROM counter`
 * }).pipe(Effect.provide(NodeSqlite.layer({ filename: ":memory:" })))
 *
 * console.log(await Effect.runPromise(program)) // => []
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, SqlError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))
