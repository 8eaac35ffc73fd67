/**
 * An empty database for one measurement, and what a process has done to it.
 */
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { readFileSync } from "node:fs"
import { createServer } from "node:net"
import { DatabaseSync, StatementSync } from "node:sqlite"
import * as Databases from "../../../test/sql/databases.ts"

/** What was done until now. A figure that nothing counts is `NaN`. */
export interface Used {
  readonly statements: number
  readonly bytes: number
}

export interface Store {
  readonly url: string
  readonly port: number
  readonly used: () => Promise<Used>
}

let statements = 0
const counted = <T extends object>(prototype: T, names: ReadonlyArray<keyof T & string>): void => {
  for (const name of names) {
    const own = prototype[name]
    if (typeof own !== "function") continue
    const counting = function (this: T, ...args: ReadonlyArray<unknown>): unknown {
      statements++
      return Reflect.apply(own, this, args)
    }
    Reflect.set(prototype, name, counting)
  }
}

const written = (): number => {
  try {
    return Number(/^write_bytes: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1])
  } catch {
    return NaN
  }
}

/** The server counts bytes in its log, and statements where it has `pg_stat_statements`. */
const ofServer = (url: string): Effect.Effect<Used> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [wal] = yield* sql<{ bytes: string }>`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS bytes`
    const calls = sql<{ calls: string }>`SELECT sum(calls) AS calls FROM pg_stat_statements
      JOIN pg_database ON oid = dbid WHERE datname = current_database()`
    const count = Effect.andThen(sql`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`, calls)
    const [counts] = yield* Effect.orElseSucceed(count, () => [])
    return { bytes: Number(wal?.bytes), statements: Number(counts?.calls ?? NaN) }
  }).pipe(Effect.provide(Databases.client(url)), Effect.orDie)

const freePort = Effect.callback<number>((resume) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const address = probe.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    probe.close(() => resume(Effect.succeed(port)))
  })
})

/** Makes a database in a temporary folder, or in the server of a URL, and removes it after the use of it. */
export const within = <A>(server: string | undefined, use: (store: Store) => Promise<A>): Promise<A> =>
  Effect.gen(function* () {
    const port = yield* freePort
    if (server === undefined) {
      counted(StatementSync.prototype, ["all", "get", "run", "iterate"])
      counted(DatabaseSync.prototype, ["exec"])
    }
    const url = yield* server === undefined
      ? Databases.sqlite
      : Databases.postgres({ url: Redacted.make(server) })
    const used = () =>
      server === undefined
        ? Promise.resolve({ statements, bytes: written() })
        : Effect.runPromise(ofServer(url))
    return yield* Effect.promise(() => use({ url, port, used }))
  }).pipe(Effect.scoped, Effect.runPromise)
