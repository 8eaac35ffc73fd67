import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { SqlSessionStore } from "effect-agent/sessions"
import { connect } from "../sql/databases.ts"
import { onEach } from "../sql/suites.ts"

const sessions = (key: string) => [
  `CREATE TABLE effect_agent_session (id ${key}, session_id TEXT NOT NULL UNIQUE, cwd TEXT NOT NULL, created BIGINT NOT NULL,
     modified BIGINT NOT NULL, bytes BIGINT NOT NULL, fence BIGINT NOT NULL, owner BIGINT, owner_name TEXT, owned_since BIGINT)`,
  `CREATE TABLE effect_agent_session_entry (session BIGINT NOT NULL, position BIGINT NOT NULL, type TEXT NOT NULL,
     continues INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (session, position))`,
  "CREATE INDEX effect_agent_session_label ON effect_agent_session_entry (session, position) WHERE type = 'label'",
  `INSERT INTO effect_agent_session (session_id, cwd, created, modified, bytes, fence, owner, owner_name, owned_since)
     VALUES ('s', '/work', 1, 2, 17, 4, 77, 'process 9', 3)`,
  `INSERT INTO effect_agent_session_entry
     VALUES (1, 0, 'session', 0, 'one'), (1, 4, 'message', 1, 'two '), (1, 8, 'message', 0, 'and half')`
]

/** Statements that made the tables of each version, as that version did. They do not change. */
const versions: ReadonlyArray<{
  readonly names: ReadonlyArray<string>
  readonly statements: (key: string) => ReadonlyArray<string>
}> = [
  {
    names: ["sessions"],
    statements: sessions
  },
  {
    names: ["sessions", "runs"],
    statements: (key) => [
      ...sessions(key),
      "CREATE INDEX effect_agent_session_run ON effect_agent_session_entry (session, position) WHERE type = 'run'"
    ]
  }
]

onEach((_, make) =>
  it.live.each(versions)(
    "tables of a version with data become those of this version",
    ({ names, statements }) =>
      Effect.gen(function* () {
        const context = yield* connect(yield* make)
        const sql = yield* Effect.provide(SqlClient.SqlClient, context)
        const isPostgres = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
        const key = isPostgres
          ? "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
          : "INTEGER PRIMARY KEY AUTOINCREMENT"
        const time = isPostgres ? "timestamp with time zone" : "datetime"
        yield* sql.unsafe(`CREATE TABLE effect_agent_session_migrations (migration_id integer PRIMARY KEY NOT NULL,
        created_at ${time} NOT NULL DEFAULT current_timestamp, name VARCHAR(255) NOT NULL)`)
        yield* Effect.forEach(statements(key), (statement) => sql.unsafe(statement))
        yield* Effect.forEach(
          names.map((name, index) => ({ migration_id: index + 1, name })),
          (row) => sql`INSERT INTO effect_agent_session_migrations ${sql.insert(row)}`
        )
        const storage = yield* Effect.provide(SqlSessionStore.storage, context)
        assert.deepStrictEqual(yield* storage.list({ cwd: "/work" }), [
          { sessionId: "s", created: 1, modified: 2, bytes: 17 }
        ])
        const writer = yield* storage.open("s")
        yield* writer.append([{ type: "message", text: "three" }])
        const [session] = yield* storage.list()
        assert.strictEqual(session?.bytes, 17 + "three".length + 1)
        const lines = yield* Stream.runCollect(storage.lines("s"))
        assert.deepStrictEqual(lines.flat(), ["one", "two and half", "three"])
        const found = yield* sql`SELECT name FROM effect_agent_session_migrations ORDER BY migration_id`
          .values
        assert.deepStrictEqual(found.flat(), ["sessions", "runs", "appends"])
      })
  )
)
