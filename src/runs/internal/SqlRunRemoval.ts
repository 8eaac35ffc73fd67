/**
 * Removes the logs of runs from an SQL database.
 */
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type * as Statement from "effect/sql/Statement"
import type { RunKey } from "../RunLogStore.ts"
import type { Database } from "./SqlRuns.ts"
import * as SqlTransaction from "../../sql/SqlTransaction.ts"

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
