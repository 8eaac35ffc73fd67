import { Effect } from "effect"
import { Agent, Hook, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const look = Tool.make({
  name: "look",
  description: "Looks around.",
  execute: () => Effect.succeed("a mess")
})
const remove = Tool.make({
  name: "remove",
  description: "Removes it.",
  execute: () => Effect.succeed("gone")
})

const audit = Hook.afterTool(({ call, outcome }) => Effect.log(`${call.name}: ${outcome}`))
const nothingIsRemoved = Hook.approveTool(({ call }) =>
  Effect.succeed({ approved: call.name !== "remove", reason: "not on a Friday" })
)

const program = Effect.scoped(
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "any", tools: [look, remove], hooks: [nothingIsRemoved, audit] })
    const { newMessages } = yield* agent.prompt("Clean up, please.")
    for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
  })
)

const script = [
  ScriptedProvider.toolCalls({ name: "look", params: {} }, { name: "remove", params: {} }),
  ScriptedProvider.text("Not today, then.")
]
await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
