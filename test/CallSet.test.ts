import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { CallSet, from } from "../src/internal/callSet.ts"

const Step = Schema.Struct({
  /** Which of the sets so far is changed: mostly the last. */
  of: Schema.Literals([0, 0, 0, 1, 3]),
  adds: Schema.Boolean,
  id: Schema.Literals(["a", "b", "c", "d"])
})

describe("CallSet", () => {
  it.effect("is a set that does not change, whichever of its versions is changed", () =>
    Effect.gen(function* () {
      const checked = yield* Arbitrary.checkEffect(
        Arbitrary.schema(Schema.Array(Step)),
        (steps) =>
          Effect.sync(() => {
            const sets: Array<readonly [CallSet, ReadonlyArray<string>]> = [[CallSet.empty, []]]
            for (const { adds, id, of } of steps) {
              const [set, ids] = sets.at(-1 - of) ?? [CallSet.empty, []]
              const others = ids.filter((other) => other !== id)
              const added = ids.includes(id) ? ids : [...ids, id]
              sets.push(adds ? [set.with(id), added] : [set.without(id), others])
            }
            for (const [set, ids] of sets) {
              assert.deepStrictEqual([...set], ids)
              assert.strictEqual(set.size, ids.length)
              for (const id of ["a", "b", "c", "d"]) assert.strictEqual(set.has(id), ids.includes(id))
            }
            return true
          }),
        { runs: 500, seed: 3 }
      )
      assert.strictEqual(checked._tag, "Passed", JSON.stringify(checked).slice(0, 2000))
    })
  )

  it("gives what a Set gives", () => {
    const ids = ["x", "y", "z"]
    const [set, plain] = [from(new Set(ids)).with("w").without("w"), new Set(ids)]
    const other = new Set(["y", "q"])
    assert.deepStrictEqual([...set.keys()], [...plain.keys()])
    assert.deepStrictEqual([...set.values()], [...plain.values()])
    assert.deepStrictEqual([...set.entries()], [...plain.entries()])
    const seen: Array<unknown> = []
    set.forEach(function (this: unknown, id, key, all) {
      seen.push([this, id, key, all === set])
    }, 7)
    assert.deepStrictEqual(
      seen,
      ids.map((id) => [7, id, id, true])
    )
    assert.deepStrictEqual([...set.union(other)], ["x", "y", "z", "q"])
    assert.deepStrictEqual([...set.intersection(other)], ["y"])
    assert.deepStrictEqual([...set.difference(other)], ["x", "z"])
    assert.deepStrictEqual([...set.symmetricDifference(other)], ["x", "z", "q"])
    assert.deepStrictEqual(
      [set, other, new Set(["q"])].map((one) => [
        set.isSubsetOf(one),
        set.isSupersetOf(one),
        set.isDisjointFrom(one)
      ]),
      [
        [true, true, false],
        [false, false, false],
        [false, false, true]
      ]
    )
    assert.strictEqual(from(set), set)
  })
})
