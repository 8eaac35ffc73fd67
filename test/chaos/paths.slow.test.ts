import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { paths } from "./paths.ts"

describe("chaos", () => {
  // Some of the ten thousand, the same each time.
  it.live(
    "F141 F142: no path that was made up, and no link put there meanwhile, leads outside",
    () =>
      Effect.gen(function* () {
        const { figures, violations } = yield* paths.run({ seed: 11, count: 60, say: () => {} })
        assert.deepStrictEqual(violations, [])
        // Otherwise nothing was tried.
        assert.isAbove(Number(figures["inside all the same"]), 3)
        assert.isAbove(Number(figures["answered all the same"]), 50)
        assert.isAbove(Number(figures["swaps"]), 250)
      }),
    120_000
  )
})
