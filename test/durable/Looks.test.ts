import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, References } from "effect"
import { RunLogStore } from "effect-agent/server"
import { TestClock } from "effect/testing"
import type { DurableRuns } from "effect-agent/durable"
import { Looks } from "../../src/durable/internal/Looks.ts"

/** Runs that wait in the store, and counts of how often it is read for one. */
const made = Effect.fnUntraced(function* (count: number) {
  const logs = yield* RunLogStore.RunLogStore
  const keys = Array.from({ length: count }, (_, index) => ({ runId: `r${index}`, sessionId: `s${index}` }))
  yield* Effect.forEach(keys, (key) => Effect.scoped(logs.open(key)), { discard: true })
  const here = new Map<string, string>()
  let finds = 0
  const counting = {
    ...logs,
    find: (runId: string) => Effect.suspend(() => (finds++, logs.find(runId)))
  }
  const local: Pick<DurableRuns.LocalRunsService, "active"> = { active: (sessionId) => here.get(sessionId) }
  const looks = new Looks(local, counting)
  yield* looks.run
  const watch = (index: number) =>
    Effect.forkChild(looks.settled(`s${index}`, `r${index}`), { startImmediately: true })
  return { logs, here, looks, watch, finds: () => finds }
})

describe("the looks of a worker", () => {
  it.effect("cost the store the same for 10,000 watchers as for 20", () =>
    Effect.gen(function* () {
      const { finds, watch } = yield* made(10_000)
      for (let index = 0; index < 10_000; index++) yield* watch(index)
      const before = finds()
      assert.isAtMost(before, 10_020)
      for (let second = 0; second < 10; second++) yield* TestClock.adjust("1 second")
      // A look for each of them five times a second would be 500,000.
      assert.isAtMost(finds() - before, 1020)
    }).pipe(Effect.scoped, Effect.provide(RunLogStore.layerMemory))
  )

  it.effect("notice a run that begins in this process, ends, or ends elsewhere", () =>
    Effect.gen(function* () {
      const { here, logs, looks, watch } = yield* made(100)
      for (let index = 0; index < 97; index++) yield* watch(index)
      const begun = yield* watch(97)
      const ended = yield* watch(98)
      const away = yield* watch(99)
      here.set("s97", "r97")
      yield* TestClock.adjust("200 millis")
      assert.strictEqual(yield* Fiber.join(begun), "here")
      yield* logs.end({ runId: "r98", sessionId: "s98" })
      yield* looks.wake("r98")
      assert.strictEqual(yield* Fiber.join(ended), "over")
      yield* logs.end({ runId: "r99", sessionId: "s99" })
      assert.isUndefined(away.pollUnsafe())
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(away), "over")
      assert.strictEqual(yield* looks.settled("s99", "r99"), "over")
    }).pipe(Effect.scoped, Effect.provide(RunLogStore.layerMemory))
  )

  it.effect("forget a run whose watcher was interrupted, at each step of it", () =>
    Effect.gen(function* () {
      const { finds, looks } = yield* made(1)
      // A watcher is interrupted where its fiber yields: after 50 steps, of which each next one spends one more before it begins.
      let watching: Effect.Effect<unknown> = looks.settled("s0", "r0")
      for (let steps = 0; steps < 50; steps++) {
        const watcher = yield* Effect.forkChild(watching, { startImmediately: true }).pipe(
          Effect.provideService(References.MaxOpsBeforeYield, 50)
        )
        yield* Fiber.interrupt(watcher)
        watching = Effect.andThen(Effect.void, watching)
      }
      const before = finds()
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(finds(), before)
    }).pipe(Effect.scoped, Effect.provide(RunLogStore.layerMemory))
  )
})
