// pi-agent-core with pi-ai's Chat Completions.
import { Agent } from "@earendil-works/pi-agent-core"
import { streamSimple } from "@earendil-works/pi-ai/api/openai-completions"
import { once } from "./once.mjs"

export const meta = { name: "pi" }

const modelOf = (id, baseUrl) => ({
  id,
  name: id,
  api: "openai-completions",
  provider: "bench",
  baseUrl,
  reasoning: false,
  input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 1_000_000_000,
  maxTokens: 4096
})

const toolOf = once(({ description, execute, jsonSchema, name }) => ({
  name,
  label: name,
  description,
  parameters: jsonSchema,
  execute: async (_, params) => ({ content: [{ type: "text", text: await execute(params) }], details: {} })
}))

export async function run({ baseURL, model, onText, prompt, signal, system, tools = [] }) {
  const agent = new Agent({
    initialState: { systemPrompt: system, model: modelOf(model, baseURL), tools: tools.map(toolOf) },
    streamFn: streamSimple,
    getApiKey: () => "x",
    toolExecution: "parallel"
  })
  agent.subscribe((event) => {
    if (event.type !== "message_update") return
    const { delta, type } = event.assistantMessageEvent
    if (type === "text_delta") onText(delta)
  })
  const abort = () => agent.abort()
  signal?.addEventListener("abort", abort)
  try {
    await agent.prompt(prompt)
    if (agent.state.errorMessage !== undefined && !signal?.aborted) throw new Error(agent.state.errorMessage)
  } finally {
    signal?.removeEventListener("abort", abort)
  }
}
