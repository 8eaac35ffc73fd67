import { ContextManager, Tool } from "effect-agent"
import { OneRingStream } from "effect-agent/compat"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"
import { z } from "zod"

const weather = Tool.fromPromise({
  name: "get_weather",
  description: "The weather in a city, now.",
  params: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, degrees: 4 })
})
const remove = Tool.fromPromise({ name: "remove_all", description: "Removes all.", execute: () => "gone" })

const agent = createAgent({
  provider: ScriptedProvider.layer([
    ScriptedProvider.toolCalls(
      { name: "get_weather", params: { city: "Oslo" } },
      { name: "remove_all", params: {} }
    ),
    ScriptedProvider.text("4 °C in Oslo.")
  ]),
  model: "any",
  system: "Be brief.", // instructions
  tools: [weather, remove],
  limits: { maxTurns: 10, maxToolCalls: 20, executionTime: "5 minutes" }, // maxIterations, limits
  layer: ContextManager.slidingWindow({ maxMessages: 50 }), // maxInputMessages
  hooks: {
    "approve:tool": ({ call }) =>
      call.name === "remove_all" ? { approved: false, reason: "not here" } : { approved: true },
    "before:llm": () => ({ modified: { temperature: 0 } })
  }
})
agent.on("tool:complete", ({ toolCall, result }) => console.log(toolCall.function.name, result.content))

// oneringai's stream events. `agent.prompt` is its `run`.
for await (const event of OneRingStream.iterate(agent.stream("Weather in Oslo? And remove all."))) {
  if (event.type === "response.output_text.delta") console.log(event.delta)
}
const report = await agent.report() // metrics, history and audit
console.log(
  report?.toolCalls,
  report?.toolSuccess,
  report?.audit.map(({ type }) => type)
)
await agent.close()
// => get_weather {"city":"Oslo","degrees":4}
// => 4 °C in Oslo.
// => 2 1 [ 'tool_rejected', 'tool_approved' ]
