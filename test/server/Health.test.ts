import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RunLogStore } from "effect-agent/server"
import * as History from "../../src/runs/History.ts"

describe("the probe of a store", () => {
  it.effect("touches no session, whatever its id is, and leaves nothing", () =>
    Effect.gen(function* () {
      const logs = yield* RunLogStore.RunLogStore
      const written: Array<string> = []
      const addKey: typeof logs.addKey = (id, line) =>
        Effect.andThen(
          Effect.sync(() => void written.push(id)),
          logs.addKey(id, line)
        )
      yield* logs.addKey("_health", "a key")
      yield* History.probe({ ...logs, addKey })
      assert.deepStrictEqual(yield* logs.keys("_health"), ["a key"])
      assert.lengthOf(written, 1)
      assert.deepStrictEqual(yield* logs.keys(written[0] ?? ""), [])
    }).pipe(Effect.provide(RunLogStore.layerMemory))
  )
})
