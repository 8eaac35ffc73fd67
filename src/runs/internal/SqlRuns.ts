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
import * as SqlLines from "../../sql/SqlLines.ts"
import { mostStarts, parkedCause } from "./RunState.ts"
import * as SqlTransaction from "../../sql/SqlTransaction.ts"

/** A database, and the sessions that this process has open. */
export interface Database {
  readonly sql: SqlClient.SqlClient
  readonly claimOf: (sessionId: string) => Claim | undefined
}

/** A row of a run. Clients of PostgreSQL return bigints. */
interface Stored {
  readonly id: number | bigint
  readonly run_id: string
  readonly session_id: string
  readonly created: number | bigint
  readonly ended: number | bigint | null
  readonly attempts: number | bigint
  readonly parked: string | null
  readonly resting: number | bigint
  readonly first: number | bigint | null
  readonly last: number | bigint | null
}

/** A row of a line of an earlier version, or none, beside the first line of a log. */
interface Line {
  readonly first_line: string | null
  readonly continues: number | bigint | null
  readonly text: string | null
}

type Failure = SqlError | RunLogError

const stored = ({
  attempts,
  created,
  ended,
  first,
  last,
  parked,
  resting,
  run_id,
  session_id
}: Stored): StoredRun => ({
  runId: run_id,
  sessionId: session_id,
  created: Number(created),
  ended: ended === null ? undefined : Number(ended),
  attempts: Number(attempts),
  parked: parked ?? undefined,
  isResting: Number(resting) === 1,
  // One of an earlier version that ended before has no line there.
  ...(first === null && last === null && ended !== null
    ? {}
    : { range: { from: Number(first ?? 0), to: last === null ? undefined : Number(last) } })
})

/** Keeps the fence of a session as it is until the statement is committed. SQLite has one writer at a time. */
const share = (sql: SqlClient.SqlClient, alias: string): Statement.Fragment =>
  sql.onDialectOrElse({
    pg: () => sql.literal(`FOR SHARE OF ${alias}`),
    orElse: () => sql.literal("")
  })

/** A row if this process owns the session, or if there is no such session. */
const held = ({ claimOf, sql }: Database, sessionId: string): Statement.Fragment => {
  const claim = claimOf(sessionId)
  if (claim === undefined) {
    return sql`SELECT CAST(0 AS BIGINT) AS bytes WHERE NOT EXISTS (
      SELECT 1 FROM effect_agent_session WHERE session_id = ${sessionId}
    )`
  }
  const { fence, id } = claim
  return sql`SELECT s.bytes FROM effect_agent_session s WHERE s.id = ${id} AND s.fence = ${fence} ${share(sql, "s")}`
}

/** The lines of a log that its session does not have: the first one, or those of an earlier version. */
export const lines = ({ sql }: Database, runId: string): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    sql<Line>`SELECT r.first_line, l.continues, l.text FROM effect_agent_run r
      LEFT JOIN effect_agent_run_line l ON l.run = r.id AND r.first IS NULL WHERE r.run_id = ${runId} ORDER BY l.line`,
    (rows) => {
      const first = rows[0]?.first_line ?? null
      const parts = rows.flatMap(({ continues, text }) =>
        text === null ? [] : [{ continues: Number(continues), text }]
      )
      const [lines] = SqlLines.joined([], parts)
      return first === null ? lines : [first, ...lines]
    }
  )

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

/** Opens a log, and makes it with its first line if there is none. */
export const open = (
  database: Database,
  run: RunKey,
  now: number,
  first: string | undefined
): Effect.Effect<void, Failure> => {
  const { sql } = database
  const { runId, sessionId } = run
  return Effect.flatMap(
    sql<Stored>`WITH held AS (${held(database, sessionId)})
      INSERT INTO effect_agent_run (run_id, session_id, created, fence, attempts, first_line, first)
      SELECT CAST(${runId} AS TEXT), CAST(${sessionId} AS TEXT), CAST(${now} AS BIGINT), 1, 0,
        CAST(${first ?? null} AS TEXT), held.bytes FROM held WHERE TRUE
      ON CONFLICT (run_id) DO UPDATE SET fence = effect_agent_run.fence + 1
      WHERE effect_agent_run.ended IS NULL AND effect_agent_run.session_id = excluded.session_id
      RETURNING id`,
    ([row]) =>
      row === undefined
        ? Effect.flatMap(find(database, runId), (found) =>
            Effect.fail(found?.ended === undefined ? taken(run) : ended(run))
          )
        : Effect.void
  )
}

/** Changes the row of a run that has not ended, for the owner of its session. Returns none if it did not. */
const change = (database: Database, { runId, sessionId }: RunKey, changes: Statement.Fragment) =>
  Effect.map(
    database.sql<Stored>`WITH held AS (${held(database, sessionId)})
      UPDATE effect_agent_run SET ${changes} FROM held WHERE run_id = ${runId} AND ended IS NULL
      RETURNING id, run_id, session_id, created, ended, attempts, parked, resting, first, last`,
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
    changed(
      database,
      run,
      database.sql`ended = ${now}, attempts = 0, parked = NULL, resting = 0, last = held.bytes`
    )
  )

/** Counts a start, or parks the run: as `nextStarts` does. */
export const begun = (database: Database, run: RunKey): Effect.Effect<StoredRun, Failure> => {
  const { sql } = database
  const isLast = sql`parked IS NULL AND attempts >= ${mostStarts}`
  const isNext = sql`parked IS NULL AND attempts < ${mostStarts}`
  const changes = sql`parked = CASE WHEN ${isLast} THEN ${parkedCause} ELSE parked END,
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

// ───────────────────────── Removal
//
// Removes the logs of runs from an SQL database.

interface Removed {
  readonly run_id: string
  readonly session_id: string
}

/** Runs that one transaction removes: a statement takes so many parameters only. */
const most = 200

/** Removes some of the runs that a condition selects, and the lines of their logs. */
const some = ({ sql }: Database, where: Statement.Fragment): Effect.Effect<ReadonlyArray<RunKey>, SqlError> =>
  SqlTransaction.run(
    sql,
    Effect.gen(function* () {
      const found = yield* sql`SELECT id FROM effect_agent_run WHERE ${where} LIMIT ${most}`.values
      const ids = found.map(([id]) => Number(id))
      if (ids.length === 0) return []
      yield* sql`DELETE FROM effect_agent_session_entry WHERE (session, type) IN (
        SELECT s.id, 'log:' || r.run_id FROM effect_agent_run r
        JOIN effect_agent_session s ON s.session_id = r.session_id WHERE ${sql.in("r.id", ids)}
      )`
      yield* sql`DELETE FROM effect_agent_run_line WHERE ${sql.in("run", ids)}`
      const rows = yield* sql<Removed>`DELETE FROM effect_agent_run WHERE ${sql.in("id", ids)}
        RETURNING run_id, session_id`
      return rows.map(({ run_id, session_id }) => ({ runId: run_id, sessionId: session_id }))
    })
  )

/** Waits for a database that is away. */
type Wait = <A>(effect: Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>

/** Removes the runs that a condition selects, and their lines. */
const removed = (
  database: Database,
  where: Statement.Fragment,
  patiently: Wait = (effect) => effect
): Effect.Effect<ReadonlyArray<RunKey>, SqlError> =>
  Effect.suspend(() => {
    const all: Array<RunKey> = []
    const removing = Effect.repeat(patiently(some(database, where)), {
      until: (runs) => {
        all.push(...runs)
        return runs.length < most
      }
    })
    return Effect.as(removing, all)
  })

export const ofRun = (database: Database, runId: string): Effect.Effect<void, SqlError> =>
  Effect.asVoid(removed(database, database.sql`run_id = ${runId}`))

/** Removes the runs and the keys of a session. */
export const ofSession = (database: Database, sessionId: string): Effect.Effect<void, SqlError> => {
  const { sql } = database
  return SqlTransaction.run(
    sql,
    Effect.andThen(
      removed(database, sql`session_id = ${sessionId}`),
      Effect.asVoid(sql`DELETE FROM effect_agent_run_key WHERE session_id = ${sessionId}`)
    )
  )
}

/** The time for which an idempotency key stands for its first answer. */
const day = 86_400_000

/**
 * Removes the runs that ended an age ago or earlier, and the keys that count for nothing any more. Each part waits on its own: a second try
 * at all of them would not return the runs that the first one removed.
 */
export const before = Effect.fnUntraced(function* (
  database: Database,
  patiently: Wait,
  now: number,
  maxAge: number
): Effect.fn.Return<ReadonlyArray<RunKey>, SqlError> {
  const { sql } = database
  const all = yield* removed(database, sql`ended IS NOT NULL AND ended <= ${now - maxAge}`, patiently)
  yield* patiently(sql`DELETE FROM effect_agent_run_key WHERE created < ${now - Math.max(day, maxAge)}`)
  return all
})
