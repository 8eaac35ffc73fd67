import { Effect, Schema } from "effect"
import { Agent, Hook, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const look = Tool.make({
  name: "look",
  description: "Looks around.",
  execute: () => Effect.succeed("a mess")
})
const remove = Tool.make({
  name: "remove",
  description: "Removes a file.",
  params: Schema.Struct({ path: Schema.String }),
  execute: ({ path }) => Effect.succeed(`removed ${path}`)
})

const audit = Hook.afterTool(({ call, outcome }) => Effect.log(`${call.name}: ${outcome}`), { name: "audit" })
const notesStay = Hook.approveTool(remove, ({ params }) =>
  Effect.succeed({ approved: params.path !== "notes.md", reason: "notes stay" })
)

const program = Effect.scoped(
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "any", tools: [look, remove], hooks: [notesStay, audit] })
    const { newMessages } = yield* agent.prompt("Clean up, please.")
    for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
  })
)

const script = [
  ScriptedProvider.toolCalls({ name: "look", params: {} }, { name: "remove", params: { path: "notes.md" } }),
  ScriptedProvider.text("Not today, then.")
]
await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
