import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { schemas } from "../../harness/chaos/schemas.ts"

describe("chaos", () => {
  // The same seed each time, some of the two thousand for each language.
  it.live("no vendor rejects a schema, and arguments come back as the tool takes them", () =>
    Effect.gen(function* () {
      const { figures, violations } = yield* schemas.run({ seed: 11, count: 100, say: () => {} })
      assert.deepStrictEqual(violations, [])
      // Otherwise nothing was renamed.
      assert.isAbove(Number(figures["schemas with other names"]), 100)
    })
  )
})
