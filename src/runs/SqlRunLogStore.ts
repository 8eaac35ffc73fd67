/**
 * A store of the logs of runs in an SQL database: SQLite, or PostgreSQL, beside the sessions of `SqlSessionStore`.
 *
 * **Details**
 *
 * The store uses the `SqlClient` of `effect/sql` in its context, and makes its tables, whose names begin with `effect_agent_run`.
 *
 * - The process that has a session open owns the logs of its runs. Once another process has opened the session, writes fail with
 *   `RunLogError`, whose `reason` is `"taken"`, so that session and log have one owner at any time. The logs of a session that is not in the
 *   database have the owner that opened them last.
 * - An append succeeds when it is committed. Appends to several logs that wait at one time are one statement.
 * - Any process reads, lists, unparks and removes.
 *
 * @since 0.2.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { MigrationError } from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Claims } from "../sql/SqlClaims.ts"
import * as SqlPatience from "../sql/SqlPatience.ts"
import { type RunKey, RunLogError, RunLogStore, type Service } from "./RunLogStore.ts"
import * as SqlRuns from "./internal/SqlRuns.ts"
import * as SqlVersions from "../sql/SqlVersions.ts"

/**
 * The options of a store in an SQL database.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /**
   * The time for which writes wait for a database that is away, a duration. They find a commit that the database did not confirm, and do
   * not repeat it. Reads wait for up to 2 seconds of it. Default 0: they fail at once.
   */
  readonly patience?: Duration.Input
}

/**
 * Makes a layer of a store in the SQL database of the context.
 *
 * **Example** (Keeping sessions and the logs of their runs in one database)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { RunLogStore, SqlRunLogStore } from "effect-agent/server"
 * import { SqlSessionStore } from "effect-agent/sessions"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 *
 * const stores = SqlRunLogStore.layer().pipe(
 *   Layer.provideMerge(SqlSessionStore.layer()),
 *   Layer.provide(NodeSqlite.layer({ filename: ":memory:" }))
 * )
 *
 * const program = Effect.gen(function* () {
 *   const store = yield* RunLogStore.RunLogStore
 *   return yield* store.find("run_1")
 * }).pipe(Effect.provide(stores))
 *
 * console.log(await Effect.runPromise(program)) // => undefined
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = ({ patience = 0 }: Options = {}): Layer.Layer<
  RunLogStore,
  SqlError | MigrationError,
  SqlClient.SqlClient | Claims
> =>
  Layer.effect(
    RunLogStore,
    Effect.gen(function* () {
      // An application may transform the names of its own tables.
      const sql = (yield* SqlClient.SqlClient).withoutTransforms()
      yield* Effect.provideService(migrate, SqlClient.SqlClient, sql)
      const { of: claimOf } = yield* Claims
      return new SqlRunLogs({ sql, claimOf }, patience).service
    })
  )

type Failure = SqlError | RunLogError

type Wait = <A>(effect: Effect.Effect<A, Failure>) => Effect.Effect<A, Failure>

class SqlRunLogs {
  /** The runs whose starts this process has counted since their last progress. */
  private readonly counted = new Set<string>()
  private readonly database: SqlRuns.Database
  private readonly patience: Duration.Input
  private readonly patiently: Wait
  private readonly briefly: Wait

  constructor(database: SqlRuns.Database, patience: Duration.Input) {
    this.database = database
    this.patience = patience
    this.patiently = SqlPatience.patiently(patience)
    this.briefly = SqlPatience.briefly(patience)
  }

  private failing<A>(effect: Effect.Effect<A, Failure>): Effect.Effect<A, RunLogError> {
    return Effect.mapError(effect, (error) =>
      isSqlError(error) ? new RunLogError({ detail: detailOf(error) }) : error
    )
  }

  private reading<A>(effect: Effect.Effect<A, Failure>): Effect.Effect<A, RunLogError> {
    return this.failing(this.briefly(effect))
  }

  /** A write, which has the time, and waits for a database that is away. The claim is that of the moment of each try. */
  private writing<A>(write: (now: number) => Effect.Effect<A, Failure>): Effect.Effect<A, RunLogError> {
    return this.failing(
      Effect.flatMap(Clock.currentTimeMillis, (now) => this.patiently(Effect.suspend(() => write(now))))
    )
  }

  private open(run: RunKey, first?: string) {
    return Effect.as(
      this.writing((now) => SqlRuns.open(this.database, run, now, first)),
      () => Effect.void
    )
  }

  private progressed(run: RunKey): Effect.Effect<void, RunLogError> {
    return Effect.suspend(() => {
      return this.counted.has(run.runId)
        ? this.uncounted(
            run,
            this.writing(() => SqlRuns.progressed(this.database, run))
          )
        : Effect.void
    })
  }

  private end(run: RunKey): Effect.Effect<void, RunLogError> {
    return this.uncounted(
      run,
      this.writing((now) => SqlRuns.end(this.database, run, now))
    )
  }

  private rest(run: RunKey): Effect.Effect<void, RunLogError> {
    return this.uncounted(
      run,
      this.writing(() => SqlRuns.rest(this.database, run))
    )
  }

  private uncounted<E>({ runId }: RunKey, write: Effect.Effect<void, E>): Effect.Effect<void, E> {
    return Effect.andThen(
      write,
      Effect.sync(() => void this.counted.delete(runId))
    )
  }

  private begun(run: RunKey) {
    const counted = Effect.sync(() => void this.counted.add(run.runId))
    return Effect.tap(
      this.writing(() => SqlRuns.begun(this.database, run)),
      counted
    )
  }

  get service(): Service {
    const { database } = this
    return {
      inSessions: true,
      open: (run, first) => this.open(run, first),
      end: (run) => this.end(run),
      read: ({ runId }) => this.reading(SqlRuns.lines(database, runId)),
      find: (runId) => this.reading(SqlRuns.find(database, runId)),
      list: (sessionId) => this.reading(SqlRuns.list(database, sessionId)),
      active: (sessionId) => this.reading(SqlRuns.active(database, sessionId)),
      unended: this.reading(SqlRuns.active(database)),
      newest: (options) => this.reading(SqlRuns.newest(database, options)),
      begun: (run) => this.begun(run),
      progressed: (run) => this.progressed(run),
      rest: (run) => this.rest(run),
      park: (run, cause) => this.writing(() => SqlRuns.park(database, run, cause)),
      unpark: (runId) => this.writing(() => SqlRuns.unpark(database, runId)),
      addKey: (sessionId, line) => this.writing((now) => SqlRuns.addKey(database, sessionId, line, now)),
      keys: (sessionId) => this.reading(SqlRuns.keys(database, sessionId)),
      remove: (sessionId) => this.writing(() => SqlRuns.ofSession(database, sessionId)),
      delete: ({ runId }) => this.writing(() => SqlRuns.ofRun(database, runId)),
      retain: (maxAge) =>
        this.failing(
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            SqlRuns.before(database, SqlPatience.patiently(this.patience), now, Duration.toMillis(maxAge))
          )
        )
    }
  }
}

const detailOf = ({ message, reason: { cause } }: SqlError): string =>
  cause instanceof Error ? cause.message : message

// ───────────────────────── The tables

const migrationsTable = "effect_agent_run_migrations"

/**
 * Version 1. `fence` counts those who opened a log. A line that is too long for one row has several, all but the last one with `continues`
 * 1, and `line` numbers the rows of a log from 1.
 */
const createTables = Effect.gen(function* () {
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
const addNewest = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE INDEX effect_agent_run_newest ON effect_agent_run (created, run_id)`
  yield* sql`CREATE INDEX effect_agent_run_newest_active ON effect_agent_run (created, run_id) WHERE ended IS NULL`
})

/** Version 3: finds the old keys, of which each prompt of a cluster leaves one. */
const addKeys = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE INDEX effect_agent_run_key_created ON effect_agent_run_key (created)`
})

/** Version 4: runs that wait for a person, and that no process has. */
const addResting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE effect_agent_run ADD COLUMN resting INTEGER NOT NULL DEFAULT 0`
})

/**
 * Version 5: the lines of a log stand in its session, but for the first one. The log has the lines between two sizes of the session, in
 * bytes; without the first size those of earlier versions, too.
 */
const addInSessions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE effect_agent_run ADD COLUMN first_line TEXT`
  yield* sql`ALTER TABLE effect_agent_run ADD COLUMN first BIGINT`
  yield* sql`ALTER TABLE effect_agent_run ADD COLUMN last BIGINT`
})

/** The steps from one version to the next. A new version adds a line here, and its statements to `test/server/SqlRunTables.slow.test.ts`. */
const versions = {
  "1_runs": createTables,
  "2_newest": addNewest,
  "3_keys": addKeys,
  "4_resting": addResting,
  "5_sessions": addInSessions
}

const migrate = SqlVersions.migrate({
  table: migrationsTable,
  versions,
  tooNew: (found, latest) =>
    `The tables of runs have version ${found}. This version of effect-agent knows them up to ${latest}`
})
