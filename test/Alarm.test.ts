import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Alarm from "../src/internal/alarm.ts"

const ringing = Effect.gen(function* () {
  const alarm = Alarm.of(yield* Clock.Clock)
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
      let unset = alarm.set(10, () => again())
      const again = () => {
        rung.push("again")
        unset = alarm.set(10, again)
      }
      yield* TestClock.adjust(35)
      assert.lengthOf(rung, 3)
      unset()
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

  it.effect("sleeps as long as something is set, or somebody is about to set more, and no longer", () =>
    Effect.gen(function* () {
      const { sleeps, clock } = yield* watched
      const alarm = Alarm.of(clock)
      const take = [alarm.set(100, () => {}), alarm.set(200, () => {})]
      assert.strictEqual(sleeps.size, 1)
      for (const unset of take) unset()
      assert.strictEqual(sleeps.size, 0)

      const done = alarm.keep()
      alarm.set(100, () => {})()
      alarm.set(200, () => {})()
      assert.strictEqual(sleeps.size, 1)
      done()
      assert.strictEqual(sleeps.size, 0)
    })
  )

  it.effect("is one for all runs of a clock", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      assert.strictEqual(Alarm.of(clock), Alarm.of(clock))
      assert.notStrictEqual(Alarm.of(clock), Alarm.of({ ...clock }))
    })
  )
})

/** A clock that knows who sleeps by it. */
const watched = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const sleeps = new Set<unknown>()
  const counting: Clock.Clock = {
    ...clock,
    sleep: (duration) =>
      Effect.suspend(() => {
        const one = {}
        sleeps.add(one)
        return Effect.ensuring(
          clock.sleep(duration),
          Effect.sync(() => sleeps.delete(one))
        )
      })
  }
  return { sleeps, clock: counting }
})
