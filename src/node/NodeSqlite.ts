/**
 * A `SqlClient` of `effect/sql` for SQLite over `node:sqlite`, which is a part of Node.
 *
 * @since 0.2.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import * as SqlError from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import { closeSync, openSync, statSync } from "node:fs"
import type * as Sqlite from "node:sqlite"

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
const touch = ({ filename, readOnly = false }: Options): Effect.Effect<void, SqlError.SqlError> =>
  readOnly || noPath.test(filename)
    ? Effect.void
    : Effect.try({
        try: () => closeSync(openSync(filename, "a", 0o600)),
        catch: (cause) => unopened(cause)
      })

const open = (options: Options): Effect.Effect<Sqlite.DatabaseSync, SqlError.SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    // Node 22 prints a warning when it loads the module, so only a client does.
    const { DatabaseSync } = yield* Effect.promise(() => import("node:sqlite"))
    yield* touch(options)
    return yield* Effect.acquireRelease(
      Effect.try({
        try: () => new DatabaseSync(options.filename, { readOnly: options.readOnly ?? false, timeout: 0 }),
        catch: (cause) => unopened(cause)
      }),
      (db) => Effect.sync(() => db.close())
    )
  })

/** Fails once the path has no file or another one: the system would keep the writes in a file without a name, and no other process finds them. */
const staysAt = ({ filename }: Options): Effect.Effect<void, SqlError.SqlError> => {
  const fileNow = () => statSync(filename, { throwIfNoEntry: false })?.ino
  if (noPath.test(filename)) return Effect.void
  const file = fileNow()
  return Effect.suspend(() =>
    fileNow() === file
      ? Effect.void
      : Effect.fail(failureOf(new Error(`${filename} was removed or replaced. Start again`), "open"))
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
): Effect.Effect<SqlClient.SqlClient, SqlError.SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const db = yield* open(options)
    const connection = connectionOf(db, {
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
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))

// ───────────────────────── The connection

/** The settings of a connection. */
interface Settings {
  /** Milliseconds. */
  readonly busyTimeout: number
  /** Statements. */
  readonly cacheSize: number
}

interface Prepared {
  readonly statement: Sqlite.StatementSync
  /** Whether it returns rows. */
  readonly hasRows: boolean
  /** Whether it changes the schema. */
  readonly isDefinition: boolean
}

type Row = Record<string, Sqlite.SQLOutputValue>
type Rows = ReadonlyArray<Row>

const prepare = (db: Sqlite.DatabaseSync, sql: string): Prepared => {
  const statement = db.prepare(sql)
  const isDefinition = /^\s*(?:CREATE|ALTER|DROP)\b/i.test(sql)
  return { statement, hasRows: statement.columns().length > 0, isDefinition }
}

/** Finds a prepared statement for a text. */
type Find = (sql: string) => Prepared

/** Keeps the statements that were used last, until the schema changes: Node 22 does not see new columns in a prepared statement. */
const cacheOf = (db: Sqlite.DatabaseSync, size: number): Find => {
  const cache = new Map<string, Prepared>()
  return (sql) => {
    const prepared = cache.get(sql) ?? prepare(db, sql)
    cache.delete(sql)
    if (prepared.isDefinition) cache.clear()
    else cache.set(sql, prepared)
    const [oldest] = cache.keys()
    if (cache.size > size && oldest !== undefined) cache.delete(oldest)
    return prepared
  }
}

/** A parameter as SQLite takes it, or the reason why it cannot. */
const inputOf = (value: unknown): Result.Result<Sqlite.SQLInputValue, TypeError> => {
  switch (typeof value) {
    case "string":
    case "number":
    case "bigint":
      return Result.succeed(value)
    case "boolean":
      return Result.succeed(value ? 1 : 0)
    case "undefined":
      return Result.succeed(null)
  }
  if (value === null || value instanceof Uint8Array) return Result.succeed(value)
  if (ArrayBuffer.isView(value))
    return Result.succeed(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
  if (value instanceof Date) return Result.succeed(value.toISOString())
  if (value instanceof ArrayBuffer) return Result.succeed(new Uint8Array(value))
  return Result.fail(new TypeError("SQLite takes no object as a parameter. Pass its JSON"))
}

const inputsOf = (
  params: ReadonlyArray<unknown>,
  operation: string
): Effect.Effect<ReadonlyArray<Sqlite.SQLInputValue>, SqlError.SqlError> =>
  Result.match(Result.all(params.map(inputOf)), {
    onFailure: (cause) => Effect.fail(failureOf(cause, operation)),
    onSuccess: Effect.succeed
  })

type Retrying = <A>(attempt: Effect.Effect<A, SqlError.SqlError>) => Effect.Effect<A, SqlError.SqlError>

/** Tries again while another connection writes, without blocking the fibers of the process. */
const patiently =
  (busyTimeout: number): Retrying =>
  (attempt) => {
    if (busyTimeout === 0) return attempt
    const schedule = Schedule.min([Schedule.exponential("1 millis"), Schedule.spaced("20 millis")]).pipe(
      Schedule.upTo({ duration: busyTimeout })
    )
    return Effect.catchIf(attempt, isBusy, () => Effect.retry(attempt, { schedule, while: isBusy }))
  }

/** Calls a synchronous operation of Node with the parameters, in the integers that the fiber wants. */
const attempting = <A>(
  operation: string,
  params: ReadonlyArray<unknown>,
  call: (inputs: ReadonlyArray<Sqlite.SQLInputValue>, isBigInt: boolean) => A
): Effect.Effect<A, SqlError.SqlError> =>
  Effect.withFiber((fiber) =>
    Effect.flatMap(inputsOf(params, operation), (inputs) =>
      Effect.try({
        try: () => call(inputs, fiber.getRef(SqlClient.SafeIntegers)),
        catch: (cause) => failureOf(cause, operation)
      })
    )
  )

const chunkSize = 128

/** Up to `chunkSize` rows, and whether there may be more. */
const nextRows = (rows: Iterator<Row>): readonly [Rows, Option.Option<void>] => {
  const chunk: Array<Row> = []
  while (chunk.length < chunkSize) {
    const next = rows.next()
    if (next.done === true) return [chunk, Option.none()]
    chunk.push(next.value)
  }
  return [chunk, Option.some(undefined)]
}

/** Begins to read the rows of a statement. The end of the scope ends that. */
const begin = (
  db: Sqlite.DatabaseSync,
  sql: string,
  params: ReadonlyArray<unknown>,
  retrying: Retrying
): Effect.Effect<Iterator<Row>, SqlError.SqlError, Scope.Scope> =>
  Effect.acquireRelease(
    retrying(
      attempting("executeStream", params, (inputs, isBigInt) => {
        // A statement of its own: another run of a cached one would end the iteration.
        const { statement } = prepare(db, sql)
        statement.setReadBigInts(isBigInt)
        return statement.iterate(...inputs)
      })
    ),
    (rows) => Effect.sync(() => rows.return?.())
  )

/** Runs a statement that `find` has prepared, and gives its rows, or the counts of a change. */
type Execute = (
  sql: string,
  params: ReadonlyArray<unknown>,
  find: Find,
  isArrays?: boolean
) => Effect.Effect<Rows | Sqlite.StatementResultingChanges, SqlError.SqlError>

const executor =
  (retrying: Retrying): Execute =>
  (sql, params, find, isArrays = false) =>
    retrying(
      attempting("execute", params, (inputs, isBigInt) => {
        const { hasRows, statement } = find(sql)
        statement.setReadBigInts(isBigInt)
        statement.setReturnArrays(isArrays)
        return hasRows ? statement.all(...inputs) : statement.run(...inputs)
      })
    )

const rowsOf =
  (execute: Execute, find: Find): SqlConnection.Connection["execute"] =>
  (sql, params, transform) =>
    Effect.map(execute(sql, params, find), (result) => {
      const rows = "changes" in result ? [] : result
      return transform === undefined ? rows : transform(rows)
    })

const valuesOf =
  (execute: Execute, find: Find): SqlConnection.Connection["executeValues"] =>
  (sql, params) =>
    Effect.map(execute(sql, params, find, true), (result) =>
      "changes" in result ? [] : result.map((row) => (Array.isArray(row) ? row : Object.values(row)))
    )

/** Makes the connection. It runs one statement at a time and does not close the database. */
const connectionOf = (db: Sqlite.DatabaseSync, settings: Settings): SqlConnection.Connection => {
  const retrying = patiently(settings.busyTimeout)
  const execute = executor(retrying)
  const cached = cacheOf(db, settings.cacheSize)
  const uncached: Find = (sql) => prepare(db, sql)
  return {
    execute: rowsOf(execute, cached),
    executeUnprepared: rowsOf(execute, uncached),
    executeValues: valuesOf(execute, cached),
    executeValuesUnprepared: valuesOf(execute, uncached),
    executeRaw: (sql, params) => execute(sql, params, cached),
    executeStream: (sql, params, transform) =>
      Stream.unwrap(
        Effect.map(begin(db, sql, params, retrying), (rows) =>
          Stream.paginate(undefined, () =>
            Effect.map(
              attempting("executeStream", [], () => nextRows(rows)),
              ([chunk, next]) => [transform === undefined ? chunk : transform(chunk), next] as const
            )
          )
        )
      )
  }
}

// ───────────────────────── Failures

/** The extended result code, `undefined` for an error of Node. */
const codeOf = (cause: unknown): number | undefined =>
  Predicate.hasProperty(cause, "errcode") && typeof cause.errcode === "number" ? cause.errcode : undefined

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Uniqueness of a column, a primary key and a row id. */
const unique = new Set([2067, 1555, 2579])
/** The text of the constraint that `UNIQUE constraint failed: table.column` names. */
const constraintOf = (message: string): string => /constraint failed: (.+)$/.exec(message)?.[1] ?? "unknown"
/** SQLite has one code for all that it cannot compile, and for a few failures of statements that it could. */
const isSyntax = (message: string): boolean =>
  /syntax error|no such (?:table|column|function|index)|incomplete input|unrecognized token|has no column|values for \d+ columns/.test(
    message
  )

const reasonOf = (
  cause: unknown,
  operation: string,
  code = codeOf(cause),
  message = messageOf(cause)
): SqlError.SqlErrorReason => {
  const fields = { cause, message, operation }
  if (code !== undefined && unique.has(code))
    return new SqlError.UniqueViolation({ ...fields, constraint: constraintOf(message) })
  switch (code === undefined ? undefined : code & 0xff) {
    case 1:
      return isSyntax(message) ? new SqlError.SqlSyntaxError(fields) : new SqlError.UnknownError(fields)
    case 3:
    case 8:
      return new SqlError.AuthorizationError(fields)
    case 5:
    case 6:
      return new SqlError.LockTimeoutError(fields)
    case 14:
      return new SqlError.ConnectionError(fields)
    case 19:
      return new SqlError.ConstraintError(fields)
    case 23:
      return new SqlError.AuthenticationError(fields)
    default:
      return Predicate.hasProperty(cause, "code") && cause.code === "ERR_INVALID_STATE"
        ? new SqlError.ConnectionError(fields)
        : new SqlError.UnknownError(fields)
  }
}

/** The failure of an operation such as `execute`. */
const failureOf = (cause: unknown, operation: string): SqlError.SqlError =>
  new SqlError.SqlError({ reason: reasonOf(cause, operation) })

/** The failure to open a database. */
const unopened = (cause: unknown): SqlError.SqlError =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause, message: messageOf(cause), operation: "open" })
  })

/** `SQLITE_BUSY`, but for a transaction whose snapshot is too old: another try cannot help that. */
const isBusy = ({ reason }: SqlError.SqlError): boolean => {
  const code = codeOf(reason.cause)
  return code !== undefined && (code & 0xff) === 5 && code !== 517
}
