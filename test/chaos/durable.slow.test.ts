import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Postgres from "../sql/postgres.ts"
import { background, durable } from "../../harness/chaos/durable.ts"

const say = () => {}

describe("chaos", () => {
  for (const store of ["live", "sqlite", ...(Postgres.isInstalled ? ["postgres"] : [])]) {
    it.live(
      `a durable run survives the end of its process at any moment: ${store}`,
      () =>
        Effect.gen(function* () {
          const { figures, violations } = yield* durable.run({ seed: 20, count: 4, store, say })
          assert.deepStrictEqual(violations, [])
          assert.isAbove(Number(figures["kills"]), 2)
        }),
      180_000
    )
  }

  it.live(
    "a durable run with three calls in the background survives the end of its process at any moment (row 151)",
    () =>
      Effect.gen(function* () {
        const { figures, violations } = yield* background.run({ seed: 3, count: 6, store: "sqlite", say })
        assert.deepStrictEqual(violations, [])
        assert.isAbove(Number(figures["kills"]), 4)
      }),
    180_000
  )

  it.live(
    "runs that were queued when their worker was killed are all due at the start of the next one, and begin in time",
    () =>
      Effect.gen(function* () {
        const options = { seed: 1, count: 1, due: 60, crash: true, store: "sqlite", say }
        const { violations } = yield* durable.run(options)
        assert.deepStrictEqual(violations, [])
      }),
    180_000
  )

  it.live.skipIf(!Postgres.isInstalled)(
    "durable runs survive faults of two workers and of their database",
    () =>
      Effect.gen(function* () {
        const { violations } = yield* durable.run({ seed: 7, count: 2, store: "postgres", workers: 2, say })
        assert.deepStrictEqual(violations, [])
      }),
    180_000
  )
})
