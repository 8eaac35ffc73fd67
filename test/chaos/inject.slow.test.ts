import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { inject } from "../../harness/chaos/inject.ts"

describe("chaos", () => {
  // Real files, processes and time. The same seed each time, a few of the three thousand points.
  it.live("whatever call to the world goes wrong, a session keeps its laws", () =>
    Effect.gen(function* () {
      const { violations } = yield* inject.run({ seed: 11, count: 24, say: () => {} })
      assert.deepStrictEqual(violations, [])
    })
  )
})
