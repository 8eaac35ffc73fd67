import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Effect, Exit, Fiber, Latch } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { connect } from "../sql/databases.ts"
import * as SqlBatch from "../../src/sql/SqlBatch.ts"

const refused = new SqlError.SqlError({
  reason: new SqlError.ConstraintError({ cause: new Error("refused"), message: "refused" })
})

/** Writes that wait for a latch, and refuse 13. */
const recorded = Effect.fnUntraced(function* (gate: Latch.Latch) {
  const sql = yield* Effect.provide(SqlClient.SqlClient, yield* connect("sqlite::memory:"))
  const statements: Array<ReadonlyArray<number>> = []
  const write = SqlBatch.make(
    sql,
    (items: Arr.NonEmptyReadonlyArray<number>) =>
      Effect.andThen(gate.await, () => {
        statements.push(items)
        return items.includes(13) ? Effect.fail(refused) : Effect.succeed(Arr.map(items, (item) => item * 10))
      }),
    (item) => item
  )
  return { sql, statements, write }
})

describe("writes that wait at one time", () => {
  it.effect("are one statement behind the one that is under way", () =>
    Effect.gen(function* () {
      const gate = Latch.makeUnsafe(false)
      const { statements, write } = yield* recorded(gate)
      const first = yield* Effect.forkChild(write(1))
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      const others = yield* Effect.forkChild(Effect.forEach([2, 3, 4], write, { concurrency: "unbounded" }))
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      yield* gate.open
      assert.strictEqual(yield* Fiber.join(first), 10)
      assert.deepStrictEqual(yield* Fiber.join(others), [20, 30, 40])
      assert.deepStrictEqual(statements, [[1], [2, 3, 4]])
    })
  )

  it.effect("are tried alone if the database refuses one of them", () =>
    Effect.gen(function* () {
      const { statements, write } = yield* recorded(Latch.makeUnsafe(true))
      const exits = yield* Effect.forEach([1, 13, 2], (item) => Effect.exit(write(item)), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(exits, [Exit.succeed(10), Exit.fail(refused), Exit.succeed(20)])
      assert.deepStrictEqual(statements, [[1, 13, 2], [1], [13], [2]])
    })
  )

  it.effect("are in statements of their own if they write to the same row", () =>
    Effect.gen(function* () {
      const { statements, write } = yield* recorded(Latch.makeUnsafe(true))
      yield* Effect.forEach([1, 2, 1], write, { concurrency: "unbounded" })
      assert.deepStrictEqual(statements, [[1, 2], [1]])
    })
  )

  it.effect("stay in the transaction that they are in", () =>
    Effect.gen(function* () {
      const gate = Latch.makeUnsafe(false)
      const { sql, statements, write } = yield* recorded(gate)
      const other = yield* Effect.forkChild(write(1), { startImmediately: true })
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      const inside = yield* Effect.forkChild(sql.withTransaction(write(2)), { startImmediately: true })
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      yield* gate.open
      assert.deepStrictEqual([yield* Fiber.join(inside), yield* Fiber.join(other)], [20, 10])
      assert.deepStrictEqual(statements, [[1], [2]])
    })
  )

  it.effect("come to their end before an interrupt does", () =>
    Effect.gen(function* () {
      const gate = Latch.makeUnsafe(false)
      const { statements, write } = yield* recorded(gate)
      const fiber = yield* Effect.forkChild(write(1), { startImmediately: true })
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      const interrupt = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* gate.open
      yield* Fiber.join(interrupt)
      assert.deepStrictEqual(statements, [[1]])
    })
  )
})
