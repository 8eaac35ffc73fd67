/**
 * A store of sessions in an SQL database: SQLite, or PostgreSQL.
 *
 * **Details**
 *
 * The store uses the `SqlClient` of `effect/sql` in its context: that of `effect-agent/node/NodeSqlite`, or of `PgClient` of
 * `@effect/sql-pg`. It makes its tables, whose names begin with `effect_agent_session`, and brings older ones to its version.
 *
 * - An append succeeds when it is committed. Appends to several sessions that wait at one time are one transaction.
 * - A store has one lock, for all sessions that it has open: in PostgreSQL an advisory lock on a connection of its own, for SQLite a
 *   locked file beside the database. The system takes the lock back when the process ends, in whatever way, so that another process can
 *   open the sessions at once. A process that is stopped keeps them.
 * - A writer that another one has followed, such as one whose connection to the database was lost, cannot append: it fails with `Locked`.
 *
 * **Gotchas**
 *
 * The lock needs a session of PostgreSQL: a pooler must not share it between transactions. The pool of `PgClient` needs at least two
 * connections.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { MigrationError } from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { SessionError, StorageFailed } from "../Session.ts"
import type { SessionStorage, Writer } from "./SessionStorage.ts"
import * as SessionStore from "./SessionStore.ts"
import * as SqlBatch from "../sql/SqlBatch.ts"
import { Claims } from "../sql/SqlClaims.ts"
import * as SqlLines from "../sql/SqlLines.ts"
import * as SqlOwner from "../sql/SqlOwner.ts"
import * as SqlPatience from "../sql/SqlPatience.ts"
import * as SqlSessions from "./internal/SqlSessions.ts"
import * as SqlTables from "./internal/SqlTables.ts"

export { type Claim, Claims } from "../sql/SqlClaims.ts"

/**
 * The options of a store in an SQL database.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options extends SessionStore.Options {
  /**
   * Whether the store opens a session that another process has open, whether that lives or not: the writer of that process cannot append
   * from then on. For processes that agree on the owner of a session elsewhere, such as the workers of a cluster. Default false.
   */
  readonly takeOver?: boolean
  /**
   * The time for which `create`, `open` and appends wait for a database that is away, a duration. They find a commit that the database did
   * not confirm, and do not repeat it. Reads wait for up to 2 seconds of it. Default 0: they fail at once.
   */
  readonly patience?: Duration.Input
}

/**
 * Makes the storage of a database, whose lock goes with the scope.
 *
 * **When to use**
 *
 * Use {@link layer} for a store. Use this for a storage that a store of one's own decorates.
 *
 * **Example** (Reading the lines of a session)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { SessionStore, SqlSessionStore } from "effect-agent/sessions"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 *
 * const program = Effect.gen(function* () {
 *   const storage = yield* SqlSessionStore.storage
 *   const { id } = yield* SessionStore.make(storage).create({ sessionId: "trip" })
 *   return (yield* Stream.runCollect(storage.lines(id))).flat().length
 * }).pipe(Effect.provide(NodeSqlite.layer({ filename: ":memory:" })), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => 1
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const storage: Effect.Effect<
  SessionStorage,
  SqlError | MigrationError,
  SqlClient.SqlClient | Scope.Scope
> = Effect.suspend(() => Effect.map(databaseOf({}), storageOf))

const databaseOf = Effect.fnUntraced(function* ({ patience = 0, takeOver = false }: Options) {
  // An application may transform the names of its own tables.
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  yield* Effect.provideService(SqlTables.migrate, SqlClient.SqlClient, sql)
  const database: SqlSessions.Database = {
    sql,
    owners: yield* SqlOwner.make(sql),
    claims: new Map(),
    append: SqlBatch.make(
      sql,
      (appends) => SqlLines.append(sql, appends),
      ({ id }) => id
    ),
    takeOver,
    patience
  }
  return database
})

const storageOf = (database: SqlSessions.Database): SessionStorage => {
  const writer = (claim: SqlSessions.Opened): Writer => {
    const appends = new SqlSessions.SqlAppends(database, claim)
    return {
      append: (lines) => Effect.mapError(appends.append(lines), during(claim.sessionId, "append")),
      verify: Effect.mapError(appends.verify, during(claim.sessionId, "verify"))
    }
  }
  const briefly = SqlPatience.briefly(database.patience)
  return {
    create: (session) =>
      Effect.mapBoth(SqlSessions.create(database, session), {
        onFailure: during(session.sessionId, "create"),
        onSuccess: writer
      }),
    open: (sessionId) =>
      Effect.mapBoth(SqlSessions.open(database, sessionId), {
        onFailure: during(sessionId, "open"),
        onSuccess: writer
      }),
    lines: (sessionId, only, { from = 0, to = Infinity } = {}) =>
      Stream.unwrap(
        Effect.map(briefly(SqlSessions.find(database, sessionId)), ({ bytes, id }) =>
          SqlLines.read(database.sql, Number(id), { from, to: Math.min(to, Number(bytes)) }, only, briefly)
        )
      ).pipe(Stream.mapError(during(sessionId, "read"))),
    find: (sessionId) =>
      Effect.mapBoth(briefly(SqlSessions.find(database, sessionId)), {
        onFailure: during(sessionId, "read"),
        onSuccess: SqlSessions.listed
      }),
    list: (where) => Effect.mapError(briefly(SqlSessions.list(database, where)), during("", "list")),
    remove: (sessionId) =>
      Effect.mapError(SqlSessions.remove(database, sessionId), during(sessionId, "remove"))
  }
}

const during =
  (sessionId: string, operation: string) =>
  (error: SqlError | SessionError): SessionError => {
    if (error._tag === "SessionError") return error
    const { cause, message } = error.reason
    const detail = cause instanceof Error ? cause.message : (message ?? error.message)
    return new SessionError({ sessionId, reason: new StorageFailed({ operation, detail }) })
  }

/**
 * Makes a layer of a store in the SQL database of the context.
 *
 * **Example** (Continuing a conversation of another process)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-agent"
 * import { SessionStore, SqlSessionStore } from "effect-agent/sessions"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * // With PostgreSQL: PgClient.layer({ url: Redacted.make("postgres://…") }) of @effect/sql-pg.
 * const store = SqlSessionStore.layer().pipe(Layer.provide(NodeSqlite.layer({ filename: ":memory:" })))
 *
 * const program = Effect.gen(function* () {
 *   const sessions = yield* SessionStore.SessionStore
 *   const session = yield* sessions.openOrCreate("trip")
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini", session })
 *   yield* agent.prompt("Do I need a coat in Oslo?")
 *   return (yield* sessions.list()).items.map(({ title }) => title)
 * }).pipe(Effect.provide([store, ScriptedProvider.layer([ScriptedProvider.text("Yes.")])]), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 'Do I need a coat in Oslo?' ]
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (
  options: Options = {}
): Layer.Layer<SessionStore.SessionStore | Claims, SqlError | MigrationError, SqlClient.SqlClient> =>
  Layer.effectContext(
    Effect.map(databaseOf(options), (database) =>
      Context.make(SessionStore.SessionStore, SessionStore.make(storageOf(database), options)).pipe(
        Context.add(Claims, { of: (sessionId) => database.claims.get(sessionId) })
      )
    )
  )
