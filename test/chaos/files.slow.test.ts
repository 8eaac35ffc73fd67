import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { files } from "../../harness/chaos/files.ts"

describe("chaos", () => {
  it.live(
    "files go back, whole, after the end of their process at any moment (P-84)",
    () =>
      Effect.gen(function* () {
        const { figures, violations } = yield* files.run({ seed: 84, count: 8, say: () => {} })
        assert.deepStrictEqual(violations, [])
        assert.isAbove(Number(figures["steps"]), 8)
      }),
    120_000
  )
})
