import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { RunLogStore } from "effect-agent/server"
import { TestClock } from "effect/testing"
import * as Following from "../../src/durable/Following.ts"

describe("a watcher of a run of a cluster", () => {
  it.effect("gets the end of the run although the store is away when the run is over", () =>
    Effect.gen(function* () {
      const logs = yield* RunLogStore.RunLogStore
      const run = { runId: "r", sessionId: "s" }
      const event = JSON.stringify({ type: "event", position: 1, event: { _tag: "RunEnd" } })
      yield* Effect.scoped(Effect.flatMap(logs.open(run), (append) => append([event])))
      yield* logs.end(run)
      let faults = 1
      const read: RunLogStore.Service["read"] = (run) =>
        Effect.suspend(() =>
          faults-- > 0 ? new RunLogStore.RunLogError({ detail: "the database is away" }) : logs.read(run)
        )
      // The worker of the run is gone.
      const pages = Following.live({ ...logs, read }, () => Stream.empty, run, 0)
      const seen = yield* Effect.forkChild(Stream.runCollect(pages))
      yield* TestClock.adjust("1 second")
      const tags = (yield* Fiber.join(seen)).flatMap((page) => page.map(({ tag }) => tag))
      assert.deepStrictEqual(tags, ["RunEnd"])
    }).pipe(Effect.provide(RunLogStore.layerMemory))
  )
})
