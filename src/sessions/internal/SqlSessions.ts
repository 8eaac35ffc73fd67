/**
 * The sessions of an SQL database, each with one writer at a time.
 *
 * A session names the owner that has it open. Each writer gets the next number of the session's fence, and an append changes the row of
 * the session only if the fence is still that of its writer: a writer that another one has followed changes nothing.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { Exists, Locked, Missing, SessionError, StorageFailed } from "../../Session.ts"
import type { NewSession, StoredSession, Wanted, Line } from "../SessionStorage.ts"
import type { Claim } from "../../sql/SqlClaims.ts"
import * as SqlLines from "../../sql/SqlLines.ts"
import type { Owner, Owners } from "../../sql/SqlOwner.ts"
import * as SqlPatience from "../../sql/SqlPatience.ts"
import * as SqlTransaction from "../../sql/SqlTransaction.ts"
import type * as Arr from "effect/Array"
import * as Duration from "effect/Duration"

/** A database, with the sessions that this store has open, by their ids. */
export interface Database {
  readonly sql: SqlClient.SqlClient
  readonly owners: Owners
  readonly claims: Map<string, Claim>
  /** Appends rows together with the appends of other sessions. Whether the writer held the session. */
  readonly append: (append: SqlLines.Append) => Effect.Effect<boolean, SqlError>
  /** Whether a session is opened although its owner may live. */
  readonly takeOver: boolean
  /** The time for which writes wait for a database that is away. */
  readonly patience: Duration.Input
}

/** A session that a writer of this store has open, and its size when it was opened. */
export interface Opened extends Claim {
  readonly bytes: number
}

/** A row of a session. Clients of PostgreSQL return bigints. */
export interface Stored {
  readonly id: number | bigint
  readonly session_id: string
  readonly created: number | bigint
  readonly modified: number | bigint
  readonly bytes: number | bigint
  readonly fence: number | bigint
  readonly owner: number | bigint | null
  readonly owner_name: string | null
  readonly owned_since: number | bigint | null
}

type Failure = SqlError | SessionError

const failed = (sessionId: string, reason: SessionError["reason"]) =>
  Effect.fail(new SessionError({ sessionId, reason }))

/**
 * Finds a session. In a transaction, `isForUpdate` keeps other transactions from changing it. PostgreSQL refuses a text with the character
 * NUL, which no id has.
 */
export const find = (
  { sql }: Database,
  sessionId: string,
  isForUpdate = false
): Effect.Effect<Stored, Failure> => {
  if (sessionId.includes("\0")) return failed(sessionId, new Missing())
  const lock = sql.onDialectOrElse({
    pg: () => sql.literal(isForUpdate ? "FOR UPDATE" : ""),
    orElse: () => sql.literal("")
  })
  return Effect.flatMap(
    sql<Stored>`SELECT * FROM effect_agent_session WHERE session_id = ${sessionId} ${lock}`,
    ([found]) => (found === undefined ? failed(sessionId, new Missing()) : Effect.succeed(found))
  )
}

/** Lists the sessions that are wanted. */
export const list = (
  { sql }: Database,
  { cwd, runId }: Wanted = {}
): Effect.Effect<ReadonlyArray<StoredSession>, SqlError> =>
  Effect.map(
    sql<Stored>`SELECT session_id, created, modified, bytes FROM effect_agent_session
      WHERE ${cwd === undefined ? sql.literal("TRUE") : sql`cwd = ${cwd}`}
      AND ${runId === undefined ? sql.literal("TRUE") : SqlLines.hasRun(sql, runId)}`,
    (rows) => rows.map(listed)
  )

/** A session as a list has it. */
export const listed = ({
  bytes,
  created,
  modified,
  session_id: sessionId
}: Pick<Stored, "bytes" | "created" | "modified" | "session_id">): StoredSession => ({
  sessionId,
  created: numberOf(created),
  modified: numberOf(modified),
  bytes: numberOf(bytes)
})

/** A number of a row. SQLite keeps what others write there, also where it is none: that is the oldest time. */
const numberOf = (value: number | bigint): number => {
  const number = Number(value)
  return Number.isFinite(number) ? number : 0
}

/** Makes a session, and has it open until the scope closes. */
export const create = (database: Database, { created, cwd, sessionId }: NewSession) => {
  let tries = 0
  const take = (owner: Owner, now: number) =>
    Effect.gen(function* () {
      const { sql } = database
      tries++
      const times = { created, modified: now, owned_since: now }
      const row = {
        session_id: sessionId,
        cwd,
        bytes: 0,
        fence: 1,
        owner: owner.id,
        owner_name: owner.name,
        ...times
      }
      const [made] = yield* sql<Stored>`INSERT INTO effect_agent_session ${sql.insert(row)}
        ON CONFLICT (session_id) DO NOTHING RETURNING id`
      if (made !== undefined) return { sessionId, id: Number(made.id), fence: 1, bytes: 0 }
      const found = yield* find(database, sessionId)
      // The commit of a try before was not confirmed.
      const isOwn = tries > 1 && Number(found.owner) === owner.id && Number(found.bytes) === 0
      if (!isOwn || isClaimed(database, found)) return yield* failed(sessionId, new Exists())
      return { sessionId, id: Number(found.id), fence: Number(found.fence), bytes: 0 }
    })
  return database.takeOver
    ? claimedBy(database, (owner, now, note) => Effect.tap(take(owner, now), note))
    : claimed(database, take)
}

const isClaimed = ({ claims }: Database, { fence, id, session_id: sessionId }: Stored): boolean => {
  const claim = claims.get(sessionId)
  return claim?.id === Number(id) && claim.fence === Number(fence)
}

/**
 * Opens a session until the scope closes, unless a living owner has it open. It looks before it begins the transaction, for which it would
 * have to wait while another process writes to an SQLite database.
 */
export const open = (database: Database, sessionId: string): Effect.Effect<Opened, Failure, Scope.Scope> =>
  database.takeOver
    ? claimedBy(database, (owner, now, note) => Effect.tap(takenOver(database, sessionId, owner, now), note))
    : Effect.gen(function* () {
        yield* findFree(database, sessionId, yield* database.owners.self, false)
        return yield* claimed(database, (owner, now) => taken(database, sessionId, owner, now))
      })

const taken = Effect.fnUntraced(function* (
  database: Database,
  sessionId: string,
  owner: Owner,
  now: number
): Effect.fn.Return<Opened, Failure> {
  const { sql } = database
  const { bytes, fence, id } = yield* findFree(database, sessionId, owner, true)
  const claim = { sessionId, id: Number(id), fence: Number(fence) + 1, bytes: Number(bytes) }
  const row = { fence: claim.fence, owner: owner.id, owner_name: owner.name, owned_since: now }
  yield* sql`UPDATE effect_agent_session SET ${sql.update(row)} WHERE id = ${claim.id}`
  return claim
})

/** Sessions that had an owner which did not let go of them: its process died, is frozen or cut off. */
const takenFromOwner = Metric.counter("effect_agent.durable.sessions.taken", {
  description: "Sessions taken from a process that did not let go of them",
  incremental: true
})

/** Takes a session from its owner, alive or not, unless that is this store. */
const takenOver = Effect.fnUntraced(function* (
  database: Database,
  sessionId: string,
  { id: owner, name }: Owner,
  now: number
): Effect.fn.Return<Opened, Failure> {
  const { sql } = database
  const known = database.claims.get(sessionId)?.fence ?? null
  const [before] = yield* sql<Stored>`SELECT owner FROM effect_agent_session
    WHERE session_id = ${sessionId} AND owner IS NOT NULL AND owner <> ${owner}`
  const [found] = yield* sql<Stored>`UPDATE effect_agent_session
    SET fence = fence + 1, owner = ${owner}, owner_name = ${name}, owned_since = ${now}
    WHERE session_id = ${sessionId} AND NOT (owner IS NOT NULL AND owner = ${owner} AND fence = ${known ?? -1})
    RETURNING id, fence, bytes`
  if (found === undefined) return yield* Effect.flatMap(find(database, sessionId), isLocked)
  if (before !== undefined) yield* Metric.update(takenFromOwner, 1)
  const { bytes, fence, id } = found
  return { sessionId, id: Number(id), fence: Number(fence), bytes: Number(bytes) }
})

/** Removes a session, unless a living owner has it open. */
export const remove = (database: Database, sessionId: string): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const { owners, sql } = database
    const owner = yield* owners.self
    yield* findFree(database, sessionId, owner, false)
    const removed = Effect.gen(function* () {
      const { id } = yield* findFree(database, sessionId, owner, true)
      yield* sql`DELETE FROM effect_agent_session_entry WHERE session = ${id}`
      yield* sql`DELETE FROM effect_agent_session WHERE id = ${id}`
    })
    yield* SqlTransaction.run(sql, removed)
  })

/** Takes a session in a transaction, and gives it back when the scope closes. */
const claimed = (database: Database, take: (owner: Owner, now: number) => Effect.Effect<Opened, Failure>) =>
  claimedBy(database, (owner, now, note) =>
    SqlTransaction.run(database.sql, Effect.tap(take(owner, now), note))
  )

type Note = (opened: Opened) => Effect.Effect<void>

/** Takes a session, and gives it back when the scope closes. */
const claimedBy = (
  database: Database,
  take: (owner: Owner, now: number, note: Note) => Effect.Effect<Opened, Failure>
): Effect.Effect<Opened, Failure, Scope.Scope> => {
  const { claims, owners, patience } = database
  const attempt = Effect.gen(function* () {
    const owner = yield* owners.self
    const now = yield* Clock.currentTimeMillis
    let noted: Claim | undefined
    // Noted before the transaction ends, so that no other fiber takes the session for free.
    const note = ({ fence, id, sessionId }: Opened) =>
      Effect.sync(() => void claims.set(sessionId, (noted = { sessionId, id, fence })))
    const forget = Effect.sync(() => noted !== undefined && drop(database, noted))
    return yield* Effect.onError(take(owner, now, note), () => forget)
  })
  return SqlPatience.patiently(patience)(Effect.acquireRelease(attempt, (claim) => release(database, claim)))
}

const drop = ({ claims }: Database, { fence, id, sessionId }: Claim): void => {
  const claim = claims.get(sessionId)
  if (claim?.id === id && claim.fence === fence) claims.delete(sessionId)
}

/** Gives a session back, and ends the writes of its writer. The store itself may open it again even if the database is away. */
const release = (database: Database, claim: Claim): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { fence, id } = claim
    drop(database, claim)
    return Effect.ignore(database.sql`UPDATE effect_agent_session
      SET owner = NULL, owner_name = NULL, owned_since = NULL, fence = fence + 1 WHERE id = ${id} AND fence = ${fence}`)
  })

/** Finds a session that no living owner has open. */
const findFree = (
  database: Database,
  sessionId: string,
  self: Owner,
  isForUpdate: boolean
): Effect.Effect<Stored, Failure> =>
  Effect.gen(function* () {
    const found = yield* find(database, sessionId, isForUpdate)
    const { owner } = found
    if (owner === null) return found
    const isOpen =
      Number(owner) === self.id ? isClaimed(database, found) : yield* database.owners.isAlive(Number(owner))
    return isOpen ? yield* isLocked(found) : found
  })

/** Fails with the owner that a session has. */
export const isLocked = ({ owned_since: since, owner_name: owner, session_id: sessionId }: Stored) =>
  failed(
    sessionId,
    new Locked({ ...(owner === null ? {} : { owner }), ...(since === null ? {} : { since: Number(since) }) })
  )

// ───────────────────────── The appends of the one writer of a session
//
// An append changes the row of the session only if the fence is still that of its writer, and the size that at which the writer left it.
// So a writer that another one has followed changes nothing, and one whose commit was not confirmed finds it.

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
