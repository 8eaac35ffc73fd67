import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Option, Scope, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlError } from "effect/sql"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A folder that goes with the scope. */
const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-agent-sql-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)
const file = Effect.map(folder, (path) => join(path, "agent.db"))
const client = (options: NodeSqlite.Options) => Effect.provide(NodeSqlite.make(options), Reactivity.layer)
const memory = client({ filename: ":memory:" })
const reasonOf = <A, R>(effect: Effect.Effect<A, SqlError.SqlError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)
const modeOf = (path: string) => statSync(path).mode & 0o777

describe("NodeSqlite: files", () => {
  it.effect("makes a database, its log and its shared memory for the owner alone", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const sql = yield* client({ filename })
      yield* sql`CREATE TABLE t (x)`
      assert.deepStrictEqual(
        ["", "-wal", "-shm"].map((end) => modeOf(filename + end)),
        [0o600, 0o600, 0o600]
      )
    })
  )

  it.effect("fails once its file is removed or replaced, in place of writing where no process reads", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const sql = yield* client({ filename })
      yield* sql`CREATE TABLE t (x)`
      renameSync(filename, `${filename}.old`)
      const removed = yield* reasonOf(sql`INSERT INTO t VALUES (1)`)
      writeFileSync(filename, "")
      const replaced = yield* reasonOf(sql`INSERT INTO t VALUES (1)`)
      rmSync(filename)
      renameSync(`${filename}.old`, filename)
      yield* sql`INSERT INTO t VALUES (2)`
      assert.deepStrictEqual(yield* sql`SELECT x FROM t`, [{ x: 2 }])
      for (const { isRetryable, message } of [removed, replaced]) {
        assert.include(message, "was removed or replaced")
        assert.isFalse(isRetryable)
      }
    })
  )

  it.effect("keeps the mode of a file that is there", () =>
    Effect.gen(function* () {
      const filename = yield* file
      writeFileSync(filename, "")
      chmodSync(filename, 0o640)
      const sql = yield* client({ filename })
      yield* sql`CREATE TABLE t (x)`
      assert.strictEqual(modeOf(filename), 0o640)
    })
  )

  it.effect("keeps rows after it has closed, and leaves one file", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const write = Effect.gen(function* () {
        const sql = yield* client({ filename })
        yield* sql`CREATE TABLE t (x)`
        yield* sql`INSERT INTO t VALUES (1)`
      })
      yield* Effect.scoped(write)
      assert.isFalse(existsSync(`${filename}-wal`))
      const sql = yield* client({ filename, readOnly: true })
      assert.deepStrictEqual(
        (yield* sql`SELECT x FROM t`).map((row) => ({ ...row })),
        [{ x: 1 }]
      )
    })
  )

  it.effect("fails to open with ConnectionError", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const missing = yield* reasonOf(client({ filename: join(path, "no/agent.db") }))
      assert.deepInclude(missing, { _tag: "ConnectionError", operation: "open" })
      const unread = yield* reasonOf(client({ filename: join(path, "agent.db"), readOnly: true }))
      assert.strictEqual(unread._tag, "ConnectionError")
    })
  )

  it.effect("has a write-ahead log unless an application wants none", () =>
    Effect.gen(function* () {
      const modeOf = (wal: boolean) =>
        Effect.gen(function* () {
          const sql = yield* client({ filename: yield* file, wal, synchronous: "full" })
          return [...(yield* sql`PRAGMA journal_mode`.values), ...(yield* sql`PRAGMA synchronous`.values)]
        })
      assert.deepStrictEqual(yield* modeOf(true), [["wal"], [2]])
      assert.deepStrictEqual(yield* modeOf(false), [["delete"], [2]])
    })
  )
})

describe("NodeSqlite: values", () => {
  it.effect("takes what SQLite stores, and gives it back", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      const values = ["Ä", 1.5, null, undefined, true, false, new Date(0), new Uint8Array([1, 2])]
      yield* sql`CREATE TABLE t (x)`
      yield* Effect.forEach(values, (value) => sql`INSERT INTO t VALUES (${value})`)
      assert.deepStrictEqual(
        (yield* sql`SELECT x FROM t`.values).map(([x]) => x),
        ["Ä", 1.5, null, null, 1, 0, "1970-01-01T00:00:00.000Z", new Uint8Array([1, 2])]
      )
      const views = [new Uint8Array([7, 8, 9]).buffer, new DataView(new Uint8Array([7, 8, 9]).buffer, 1)]
      assert.deepStrictEqual(yield* sql`SELECT ${views[0]}, ${views[1]}`.values, [
        [new Uint8Array([7, 8, 9]), new Uint8Array([8, 9])]
      ])
    })
  )

  it.effect("refuses an object, which SQLite would take for named parameters", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      const reason = yield* reasonOf(sql`SELECT ${{ a: 1 }}`)
      assert.deepInclude(reason, { _tag: "UnknownError" })
      assert.match(reason.message ?? "", /no object/)
    })
  )

  it.effect("reads large integers as bigints where the fiber wants that, and fails where not", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      const large = 2n ** 60n
      const read = sql`SELECT ${large} AS x`.values
      assert.strictEqual((yield* reasonOf(read))._tag, "UnknownError")
      const safe = Effect.provideService(read, SqlClient.SafeIntegers, true)
      assert.deepStrictEqual(yield* safe, [[large]])
      const streamed = sql`SELECT ${large} AS x`.stream.pipe(
        Stream.runCollect,
        Effect.provideService(SqlClient.SafeIntegers, true)
      )
      assert.deepInclude((yield* streamed)[0], { x: large })
    })
  )

  it.effect("gives values by position, rows by name, and the counts of a change", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, x)`
      assert.deepInclude(yield* sql`INSERT INTO t (x) VALUES (1), (2)`.raw, {
        changes: 2,
        lastInsertRowid: 2
      })
      assert.deepStrictEqual(yield* sql`INSERT INTO t (x) VALUES (3)`, [])
      assert.deepStrictEqual(yield* sql`SELECT 1 AS a, 2 AS a`.values, [[1, 2]])
      assert.deepStrictEqual(yield* sql`SELECT 1 AS a, 2 AS a`.valuesUnprepared, [[1, 2]])
      assert.deepStrictEqual(yield* sql`INSERT INTO t (x) VALUES (4)`.valuesUnprepared, [])
      const [row] = yield* sql`INSERT INTO t (x) VALUES (9) RETURNING x`
      assert.deepInclude(row, { x: 9 })
      const [again] = yield* sql`SELECT count(*) AS n FROM t`.unprepared
      assert.deepInclude(again, { n: 5 })
    })
  )

  it.effect("renames columns and identifiers", () =>
    Effect.gen(function* () {
      const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      const sql = yield* client({
        filename: ":memory:",
        transformQueryNames: snake,
        transformResultNames: camel
      })
      yield* sql`CREATE TABLE ${sql("myTable")} (${sql("myColumn")} TEXT)`
      yield* sql`INSERT INTO ${sql("myTable")} ${sql.insert({ myColumn: "x" })}`
      assert.deepInclude((yield* sql`SELECT * FROM my_table`)[0], { myColumn: "x" })
      assert.deepInclude((yield* sql`SELECT * FROM my_table`.withoutTransform)[0], { my_column: "x" })
      const streamed = yield* Stream.runCollect(sql`SELECT * FROM my_table`.stream)
      assert.deepInclude(streamed[0], { myColumn: "x" })
    })
  )

  it.effect("runs more statements than it keeps prepared", () =>
    Effect.gen(function* () {
      const sql = yield* client({ filename: ":memory:", statementCacheSize: 2 })
      for (const round of [1, 2]) {
        for (const n of [1, 2, 3, 4]) {
          const text = `SELECT ${n} AS x, ${round} AS y`
          assert.deepStrictEqual(yield* sql.unsafe(text).values, [[n, round]])
        }
      }
    })
  )

  it.effect("reads a table that changed after its statement was prepared", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      yield* sql`CREATE TABLE t (x)`
      yield* sql`INSERT INTO t VALUES (1)`
      const read = sql`SELECT * FROM t`
      assert.deepStrictEqual(yield* read.values, [[1]])
      yield* sql`ALTER TABLE t ADD COLUMN y DEFAULT 2`
      assert.deepStrictEqual(yield* read.values, [[1, 2]])
    })
  )
})

describe("NodeSqlite: errors", () => {
  const cases: ReadonlyArray<readonly [statement: string, tag: string]> = [
    ["SELEC 1", "SqlSyntaxError"],
    ["SELECT * FROM missing", "SqlSyntaxError"],
    ["SELECT missing FROM t", "SqlSyntaxError"],
    ["INSERT INTO t VALUES (1, 'a', 1)", "UniqueViolation"],
    ["INSERT INTO t VALUES (2, 'taken', 1)", "UniqueViolation"],
    ["INSERT INTO t VALUES (2, NULL, 1)", "ConstraintError"],
    ["INSERT INTO t VALUES (2, 'b', -1)", "ConstraintError"],
    ["INSERT INTO child VALUES (7)", "ConstraintError"],
    ["SELECT abs(-9223372036854775808)", "UnknownError"]
  ]
  it.effect.each(cases)("%s is a %s", ([statement, tag]) =>
    Effect.gen(function* () {
      const sql = yield* memory
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, n INTEGER CHECK (n > 0))`
      yield* sql`CREATE TABLE child (t REFERENCES t (id))`
      yield* sql`INSERT INTO t VALUES (1, 'taken', 1)`
      assert.strictEqual((yield* reasonOf(sql.unsafe(statement)))._tag, tag)
    })
  )

  it.effect("name the constraint, and keep the error of SQLite as the cause", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      yield* sql`CREATE TABLE t (name TEXT UNIQUE)`
      yield* sql`INSERT INTO t VALUES ('a')`
      const reason = yield* reasonOf(sql`INSERT INTO t VALUES ('a')`)
      assert.deepInclude(reason, { constraint: "t.name", operation: "execute" })
      assert.instanceOf(reason.cause, Error)
    })
  )

  it.effect("of a write through a client that only reads are AuthorizationError", () =>
    Effect.gen(function* () {
      const filename = yield* file
      yield* Effect.scoped(Effect.flatMap(client({ filename }), (sql) => sql`CREATE TABLE t (x)`))
      const sql = yield* client({ filename, readOnly: true })
      assert.strictEqual((yield* reasonOf(sql`INSERT INTO t VALUES (1)`))._tag, "AuthorizationError")
      assert.deepStrictEqual(yield* sql.withTransaction(sql`SELECT x FROM t`), [])
    })
  )

  it.effect("of a closed database are ConnectionError", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const sql = yield* Scope.provide(memory, scope)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* reasonOf(sql`SELECT 1`))._tag, "ConnectionError")
    })
  )
})

describe("NodeSqlite: transactions", () => {
  const table = Effect.tap(memory, (sql) => sql`CREATE TABLE t (x INTEGER PRIMARY KEY)`)
  const rowsOf = (sql: SqlClient.SqlClient) =>
    Effect.map(sql`SELECT x FROM t ORDER BY x`.values, (rows) => rows.map(([x]) => x))

  it.effect("commit what succeeds", () =>
    Effect.gen(function* () {
      const sql = yield* table
      yield* sql.withTransaction(Effect.andThen(sql`INSERT INTO t VALUES (1)`, sql`INSERT INTO t VALUES (2)`))
      assert.deepStrictEqual(yield* rowsOf(sql), [1, 2])
    })
  )

  it.effect("take back what fails, dies or is interrupted", () =>
    Effect.gen(function* () {
      const sql = yield* table
      const after = (end: Effect.Effect<never, string>) =>
        Effect.exit(sql.withTransaction(Effect.andThen(sql`INSERT INTO t VALUES (1)`, end)))
      yield* Effect.forEach([Effect.fail("no"), Effect.die("no"), Effect.interrupt], after)
      assert.deepStrictEqual(yield* rowsOf(sql), [])
    })
  )

  it.effect("take back an inner one alone", () =>
    Effect.gen(function* () {
      const sql = yield* table
      const inner = (end: Effect.Effect<void, string>) =>
        Effect.ignore(sql.withTransaction(Effect.andThen(sql`INSERT INTO t VALUES (2)`, end)))
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`INSERT INTO t VALUES (1)`
          yield* inner(Effect.fail("no"))
          yield* inner(Effect.void)
          yield* sql`INSERT INTO t VALUES (3)`
        })
      )
      assert.deepStrictEqual(yield* rowsOf(sql), [1, 2, 3])
    })
  )

  it.effect("keep the statements of other fibers out", () =>
    Effect.gen(function* () {
      const sql = yield* table
      const begun = yield* Deferred.make<void>()
      const end = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.andThen(
            sql`INSERT INTO t VALUES (1)`,
            Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(end))
          )
        )
      )
      yield* Deferred.await(begun)
      const reader = yield* Effect.forkChild(rowsOf(sql), { startImmediately: true })
      assert.isUndefined(reader.pollUnsafe())
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(yield* Fiber.join(reader), [1])
    })
  )

  it.effect("are taken back when their commit fails, and the next one runs", () =>
    Effect.gen(function* () {
      const sql = yield* table
      yield* sql`CREATE TABLE child (t INTEGER REFERENCES t (x) DEFERRABLE INITIALLY DEFERRED)`
      const exit = yield* Effect.exit(sql.withTransaction(sql`INSERT INTO child VALUES (7)`))
      const error = Exit.isFailure(exit)
        ? Option.getOrUndefined(Cause.findErrorOption(exit.cause))
        : undefined
      assert.strictEqual(error?.reason._tag, "ConstraintError")
      yield* sql.withTransaction(sql`INSERT INTO t VALUES (1)`)
      assert.deepStrictEqual(yield* rowsOf(sql), [1])
    })
  )
})

describe("NodeSqlite: two connections", () => {
  const pair = (busyTimeout: number) =>
    Effect.gen(function* () {
      const filename = yield* file
      const one = yield* client({ filename, busyTimeout })
      yield* one`CREATE TABLE t (x)`
      return [one, yield* client({ filename, busyTimeout })] as const
    })

  it.live("wait for the writer, while other fibers run", () =>
    Effect.gen(function* () {
      const [one, two] = yield* pair(5000)
      const begun = yield* Deferred.make<void>()
      const end = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(
        one.withTransaction(
          Effect.andThen(
            one`INSERT INTO t VALUES (1)`,
            Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(end))
          )
        )
      )
      yield* Deferred.await(begun)
      const waiting = [
        yield* Effect.forkChild(two`INSERT INTO t VALUES (2)`, { startImmediately: true }),
        yield* Effect.forkChild(two.withTransaction(two`INSERT INTO t VALUES (3)`), {
          startImmediately: true
        })
      ]
      assert.isUndefined(waiting[0]?.pollUnsafe())
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.join(holder)
      yield* Fiber.joinAll(waiting)
      assert.deepStrictEqual(yield* one`SELECT x FROM t ORDER BY x`.values, [[1], [2], [3]])
    })
  )

  it.effect("read while another one writes", () =>
    Effect.gen(function* () {
      const [one, two] = yield* pair(0)
      yield* one.withTransaction(
        Effect.gen(function* () {
          yield* one`INSERT INTO t VALUES (1)`
          assert.deepStrictEqual(yield* two`SELECT x FROM t`.values, [])
        })
      )
      assert.deepStrictEqual(yield* two`SELECT x FROM t`.values, [[1]])
    })
  )

  it.effect("fail with LockTimeoutError after the time for waiting", () =>
    Effect.gen(function* () {
      const [one, two] = yield* pair(0)
      const reason = yield* one.withTransaction(reasonOf(two`INSERT INTO t VALUES (2)`))
      assert.strictEqual(reason._tag, "LockTimeoutError")
    })
  )

  it.live("fail with LockTimeoutError after a time that is longer", () =>
    Effect.gen(function* () {
      const [one, two] = yield* pair(30)
      const reason = yield* one.withTransaction(reasonOf(two.withTransaction(two`INSERT INTO t VALUES (2)`)))
      assert.strictEqual(reason._tag, "LockTimeoutError")
    })
  )

  it.live("do not wait for a snapshot that is too old", () =>
    Effect.gen(function* () {
      const [one, two] = yield* pair(60_000)
      const late = two.withTransaction(
        Effect.gen(function* () {
          yield* two`SELECT * FROM t`
          yield* one`INSERT INTO t VALUES (1)`
          return yield* two`INSERT INTO t VALUES (2)`
        })
      )
      const reason = yield* reasonOf(Effect.provideService(late, SqlClient.BeginTransaction, "BEGIN"))
      assert.strictEqual(reason._tag, "LockTimeoutError")
    })
  )
})

describe("NodeSqlite: streams", () => {
  const numbers = (sql: SqlClient.SqlClient, count: number) =>
    sql<{
      readonly x: number
    }>`WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${count}) SELECT x FROM n`

  it.effect("give all rows in order", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      for (const count of [1, 128, 129, 1000]) {
        const rows = yield* Stream.runCollect(numbers(sql, count).stream)
        assert.deepStrictEqual(
          rows.map(({ x }) => x),
          Array.from({ length: count }, (_, index) => index + 1)
        )
      }
      assert.deepStrictEqual(yield* Stream.runCollect(sql`SELECT 1 WHERE 0`.stream), [])
    })
  )

  it.effect("read as many rows as are taken, and give the connection back", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      // Without an end: the database would never return all rows.
      const endless = sql`WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n`
      const rows = yield* Stream.runCollect(Stream.take(endless.stream, 3))
      assert.strictEqual(rows.length, 3)
      assert.deepStrictEqual(yield* sql`SELECT 1`.values, [[1]])
    })
  )

  it.effect("let a transaction run statements for each row", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      yield* sql`CREATE TABLE t (x)`
      yield* sql.withTransaction(
        Stream.runForEach(numbers(sql, 300).stream, ({ x }) => sql`INSERT INTO t VALUES (${x})`)
      )
      assert.deepStrictEqual(yield* sql`SELECT count(*), sum(x) FROM t`.values, [[300, 45150]])
    })
  )

  it.effect("fail as statements do", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      const first = yield* reasonOf(Stream.runDrain(sql`SELECT * FROM missing`.stream))
      assert.deepInclude(first, { _tag: "SqlSyntaxError", operation: "executeStream" })
      // SQLite computes the overflow when it comes to that row.
      const late = sql`SELECT abs(x) FROM (SELECT 1 AS x UNION ALL SELECT -9223372036854775807 - 1)`
      assert.strictEqual((yield* reasonOf(Stream.runDrain(late.stream)))._tag, "UnknownError")
    })
  )
})

describe("NodeSqlite: layers", () => {
  it.effect("provide a client", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      assert.strictEqual(sql.driver, "node:sqlite")
      const dialect = sql.onDialectOrElse({ sqlite: () => "sqlite", orElse: () => "another" })
      assert.strictEqual(dialect, "sqlite")
    }).pipe(Effect.provide(NodeSqlite.layer({ filename: ":memory:" })))
  )
})
