import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, References } from "effect"
import { RunLogStore, SqlRunLogStore } from "effect-agent/server"
import { SqlSessionStore } from "effect-agent/sessions"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { SqlClient, SqlError, Statement } from "effect/sql"

const stores = SqlRunLogStore.layer({ patience: "1 minute" }).pipe(
  Layer.provideMerge(SqlSessionStore.layer()),
  Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))
)

/** More than SQLite and PostgreSQL take as parameters of a statement. */
const many = 70_000

describe("the removal of a session from an SQL database", () => {
  it.live("removes more runs than a statement takes parameters", () =>
    Effect.gen(function* () {
      const logs = yield* RunLogStore.RunLogStore
      const sql = yield* SqlClient.SqlClient
      yield* sql`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${many})
        INSERT INTO effect_agent_run (run_id, session_id, created, fence, attempts) SELECT 'r' || i, 's', i, 1, 0 FROM n`
      yield* sql`INSERT INTO effect_agent_run_line (run, line, continues, text) SELECT id, 1, 0, '1' FROM effect_agent_run`
      yield* logs.remove("s")
      const rows =
        yield* sql`SELECT (SELECT count(*) FROM effect_agent_run) + (SELECT count(*) FROM effect_agent_run_line)`
          .values
      assert.deepStrictEqual(rows, [[0]])
    }).pipe(Effect.provide(stores))
  )
})

describe("the removal of old runs from an SQL database", () => {
  it.live("returns the runs that it removed before the database was away", () =>
    Effect.gen(function* () {
      const logs = yield* RunLogStore.RunLogStore
      const sql = yield* SqlClient.SqlClient
      yield* sql`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
        INSERT INTO effect_agent_run (run_id, session_id, created, ended, fence, attempts) SELECT 'r' || i, 's', 1, 1, 1, 0 FROM n`
      let removals = 0
      // A transaction whose connection is lost dies.
      const away: Statement.Transformer = (statement) =>
        statement.compile()[0].startsWith("DELETE FROM effect_agent_run ") && ++removals === 2
          ? Effect.die(new SqlError.SqlError({ reason: new SqlError.LockTimeoutError({ cause: "locked" }) }))
          : Effect.succeed(statement)
      const removed = yield* Effect.provideService(logs.retain(0), Statement.CurrentTransformer, away)
      assert.lengthOf(removed, 500)
    }).pipe(Effect.provide(stores), Effect.provideService(References.MinimumLogLevel, "Error"))
  )
})
