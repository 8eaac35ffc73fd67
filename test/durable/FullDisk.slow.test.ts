/** A database that takes no more writes. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Agent } from "effect-agent"
import { Cluster, DurableRuns } from "effect-agent/durable"
import { Agents, Runs, SqlRunLogStore } from "effect-agent/server"
import { SqlSessionStore } from "effect-agent/sessions"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { ScriptedProvider } from "effect-agent/testing"

const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
  Layer.provide(ScriptedProvider.layer([]))
)
const served = DurableRuns.layer().pipe(
  Layer.provideMerge(DurableRuns.worker()),
  Layer.provide([agents, Cluster.embedded()]),
  Layer.provide(SqlRunLogStore.layer()),
  Layer.provide(SqlSessionStore.layer({ takeOver: true })),
  Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))
)

it.live(
  "a prompt names the full disk within seconds",
  () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const sql = yield* SqlClient.SqlClient
      const sessionId = yield* runs.sessions.create({})
      const tables = yield* sql<{ name: string }>`SELECT name FROM sqlite_schema WHERE type = 'table'`
      yield* Effect.forEach(
        tables.filter(({ name }) => !name.startsWith("sqlite_")),
        ({ name }) =>
          sql.unsafe(
            `CREATE TRIGGER full_${name} BEFORE INSERT ON ${name} BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END`
          )
      )
      const [time, error] = yield* Effect.timed(Effect.flip(runs.start({ sessionId, prompt: "hi" })))
      assert.strictEqual(error._tag, "StorageUnavailable")
      assert.include(error.message, "full")
      assert.isBelow(Duration.toSeconds(time), 15)
    }).pipe(Effect.provide(served)),
  60_000
)
