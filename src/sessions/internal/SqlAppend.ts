/**
 * Appends of the one writer of a session in an SQL database.
 *
 * An append changes the row of the session only if the fence is still that of its writer, and the size that at which the writer left it.
 * So a writer that another one has followed changes nothing, and one whose commit was not confirmed finds it.
 */
import type * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { SessionError, StorageFailed } from "../../Session.ts"
import type { Line } from "../SessionStorage.ts"
import * as SqlLines from "../../sql/SqlLines.ts"
import * as SqlPatience from "../../sql/SqlPatience.ts"
import { type Database, find, isLocked, type Opened, type Stored } from "./SqlSessions.ts"
import * as SqlTransaction from "../../sql/SqlTransaction.ts"

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
      const { fence, id } = this.claim
      this.size = undefined
      yield* patiently(this.stored({ id, fence, from, bytes, modified, rows }))
      this.size = from + bytes
      this.verified = modified
    })
  }

  /**
   * Succeeds if a statement of the last moments has found the session to be that of this writer. Asks the database otherwise, also again
   * if that took long: a process that was frozen meanwhile may have lost the session. Fails if the database takes long each time.
   */
  readonly verify: Effect.Effect<void, Failure> = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    this.isVerified(now) ? Effect.void : this.asked(now, 1)
  )

  private isVerified(now: number): boolean {
    return now >= this.verified && now - this.verified <= moment
  }

  private asked(start: number, tries: number): Effect.Effect<void, Failure> {
    const { claim, database } = this
    const own = Effect.flatMap(find(database, claim.sessionId), (found) => this.isOwn(found))
    return Effect.gen({ self: this }, function* () {
      const began = yield* Clock.currentTimeMillis
      yield* SqlPatience.patiently(database.patience)(own)
      this.verified = began
      const now = yield* Clock.currentTimeMillis
      if (this.isVerified(now)) return
      const end = start + Duration.toMillis(database.patience)
      if (tries >= leastTries && now >= end) return yield* tooLate(claim.sessionId)
      if (tries === 1) yield* Effect.logWarning(slow)
      return yield* this.asked(start, tries + 1)
    })
  }

  private isOwn(found: Stored): Effect.Effect<void, SessionError> {
    const { fence, id } = this.claim
    return Number(found.id) === id && Number(found.fence) === fence ? Effect.void : isLocked(found)
  }

  /** The size of the session behind an append whose end is not known. */
  private get stale(): Effect.Effect<number, Failure> {
    return Effect.map(find(this.database, this.claim.sessionId), ({ bytes }) => Number(bytes))
  }

  private stored(append: SqlLines.Append): Effect.Effect<void, Failure> {
    const isSmall = append.rows.length <= maxRows && append.bytes <= maxBytes
    const inserted = isSmall ? this.database.append(append) : this.large(append)
    return Effect.flatMap(inserted, (isStored) => (isStored ? Effect.void : this.refused(append)))
  }

  /** In a transaction of its own. */
  private large({
    bytes,
    fence,
    from,
    id,
    modified,
    rows
  }: SqlLines.Append): Effect.Effect<boolean, SqlError> {
    const { sql } = this.database
    return SqlTransaction.run(
      sql,
      Effect.gen(function* () {
        const [held] =
          yield* sql`UPDATE effect_agent_session SET bytes = ${from + bytes}, modified = ${modified}
          WHERE id = ${id} AND fence = ${fence} AND bytes = ${from} RETURNING id`
        if (held === undefined) return false
        yield* SqlLines.insert(sql, id, from, rows)
        return true
      })
    )
  }

  /** Succeeds if a try before has stored the lines. */
  private refused({ bytes, from }: SqlLines.Append): Effect.Effect<void, Failure> {
    return Effect.flatMap(find(this.database, this.claim.sessionId), (found) =>
      Number(found.bytes) === from + bytes ? this.isOwn(found) : isLocked(found)
    )
  }
}

/** Milliseconds in which no other worker takes the session of one that does not answer: the lease of workers is longer. */
const moment = 2000

/** Answers that come too late before the writer gives up: one that was frozen gets one of them. */
const leastTries = 3

const slow = "The SQL database took more than 2 seconds to confirm that a session is that of this process"

const tooLate = (sessionId: string) =>
  new SessionError({
    sessionId,
    reason: new StorageFailed({ operation: "verify", detail: `${slow}, each time` })
  })

/** The rows and the bytes of an append that is written together with others. */
const maxRows = 100
const maxBytes = 65_536
