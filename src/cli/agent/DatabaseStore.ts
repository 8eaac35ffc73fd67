/** Stores of sessions, of large tool results and of the logs of runs in databases. The client of each kind of database is loaded when it is used. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Redacted from "effect/Redacted"
import type { MigrationError } from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ArtifactStore } from "../../artifacts/ArtifactStore.ts"
import * as SqlArtifactStore from "../../artifacts/SqlArtifactStore.ts"
import { SessionError, StorageFailed } from "../../Session.ts"
import * as SessionStore from "../../sessions/SessionStore.ts"
import * as SqlSessionStore from "../../sessions/SqlSessionStore.ts"
import { RunLogError, RunLogStore } from "../../runs/RunLogStore.ts"
import * as SqlRunLogStore from "../../runs/SqlRunLogStore.ts"
import * as KeptFiles from "./KeptFiles.ts"
import type { Stores } from "./Sessions.ts"
import * as Values from "../settings/Values.ts"

/** Opens the store in an SQLite database, and makes its file if there is none. The scope holds the connection. */
export const sqlite = Effect.fnUntraced(function* (filename: string) {
  const { layer } = yield* Effect.promise(() => import("../../node/NodeSqlite.ts"))
  const folder = (yield* Path.Path).dirname(filename)
  const files = yield* FileSystem.FileSystem
  yield* Effect.mapError(files.makeDirectory(folder, { recursive: true, mode: 0o700 }), failureOf(filename))
  return yield* opened(layer({ filename }), filename)
})

/** Opens the store in a PostgreSQL database. The scope holds the connections. */
export const postgres = Effect.fnUntraced(function* (url: string) {
  const { layer } = yield* Effect.promise(() => import("@effect/sql-pg/PgClient"))
  return yield* opened(layer({ url: Redacted.make(url), maxConnections: 10 }), Values.withoutPassword(url))
})

/** The time for which a run waits for a database that restarts. */
const patience = "30 seconds"

/** `name`: the file or the address of the database, for people. */
const opened = (client: Layer.Layer<SqlClient.SqlClient, SqlError>, name: string) =>
  Layer.merge(SqlSessionStore.layer({ patience }), SqlArtifactStore.layer).pipe(
    Layer.provideMerge(client),
    Layer.build,
    Effect.flatMap((context) =>
      Effect.map(
        KeptFiles.inDatabase(Context.get(context, SqlClient.SqlClient)),
        (kept): Stores => ({
          store: Context.get(context, SessionStore.SessionStore),
          artifacts: Context.get(context, ArtifactStore),
          kept,
          logs: logsOf(context, name)
        })
      )
    ),
    Effect.mapError(failureOf(name))
  )

const logsOf = (context: Context.Context<SqlClient.SqlClient | SqlSessionStore.Claims>, name: string) =>
  Layer.effect(
    RunLogStore,
    Layer.build(SqlRunLogStore.layer({ patience })).pipe(
      Effect.provideContext(context),
      Effect.map((built) => Context.get(built, RunLogStore)),
      Effect.mapError((error) => new RunLogError({ detail: `${name}: ${detailOf(error)}` }))
    )
  )

/** The failure of a database that was to be opened, by its file or its address. */
export const failureOf =
  (name: string) =>
  (error: SqlError | MigrationError | PlatformError): SessionError =>
    failed(name, error._tag === "PlatformError" ? error.message : detailOf(error))

const detailOf = (error: SqlError | MigrationError): string => {
  const { cause, message } = error._tag === "SqlError" ? error.reason : error
  return cause instanceof Error ? cause.message : (message ?? error.message)
}

const failed = (name: string, detail: string) =>
  new SessionError({
    sessionId: "",
    reason: new StorageFailed({ operation: "open", detail: `${name}: ${detail}` })
  })
