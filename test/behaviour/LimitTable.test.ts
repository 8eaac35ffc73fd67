import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Run, RunOptions } from "effect-agent"
import * as LimitTable from "../../src/internal/limitTable.ts"
import * as Request from "../../src/runs/internal/Request.ts"

const rows: LimitTable.Table = LimitTable.table
const bounds = Object.entries(rows).filter(([, { counts }]) => counts !== undefined)

describe("the table of limits", () => {
  it("has a row for each member of the limits, which its options list in the same order", () => {
    assert.deepStrictEqual(Object.keys(rows), Object.keys(RunOptions.Limits.fields))
  })

  it("names each bound in LimitExceeded by its option, and reads the name that it had before", () => {
    const decode = Schema.decodeUnknownSync(Run.LimitExceeded)
    const encode = Schema.encodeSync(Run.LimitExceeded)
    for (const [name, { formerly = name }] of bounds) {
      for (const stored of [name, formerly]) {
        const read = decode({ _tag: "LimitExceeded", limit: stored, value: 2, max: 1 })
        assert.strictEqual(read.message, `Limit ${name} reached: 2, allowed 1`)
        assert.strictEqual(encode(read).limit, name)
      }
    }
    assert.deepStrictEqual(
      bounds.map(([name]) => name),
      [
        "maxTurns",
        "executionTime",
        "maxToolCalls",
        "maxContextSize",
        "maxTotalTokens",
        "maxCost",
        "maxIdenticalToolCalls"
      ]
    )
  })

  it("narrows each bound: a client gets the smaller one, and one of its own where the server has none", () => {
    for (const [name, { initial, unit }] of Object.entries(rows)) {
      if (unit === undefined) continue
      const asked = (own: object, wanted: number) =>
        Request.narrow({ model: "m", limits: own }, { limits: { [name]: wanted } }).limits
      assert.deepStrictEqual(asked({ [name]: 5 }, 1_000), { [name]: 5 })
      assert.deepStrictEqual(asked({ [name]: 5 }, 2), { [name]: 2 })
      assert.deepStrictEqual(asked({}, 1_000), { [name]: initial ?? 1_000 })
    }
  })

  it("leaves to the server what a client must not choose", () => {
    const beside: object = { prices: { input: 0, output: 0 }, wrapUpInstruction: "x" }
    const { limits } = Request.narrow({ model: "m" }, { limits: { onMaxTurns: "stop", ...beside } })
    assert.deepStrictEqual(limits, { onMaxTurns: "stop" })
  })

  it("narrows a bound that it does not list, and leaves out what it cannot compare", () => {
    const own = { maxModelCalls: 5, mode: "safe" }
    const asked = { maxModelCalls: 1_000, mode: "wild" }
    assert.deepStrictEqual(Request.narrowed(own, asked), { maxModelCalls: 5 })
    const scratch: LimitTable.Table = {
      ...rows,
      maxModelCalls: { initial: 3, unit: "calls", narrows: "smaller", counts: "toolCalls" }
    }
    assert.deepStrictEqual(Request.narrowed({}, asked, scratch), { maxModelCalls: 3 })
  })
})
