import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { TestClock } from "effect/testing"
import { attempt, Control, grace } from "../src/internal/interruption.ts"

/** Work that never ends, and reports its interruption. */
const endless = () => {
  const work = { interrupted: 0 }
  const effect = Effect.onInterrupt(Effect.never, () => Effect.sync(() => work.interrupted++))
  return { work, effect }
}

/** Runs work as a run does: its fiber can be interrupted only where it waits for foreign work. */
const start = (control: Control, work: Effect.Effect<unknown, unknown>, until?: Effect.Effect<void>) =>
  Effect.forkDetach(control.fibers.including(attempt(work, { control, until })), {
    startImmediately: true,
    uninterruptible: true
  })

describe("attempt", () => {
  it.effect("returns how the work ended", () =>
    Effect.gen(function* () {
      const done = yield* attempt(Effect.as(Effect.yieldNow, 1))
      assert.strictEqual(done._tag === "Done" && done.exit._tag, "Success")
      const failed = yield* attempt(Effect.fail("no"))
      assert.strictEqual(failed._tag === "Done" && failed.exit._tag, "Failure")
    })
  )

  it.effect("interrupts the work when its time is over, and when the run is stopped", () =>
    Effect.gen(function* () {
      for (const tag of ["TimedOut", "Halted"] as const) {
        const control = new Control()
        const { effect, work } = endless()
        const attempted = yield* start(control, effect, Effect.sleep(1000))
        yield* tag === "Halted" ? control.cancel() : TestClock.adjust(1000)
        assert.deepStrictEqual(yield* Fiber.join(attempted), { _tag: tag, isAbandoned: false })
        assert.strictEqual(work.interrupted, 1)
      }
    })
  )

  it.effect("abandons work that ignores its interruption, after the grace", () =>
    Effect.gen(function* () {
      const control = new Control()
      const attempted = yield* start(control, Effect.uninterruptible(Effect.never))
      yield* control.cancel()
      yield* TestClock.adjust(grace - 1)
      assert.isUndefined(attempted.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* Fiber.join(attempted), { _tag: "Halted", isAbandoned: true })
    })
  )

  it.effect("does not begin work of a run that is stopped", () =>
    Effect.gen(function* () {
      const control = new Control()
      yield* control.cancel()
      let isBegun = false
      const work = Effect.sync(() => {
        isBegun = true
      })
      assert.deepStrictEqual(yield* attempt(work, { control }), { _tag: "Halted", isAbandoned: false })
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
