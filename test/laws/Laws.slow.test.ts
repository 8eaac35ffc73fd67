import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect } from "effect"
import { found } from "./found.ts"
import { Plan } from "./plan.ts"
import { play } from "./play.ts"
import { violations } from "./playLaws.ts"

// The same plans each time, so that a red test is red again. Others: LAWS_SEED=7 LAWS_RUNS=5000 npm test -- test/laws
const seed = Number(process.env["LAWS_SEED"] ?? 1)
const runs = Number(process.env["LAWS_RUNS"] ?? 200)
const timeout = 20_000 + runs * 100

describe("laws", () => {
  for (const [law, plan] of Object.entries(found)) {
    it.effect(law, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(violations(yield* play(plan)), [])
      })
    )
  }

  it.effect(
    "hold for any model, tools, hooks, queues, limits and cancels",
    () =>
      Effect.gen(function* () {
        const lawful = Effect.fnUntraced(function* (plan: Plan) {
          const broken = violations(yield* play(plan))
          return broken.length === 0 || (yield* Effect.fail(broken))
        })
        const options = { seed, runs, size: 10, maxShrinks: 300 }
        const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Plan), lawful, options)
        assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined, `seed ${seed}`)
      }),
    timeout
  )
})
