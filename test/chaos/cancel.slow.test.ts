import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { cancel } from "../../harness/chaos/cancel.ts"

describe("chaos", () => {
  // Real time: what is tried is the scheduler and its timers. The same seed each time, a few of the ten thousand.
  it.live("a run can be stopped at any moment, in any way", () =>
    Effect.gen(function* () {
      const { violations } = yield* cancel.run({ seed: 11, count: 200, say: () => {} })
      assert.deepStrictEqual(violations, [])
    })
  )
})
