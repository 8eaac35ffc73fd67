import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { begun, over, process } from "./interrupted.ts"
import { disk } from "./killing.ts"

describe("a run that continues with other tools", () => {
  it.effect("has a typed outcome for calls whose params the tool no longer takes", () =>
    Effect.gen(function* () {
      const places = yield* disk
      const [runId] = yield* begun(places)
      const params = Schema.Struct({ n: Schema.Number.check(Schema.isGreaterThan(5)) })
      yield* process(places, { params }, (runs, ran) =>
        Effect.gen(function* () {
          const { results, status } = yield* over(runs, runId)
          assert.deepStrictEqual(
            results.map(([tool, outcome]) => [tool, outcome]),
            [
              ["look", "success"],
              ["put", "invalidArguments"],
              ["deploy", "invalidArguments"]
            ]
          )
          assert.include(results[1]?.[2], "n")
          assert.strictEqual(status, "completed")
          assert.deepStrictEqual(ran, [])
          assert.deepStrictEqual((yield* runs.get(runId)).pending, { approvals: [], questions: [] })
        })
      )
    })
  )

  it.effect("has a typed outcome for calls of tools that are gone", () =>
    Effect.gen(function* () {
      const places = yield* disk
      const [runId] = yield* begun(places)
      yield* process(places, { tools: ["look"] }, (runs, ran) =>
        Effect.gen(function* () {
          const { results, status } = yield* over(runs, runId)
          assert.deepStrictEqual(
            results.map(([tool, outcome]) => [tool, outcome]),
            [
              ["look", "success"],
              // That of a tool whose effect is not known may have happened.
              ["put", "unknown"],
              ["deploy", "unknownTool"]
            ]
          )
          assert.strictEqual(status, "completed")
          assert.deepStrictEqual(ran, [])
        })
      )
    })
  )
})
