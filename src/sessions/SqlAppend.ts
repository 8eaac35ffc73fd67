/**
 * Appends of the one writer of a session in an SQL database.
 *
 * An append changes the row of the session only if the fence is still that of its writer, and the size that at which the writer left it.
 * So a writer that another one has followed changes nothing, and one whose commit was not confirmed finds it.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { SessionError } from "../Session.ts"
import type { Line } from "./SessionStorage.ts"
import * as SqlLines from "./SqlLines.ts"
import * as SqlPatience from "./SqlPatience.ts"
import { type Database, find, isLocked, type Opened, type Stored } from "./SqlSessions.ts"
import * as SqlTransaction from "./SqlTransaction.ts"

type Failure = SqlError | SessionError

/** The appends of a writer, one at a time. */
export class SqlAppends {
  private readonly database: Database
  private readonly claim: Opened
  /** The size of the session; `undefined` after an append whose end is not known. */
  private size: number | undefined

  /** The time at which the last statement began that found the session to be that of this writer. */
  private verified = 0

  constructor(database: Database, claim: Opened) {
    this.database = database
    this.claim = claim
    this.size = claim.bytes
  }

  readonly append = (lines: Arr.NonEmptyReadonlyArray<Line>): Effect.Effect<void, Failure> => {
    const rows = lines.flatMap(SqlLines.rowsOf)
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0)
    const patiently = SqlPatience.patiently(this.database.patience)
    return Effect.gen({ self: this }, function* () {
      const from = this.size ?? (yield* patiently(this.stale))
      const modified = yield* Clock.currentTimeMillis
      this.size = undefined
      yield* patiently(this.stored({ from, to: from + bytes, modified }, rows))
      this.size = from + bytes
      this.verified = modified
    })
  }

  /**
   * Succeeds if a statement of the last moments has found the session to be that of this writer. Asks the database otherwise, also again
   * if that took long: a process that was frozen meanwhile may have lost the session.
   */
  readonly verify: Effect.Effect<void, Failure> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    if (now >= this.verified && now - this.verified <= moment) return Effect.void
    const own = Effect.flatMap(find(this.database, this.claim.sessionId), (found) => this.isOwn(found))
    const asked = SqlPatience.patiently(this.database.patience)(own)
    return Effect.andThen(
      asked,
      Effect.suspend(() => {
        this.verified = now
        return this.verify
      })
    )
  })

  private isOwn(found: Stored): Effect.Effect<void, SessionError> {
    const { fence, id } = this.claim
    return Number(found.id) === id && Number(found.fence) === fence ? Effect.void : isLocked(found)
  }

  /** The size of the session behind an append whose end is not known. */
  private get stale(): Effect.Effect<number, Failure> {
    return Effect.map(find(this.database, this.claim.sessionId), ({ bytes }) => Number(bytes))
  }

  private stored(place: Place, rows: ReadonlyArray<SqlLines.Row>): Effect.Effect<void, Failure> {
    const { sql } = this.database
    const inserted = sql.onDialectOrElse({
      pg: () => (rows.length > maxRows ? this.many(place, rows) : this.few(place, rows)),
      orElse: () => this.many(place, rows)
    })
    return Effect.flatMap(inserted, (isStored) => (isStored ? Effect.void : this.refused(place)))
  }

  /** In a transaction. */
  private many(place: Place, rows: ReadonlyArray<SqlLines.Row>): Effect.Effect<boolean, SqlError> {
    const { sql } = this.database
    return SqlTransaction.run(
      sql,
      Effect.gen({ self: this }, function* () {
        const [held] = yield* this.held(place)
        if (held === undefined) return false
        yield* SqlLines.insert(sql, this.claim.id, place.from, rows)
        return true
      })
    )
  }

  /** In one statement, which costs PostgreSQL one round trip. */
  private few(place: Place, rows: ReadonlyArray<SqlLines.Row>): Effect.Effect<boolean, SqlError> {
    const { sql } = this.database
    const placed = SqlLines.placed(this.claim.id, place.from, rows).map(
      ({ continues, position, session, text, type }) =>
        sql`(${session}::bigint, ${position}::bigint, ${type}::text, ${continues}::int, ${text}::text)`
    )
    return Effect.map(
      sql`WITH held AS (${this.held(place)}), added AS (
        INSERT INTO effect_agent_session_entry (session, position, type, continues, text)
        SELECT line.* FROM held CROSS JOIN (VALUES ${sql.csv(placed)}) AS line RETURNING position
      ) SELECT id FROM held`,
      ([held]) => held !== undefined
    )
  }

  private held({ from, modified, to }: Place) {
    const { fence, id } = this.claim
    return this.database.sql`UPDATE effect_agent_session SET bytes = ${to}, modified = ${modified}
      WHERE id = ${id} AND fence = ${fence} AND bytes = ${from} RETURNING id`
  }

  /** Succeeds if a try before has stored the lines. */
  private refused({ to }: Place): Effect.Effect<void, Failure> {
    return Effect.flatMap(find(this.database, this.claim.sessionId), (found) =>
      Number(found.bytes) === to ? this.isOwn(found) : isLocked(found)
    )
  }
}

/** The part of a session that lines take, in bytes, and the time. */
interface Place {
  readonly from: number
  readonly to: number
  readonly modified: number
}

/** Milliseconds in which no other worker takes the session of one that does not answer: the lease of workers is longer. */
const moment = 2000

/** Rows in one statement with parameters of its own. */
const maxRows = 100
