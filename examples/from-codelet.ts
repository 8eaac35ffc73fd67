import { Effect, Schema } from "effect"
import { Loop, Message, Tool, ToolRegistry } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const echo = Tool.make({
  name: "echo",
  description: "Gives its text back.",
  params: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.succeed(text)
})

// Runner::new().with_provider(provider).with_tools(registry): each part is a layer.
const provider = ScriptedProvider.layer([
  ScriptedProvider.toolCall("echo", { text: "hi" }),
  ScriptedProvider.text("The tool wrote hi.")
])
const registry = ToolRegistry.layer(echo)

const program = Effect.gen(function* () {
  const { definitions } = yield* ToolRegistry.ToolRegistry // registry.definitions()
  console.log((yield* definitions).map(({ name }) => name))
  // runner.run("Echo hi"): Ok(messages)
  const { newMessages } = yield* Loop.run(
    "Echo hi",
    { messages: [] },
    { model: "any", toolExecution: "sequential", limits: { maxTurns: Infinity } }
  )
  for (const message of newMessages) console.log(message.role, Message.textOf(message))
}).pipe(
  // Err(…) of a provider
  Effect.catchReason("RunFailed", "ProviderError", ({ message }) => Effect.log(message)),
  Effect.provide([provider, registry])
)

await Effect.runPromise(program)
// => ["echo"]
// => user Echo hi
// => assistant
// => toolResult hi
// => assistant The tool wrote hi.
