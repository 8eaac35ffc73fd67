import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { TestClock } from "effect/testing"
import { attempt, Control, grace, InFlight } from "../src/internal/interruption.ts"

/** Work that never ends, and reports its interruption. */
const endless = () => {
  const work = { interrupted: 0 }
  const effect = Effect.onInterrupt(Effect.never, () => Effect.sync(() => work.interrupted++))
  return { work, effect }
}

describe("attempt", () => {
  it.effect("returns how the work ended", () =>
    Effect.gen(function* () {
      const done = yield* attempt(Effect.as(Effect.yieldNow, 1))
      assert.strictEqual(done._tag === "Done" && done.exit._tag, "Success")
      const failed = yield* attempt(Effect.fail("no"))
      assert.strictEqual(failed._tag === "Done" && failed.exit._tag, "Failure")
    })
  )

  it.effect("interrupts the work when its time is over, and when it is halted", () =>
    Effect.gen(function* () {
      for (const tag of ["TimedOut", "Halted"] as const) {
        const within = new InFlight()
        const { effect, work } = endless()
        const attempted = yield* Effect.forkChild(attempt(effect, { within, timeout: 1000 }), {
          startImmediately: true
        })
        yield* tag === "Halted" ? within.halt : TestClock.adjust(1000)
        assert.deepStrictEqual(yield* Fiber.join(attempted), { _tag: tag, isAbandoned: false })
        assert.strictEqual(work.interrupted, 1)
      }
    })
  )

  it.effect("abandons work that ignores its interruption, after the grace", () =>
    Effect.gen(function* () {
      const within = new InFlight()
      const attempted = yield* Effect.forkChild(attempt(Effect.uninterruptible(Effect.never), { within }), {
        startImmediately: true
      })
      yield* within.halt
      yield* TestClock.adjust(grace - 1)
      assert.isUndefined(attempted.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* Fiber.join(attempted), { _tag: "Halted", isAbandoned: true })
    })
  )

  it.effect("does not begin work that is halted already", () =>
    Effect.gen(function* () {
      const within = new InFlight()
      yield* within.halt
      let isBegun = false
      const work = Effect.sync(() => {
        isBegun = true
      })
      assert.deepStrictEqual(yield* attempt(work, { within }), { _tag: "Halted", isAbandoned: false })
      assert.isFalse(isBegun)
    })
  )

  it.effect("takes the work along when it is interrupted itself", () =>
    Effect.gen(function* () {
      const { effect, work } = endless()
      const attempted = yield* Effect.forkChild(attempt(effect), { startImmediately: true })
      yield* Fiber.interrupt(attempted)
      assert.strictEqual(work.interrupted, 1)
    })
  )
})

describe("Control", () => {
  it.effect("keeps the first stop, and releases a pause", () =>
    Effect.gen(function* () {
      const control = new Control()
      control.pause("wait")
      const gate = yield* Latch.make(false)
      const waiting = yield* Effect.forkChild(Effect.andThen(control.runnable, gate.open), {
        startImmediately: true
      })
      assert.isUndefined(waiting.pollUnsafe())
      yield* control.cancel("enough")
      yield* control.cancel("again")
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(control.stop, { cause: "cancel", reason: "enough" })
    })
  )
})
