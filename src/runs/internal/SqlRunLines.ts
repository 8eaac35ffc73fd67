/**
 * The lines of the logs of runs in an SQL database.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type * as Statement from "effect/sql/Statement"
import * as SqlBatch from "../../sql/SqlBatch.ts"
import type { Claim } from "../../sql/SqlClaims.ts"
import * as SqlLines from "../../sql/SqlLines.ts"
import { missing, type RunKey, type RunLogError, taken } from "../RunLogStore.ts"
import { type Database, find, type LogAppend, type Opened, type Row, share } from "./SqlRuns.ts"
import * as SqlTransaction from "../../sql/SqlTransaction.ts"

type Failure = SqlError | RunLogError

interface Stored extends Omit<Row, "line"> {
  readonly line: number | bigint
}

/** Rows in one statement. */
const maxInsert = 100

/** The rows and characters of an append that is written together with others. */
const maxRows = 100
const maxSize = 65_536

type Appends = Arr.NonEmptyReadonlyArray<LogAppend>

const owners = (sql: SqlClient.SqlClient, appends: Appends) =>
  SqlBatch.table(
    sql,
    "owner",
    { run: "BIGINT", fence: "BIGINT", session: "BIGINT", token: "BIGINT" },
    appends.map(({ claim, fence, id }) => ({ run: id, fence, session: claim.id, token: claim.fence }))
  )

const lines = (sql: SqlClient.SqlClient, appends: Appends) =>
  SqlBatch.table(
    sql,
    "added",
    { run: "BIGINT", line: "BIGINT", continues: "BIGINT", text: "TEXT" },
    appends.flatMap(({ id, rows }) => rows.map((row) => ({ run: id, ...row })))
  )

/** Appends to several logs in one statement, and returns how many rows each one stored. All statements take the locks of sessions in one order. */
export const append = (
  sql: SqlClient.SqlClient,
  appends: Appends
): Effect.Effect<Arr.NonEmptyReadonlyArray<number>, SqlError> =>
  Effect.map(
    sql<{ readonly run: number | bigint }>`WITH held AS (
        SELECT r.id FROM ${owners(sql, appends)} JOIN effect_agent_run r ON r.id = owner.run AND r.fence = owner.fence
        JOIN effect_agent_session s ON s.id = owner.session AND s.fence = owner.token
        ORDER BY s.id ${share(sql, "s")}
      ) INSERT INTO effect_agent_run_line (run, line, continues, text)
      SELECT held.id, added.line, added.continues, added.text FROM held JOIN ${lines(sql, appends)} ON added.run = held.id
      WHERE TRUE ON CONFLICT (run, line) DO NOTHING RETURNING run`,
    (rows) => {
      const counts = new Map<number, number>()
      for (const { run } of rows) counts.set(Number(run), (counts.get(Number(run)) ?? 0) + 1)
      return Arr.map(appends, ({ id }) => counts.get(id) ?? 0)
    }
  )

/** The rows of lines, behind a number. */
const rowsOf = (lines: ReadonlyArray<string>, last: number): ReadonlyArray<Row> => {
  let line = last
  return lines.flatMap((text) =>
    SqlLines.partsOf(text).map((part, index, parts) => ({
      line: ++line,
      continues: index === parts.length - 1 ? 0 : 1,
      text: part
    }))
  )
}

/** The appends of the one who opened a log last. */
export class SqlRunLines {
  private readonly database: Database
  private readonly run: RunKey
  private readonly opened: Opened
  private readonly claim: Claim | undefined
  /** The last row that was given a number; `undefined` after an append whose end is not known, and for a log that has rows. */
  private last: number | undefined
  /** Held by the append that is under way: two that read the number of the last row would both take the next one. */
  private readonly turn = Semaphore.makeUnsafe(1)

  constructor(database: Database, run: RunKey, opened: Opened) {
    this.database = database
    this.run = run
    this.opened = opened
    this.claim = database.claimOf(run.sessionId)
    this.last = opened.fence === 1 ? 0 : undefined
  }

  append(
    lines: ReadonlyArray<string>,
    patiently: <A>(effect: Effect.Effect<A, Failure>) => Effect.Effect<A, Failure>
  ): Effect.Effect<void, Failure> {
    if (lines.length === 0) return Effect.void
    const added = Effect.gen({ self: this }, function* () {
      const last = this.last ?? (yield* patiently(this.stored))
      const rows = rowsOf(lines, last)
      this.last = rows.at(-1)?.line ?? last
      const unknown = Effect.sync(() => void (this.last = undefined))
      yield* Effect.onError(patiently(this.placed(rows)), () => unknown)
    })
    return this.turn.withPermit(added)
  }

  /** The number of the last row that is stored. */
  private get stored(): Effect.Effect<number, SqlError> {
    const { sql } = this.database
    return Effect.map(
      sql`SELECT max(line) FROM effect_agent_run_line WHERE run = ${this.opened.id}`.values,
      ([row]) => Number(row?.[0] ?? 0)
    )
  }

  private placed(rows: ReadonlyArray<Row>): Effect.Effect<void, Failure> {
    const { claim, opened } = this
    const { sql } = this.database
    const size = rows.reduce((sum, { text }) => sum + text.length, 0)
    const count =
      claim !== undefined && rows.length <= maxRows && size <= maxSize
        ? this.database.append({ id: opened.id, fence: opened.fence, claim, rows })
        : SqlTransaction.run(
            sql,
            Effect.map(
              Effect.forEach(Arr.chunksOf(rows, maxInsert), (chunk) => this.insert(chunk)),
              (counts) => counts.reduce((sum, count) => sum + count, 0)
            )
          )
    return Effect.flatMap(count, (stored) => (stored === rows.length ? Effect.void : this.refused(rows)))
  }

  /** Inserts rows in one statement, and returns how many. */
  private insert(rows: ReadonlyArray<Row>): Effect.Effect<number, SqlError> {
    const { sql } = this.database
    const values = rows.map(
      ({ continues, line, text }) =>
        sql`(CAST(${line} AS BIGINT), CAST(${continues} AS INTEGER), CAST(${text} AS TEXT))`
    )
    return Effect.map(
      sql`WITH held AS (${this.held})
        INSERT INTO effect_agent_run_line (run, line, continues, text)
        SELECT held.id, added.column1, added.column2, added.column3
        FROM held CROSS JOIN (VALUES ${sql.csv(values)}) AS added WHERE TRUE
        ON CONFLICT (run, line) DO NOTHING RETURNING line`,
      ({ length }) => length
    )
  }

  /** The row of the log, if this is the one who opened it last and the owner of its session. */
  private get held(): Statement.Fragment {
    const { claim } = this
    const { sql } = this.database
    const { fence, id } = this.opened
    if (claim === undefined) {
      return sql`SELECT r.id FROM effect_agent_run r WHERE r.id = ${id} AND r.fence = ${fence} AND NOT EXISTS (
        SELECT 1 FROM effect_agent_session WHERE session_id = ${this.run.sessionId}
      ) ${share(sql, "r")}`
    }
    return sql`SELECT r.id FROM effect_agent_run r CROSS JOIN effect_agent_session s
      WHERE r.id = ${id} AND r.fence = ${fence} AND s.id = ${claim.id} AND s.fence = ${claim.fence} ${share(sql, "s")}`
  }

  /** Succeeds if a try before has stored the rows. */
  private refused(rows: ReadonlyArray<Row>): Effect.Effect<void, Failure> {
    const { sql } = this.database
    return Effect.gen({ self: this }, function* () {
      const [owned] = yield* sql`${this.held}`
      if (owned === undefined) {
        const found = yield* find(this.database, this.run.runId)
        return yield* found === undefined ? missing(this.run) : taken(this.run)
      }
      const stored = yield* sql<Stored>`SELECT line, continues, text FROM effect_agent_run_line
        WHERE run = ${this.opened.id} AND line >= ${rows[0]?.line ?? 0} ORDER BY line`
      const isOwn = rows.every(({ line, text }, index) => {
        const found = stored[index]
        return Number(found?.line) === line && found?.text === text
      })
      if (!isOwn) return yield* taken(this.run)
    })
  }
}

/** Reads the lines of a log; none if there is no log. */
export const read = ({ sql }: Database, runId: string): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    sql<Stored>`SELECT line, continues, text FROM effect_agent_run_line
      WHERE run = (SELECT id FROM effect_agent_run WHERE run_id = ${runId}) ORDER BY line`,
    (rows) => {
      const lines: Array<string> = []
      let parts: Array<string> = []
      for (const { continues, text } of rows) {
        parts.push(text)
        if (continues === 1) continue
        lines.push(parts.join(""))
        parts = []
      }
      return lines
    }
  )
