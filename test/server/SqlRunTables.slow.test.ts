import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { connect } from "../sql/databases.ts"
import { onEach } from "../sql/suites.ts"
import { processOf } from "./sqlRuns.ts"

const first = (key: string): ReadonlyArray<string> => [
  `CREATE TABLE effect_agent_run (id ${key}, run_id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL, created BIGINT NOT NULL,
         ended BIGINT, fence BIGINT NOT NULL, attempts INTEGER NOT NULL, parked TEXT)`,
  "CREATE INDEX effect_agent_run_session ON effect_agent_run (session_id, id)",
  "CREATE INDEX effect_agent_run_active ON effect_agent_run (session_id, id) WHERE ended IS NULL",
  "CREATE INDEX effect_agent_run_ended ON effect_agent_run (ended) WHERE ended IS NOT NULL",
  `CREATE TABLE effect_agent_run_line (run BIGINT NOT NULL, line BIGINT NOT NULL, continues INTEGER NOT NULL, text TEXT NOT NULL,
         PRIMARY KEY (run, line))`,
  `CREATE TABLE effect_agent_run_key (id ${key}, session_id TEXT NOT NULL, created BIGINT NOT NULL, text TEXT NOT NULL)`,
  "CREATE INDEX effect_agent_run_key_session ON effect_agent_run_key (session_id, id)",
  `INSERT INTO effect_agent_run (run_id, session_id, created, ended, fence, attempts, parked)
         VALUES ('r', 's', 1, NULL, 2, 3, 'it broke')`,
  "INSERT INTO effect_agent_run_line VALUES (1, 1, 0, 'one'), (1, 2, 1, 'two '), (1, 3, 0, 'and half')",
  "INSERT INTO effect_agent_run_key (session_id, created, text) VALUES ('s', 1, 'key')"
]

const second = (key: string): ReadonlyArray<string> => [
  ...first(key),
  "CREATE INDEX effect_agent_run_newest ON effect_agent_run (created, run_id)",
  "CREATE INDEX effect_agent_run_newest_active ON effect_agent_run (created, run_id) WHERE ended IS NULL"
]

const third = (key: string): ReadonlyArray<string> => [
  ...second(key),
  "CREATE INDEX effect_agent_run_key_created ON effect_agent_run_key (created)"
]

/** Statements that made the tables of each version, as that version did. They do not change. */
const versions: ReadonlyArray<{
  readonly names: ReadonlyArray<string>
  readonly statements: (key: string) => ReadonlyArray<string>
}> = [
  {
    names: ["runs"],
    statements: first
  },
  {
    names: ["runs", "newest"],
    statements: second
  },
  {
    names: ["runs", "newest", "keys"],
    statements: third
  },
  {
    names: ["runs", "newest", "keys", "resting"],
    statements: (key) => [
      ...third(key),
      "ALTER TABLE effect_agent_run ADD COLUMN resting INTEGER NOT NULL DEFAULT 0"
    ]
  }
]

onEach((_, make) => {
  it.live.each(versions)(
    "tables of a version with data become those of this version",
    ({ names, statements }) =>
      Effect.gen(function* () {
        const url = yield* make
        const sql = yield* Effect.provide(SqlClient.SqlClient, yield* connect(url))
        const isPostgres = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
        const key = isPostgres
          ? "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
          : "INTEGER PRIMARY KEY AUTOINCREMENT"
        const time = isPostgres ? "timestamp with time zone" : "datetime"
        yield* sql.unsafe(`CREATE TABLE effect_agent_run_migrations (migration_id integer PRIMARY KEY NOT NULL,
        created_at ${time} NOT NULL DEFAULT current_timestamp, name VARCHAR(255) NOT NULL)`)
        yield* Effect.forEach(statements(key), (statement) => sql.unsafe(statement))
        yield* Effect.forEach(
          names.map((name, index) => ({ migration_id: index + 1, name })),
          (row) => sql`INSERT INTO effect_agent_run_migrations ${sql.insert(row)}`
        )
        const { logs } = yield* processOf(url)
        const run = { runId: "r", sessionId: "s" }
        const stored = {
          ...run,
          created: 1,
          ended: undefined,
          attempts: 3,
          parked: "it broke",
          isResting: false,
          range: { from: 0, to: undefined }
        }
        assert.deepStrictEqual(yield* logs.unended, [stored])
        yield* logs.open(run, "first")
        assert.deepStrictEqual(yield* logs.read(run), ["one", "two and half"])
        assert.deepStrictEqual(yield* logs.keys("s"), ["key"])
        const found = yield* sql`SELECT name FROM effect_agent_run_migrations ORDER BY migration_id`.values
        assert.deepStrictEqual(found.flat(), ["runs", "newest", "keys", "resting", "sessions"])
      })
  )

  it.live("tables of a later version are refused", () =>
    Effect.gen(function* () {
      const url = yield* make
      const { sql } = yield* processOf(url)
      yield* sql`INSERT INTO effect_agent_run_migrations (migration_id, name) VALUES (99, 'later')`
      const error = yield* Effect.flip(processOf(url))
      assert.strictEqual(error._tag, "MigrationError")
      assert.match(error.message, /version 99/)
    })
  )
})
