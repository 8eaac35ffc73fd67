import { assert, describe, it } from "@effect/vitest"
import { Prices } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider, Step } from "effect-agent/testing"

const provider = ScriptedProvider.layer([
  ScriptedProvider.turn(
    Step.event({ _tag: "Start", provider: "anthropic", model: "claude-opus-4-5", protocol: "none" }),
    Step.text("ok"),
    Step.finish("stop", { input: 100_000 })
  )
])

describe("the cost of a promise agent", () => {
  it("is computed with list prices, without a layer", async () => {
    await using agent = createAgent({ provider, model: "claude-opus-4-5" })
    const { usage } = await agent.prompt("hi")
    assert.deepInclude(usage, { cost: 0.5, costSource: "computed" })
  })

  it("is computed with the prices of its layer", async () => {
    const layer = Prices.layer({ "claude-opus-4-5": { input: 20, output: 0 } })
    await using agent = createAgent({ provider, model: "claude-opus-4-5", layer })
    const { usage } = await agent.prompt("hi")
    assert.deepInclude(usage, { cost: 2, costSource: "computed" })
  })
})
