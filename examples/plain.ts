import { Tool } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { OpenAi } from "effect-agent/providers"
import { z } from "zod"

const weather = Tool.fromPromise({
  name: "weather",
  description: "The weather in a city, now.",
  params: z.object({ city: z.string() }),
  execute: async ({ city }) => `4 °C and rain in ${city}`
})

const agent = createAgent({ provider: OpenAi.layerConfig(), model: "gpt-5.4-mini", tools: [weather] })
for await (const text of agent.streamText("Do I need a coat in Oslo?")) process.stdout.write(text)
await agent.close()
