/**
 * The rows of runs in an SQL database.
 *
 * The owner of a session is the process that has it open, and the fence of the session is the token of its writes: those to the session,
 * and those to the logs of its runs. A statement that writes for an owner reads the fence in the row of the session, and keeps others from
 * changing it until it is committed. So no process writes after another one has opened the session.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type * as Statement from "effect/sql/Statement"
import type { Claim } from "../../sql/SqlClaims.ts"
import {
  ended,
  missing,
  type NewestOptions,
  type RunKey,
  type RunLogError,
  type StoredRun,
  taken
} from "../RunLogStore.ts"
import * as Starts from "./Starts.ts"

/** A row of a line of a log. */
export interface Row {
  readonly line: number
  readonly continues: number
  readonly text: string
}

/** Rows of a log, for the one who opened it last and has its session. */
export interface LogAppend extends Opened {
  readonly claim: Claim
  readonly rows: ReadonlyArray<Row>
}

/** A database, and the sessions that this process has open. */
export interface Database {
  readonly sql: SqlClient.SqlClient
  readonly claimOf: (sessionId: string) => Claim | undefined
  /** Appends rows together with the appends to other logs, and succeeds with their number. */
  readonly append: (append: LogAppend) => Effect.Effect<number, SqlError>
}

/** A row of a run. Clients of PostgreSQL return bigints. */
interface Stored {
  readonly id: number | bigint
  readonly run_id: string
  readonly session_id: string
  readonly created: number | bigint
  readonly ended: number | bigint | null
  readonly fence: number | bigint
  readonly attempts: number | bigint
  readonly parked: string | null
  readonly resting: number | bigint
}

type Failure = SqlError | RunLogError

const stored = ({ attempts, created, ended, parked, resting, run_id, session_id }: Stored): StoredRun => ({
  runId: run_id,
  sessionId: session_id,
  created: Number(created),
  ended: ended === null ? undefined : Number(ended),
  attempts: Number(attempts),
  parked: parked ?? undefined,
  isResting: Number(resting) === 1
})

/** Keeps the fence of a session as it is until the statement is committed. SQLite has one writer at a time. */
export const share = (sql: SqlClient.SqlClient, alias: string): Statement.Fragment =>
  sql.onDialectOrElse({
    pg: () => sql.literal(`FOR SHARE OF ${alias}`),
    orElse: () => sql.literal("")
  })

/** A row if this process owns the session, or if there is no such session. */
const held = ({ claimOf, sql }: Database, sessionId: string): Statement.Fragment => {
  const claim = claimOf(sessionId)
  if (claim === undefined) {
    return sql`SELECT 1 AS one WHERE NOT EXISTS (
      SELECT 1 FROM effect_agent_session WHERE session_id = ${sessionId}
    )`
  }
  const { fence, id } = claim
  return sql`SELECT 1 AS one FROM effect_agent_session s WHERE s.id = ${id} AND s.fence = ${fence} ${share(sql, "s")}`
}

/** Finds a run. PostgreSQL refuses a text with the character NUL, which no id has. */
export const find = ({ sql }: Database, runId: string): Effect.Effect<StoredRun | undefined, SqlError> =>
  runId.includes("\0")
    ? Effect.undefined
    : Effect.map(sql<Stored>`SELECT * FROM effect_agent_run WHERE run_id = ${runId}`, ([row]) =>
        row === undefined ? undefined : stored(row)
      )

/** The runs of a session, in the order in which their logs were made. */
export const list = (
  { sql }: Database,
  sessionId: string
): Effect.Effect<ReadonlyArray<StoredRun>, SqlError> =>
  Effect.map(
    sql<Stored>`SELECT * FROM effect_agent_run WHERE session_id = ${sessionId} ORDER BY id`,
    (rows) => rows.map(stored)
  )

/** The runs whose log is not complete. Their condition is that of an index. */
export const active = (
  { sql }: Database,
  sessionId?: string
): Effect.Effect<ReadonlyArray<StoredRun>, SqlError> => {
  const isOfSession = sessionId === undefined ? sql.literal("TRUE") : sql`session_id = ${sessionId}`
  return Effect.map(
    sql<Stored>`SELECT * FROM effect_agent_run WHERE ended IS NULL AND ${isOfSession} ORDER BY id`,
    (rows) => rows.map(stored)
  )
}

/** A page of the runs of all sessions. The order is that of an index; runs that have not ended are few, and have an index of their own. */
export const newest = (
  { sql }: Database,
  { before, isUnended = false, limit }: NewestOptions
): Effect.Effect<ReadonlyArray<StoredRun>, SqlError> => {
  const isBehind =
    before === undefined ? sql.literal("TRUE") : sql`(created, run_id) < (${before.created}, ${before.runId})`
  const isWanted = sql.literal(isUnended ? "ended IS NULL" : "TRUE")
  return Effect.map(
    sql<Stored>`SELECT * FROM effect_agent_run WHERE ${isBehind} AND ${isWanted}
      ORDER BY created DESC, run_id DESC LIMIT ${limit}`,
    (rows) => rows.map(stored)
  )
}

/** The row of a log that this process has open, and the number of times that it was opened. */
export interface Opened {
  readonly id: number
  readonly fence: number
}

/** Opens a log, and makes it if there is none. */
export const open = (database: Database, run: RunKey, now: number): Effect.Effect<Opened, Failure> => {
  const { sql } = database
  const { runId, sessionId } = run
  return Effect.flatMap(
    sql<Stored>`WITH held AS (${held(database, sessionId)})
      INSERT INTO effect_agent_run (run_id, session_id, created, fence, attempts)
      SELECT CAST(${runId} AS TEXT), CAST(${sessionId} AS TEXT), CAST(${now} AS BIGINT), 1, 0 FROM held WHERE TRUE
      ON CONFLICT (run_id) DO UPDATE SET fence = effect_agent_run.fence + 1
      WHERE effect_agent_run.ended IS NULL AND effect_agent_run.session_id = excluded.session_id
      RETURNING id, fence`,
    ([row]) =>
      row === undefined
        ? Effect.flatMap(find(database, runId), (found) =>
            Effect.fail(found?.ended === undefined ? taken(run) : ended(run))
          )
        : Effect.succeed({ id: Number(row.id), fence: Number(row.fence) })
  )
}

/** Changes the row of a run that has not ended, for the owner of its session. Returns none if it did not. */
const change = (database: Database, { runId, sessionId }: RunKey, changes: Statement.Fragment) =>
  Effect.map(
    database.sql<Stored>`WITH held AS (${held(database, sessionId)})
      UPDATE effect_agent_run SET ${changes} FROM held WHERE run_id = ${runId} AND ended IS NULL
      RETURNING id, run_id, session_id, created, ended, fence, attempts, parked, resting`,
    ([row]) => (row === undefined ? undefined : stored(row))
  )

/** The run that a change did not find: one that has ended. */
const unchanged = (database: Database, run: RunKey): Effect.Effect<StoredRun | undefined, Failure> =>
  Effect.flatMap(find(database, run.runId), (found) =>
    found === undefined || found.ended !== undefined ? Effect.succeed(found) : Effect.fail(taken(run))
  )

const changed = (database: Database, run: RunKey, changes: Statement.Fragment) =>
  Effect.flatMap(change(database, run, changes), (found) =>
    found === undefined ? unchanged(database, run) : Effect.succeed(found)
  )

export const end = (database: Database, run: RunKey, now: number): Effect.Effect<void, Failure> =>
  Effect.asVoid(
    changed(database, run, database.sql`ended = ${now}, attempts = 0, parked = NULL, resting = 0`)
  )

/** Counts a start, or parks the run: as `Starts.next` does. */
export const begun = (database: Database, run: RunKey): Effect.Effect<StoredRun, Failure> => {
  const { sql } = database
  const isLast = sql`parked IS NULL AND attempts >= ${Starts.most}`
  const isNext = sql`parked IS NULL AND attempts < ${Starts.most}`
  const changes = sql`parked = CASE WHEN ${isLast} THEN ${Starts.cause} ELSE parked END,
    attempts = CASE WHEN ${isNext} THEN attempts + 1 ELSE attempts END, resting = 0`
  return Effect.flatMap(changed(database, run, changes), (found) =>
    found === undefined ? Effect.fail(missing(run)) : Effect.succeed(found)
  )
}

export const progressed = (database: Database, run: RunKey): Effect.Effect<void, Failure> =>
  Effect.asVoid(changed(database, run, database.sql`attempts = 0`))

export const rest = (database: Database, run: RunKey): Effect.Effect<void, Failure> =>
  Effect.asVoid(changed(database, run, database.sql`attempts = 0, resting = 1`))

export const park = (database: Database, run: RunKey, cause: string): Effect.Effect<void, Failure> =>
  Effect.asVoid(changed(database, run, database.sql`parked = ${cause}`))

export const unpark = ({ sql }: Database, runId: string): Effect.Effect<void, SqlError> =>
  Effect.asVoid(
    sql`UPDATE effect_agent_run SET parked = NULL, attempts = 0, resting = 0 WHERE run_id = ${runId}`
  )

export const addKey = (
  database: Database,
  sessionId: string,
  line: string,
  now: number
): Effect.Effect<void, Failure> =>
  Effect.flatMap(
    database.sql`WITH held AS (${held(database, sessionId)})
      INSERT INTO effect_agent_run_key (session_id, created, text)
      SELECT CAST(${sessionId} AS TEXT), CAST(${now} AS BIGINT), CAST(${line} AS TEXT) FROM held RETURNING id`,
    ([row]) => (row === undefined ? Effect.fail(taken({ runId: "", sessionId })) : Effect.void)
  )

export const keys = ({ sql }: Database, sessionId: string): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    sql<{
      readonly text: string
    }>`SELECT text FROM effect_agent_run_key WHERE session_id = ${sessionId} ORDER BY id`,
    (rows) => rows.map(({ text }) => text)
  )
