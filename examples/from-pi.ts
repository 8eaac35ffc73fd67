import { Message, Tool } from "effect-agent"
import { Pi } from "effect-agent/compat"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"
import { z } from "zod"

const weather = Tool.fromPromise({
  name: "weather", // pi's `label` is `label` here too
  description: "The weather in a city, now.",
  params: z.object({ city: z.string() }),
  // pi: execute(toolCallId, params, signal, onUpdate)
  execute: async ({ city }, { progress }) => {
    progress("Asking …")
    return `4 °C and rain in ${city}`
  }
})

const agent = createAgent({
  provider: ScriptedProvider.layer([
    ScriptedProvider.toolCall("weather", { city: "Oslo" }),
    ScriptedProvider.text("Take a coat."),
    ScriptedProvider.text("And an umbrella.")
  ]),
  system: "Be brief.", // pi: initialState.systemPrompt
  model: "any",
  tools: [weather],
  modelOptions: { thinkingLevel: "low" },
  hooks: {
    beforeTool: ({ call }) => (call.name === "shell" ? { block: true, reason: "no shell" } : undefined), // beforeToolCall
    transformMessages: ({ messages }) => messages.slice(-50) // transformContext
  }
})

// pi's events, where a page or a log has them already.
agent.subscribe(Pi.listener(({ type }) => type === "turn_end" && console.log(type)))

await agent.followUp("Anything else?")
await agent.prompt("Do I need a coat in Oslo?")
console.log((await agent.messages()).map(Message.textOf).at(-1)) // pi: agent.state.messages
await agent.close()
// => turn_end
// => turn_end
// => turn_end
// => And an umbrella.
