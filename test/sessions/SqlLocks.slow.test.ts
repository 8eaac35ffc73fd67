import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Queue, Schedule, type Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { type SessionStorage, SqlSessionStore } from "effect-agent/sessions"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { connect, type Make } from "../sql/databases.ts"
import * as Postgres from "../sql/postgres.ts"
import { onServer, onEach } from "../sql/suites.ts"

/** A process that appends to the session `s` until it ends, and the lines that it prints. */
const writer = (url: string) =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const args = [
          "--conditions",
          "effect-agent-source",
          join(import.meta.dirname, "sqlWriter.ts"),
          url,
          "s"
        ]
        return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
      }),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const printed: Array<string> = []
    const lines = yield* Queue.unbounded<string>()
    createInterface(child.stdout).on("line", (line) => {
      printed.push(line)
      Queue.offerUnsafe(lines, line)
    })
    const prints = (wanted: (line: string) => boolean) => Effect.repeat(Queue.take(lines), { until: wanted })
    return { child, printed, prints }
  })

/** Kills a process, and waits until its output is read. */
const kill = (child: ChildProcess) =>
  Effect.promise(async () => {
    const end = once(child, "close")
    child.kill("SIGKILL")
    await end
  })

const line = { id: "z", type: "message", text: "z" } as const
const tagOf = <A, R>(effect: Effect.Effect<A, { readonly reason: { readonly _tag: string } }, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)
const linesOf = (storage: SessionStorage.SessionStorage) =>
  Effect.map(Stream.runCollect(storage.lines("s")), (lines) => lines.flat().map(String))

/** Storages of one database, in which there is a session `s`. */
const stage = (make: Make) =>
  Effect.gen(function* () {
    const url = yield* make
    const open = Effect.gen(function* () {
      const context = yield* connect(url)
      const storage = yield* Effect.provide(SqlSessionStore.storage, context)
      const sql = yield* Effect.provide(SqlClient.SqlClient, context)
      return { storage, sql }
    })
    const made = yield* open
    yield* Effect.scoped(made.storage.create({ sessionId: "s", cwd: "", created: 0 }))
    return { ...made, url, another: open }
  })

type Stage = Effect.Success<ReturnType<typeof stage>>

/** Opens the session as soon as the lock of a dead process is gone, which takes less than a second. */
const follow = (storage: SessionStorage.SessionStorage) =>
  storage.open("s").pipe(
    Effect.retry({
      schedule: Schedule.spaced("10 millis"),
      while: ({ reason }) => reason._tag === "Locked"
    }),
    Effect.timeout("1 second")
  )

/** The lines that a process has stored are both lines of each append in order, and no acknowledged one is missing. */
const checkStored = (stored: ReadonlyArray<string>, printed: ReadonlyArray<string>) => {
  const acknowledged = printed.filter((text) => /^\d+$/.test(text)).length
  assert.include([acknowledged, acknowledged + 1], stored.length / 2)
  const expected = stored.map((_, index) => `${Math.floor(index / 2)} ${index % 2 === 0 ? "a" : "b"}`)
  assert.deepStrictEqual(
    stored.map((text) => text.split(" ").slice(0, 2).join(" ")),
    expected
  )
}

/** Takes the lock of a store away as a crash of the database or a careless hand would. */
const breakLock = (sql: SqlClient.SqlClient, url: string) =>
  sql.onDialectOrElse({
    pg: () =>
      sql`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    orElse: () =>
      Effect.sync(() => {
        for (const lock of locksOf(url)) rmSync(lock)
      })
  })

const advisoryLocks = (sql: SqlClient.SqlClient) =>
  sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

const locksOf = (url: string): ReadonlyArray<string> => {
  const folder = dirname(url.replace("sqlite:", ""))
  return url.startsWith("sqlite:")
    ? readdirSync(folder).flatMap((file) => (file.includes("-owner-") ? [join(folder, file)] : []))
    : []
}

onEach((_, make) => {
  const test = (name: string, check: (at: Stage) => Effect.Effect<void, unknown, Scope.Scope>) =>
    it.live(name, () => Effect.flatMap(stage(make), check), 60_000)

  test("keeps a writer of another process out, and follows it at once when that is killed", ({
    storage,
    url
  }) =>
    Effect.gen(function* () {
      for (const last of ["open", "3", "17"]) {
        const one = yield* writer(url)
        yield* one.prints((line) => line === last)
        assert.strictEqual(yield* tagOf(Effect.scoped(storage.open("s"))), "Locked")
        assert.strictEqual(yield* tagOf(storage.remove("s")), "Locked")
        const before = (yield* linesOf(storage)).lastIndexOf("z") + 1
        yield* kill(one.child)
        const mine = yield* Effect.scoped(Effect.tap(follow(storage), (mine) => mine.append([line])))
        checkStored((yield* linesOf(storage)).slice(before, -1), one.printed)
        // The scope of this writer has closed, and its session is free.
        const other = yield* Effect.scoped(storage.open("s"))
        assert.strictEqual(yield* tagOf(mine.append([line])), "Locked")
        assert.strictEqual(yield* tagOf(other.append([line])), "Locked")
      }
      // Those of this process and of the last one that was killed: each process removes those before it.
      assert.isAtMost(locksOf(url).length, 2)
    }))

  test("keeps a process that is stopped", ({ storage, url }) =>
    Effect.gen(function* () {
      const one = yield* writer(url)
      yield* one.prints((line) => line === "2")
      one.child.kill("SIGSTOP")
      yield* Effect.sleep("1500 millis")
      assert.strictEqual(yield* tagOf(Effect.scoped(storage.open("s"))), "Locked")
      one.child.kill("SIGCONT")
      yield* one.prints((line) => line === "9")
    }))

  test("refuses the writes of one that another has followed", ({ another, sql, storage, url }) =>
    Effect.gen(function* () {
      const one = yield* storage.open("s")
      yield* one.append([line])
      const other = yield* another
      assert.strictEqual(yield* tagOf(Effect.scoped(other.storage.open("s"))), "Locked")
      yield* breakLock(sql, url)
      const two = yield* follow(other.storage)
      yield* two.append([line])
      assert.strictEqual(yield* tagOf(one.append([line, line])), "Locked")
      assert.strictEqual((yield* linesOf(storage)).length, 2)
      yield* two.append([line])
      assert.strictEqual((yield* linesOf(storage)).length, 3)
    }))

  test("is one of those that open a session at a time", ({ another, storage }) =>
    Effect.gen(function* () {
      const other = yield* another
      const stores = [storage, other.storage, storage, other.storage, storage, other.storage]
      const opened = yield* Effect.forEach(stores, (one) => Effect.exit(one.open("s")), {
        concurrency: "unbounded"
      })
      assert.strictEqual(opened.filter(Exit.isSuccess).length, 1)
    }))
})

describe.skipIf(!Postgres.isInstalled)("PostgreSQL", () => {
  onServer((make) => {
    it.live("gives its lock back with the store", () =>
      Effect.gen(function* () {
        const context = yield* connect(yield* make)
        const sql = yield* Effect.provide(SqlClient.SqlClient, context)
        const held = Effect.map(advisoryLocks(sql), ({ length }) => length)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const storage = yield* Effect.provide(SqlSessionStore.storage, context)
            assert.strictEqual(yield* held, 0)
            yield* Effect.scoped(storage.create({ sessionId: "s", cwd: "", created: 0 }))
            assert.strictEqual(yield* held, 1)
          })
        )
        assert.strictEqual(yield* held, 0)
      })
    )

    it.live("gets its lock back after it has lost its connection", () =>
      Effect.gen(function* () {
        const { another, sql, storage, url } = yield* stage(make)
        const one = yield* storage.open("s")
        const other = yield* another
        yield* other.storage.list()
        yield* breakLock(sql, url)
        yield* Effect.repeat(Effect.andThen(Effect.sleep("50 millis"), advisoryLocks(sql)), {
          until: (rows) => rows.length > 0
        })
        assert.strictEqual(yield* tagOf(Effect.scoped(other.storage.open("s"))), "Locked")
        yield* one.append([line])
      })
    )
  })
})
