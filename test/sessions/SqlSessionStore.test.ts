import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { type SessionStorage, SqlSessionStore } from "effect-agent/sessions"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { connect, sqlite } from "../sql/databases.ts"

const database = Effect.flatMap(sqlite, connect)
const session = { sessionId: "s", cwd: "/work", created: 1 }
const lineOf = (text: string, type: SessionStorage.Line["type"] = "message"): SessionStorage.Line => ({
  type,
  text
})
const linesOf = (
  storage: SessionStorage.SessionStorage,
  ...only: ReadonlyArray<SessionStorage.Line["type"]>
) =>
  Effect.map(Stream.runCollect(storage.lines("s", only.length === 0 ? undefined : only)), (lines) =>
    lines.flat()
  )
const reasonOf = <A, E, R>(effect: Effect.Effect<A, { readonly reason: E }, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)

describe("lines in an SQL database", () => {
  it.effect("of any length and any characters come back as they were", () =>
    Effect.gen(function* () {
      const storage = yield* Effect.provide(SqlSessionStore.storage, yield* database)
      const writer = yield* storage.create(session)
      // Around the length of a row, and with pairs of surrogates at its end.
      const texts = [
        "",
        "{}",
        "a".repeat(262_143),
        "a".repeat(262_144),
        "a".repeat(262_145),
        `${"a".repeat(262_143)}😀${"é".repeat(300_000)}`,
        "😀".repeat(700_000),
        '"\\u0000 \'"'
      ]
      yield* writer.append([lineOf("first"), ...texts.map((text) => lineOf(text))])
      yield* writer.append([lineOf("last")])
      assert.deepStrictEqual(yield* linesOf(storage), ["first", ...texts, "last"])
      const [listed] = yield* storage.list({ cwd: "/work" })
      const bytes = ["first", ...texts, "last"].reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0)
      assert.deepInclude(listed, { sessionId: "s", created: 1, bytes })
      assert.deepStrictEqual(yield* storage.list({ cwd: "/elsewhere" }), [])
    })
  )

  it.effect("are listed although another program has written no number where a time belongs", () =>
    Effect.gen(function* () {
      const context = yield* database
      const storage = yield* Effect.provide(SqlSessionStore.storage, context)
      yield* (yield* storage.create(session)).append([lineOf("first")])
      const sql = yield* Effect.provide(SqlClient.SqlClient, context)
      yield* sql`UPDATE effect_agent_session SET modified = 'garbage'`
      assert.deepInclude((yield* storage.list({ cwd: "/work" }))[0], { sessionId: "s", modified: 0 })
    })
  )

  it.effect("are read by type, a megabyte at a time", () =>
    Effect.gen(function* () {
      const storage = yield* Effect.provide(SqlSessionStore.storage, yield* database)
      const writer = yield* storage.create(session)
      const large = "x".repeat(400_000)
      const all = Array.from({ length: 40 }, (_, index) =>
        index % 13 === 0 ? lineOf(`l${index}`, "label") : lineOf(`${index} ${large}`)
      )
      for (const line of all) yield* writer.append([line])
      assert.deepStrictEqual(
        yield* linesOf(storage),
        all.map(({ text }) => text)
      )
      assert.deepStrictEqual(yield* linesOf(storage, "label"), ["l0", "l13", "l26", "l39"])
      assert.deepStrictEqual(yield* linesOf(storage, "label", "message"), yield* linesOf(storage))
      assert.deepStrictEqual(yield* linesOf(storage, "leaf"), [])
      const pages = yield* Stream.runCollect(storage.lines("s"))
      assert.isAtMost(Math.max(...pages.map((page) => page.join("").length)), 1_048_576 + 262_144)
    })
  )

  it.effect("are those that were there when the reading began", () =>
    Effect.gen(function* () {
      const storage = yield* Effect.provide(SqlSessionStore.storage, yield* database)
      const writer = yield* storage.create(session)
      const large = "x".repeat(1_000_000)
      yield* writer.append([lineOf(large), lineOf(large), lineOf(large)])
      const read = yield* Stream.runCollect(
        Stream.tap(storage.lines("s"), () => writer.append([lineOf("more")]))
      )
      assert.strictEqual(read.flat().length, 3)
    })
  )
})

describe("an append to an SQL database", () => {
  it.effect("stores all of its lines or none", () =>
    Effect.gen(function* () {
      const context = yield* database
      const storage = yield* Effect.provide(SqlSessionStore.storage, context)
      const sql = yield* Effect.provide(SqlClient.SqlClient, context)
      const writer = yield* storage.create(session)
      yield* writer.append([lineOf("one")])
      yield* sql`CREATE TRIGGER t BEFORE INSERT ON effect_agent_session_entry WHEN new.text = 'no'
        BEGIN SELECT raise(ABORT, 'refused'); END`
      const reason = yield* reasonOf(writer.append([lineOf("two"), lineOf("no")]))
      assert.deepInclude(reason, { _tag: "StorageFailed", operation: "append", detail: "refused" })
      yield* writer.append([lineOf("three")])
      assert.deepStrictEqual(yield* linesOf(storage), ["one", "three"])
    })
  )

  it.effect("of ten thousand lines is one transaction", () =>
    Effect.gen(function* () {
      const storage = yield* Effect.provide(SqlSessionStore.storage, yield* database)
      const writer = yield* storage.create(session)
      const texts = Array.from({ length: 10_000 }, (_, index) => String(index))
      const [first = "", ...rest] = texts
      yield* writer.append([lineOf(first), ...rest.map((text) => lineOf(text))])
      assert.deepStrictEqual(yield* linesOf(storage), texts)
    })
  )
})

describe("a writer of an SQL database", () => {
  it.effect(
    "leaves its session to the next one of its store although the database was away when it closed",
    () =>
      Effect.gen(function* () {
        const context = yield* database
        const storage = yield* Effect.provide(SqlSessionStore.storage, context)
        const sql = yield* Effect.provide(SqlClient.SqlClient, context)
        const scope = yield* Scope.make()
        yield* Scope.provide(storage.create(session), scope)
        yield* sql`ALTER TABLE effect_agent_session RENAME TO away`
        yield* Scope.close(scope, Exit.void)
        yield* sql`ALTER TABLE away RENAME TO effect_agent_session`
        const writer = yield* storage.open("s")
        yield* writer.append([lineOf("one")])
      })
  )

  it.effect("of a session that was removed fails with Missing", () =>
    Effect.gen(function* () {
      const context = yield* database
      const storage = yield* Effect.provide(SqlSessionStore.storage, context)
      const sql = yield* Effect.provide(SqlClient.SqlClient, context)
      const writer = yield* storage.create(session)
      yield* sql`DELETE FROM effect_agent_session`
      assert.strictEqual((yield* reasonOf(writer.append([lineOf("one")])))._tag, "Missing")
    })
  )
})

describe("the tables in an SQL database", () => {
  it.effect("are made once, also by stores that begin at one time", () =>
    Effect.gen(function* () {
      const url = yield* sqlite
      const stores = Effect.gen(function* () {
        return yield* Effect.provide(SqlSessionStore.storage, yield* connect(url))
      })
      const [one, two] = yield* Effect.all([stores, stores, stores], { concurrency: "unbounded" })
      yield* Effect.scoped(one.create(session))
      assert.strictEqual((yield* two.list()).length, 1)
    })
  )

  it.effect("have their names although the client transforms those of the application", () =>
    Effect.gen(function* () {
      const storage = yield* SqlSessionStore.storage
      const writer = yield* storage.create(session)
      yield* writer.append([lineOf("one")])
      assert.strictEqual((yield* storage.list())[0]?.sessionId, "s")
    }).pipe(
      Effect.provide(
        NodeSqlite.layer({
          filename: ":memory:",
          transformQueryNames: (name) => name.toUpperCase(),
          transformResultNames: (name) =>
            name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
        })
      )
    )
  )

  it.effect("of a later version are refused", () =>
    Effect.gen(function* () {
      const context = yield* database
      const sql = yield* Effect.provide(SqlClient.SqlClient, context)
      yield* Effect.provide(SqlSessionStore.storage, context)
      yield* sql`INSERT INTO effect_agent_session_migrations (migration_id, name) VALUES (99, 'later')`
      const error = yield* Effect.flip(Effect.provide(SqlSessionStore.storage, context))
      assert.strictEqual(error._tag, "MigrationError")
      assert.match(error.message, /version 99/)
    })
  )
})
