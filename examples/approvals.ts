import { Effect, Schema } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const remove = Tool.make({
  name: "remove",
  description: "Removes a file.",
  params: Schema.Struct({ path: Schema.String }),
  execute: ({ path }) => Effect.succeed(`removed ${path}`)
})

// The first rule that fits a call decides. All other calls wait for a person.
const policy = Approval.layer({
  rules: [
    Approval.allow(remove, ({ path }) => path.startsWith("/tmp/")),
    Approval.deny(remove, ({ path }) => path.endsWith(".key"), "keys stay")
  ],
  asked: "wait"
})

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any", tools: [remove] })
  yield* agent.subscribe((event) =>
    event._tag === "ApprovalRequested"
      ? Effect.gen(function* () {
          console.log(`May the agent run ${event.toolName} ${JSON.stringify(event.params)}?`)
          const { approvalId, argumentsHash } = event
          yield* agent.answer(approvalId, { decision: "approve", argumentsHash })
        })
      : Effect.void
  )
  console.log((yield* agent.prompt("Clean up, please.")).text)
}).pipe(Effect.scoped)

const script = [
  ScriptedProvider.toolCalls(
    { name: "remove", params: { path: "/tmp/a" } },
    { name: "remove", params: { path: "/home/ada/notes" } },
    { name: "remove", params: { path: "/home/ada/id.key" } }
  ),
  ScriptedProvider.text("I removed two files. The key stays.")
]
await Effect.runPromise(Effect.provide(program, [policy, ScriptedProvider.layer(script)]))
