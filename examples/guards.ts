import { Effect, Schema } from "effect"
import { Agent, Hook, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const remove = Tool.make({
  name: "remove",
  description: "Removes a file.",
  params: Schema.Struct({ path: Schema.String }),
  execute: ({ path }) => Effect.succeed(`removed ${path}`)
})
const notesStay = Hook.approveTool(remove, ({ params }) =>
  Effect.succeed({ approved: params.path !== "notes.md", reason: "notes stay" })
)

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any", tools: [remove], hooks: [notesStay] })
  const { newMessages } = yield* agent.prompt("Clean up, please.")
  console.log(newMessages.map(Message.textOf)) // the third: Tool execution was rejected: notes stay
}).pipe(Effect.scoped)
const script = [
  ScriptedProvider.toolCall("remove", { path: "notes.md" }),
  ScriptedProvider.text("Not today.")
]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
