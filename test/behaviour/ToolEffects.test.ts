import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { RunReport, Tool, Usage } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import * as Invariants from "./invariants.ts"
import { agent, ofTag, outcomes, play, reasonOf, say, toolResults } from "./play.ts"

const call = (name: string) => ScriptedProvider.toolCall(name, {}, { usage: { input: 10, output: 5 } })
const done = ScriptedProvider.text("done", { usage: { input: 2, output: 1 } })
const own = Usage.make({ input: 100, output: 20, cost: 0.5 })
const asker = say("ask", Tool.output("It rains.", { usage: own }))

describe("the result of a tool", () => {
  it.effect("has the usage of the tool's own model calls, which counts in reports and budgets (row 22)", () =>
    Effect.gen(function* () {
      const { events, exit } = yield* play([call("ask"), call("ask"), done], { tools: [asker] })
      const result = Exit.isSuccess(exit) ? exit.value : undefined
      assert.isTrue(Exit.isSuccess(exit), String(result))
      const end = ofTag(events, "RunEnd")[0]
      assert.deepInclude(end?.usage, { total: 273, cost: 1 })
      assert.deepInclude(end?.childUsage, { total: 240, cost: 1 })
      assert.deepInclude(ofTag(events, "TurnEnd")[0]?.childUsage, { total: 120 })
      assert.deepStrictEqual(ofTag(events, "ToolExecutionEnd")[0]?.result.usage, own)
      assert.strictEqual(RunReport.fromEvents(events).childUsage?.total, 240)
      assert.deepStrictEqual(Invariants.broken(events), [])
      for (const limits of [{ maxTotalTokens: 130 }, { maxCost: 0.4 }]) {
        const bounded = yield* play([call("ask"), done], { tools: [asker], options: { limits } })
        assert.strictEqual(reasonOf(bounded.exit)?._tag, "LimitExceeded")
        assert.strictEqual(ofTag(bounded.events, "ModelCallStart").length, 1)
      }
    })
  )

  it.effect("adds registered tools to the active ones from the next turn on (row 22)", () =>
    Effect.gen(function* () {
      const find = say("find", Tool.output("Found them.", { addedTools: ["paint", "nothing", "find"] }))
      const script = [
        ScriptedProvider.toolCalls({ name: "find", params: {} }, { name: "paint", params: {} }),
        call("paint"),
        done,
        done,
        done
      ]
      const {
        agent: made,
        events,
        requests
      } = yield* agent(script, {
        tools: [find, say("paint"), say("other")],
        activeTools: ["find"]
      })
      const { newMessages } = yield* made.prompt("hi")
      yield* made.prompt("again")
      yield* made.prompt("without", { activeTools: [] })
      const offered = (yield* requests).map(({ tools }) => tools.map(({ name }) => name).join())
      assert.deepStrictEqual(offered, ["find", "find,paint", "find,paint", "find,paint", ""])
      assert.deepStrictEqual(outcomes(events), ["unknownTool", "success", "success"])
      assert.deepStrictEqual(
        toolResults(newMessages).map(({ addedTools }) => addedTools),
        [["paint", "nothing", "find"], undefined, undefined]
      )
    })
  )
})
