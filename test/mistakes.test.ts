import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { LocalRules } from "effect-agent/providers"

describe("a beginner", () => {
  it("who forgets the provider of createAgent reads what to give", () => {
    const options: any = { model: "m" }
    assert.throws(
      () => createAgent(options),
      /Invalid options: provider is missing. Give one, such as OpenAi/
    )
  })

  it.effect("can provide the local rules as a layer", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "rules" })
        const { message } = yield* agent.prompt("Write a poem.")
        assert.strictEqual(message?.stopReason, "refusal")
      })
    ).pipe(Effect.provide(LocalRules.layer))
  )
})
