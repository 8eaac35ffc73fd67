import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem } from "effect"
import { Agent } from "effect-agent"
import { JsonlSessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"

/** Opens the conversation, or begins it, and asks one question. */
const ask = (question: string) =>
  Effect.gen(function* () {
    const store = yield* SessionStore.SessionStore
    const session = yield* store.openOrCreate("travel")
    const agent = yield* Agent.make({ model: "any", session })
    return (yield* agent.prompt(question)).text
  }).pipe(Effect.scoped)

const program = Effect.gen(function* () {
  console.log(yield* ask("Which coat for Oslo?"))
  console.log(yield* ask("And for Rome?")) // another process may do this: the model reads what was before
  const store = yield* SessionStore.SessionStore
  const { view } = yield* store.read("travel")
  console.log(view.messages.map(({ role }) => role).join(" "))
})

// A file for each session. For SQLite: `SqlSessionStore.layer()` over `layer({ filename: "app.db" })` of `effect-agent/node/NodeSqlite`;
// for PostgreSQL over `PgClient.layer({ url })` of `@effect/sql-pg`.
const directory = await Effect.runPromise(
  Effect.provide(
    FileSystem.FileSystem.use((files) => files.makeTempDirectory()),
    NodeServices.layer
  )
)
const script = [ScriptedProvider.text("A warm one."), ScriptedProvider.text("A light one.")]
await Effect.runPromise(
  program.pipe(
    Effect.provide([JsonlSessionStore.layer({ directory }), ScriptedProvider.layer(script)]),
    Effect.provide(NodeServices.layer)
  )
)
