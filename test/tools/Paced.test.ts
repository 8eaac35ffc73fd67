import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Paced from "../../src/tools/Paced.ts"
import { longest, tries, whole } from "./stretch.ts"

/** Pauses without end. */
function* endless(): Paced.Work<never> {
  while (true) yield
}

describe("Paced", () => {
  it.live(
    "does work in slices, and gives what it came to",
    () =>
      Effect.gen(function* () {
        function* work(): Paced.Work<number> {
          let sum = 0
          for (let index = 0; index < 3_000_000; index++) {
            sum += index
            if (index % 1_000 === 0) yield
          }
          return sum
        }
        const { result, stretch } = yield* longest(Effect.all([Paced.run(work()), Paced.run(work())]))
        assert.deepStrictEqual(result, [4_499_998_500_000, 4_499_998_500_000])
        assert.isBelow(stretch, 60)
      }),
    tries
  )

  it.live("stops when it is interrupted", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Paced.run(endless()), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect("stops when the budget is spent, by the clock of the fiber", () =>
    Effect.gen(function* () {
      const budget = yield* Paced.budget(Duration.seconds(5))
      assert.isFalse(budget.isSpent())
      yield* TestClock.adjust("4999 millis")
      yield* Paced.runWithin(twice(), budget)
      assert.isFalse(budget.hasStopped())
      yield* TestClock.adjust("1 millis")
      assert.isFalse(budget.hasStopped())
      yield* Paced.runWithin(endless(), budget)
      assert.isTrue(budget.hasStopped())
    })
  )

  it("finds a text where the engine finds it", () => {
    for (const [text, wanted] of [
      ["", "a"],
      ["abcabc", "c"],
      ["abcabc", "cab"],
      ["abc", "abcd"],
      ["aab".repeat(1_000), "aabb"],
      ["ab".repeat(2_000_000), "ba".repeat(600_000)],
      [`${"x".repeat(2_000_001)}end`, "end"],
      [`${"x".repeat(999_999)}end`, "end"],
      [`${"x".repeat(1_000_001)}end`, "end"],
      [`${"ab".repeat(40)}c`, "bc"]
    ] as const) {
      for (const from of [0, 1, 4]) {
        assert.strictEqual(whole(Paced.indexOf(text, wanted, from)), text.indexOf(wanted, from))
      }
    }
  })

  it("decodes long texts as a whole", () => {
    const text = `${"a".repeat(65_535)}😀É${"ÄÖ𐐀".repeat(70_000)}`
    const bytes = new TextEncoder().encode(text)
    assert.isTrue(whole(Paced.decoded(bytes, new TextDecoder())) === text)
    const cut = whole(Paced.decoded(bytes.subarray(0, -1), new TextDecoder()))
    assert.isTrue(cut === new TextDecoder().decode(bytes.subarray(0, -1)))
    assert.throws(() =>
      whole(Paced.decoded(bytes.subarray(0, -1), new TextDecoder("utf-8", { fatal: true })))
    )
  })

  it("parts lines at both line ends", () => {
    for (const text of ["", "a", "a\n", "a\n\n", "\n", "\r\n", "\r", "a\rb\r\nc\r", "a\r\r\nb", "\n\r\n\r"]) {
      const expected = text.split(/\r?\n/)
      if (expected.at(-1) === "") expected.pop()
      assert.deepStrictEqual(Array.from(Paced.lines(text)), expected, JSON.stringify(text))
    }
  })
})

function* twice(): Paced.Work<void> {
  yield
  yield
}
