/**
 * Databases for tests, each of them empty, as URLs that a process of its own can open too: `sqlite:FILE` and `postgres://…`.
 */
import { PgClient } from "@effect/sql-pg"
import { type Context, Effect, Layer, Redacted, type Scope } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Server } from "./postgres.ts"

/** Makes a database, which goes with the scope. */
export type Make = Effect.Effect<string, never, Scope.Scope>

/** The client of a URL. */
export const client = (url: string): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  url.startsWith("sqlite:")
    ? NodeSqlite.layer({ filename: url.slice("sqlite:".length) })
    : PgClient.layer({ url: Redacted.make(url), maxConnections: 4 })

/** Connects to a URL until the scope closes. */
export const connect = (
  url: string
): Effect.Effect<Context.Context<SqlClient.SqlClient>, SqlError.SqlError, Scope.Scope> =>
  Layer.build(client(url))

/** A database in a folder of its own. */
export const sqlite: Make = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-agent-sqlite-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => `sqlite:${join(folder, "agent.db")}`
)

/** A database of a server. */
export const postgres = ({ url }: Pick<Server, "url">): Make => {
  const run = (text: string) =>
    PgClient.PgClient.pipe(
      Effect.flatMap((sql) => sql.unsafe(text)),
      Effect.provide(PgClient.layer({ url })),
      Effect.orDie
    )
  return Effect.acquireRelease(
    Effect.gen(function* () {
      const name = `t${randomBytes(6).toString("hex")}`
      yield* run(`CREATE DATABASE ${name}`)
      const address = new URL(Redacted.value(url))
      address.pathname = name
      return address.href
    }),
    (made) => run(`DROP DATABASE ${new URL(made).pathname.slice(1)} WITH (FORCE)`)
  )
}
