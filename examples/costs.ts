import { Effect } from "effect"
import { Agent } from "effect-agent"
import { GenAiPrices } from "effect-agent/prices"
import { ScriptedProvider } from "effect-agent/testing"

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({
    model: "gpt-5.4-mini",
    limits: { maxCost: 0.5, maxTotalTokens: 200_000 }
  })
  const { report, usage } = yield* agent.prompt("Do I need a coat in Oslo?")
  console.log(`${usage.input} tokens in, ${usage.output} out, $${usage.cost ?? "unknown"}`)
  console.log(`${report.turns} turns, ${report.toolCalls} calls, ${report.retries} retries`)
}).pipe(Effect.scoped)

const script = [ScriptedProvider.text("Yes.", { usage: { input: 1_200, output: 40, total: 1_240 } })]
const provider = ScriptedProvider.layer(script, { id: "openai" })
await Effect.runPromise(Effect.provide(program, [provider, GenAiPrices.layer()]))
