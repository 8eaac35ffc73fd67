import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { storm } from "../../harness/chaos/storm.ts"

describe("chaos", () => {
  // Real time: what is tried is the grace of work that ignores its interruption. Some of the six thousand stops.
  it.live("a run can be stopped at each event while its code ignores interruption", () =>
    Effect.gen(function* () {
      const { violations } = yield* storm.run({ seed: 11, count: 400, say: () => {} })
      assert.deepStrictEqual(violations, [])
    })
  )
})
