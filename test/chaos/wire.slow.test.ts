import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { wire } from "../../harness/chaos/wire.ts"

describe("chaos", () => {
  // The same seed each time, a few of the hundred thousand for each language.
  it.live("no damage to an answer runs a tool that the answer does not call", () =>
    Effect.gen(function* () {
      const { violations } = yield* wire.run({ seed: 11, count: 150, say: () => {} })
      assert.deepStrictEqual(violations, [])
    })
  )
})
