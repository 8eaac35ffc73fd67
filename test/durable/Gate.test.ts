import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Gate } from "../../src/runs/Gate.ts"

const yields = Effect.repeat(Effect.yieldNow, { times: 20 })

describe("Gate", () => {
  it.effect("lets as many runs work as it has places, those that came first go first", () =>
    Effect.gen(function* () {
      const gate = new Gate(2)
      const begun: Array<number> = []
      const ends = yield* Effect.forEach([0, 1, 2, 3], () => Deferred.make<void>())
      const fibers = yield* Effect.forEach(ends, (end, index) =>
        Effect.forkChild(
          gate.pass(
            String(index),
            Effect.andThen(
              Effect.sync(() => void begun.push(index)),
              Deferred.await(end)
            )
          ),
          { startImmediately: true }
        )
      )
      assert.deepStrictEqual(begun, [0, 1])
      assert.isTrue(gate.isFull)
      for (const [index, end] of ends.entries()) {
        yield* Deferred.succeed(end, undefined)
        yield* yields
        assert.deepStrictEqual(begun, [0, 1, 2, 3].slice(0, index + 3))
      }
      yield* Fiber.awaitAll(fibers)
      assert.isFalse(gate.isFull)
    })
  )

  it.effect("lets a run that goes on behind a wait work once it has a place again", () =>
    Effect.gen(function* () {
      const gate = new Gate(1)
      const isAnswered = yield* Deferred.make<void>()
      let working = 0
      let most = 0
      let done = 0
      const run = (runId: string) =>
        Effect.gen(function* () {
          gate.leave(runId)
          yield* Deferred.await(isAnswered)
          yield* gate.enter(runId)
          working++
          most = Math.max(most, working)
          yield* yields
          working--
          done++
        })
      const ids = ["a", "b", "c", "d", "e"]
      const fibers = yield* Effect.forEach(ids, (id) => Effect.forkChild(gate.pass(id, run(id))))
      yield* yields
      assert.isFalse(gate.isFull)
      yield* Deferred.succeed(isAnswered, undefined)
      yield* Fiber.awaitAll(fibers)
      assert.deepStrictEqual([most, done], [1, 5])
    })
  )

  it.effect("gives a run one place, whatever takes it", () =>
    Effect.gen(function* () {
      const gate = new Gate(2)
      assert.isTrue(gate.reserve("a"))
      yield* gate.enter("a")
      const first = yield* Effect.forkChild(gate.pass("a", Effect.never), { startImmediately: true })
      assert.isFalse(gate.isFull)
      assert.isTrue(gate.reserve("b"))
      assert.isFalse(gate.reserve("c"))
      yield* Fiber.interrupt(first)
      assert.isTrue(gate.reserve("c"))
    })
  )

  it.effect("keeps no place for a run that leaves the queue", () =>
    Effect.gen(function* () {
      const gate = new Gate(1)
      const first = yield* Effect.forkChild(gate.pass("a", Effect.never), { startImmediately: true })
      const second = yield* Effect.forkChild(gate.pass("b", Effect.never), { startImmediately: true })
      yield* Fiber.interrupt(second)
      yield* Fiber.interrupt(first)
      assert.isFalse(gate.isFull)
      assert.strictEqual(yield* gate.pass("c", Effect.succeed(1)), 1)
    })
  )
})
