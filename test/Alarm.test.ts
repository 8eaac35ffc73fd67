import { assert, describe, it } from "@effect/vitest"
import { Clock, type Context, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Alarm from "../src/Alarm.ts"

const ringing = Effect.gen(function* () {
  const alarm = new Alarm.Alarm(yield* Effect.context<never>())
  const rung: Array<string> = []
  return { alarm, rung, set: (after: number, name: string) => alarm.set(after, () => rung.push(name)) }
})

describe("Alarm", () => {
  it.effect("rings each at its time, whatever the order they were set in", () =>
    Effect.gen(function* () {
      const { rung, set } = yield* ringing
      set(300, "late")
      set(100, "early")
      set(200, "between")
      yield* TestClock.adjust(99)
      assert.deepStrictEqual(rung, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(rung, ["early"])
      yield* TestClock.adjust(200)
      assert.deepStrictEqual(rung, ["early", "between", "late"])
    })
  )

  it.effect("rings for what is set when all before was taken back", () =>
    Effect.gen(function* () {
      const { rung, set } = yield* ringing
      const unset = set(100, "no")
      unset()
      yield* TestClock.adjust(50)
      set(100, "yes")
      yield* TestClock.adjust(99)
      assert.deepStrictEqual(rung, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(rung, ["yes"])
    })
  )

  it.effect("one that rings may set the next", () =>
    Effect.gen(function* () {
      const { alarm, rung } = yield* ringing
      const again = () => {
        rung.push("again")
        alarm.set(10, again)
      }
      alarm.set(10, again)
      yield* TestClock.adjust(35)
      assert.lengthOf(rung, 3)
      alarm.clear()
      yield* TestClock.adjust(35)
      assert.lengthOf(rung, 3)
    })
  )

  it.effect("rings at its time although somebody sets the clock", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      let hours = 0
      const set: Clock.Clock = {
        ...clock,
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + hours * 3_600_000
      }
      const { rung, set: ring } = yield* Effect.provideService(ringing, Clock.Clock, set)
      ring(1000, "first")
      hours = -1
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(rung, ["first"])
      ring(1000, "second")
      ring(2000, "third")
      hours = 1
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(rung, ["first", "second"])
    })
  )

  it.effect("work within one finds it, and leaves nothing set", () =>
    Effect.gen(function* () {
      const rung: Array<string> = []
      const work = Effect.contextWith((context: Context.Context<never>) => {
        Alarm.of(context).alarm.set(100, () => rung.push("within"))
        return Effect.sleep(50)
      })
      const fiber = yield* Effect.forkChild(Alarm.within(() => work))
      yield* TestClock.adjust(50)
      yield* Fiber.join(fiber)
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(rung, [])
    })
  )
})
