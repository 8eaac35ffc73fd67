import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Gate } from "../../src/durable/Gate.ts"

const busy = Effect.succeed(false)

describe("Gate", () => {
  it.effect("lets as many runs work as it has places, those that came first go first", () =>
    Effect.gen(function* () {
      const gate = new Gate(2)
      const begun: Array<number> = []
      const ends = yield* Effect.forEach([0, 1, 2, 3], () => Deferred.make<void>())
      const fibers = yield* Effect.forEach(ends, (end, index) =>
        Effect.forkChild(
          gate.pass(
            Effect.andThen(
              Effect.sync(() => void begun.push(index)),
              Deferred.await(end)
            ),
            busy
          ),
          { startImmediately: true }
        )
      )
      assert.deepStrictEqual(begun, [0, 1])
      assert.isTrue(gate.isFull)
      for (const [index, end] of ends.entries()) {
        yield* Deferred.succeed(end, undefined)
        yield* Effect.yieldNow
        yield* TestClock.adjust(0)
        assert.deepStrictEqual(begun, [0, 1, 2, 3].slice(0, index + 3))
      }
      yield* Fiber.awaitAll(fibers)
      assert.isFalse(gate.isFull)
    })
  )

  it.effect(
    "gives the place of a run that waits for a person to another one, and takes one again behind it",
    () =>
      Effect.gen(function* () {
        const gate = new Gate(1)
        let isWaiting = true
        let others = 0
        const first = yield* Effect.forkChild(
          gate.pass(
            Effect.never,
            Effect.sync(() => isWaiting)
          ),
          { startImmediately: true }
        )
        const other = gate.pass(
          Effect.sync(() => void others++),
          busy
        )
        const second = yield* Effect.forkChild(other, { startImmediately: true })
        assert.strictEqual(others, 0)
        yield* TestClock.adjust("300 millis")
        yield* Fiber.join(second)
        assert.strictEqual(others, 1)
        isWaiting = false
        yield* TestClock.adjust("300 millis")
        assert.isTrue(gate.isFull)
        const third = yield* Effect.forkChild(other, { startImmediately: true })
        yield* Fiber.interrupt(first)
        yield* Fiber.join(third)
        assert.strictEqual(others, 2)
        assert.isFalse(gate.isFull)
      })
  )

  it.effect("keeps no place for a run that leaves the queue", () =>
    Effect.gen(function* () {
      const gate = new Gate(1)
      const first = yield* Effect.forkChild(gate.pass(Effect.never, busy), { startImmediately: true })
      const second = yield* Effect.forkChild(gate.pass(Effect.never, busy), { startImmediately: true })
      yield* Fiber.interrupt(second)
      yield* Fiber.interrupt(first)
      assert.isFalse(gate.isFull)
      assert.strictEqual(yield* gate.pass(Effect.succeed(1), busy), 1)
    })
  )
})
