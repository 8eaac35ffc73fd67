import { Tool } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"

const remove = Tool.fromPromise({
  name: "remove",
  description: "Removes a file.",
  execute: async () => "gone"
})

const agent = createAgent({
  provider: ScriptedProvider.layer([
    ScriptedProvider.toolCall("remove", {}),
    ScriptedProvider.text("I may not.")
  ]),
  model: "any",
  tools: [remove],
  hooks: {
    approveTool: async ({ call }) => ({ approved: call.name !== "remove", reason: "not today" })
  }
})

const unsubscribe = agent.on("ToolExecutionEnd", ({ outcome, toolName }) => console.log(toolName, outcome))
const { status } = await agent.prompt("Clean up, please.")
unsubscribe()
console.log(status, (await agent.messages()).length)
await agent.close()
