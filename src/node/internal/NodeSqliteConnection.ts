/**
 * A connection of `effect/sql` to an open database of `node:sqlite`.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type * as Sqlite from "node:sqlite"
import * as SqliteFailure from "./NodeSqliteFailure.ts"

/** The settings of a connection. */
export interface Settings {
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
): Effect.Effect<ReadonlyArray<Sqlite.SQLInputValue>, SqlError> =>
  Result.match(Result.all(params.map(inputOf)), {
    onFailure: (cause) => Effect.fail(SqliteFailure.make(cause, operation)),
    onSuccess: Effect.succeed
  })

type Retrying = <A>(attempt: Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>

/** Tries again while another connection writes, without blocking the fibers of the process. */
const patiently =
  (busyTimeout: number): Retrying =>
  (attempt) => {
    if (busyTimeout === 0) return attempt
    const schedule = Schedule.min([Schedule.exponential("1 millis"), Schedule.spaced("20 millis")]).pipe(
      Schedule.upTo({ duration: busyTimeout })
    )
    return Effect.catchIf(attempt, SqliteFailure.isBusy, () =>
      Effect.retry(attempt, { schedule, while: SqliteFailure.isBusy })
    )
  }

/** Calls a synchronous operation of Node with the parameters, in the integers that the fiber wants. */
const attempting = <A>(
  operation: string,
  params: ReadonlyArray<unknown>,
  call: (inputs: ReadonlyArray<Sqlite.SQLInputValue>, isBigInt: boolean) => A
): Effect.Effect<A, SqlError> =>
  Effect.withFiber((fiber) =>
    Effect.flatMap(inputsOf(params, operation), (inputs) =>
      Effect.try({
        try: () => call(inputs, fiber.getRef(SqlClient.SafeIntegers)),
        catch: (cause) => SqliteFailure.make(cause, operation)
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
): Effect.Effect<Iterator<Row>, SqlError, Scope.Scope> =>
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
) => Effect.Effect<Rows | Sqlite.StatementResultingChanges, SqlError>

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
export const make = (db: Sqlite.DatabaseSync, settings: Settings): SqlConnection.Connection => {
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
