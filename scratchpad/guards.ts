import { Effect } from "effect"
import { Agent, Hook, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const remove = Tool.make({ name: "remove", description: "Removes everything.", execute: () => Effect.succeed("gone") })

const audit = Hook.afterTool(({ call, outcome }) => Effect.log(`${call.name}: ${outcome}`))
const noRemoving = Hook.beforeTool(({ call }) =>
  Effect.succeed(call.name === "remove" ? { block: true, reason: "Nothing is removed on a Friday." } : {})
)

const program = Effect.scoped(
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "any", tools: [remove], hooks: [noRemoving, audit] })
    const { newMessages } = yield* agent.prompt("Clean up, please.")
    for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
  })
)

const script = [ScriptedProvider.toolCall("remove", {}), ScriptedProvider.text("Not today, then.")]
await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
