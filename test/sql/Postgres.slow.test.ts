import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import * as Postgres from "./postgres.ts"

const client = Layer.unwrap(Effect.map(Postgres.start, ({ url }) => PgClient.layer({ url })))

describe.skipIf(!Postgres.isInstalled)("PostgreSQL", () => {
  layer(client, { timeout: "30 seconds" })((it) => {
    it.effect("runs with the client of Effect, and with its migrations", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const loader = Migrator.fromRecord({ "1_t": sql`CREATE TABLE t (x BIGINT NOT NULL)` })
        assert.deepStrictEqual(yield* Migrator.make({})({ loader }), [[1, "t"]])
        yield* sql.withTransaction(sql`INSERT INTO t ${sql.insert([{ x: 1 }, { x: 2 }])}`)
        assert.deepStrictEqual(yield* sql`SELECT x FROM t ORDER BY x`.values, [[1n], [2n]])
      })
    )
  })
})
