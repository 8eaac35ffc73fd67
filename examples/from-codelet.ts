import { Message, Tool } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"
import { z } from "zod"

const echo = Tool.fromPromise({
  name: "echo",
  description: "Gives its text back.",
  params: z.object({ text: z.string() }),
  execute: ({ text }) => text
})

// Runner::new().with_provider(provider).with_tools(registry)
const runner = createAgent({
  provider: ScriptedProvider.layer([
    ScriptedProvider.toolCall("echo", { text: "hi" }),
    ScriptedProvider.text("The tool wrote hi.")
  ]),
  model: "any",
  tools: [echo],
  toolExecution: "sequential",
  limits: { maxTurns: Infinity }
})
console.log((await runner.tools.definitions()).map(({ name }) => name)) // registry.definitions()
console.log(Message.textOf(await runner.tools.call("echo", { text: "ho" }))) // registry.execute_tool("echo", …)

// runner.run("Echo hi"): Ok(messages). Err(…) is a promise that rejects.
const { newMessages } = await runner.prompt("Echo hi")
for (const message of newMessages) console.log(message.role, Message.textOf(message))
await runner.close()
// => [ 'echo' ]
// => ho
// => user Echo hi
// => assistant
// => toolResult hi
// => assistant The tool wrote hi.
