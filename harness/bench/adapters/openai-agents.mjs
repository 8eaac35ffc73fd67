// OpenAI's Agents SDK over Chat Completions.
import { Agent, OpenAIChatCompletionsModel, run as runAgent, setTracingDisabled, tool } from "@openai/agents"
import OpenAI from "openai"
import { once } from "./once.mjs"

export const meta = { name: "OpenAI Agents" }

setTracingDisabled(true)

let client
const clientOf = (baseURL) => (client ??= new OpenAI({ baseURL, apiKey: "x", maxRetries: 0 }))

const toolOf = once(({ description, execute, jsonSchema, name }) =>
  tool({ name, description, parameters: jsonSchema, strict: true, execute })
)

export async function run({ baseURL, maxTurns, model, onText, prompt, signal, system, tools = [] }) {
  const agent = new Agent({
    name: "bench",
    instructions: system,
    model: new OpenAIChatCompletionsModel(clientOf(baseURL), model),
    tools: tools.map(toolOf)
  })
  const result = await runAgent(agent, prompt, { stream: true, maxTurns, signal })
  for await (const text of result.toTextStream()) onText(text)
  await result.completed
}
