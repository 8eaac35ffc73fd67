/** Test suites that run on each kind of database. */
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, describe } from "vitest"
import * as Databases from "./databases.ts"
import * as Postgres from "./postgres.ts"

/** Runs a suite on a server that starts before its first test. */
export const onServer = (suite: (make: Databases.Make) => void): void => {
  const scope = Scope.makeUnsafe()
  let make: Databases.Make = Effect.die(new Error("the server has not been started"))
  beforeAll(async () => {
    make = Databases.postgres(await Effect.runPromise(Scope.provide(Postgres.start, scope)))
  }, 60_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)), 60_000)
  suite(Effect.suspend(() => make))
}

/** Runs a suite on SQLite, and on PostgreSQL where that is installed. */
export const onEach = (suite: (name: string, make: Databases.Make) => void): void => {
  describe("SQLite", () => suite("SQLite", Databases.sqlite))
  describe.skipIf(!Postgres.isInstalled)("PostgreSQL", () => onServer((make) => suite("PostgreSQL", make)))
}
