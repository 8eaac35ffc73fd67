/**
 * The tables of sessions in an SQL database, and their versions.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlVersions from "../../sql/SqlVersions.ts"

const table = "effect_agent_session_migrations"

/**
 * Version 1. `position` is the place of a row in its session, in bytes: rows lie one behind the other as lines of a file would. A line
 * that is too long for one row has several, all but the last one with `continues` 1. `owner` is the store that has the session open, and
 * `fence` counts the writers that it had.
 */
const create = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const key = sql.onDialectOrElse({
    pg: () => sql.literal("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    orElse: () => sql.literal("INTEGER PRIMARY KEY AUTOINCREMENT")
  })
  yield* sql`CREATE TABLE effect_agent_session (
    id ${key},
    session_id TEXT NOT NULL UNIQUE,
    cwd TEXT NOT NULL,
    created BIGINT NOT NULL,
    modified BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    owner BIGINT,
    owner_name TEXT,
    owned_since BIGINT
  )`
  yield* sql`CREATE TABLE effect_agent_session_entry (
    session BIGINT NOT NULL,
    position BIGINT NOT NULL,
    type TEXT NOT NULL,
    continues INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (session, position)
  )`
  // A list of sessions needs the labels of each, which stand anywhere in it.
  yield* sql`CREATE INDEX effect_agent_session_label ON effect_agent_session_entry (session, position) WHERE type = 'label'`
})

/** Version 2. Finds the session of a run without reading the other entries. */
const indexRuns = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE INDEX effect_agent_session_run ON effect_agent_session_entry (session, position) WHERE type = 'run'`
})

/**
 * Version 3. An append to SQLite, which cannot change two tables in one statement, inserts its rows with their time: a trigger changes the
 * size and the time of the session with them.
 */
const appends = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ofSqlite = Effect.andThen(
    sql`ALTER TABLE effect_agent_session_entry ADD COLUMN time BIGINT`,
    sql`CREATE TRIGGER effect_agent_session_appended AFTER INSERT ON effect_agent_session_entry WHEN NEW.time IS NOT NULL
      BEGIN UPDATE effect_agent_session SET modified = NEW.time,
        bytes = max(bytes, NEW.position + length(CAST(NEW.text AS BLOB)) + (NEW.continues = 0))
        WHERE id = NEW.session; END`
  )
  yield* sql.onDialectOrElse({ pg: () => Effect.void, orElse: () => Effect.asVoid(ofSqlite) })
})

/** The steps from one version to the next. A new version adds a line here, and its statements to `test/sessions/SqlTables.slow.test.ts`. */
const versions = {
  "1_sessions": create,
  "2_runs": indexRuns,
  "3_appends": appends
}

/** Brings the tables to the version that this version of the package uses. Fails if a later one has changed them. */
export const migrate = SqlVersions.migrate({
  table,
  versions,
  tooNew: (found, latest) =>
    `The tables of sessions have version ${found}. This version of effect-agent knows them up to ${latest}`
})
