/**
 * The tables of the logs of runs in an SQL database, and their versions.
 */
import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

const table = "effect_agent_run_migrations"

/**
 * Version 1. `fence` counts those who opened a log. A line that is too long for one row has several, all but the last one with `continues`
 * 1, and `line` numbers the rows of a log from 1.
 */
const create = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const key = sql.onDialectOrElse({
    pg: () => sql.literal("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    orElse: () => sql.literal("INTEGER PRIMARY KEY AUTOINCREMENT")
  })
  yield* sql`CREATE TABLE effect_agent_run (
    id ${key},
    run_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    created BIGINT NOT NULL,
    ended BIGINT,
    fence BIGINT NOT NULL,
    attempts INTEGER NOT NULL,
    parked TEXT
  )`
  yield* sql`CREATE INDEX effect_agent_run_session ON effect_agent_run (session_id, id)`
  yield* sql`CREATE INDEX effect_agent_run_active ON effect_agent_run (session_id, id) WHERE ended IS NULL`
  yield* sql`CREATE INDEX effect_agent_run_ended ON effect_agent_run (ended) WHERE ended IS NOT NULL`
  yield* sql`CREATE TABLE effect_agent_run_line (
    run BIGINT NOT NULL,
    line BIGINT NOT NULL,
    continues INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run, line)
  )`
  yield* sql`CREATE TABLE effect_agent_run_key (
    id ${key},
    session_id TEXT NOT NULL,
    created BIGINT NOT NULL,
    text TEXT NOT NULL
  )`
  yield* sql`CREATE INDEX effect_agent_run_key_session ON effect_agent_run_key (session_id, id)`
})

/** Version 2: the order of a list of runs. Those that have not ended are few among many. */
const newest = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE INDEX effect_agent_run_newest ON effect_agent_run (created, run_id)`
  yield* sql`CREATE INDEX effect_agent_run_newest_active ON effect_agent_run (created, run_id) WHERE ended IS NULL`
})

/** Version 3: finds the old keys, of which each prompt of a cluster leaves one. */
const keys = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE INDEX effect_agent_run_key_created ON effect_agent_run_key (created)`
})

/** Version 4: runs that wait for a person, and that no process has. */
const resting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE effect_agent_run ADD COLUMN resting INTEGER NOT NULL DEFAULT 0`
})

/**
 * Version 5: the lines of a log stand in its session, but for the first one. The log has the lines between two sizes of the session, in
 * bytes; without the first size those of earlier versions, too.
 */
const inSessions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE effect_agent_run ADD COLUMN first_line TEXT`
  yield* sql`ALTER TABLE effect_agent_run ADD COLUMN first BIGINT`
  yield* sql`ALTER TABLE effect_agent_run ADD COLUMN last BIGINT`
})

/** The steps from one version to the next. A new version adds a line here, and its statements to `test/server/SqlRunTables.slow.test.ts`. */
const versions: Record<string, Effect.Effect<void, unknown, SqlClient.SqlClient>> = {
  "1_runs": create,
  "2_newest": newest,
  "3_keys": keys,
  "4_resting": resting,
  "5_sessions": inSessions
}
const latest = Object.keys(versions).length

/** Brings the tables to the version that this version of the package uses. Fails if a later one has changed them. */
export const migrate: Effect.Effect<void, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* Migrator.make({})({ loader: Migrator.fromRecord(versions), table })
    const [row] = yield* sql`SELECT max(migration_id) FROM ${sql(table)}`.values
    const found = Number(row?.[0])
    if (found > latest) {
      const message = `The tables of runs have version ${found}. This version of effect-agent knows them up to ${latest}`
      return yield* new Migrator.MigrationError({ kind: "BadState", message })
    }
  })
