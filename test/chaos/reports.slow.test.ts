import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { reports } from "../../harness/chaos/reports.ts"

describe("chaos", () => {
  it.live(
    "what people have reported has the end that is right",
    () =>
      Effect.gen(function* () {
        const { violations } = yield* reports.run({ seed: 1, count: 1, say: () => {} })
        assert.deepStrictEqual(violations, [])
      }),
    120_000
  )
})
