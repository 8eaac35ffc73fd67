import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { aborts } from "../../harness/chaos/aborts.ts"

describe("chaos", () => {
  // Real time and real connections: a part of the ten thousand.
  it.live(
    "F105: a run over HTTP can be aborted at any moment, and leaves nothing behind",
    () =>
      Effect.gen(function* () {
        const { violations } = yield* aborts.run({ seed: 11, count: 200, say: () => {} })
        assert.deepStrictEqual(violations, [])
      }),
    120_000
  )
})
