import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { paths } from "../../harness/chaos/paths.ts"

describe("chaos", () => {
  // Some of the ten thousand, and of the moments of a swap, others each time.
  const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31))

  it.live(
    `F141 F142: no path that was made up, and no link put there meanwhile, leads outside, seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const { figures, violations } = yield* paths.run({ seed, count: 60, oneIn: 3, say: () => {} })
        assert.deepStrictEqual(violations, [])
        // Otherwise nothing was tried.
        assert.isAbove(Number(figures["inside all the same"]), 0)
        assert.isAbove(Number(figures["answered all the same"]), 50)
        assert.isAbove(Number(figures["swaps"]), 250)
      }),
    120_000
  )
})
