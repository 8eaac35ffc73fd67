import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Handoff } from "../src/internal/reader.ts"

/** Adds a batch and waits for room. */
const offer = (handoff: Handoff<number>, batch: ReadonlyArray<number>): Effect.Effect<void> =>
  Effect.suspend(() => {
    handoff.add(batch)
    return handoff.room
  })

/** Reads to the end, and tells what came together. */
const read = (handoff: Handoff<number>): Effect.Effect<Array<ReadonlyArray<number>>> =>
  Effect.suspend(() => {
    const batches: Array<ReadonlyArray<number>> = []
    const all = Effect.forever(Effect.map(handoff.pull, (batch) => batches.push(batch)))
    return Effect.as(Effect.exit(all), batches)
  })

describe("Handoff", () => {
  it.effect("takes what is offered in one go over in one array, to a reader that waits", () =>
    Effect.gen(function* () {
      const handoff = new Handoff<number>(10)
      const reader = yield* Effect.forkChild(read(handoff), { startImmediately: true })
      yield* offer(handoff, [1])
      yield* offer(handoff, [2, 3])
      yield* Effect.yieldNow
      yield* offer(handoff, [4])
      handoff.end(Exit.void)
      assert.deepStrictEqual(yield* Fiber.join(reader), [[1, 2, 3], [4]])
    })
  )

  it.effect("wakes the reader before a timer or a task, although the writer just waits", () =>
    Effect.gen(function* () {
      const handoff = new Handoff<number>(10)
      let heard = false
      const reading = Effect.map(handoff.pull, () => {
        heard = true
      })
      yield* Effect.forkChild(reading, { startImmediately: true })
      yield* offer(handoff, [1])
      assert.isFalse(heard)
      yield* Effect.promise(() => Promise.resolve())
      assert.isTrue(heard)
    })
  )

  it.effect("holds a writer up while as much waits as may, and no longer", () =>
    Effect.gen(function* () {
      const handoff = new Handoff<number>(2)
      yield* offer(handoff, [1, 2])
      const writer = yield* Effect.forkChild(offer(handoff, [3]), { startImmediately: true })
      assert.isUndefined(writer.pollUnsafe())
      assert.deepStrictEqual(yield* handoff.pull, [1, 2, 3])
      yield* Fiber.join(writer)
    })
  )

  it.effect("a writer that comes to wait after the reader was there does not", () =>
    Effect.gen(function* () {
      const handoff = new Handoff<number>(2)
      yield* offer(handoff, [1, 2])
      handoff.add([3])
      const { room } = handoff
      assert.deepStrictEqual(yield* handoff.pull, [1, 2, 3])
      const writer = yield* Effect.forkChild(room, { startImmediately: true })
      assert.isDefined(writer.pollUnsafe())
    })
  )

  it.effect("holds nobody up who only adds", () =>
    Effect.gen(function* () {
      const handoff = new Handoff<number>(2)
      handoff.add([1, 2, 3])
      handoff.add([4])
      assert.deepStrictEqual(yield* handoff.pull, [1, 2, 3, 4])
    })
  )

  it.effect("a reader that leaves before it is woken loses nothing for the next", () =>
    Effect.gen(function* () {
      const handoff = new Handoff<number>(10)
      const reader = yield* Effect.forkChild(handoff.pull, { startImmediately: true })
      yield* offer(handoff, [1])
      yield* Fiber.interrupt(reader)
      assert.deepStrictEqual(yield* handoff.pull, [1])
    })
  )
})
