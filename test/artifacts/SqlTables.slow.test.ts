import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ArtifactStore, SqlArtifactStore } from "effect-agent/artifacts"
import { connect } from "../sql/databases.ts"
import { onEach } from "../sql/suites.ts"

/** Statements that made the table of each version, as that version did. They do not change. */
const versions: ReadonlyArray<{
  readonly names: ReadonlyArray<string>
  readonly statements: ReadonlyArray<string>
}> = [
  {
    names: ["artifacts"],
    statements: [
      `CREATE TABLE effect_agent_artifact (id TEXT NOT NULL, part INTEGER NOT NULL, created BIGINT NOT NULL, text TEXT NOT NULL,
         PRIMARY KEY (id, part))`,
      `INSERT INTO effect_agent_artifact (id, part, created, text) VALUES
         ('log-1', 0, 1, '{"id":"log-1","runId":"run_1","toolCallId":"call_1","toolName":"log","mediaType":"text/plain","text":"all is'),
         ('log-1', 1, 1, ' well","trust":"untrusted"}')`
    ]
  }
]

const opened = Effect.provide(ArtifactStore.ArtifactStore, SqlArtifactStore.layer)

onEach((_, make) => {
  it.live.each(versions)(
    "a table of a version with data becomes that of this version",
    ({ names, statements }) =>
      Effect.gen(function* () {
        const context = yield* connect(yield* make)
        const sql = yield* Effect.provide(SqlClient.SqlClient, context)
        const isPostgres = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
        const time = isPostgres ? "timestamp with time zone" : "datetime"
        yield* sql.unsafe(`CREATE TABLE effect_agent_artifact_migrations (migration_id integer PRIMARY KEY NOT NULL,
        created_at ${time} NOT NULL DEFAULT current_timestamp, name VARCHAR(255) NOT NULL)`)
        yield* Effect.forEach(statements, (statement) => sql.unsafe(statement))
        yield* Effect.forEach(
          names.map((name, index) => ({ migration_id: index + 1, name })),
          (row) => sql`INSERT INTO effect_agent_artifact_migrations ${sql.insert(row)}`
        )
        const store = yield* Effect.provide(opened, context)
        const { text, trust } = yield* store.get("log-1")
        assert.deepStrictEqual([text, trust], ["all is well", "untrusted"])
        yield* store.put({ ...(yield* store.get("log-1")), text: "all was well" })
        assert.strictEqual((yield* store.get("log-1")).text, "all was well")
        const found = yield* sql`SELECT name FROM effect_agent_artifact_migrations ORDER BY migration_id`
          .values
        assert.deepStrictEqual(found.flat(), ["artifacts"])
      })
  )

  it.live("a table of a later version is refused", () =>
    Effect.gen(function* () {
      const context = yield* connect(yield* make)
      yield* Effect.provide(opened, context)
      const sql = yield* Effect.provide(SqlClient.SqlClient, context)
      yield* sql`INSERT INTO effect_agent_artifact_migrations (migration_id, name) VALUES (99, 'later')`
      const refused = yield* Effect.flip(Effect.provide(opened, context))
      assert.strictEqual(
        refused.message,
        "The table of artifacts has version 99. This version of effect-agent knows it up to 1"
      )
    })
  )
})
