/**
 * The sessions of an SQL database, each with one writer at a time.
 *
 * A session names the owner that has it open. Each writer gets the next number of the session's fence, and an append changes the row of
 * the session only if the fence is still that of its writer: a writer that another one has followed changes nothing.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { Exists, Locked, NotFound, SessionError } from "../Session.ts"
import type { Line, NewSession, StoredSession, Wanted } from "./SessionStorage.ts"
import * as SqlLines from "./SqlLines.ts"
import type { Owner, Owners } from "./SqlOwner.ts"

/** A database, with the fences of the sessions that this store has open, by id. */
export interface Database {
  readonly sql: SqlClient.SqlClient
  readonly owners: Owners
  readonly claims: Map<number, number>
}

/** A session that a writer of this store has open. */
export interface Claim {
  readonly sessionId: string
  readonly id: number
  readonly fence: number
}

/** A row of a session. Clients of PostgreSQL return bigints. */
interface Stored {
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

/** Finds a session. In a transaction, `isForUpdate` keeps other transactions from changing it. */
export const find = (
  { sql }: Database,
  sessionId: string,
  isForUpdate = false
): Effect.Effect<Stored, Failure> => {
  const lock = sql.onDialectOrElse({
    pg: () => sql.literal(isForUpdate ? "FOR UPDATE" : ""),
    orElse: () => sql.literal("")
  })
  return Effect.flatMap(
    sql<Stored>`SELECT * FROM effect_agent_session WHERE session_id = ${sessionId} ${lock}`,
    ([found]) => (found === undefined ? failed(sessionId, new NotFound()) : Effect.succeed(found))
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
  created: Number(created),
  modified: Number(modified),
  bytes: Number(bytes)
})

/** Makes a session, and has it open until the scope closes. */
export const create = (database: Database, { created, cwd, sessionId }: NewSession) =>
  claimed(database, (owner, now) =>
    Effect.gen(function* () {
      const { sql } = database
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
      if (made === undefined) return yield* failed(sessionId, new Exists())
      return { sessionId, id: Number(made.id), fence: 1 }
    })
  )

/**
 * Opens a session until the scope closes, unless a living owner has it open. It looks before it begins the transaction, for which it would
 * have to wait while another process writes to an SQLite database.
 */
export const open = (database: Database, sessionId: string): Effect.Effect<Claim, Failure, Scope.Scope> =>
  Effect.gen(function* () {
    yield* findFree(database, sessionId, yield* database.owners.self, false)
    return yield* taken(database, sessionId)
  })

const taken = (database: Database, sessionId: string) =>
  claimed(database, (owner, now) =>
    Effect.gen(function* () {
      const { sql } = database
      const found = yield* findFree(database, sessionId, owner, true)
      const claim = { sessionId, id: Number(found.id), fence: Number(found.fence) + 1 }
      const row = { fence: claim.fence, owner: owner.id, owner_name: owner.name, owned_since: now }
      yield* sql`UPDATE effect_agent_session SET ${sql.update(row)} WHERE id = ${claim.id}`
      return claim
    })
  )

/** Appends lines to a session, if no other writer has followed the one of the claim. */
export const append = (
  database: Database,
  { fence, id, sessionId }: Claim,
  lines: ReadonlyArray<Line>
): Effect.Effect<void, Failure> => {
  const { sql } = database
  const rows = lines.flatMap(SqlLines.rowsOf)
  const bytes = rows.reduce((sum, row) => sum + row.bytes, 0)
  return sql.withTransaction(
    Effect.gen(function* () {
      const modified = yield* Clock.currentTimeMillis
      const [held] = yield* sql<Stored>`UPDATE effect_agent_session
        SET bytes = bytes + ${bytes}, modified = ${modified}
        WHERE id = ${id} AND fence = ${fence} RETURNING bytes`
      if (held === undefined) return yield* Effect.flatMap(find(database, sessionId), isLocked)
      yield* SqlLines.insert(sql, id, Number(held.bytes) - bytes, rows)
    })
  )
}

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
    yield* sql.withTransaction(removed)
  })

/** Takes a session in a transaction, and gives it back when the scope closes. */
const claimed = (
  database: Database,
  take: (owner: Owner, now: number) => Effect.Effect<Claim, Failure>
): Effect.Effect<Claim, Failure, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const owner = yield* database.owners.self
      const now = yield* Clock.currentTimeMillis
      // Noted before the transaction ends. If that fails, the fence of the note is that of no session.
      const note = ({ fence, id }: Claim) => Effect.sync(() => database.claims.set(id, fence))
      return yield* database.sql.withTransaction(Effect.tap(take(owner, now), note))
    }),
    (claim) => release(database, claim)
  )

/** Gives a session back, and ends the writes of its writer. The store itself may open it again even if the database is away. */
const release = ({ claims, sql }: Database, { fence, id }: Claim): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (claims.get(id) === fence) claims.delete(id)
    return Effect.ignore(sql`UPDATE effect_agent_session
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
    const { fence, id, owner } = found
    if (owner === null) return found
    const isOpen =
      Number(owner) === self.id
        ? database.claims.get(Number(id)) === Number(fence)
        : yield* database.owners.isAlive(Number(owner))
    return isOpen ? yield* isLocked(found) : found
  })

const isLocked = ({ owned_since: since, owner_name: owner, session_id: sessionId }: Stored) =>
  failed(
    sessionId,
    new Locked({ ...(owner === null ? {} : { owner }), ...(since === null ? {} : { since: Number(since) }) })
  )
