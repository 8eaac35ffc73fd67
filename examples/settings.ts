import { Effect } from "effect"
import { Agent } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({
    model: "claude-sonnet-5",
    system: "You are a reviewer. Answer in one sentence.",
    modelOptions: { temperature: 0.2, maxTokens: 2_000, thinkingLevel: "high" }
  })
  console.log((yield* agent.prompt("Review this: 1 + 1 = 3")).text)

  // One prompt with other settings, and a change for all later ones. `null` unsets an option.
  yield* agent.prompt("Why?", { system: "Explain at length.", modelOptions: { thinkingLevel: "max" } })
  yield* agent.update({ modelOptions: { temperature: null, toolChoice: "none" } })
  console.log((yield* agent.state.get).options.modelOptions)
}).pipe(Effect.scoped)

const script = [ScriptedProvider.text("The sum is wrong."), ScriptedProvider.text("1 + 1 is 2.")]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
