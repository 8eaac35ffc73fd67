import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { sessions } from "../../harness/chaos/sessions.ts"

describe("chaos", () => {
  it.live(
    "a conversation survives the end of its process at any moment",
    () =>
      Effect.gen(function* () {
        const { figures, violations } = yield* sessions.run({ seed: 150, count: 15, say: () => {} })
        assert.deepStrictEqual(violations, [])
        assert.isAbove(Number(figures["kills"]), 10)
      }),
    180_000
  )
})
