// The AI SDK: `streamText` with its OpenAI-compatible provider.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { jsonSchema as schema, stepCountIs, streamText, tool } from "ai"
import { once } from "./once.mjs"

export const meta = { name: "AI SDK" }

let provider
const providerOf = (baseURL) =>
  (provider ??= createOpenAICompatible({ name: "bench", baseURL, apiKey: "x", includeUsage: true }))

const toolOf = once(({ description, execute, jsonSchema, name }) => [
  name,
  tool({ description, inputSchema: schema(jsonSchema), execute })
])

export async function run({ baseURL, maxTurns, model, onText, prompt, signal, system, tools = [] }) {
  let trouble
  const { textStream } = streamText({
    model: providerOf(baseURL).chatModel(model),
    system,
    prompt,
    tools: Object.fromEntries(tools.map(toolOf)),
    stopWhen: stepCountIs(maxTurns),
    abortSignal: signal,
    onError: ({ error }) => (trouble = error)
  })
  for await (const text of textStream) onText(text)
  if (trouble !== undefined) throw trouble
}
