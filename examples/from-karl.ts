import { type Provider, Tool } from "effect-agent"
import { Karl } from "effect-agent/compat"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"
import type { Layer } from "effect"

interface Config {
  readonly model: string
  /** Karl's `apiFormat`, `baseUrl` and `apiKey`: `Anthropic.layer({ … })` or `OpenAiCompatible.layer({ … })`. */
  readonly provider: Layer.Layer<Provider.Provider>
}

/** Karl's `agentLoop`: yields the events of Karl, and returns the last answer. */
async function* agentLoop(
  system: string,
  user: string,
  tools: ReadonlyArray<Tool.Runnable>,
  config: Config
): AsyncGenerator<Karl.Event, Karl.AssistantMessage> {
  const options = { toolExecution: "sequential", invalidJsonArguments: "emptyObject" } as const
  const agent = createAgent({ ...config, ...options, system, tools })
  try {
    return (yield* Karl.iterate(agent.stream(user))).lastAnswer
  } finally {
    await agent.close()
  }
}

// A tool returns what it returned in Karl.
const read = Tool.fromPromise({
  name: "read",
  description: "Reads a note.",
  parameters: { type: "object", properties: { name: { type: "string" } } },
  execute: async () => ({ content: [{ type: "text", text: "Buy milk." }] })
})

const provider = ScriptedProvider.layer([
  ScriptedProvider.toolCall("read", { name: "today" }),
  ScriptedProvider.text("Milk.")
])
for await (const event of agentLoop("Be brief.", "Read my note.", [read], { model: "any", provider })) {
  if (event.type === "tool_execution_end") console.log(event.toolName, event.isError)
  if (event.type === "turn_end") console.log(event.message.content)
}
// => read false
// => Milk.
