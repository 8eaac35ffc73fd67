import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { RunnerAddress, RunnerStorage, ShardId } from "effect/cluster"
import { TestClock } from "effect/testing"
import { prompt } from "../../src/durable/internal/Shards.ts"

const address = RunnerAddress.make("127.0.0.1", 4112)
const shards: [ShardId.ShardId, ShardId.ShardId] = [ShardId.make("default", 1), ShardId.make("default", 2)]

/** A storage whose locks another process lets go of at the attempt `free`. */
const held = (free: number) =>
  Effect.gen(function* () {
    const memory = yield* RunnerStorage.RunnerStorage
    let attempts = 0
    const storage = prompt({
      ...memory,
      acquire: (_, ids) => Effect.sync(() => (++attempts < free ? [] : [...ids]))
    })
    return { storage, attempts: () => attempts }
  }).pipe(Effect.provide(RunnerStorage.layerMemory))

describe("PromptLocks", () => {
  it.effect("takes locks soon after another process has let go of them", () =>
    Effect.gen(function* () {
      const { attempts, storage } = yield* held(3)
      const taken = yield* Effect.forkChild(storage.acquire(address, shards), { startImmediately: true })
      assert.isUndefined(taken.pollUnsafe())
      yield* TestClock.adjust("160 millis")
      assert.deepStrictEqual(yield* Fiber.join(taken), shards)
      assert.strictEqual(attempts(), 3)
    })
  )

  it.effect(
    "takes all locks of a process that gives them back one after another, and does not wait for those of another one",
    () =>
      Effect.gen(function* () {
        const memory = yield* RunnerStorage.RunnerStorage
        const acquired = (counts: ReadonlyArray<number>) =>
          Effect.gen(function* () {
            let attempt = 0
            const { acquire } = prompt({
              ...memory,
              acquire: (_, ids) => Effect.sync(() => [...ids].slice(0, counts[attempt++]))
            })
            const taken = yield* Effect.forkChild(acquire(address, shards), { startImmediately: true })
            yield* TestClock.adjust("80 millis")
            return yield* Fiber.join(taken)
          })
        assert.deepStrictEqual(yield* acquired([1, 2]), shards)
        assert.deepStrictEqual(yield* acquired([1, 1]), [shards[0]])
      }).pipe(Effect.provide(RunnerStorage.layerMemory))
  )

  it.effect("gives up after less than a second", () =>
    Effect.gen(function* () {
      const { storage } = yield* held(100)
      const taken = yield* Effect.forkChild(storage.acquire(address, shards), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(taken), [])
    })
  )

  it.effect("confirms the locks of replies that wait at one time together", () =>
    Effect.gen(function* () {
      const memory = yield* RunnerStorage.RunnerStorage
      const [shard, lost] = shards
      const asked: Array<ReadonlyArray<ShardId.ShardId>> = []
      const storage = prompt({
        ...memory,
        refresh: (_, ids) =>
          Effect.sync(() => {
            asked.push([...ids])
            return [shard]
          })
      })
      const confirmed = yield* Effect.forEach(
        [shard, lost, shard],
        (one) => Effect.map(storage.refresh(address, [one]), (held) => held.includes(one)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(confirmed, [true, false, true])
      assert.deepStrictEqual(asked, [[shard, lost]])
    }).pipe(Effect.provide(RunnerStorage.layerMemory))
  )
})
