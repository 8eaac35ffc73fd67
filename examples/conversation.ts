import { Effect, Schema } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"

const remove = Tool.make({
  name: "remove",
  description: "Removes a file.",
  params: Schema.Struct({ path: Schema.String }),
  execute: ({ path }) => Effect.succeed(`removed ${path}`)
})
const open = Effect.gen(function* () {
  const session = yield* (yield* SessionStore.SessionStore).openOrCreate("cleaning")
  return yield* Agent.make({ model: "any", tools: [remove], session })
})

// No person is there: the run is suspended at the call. The approval is in the session.
const monday = Effect.gen(function* () {
  const agent = yield* open
  console.log((yield* agent.prompt("Remove /tmp/notes")).status) // suspended
}).pipe(Effect.scoped)

// Another process may open the session, with a store of files or a database. The run continues with the approved call.
const tuesday = Effect.gen(function* () {
  const agent = yield* open
  for (const { approvalId, argumentsHash } of (yield* agent.requests).approvals)
    yield* agent.answer(approvalId, { decision: "approve", argumentsHash })
  console.log((yield* agent.continue).text) // It is gone.
}).pipe(Effect.scoped)

const script = [
  ScriptedProvider.toolCall("remove", { path: "/tmp/notes" }),
  ScriptedProvider.text("It is gone.")
]
await Effect.runPromise(
  Effect.andThen(monday, tuesday).pipe(
    Effect.provide([ScriptedProvider.layer(script), Approval.layer({ asked: "defer" })]),
    Effect.provide(MemorySessionStore.layer())
  )
)
