import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Agent, Tool } from "effect-agent"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { ScriptedProvider } from "effect-agent/testing"

class Mailer extends Context.Service<
  Mailer,
  { readonly send: (to: string, text: string) => Effect.Effect<void> }
>()("Mailer") {}

class NoSuchCustomer extends Schema.TaggedError<NoSuchCustomer>()("NoSuchCustomer", {
  name: Schema.String
}) {}

/** A tool that reads a database. The model reads its failure, and can ask for another name. */
const findCustomer = Tool.make({
  name: "find_customer",
  description: "Finds a customer by name.",
  params: Schema.Struct({ name: Schema.String }),
  execute: Effect.fn(function* ({ name }) {
    const sql = yield* SqlClient.SqlClient
    const [customer] = yield* sql<{ readonly mail: string }>`SELECT mail FROM customers WHERE name = ${name}`
    return customer ?? (yield* new NoSuchCustomer({ name }))
  })
})

const sendMail = Tool.make({
  name: "send_mail",
  description: "Sends a mail.",
  params: Schema.Struct({ to: Schema.String, text: Schema.String }),
  execute: ({ to, text }) =>
    Effect.as(
      Mailer.use((mailer) => mailer.send(to, text)),
      "sent"
    )
})

const program = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE customers (name TEXT, mail TEXT)`
  yield* sql`INSERT INTO customers VALUES ('Ada', 'ada@example.com')`
  // The agent requires what its tools require: without one of the layers below, this does not compile.
  const agent = yield* Agent.make({ model: "any", tools: [findCustomer, sendMail] })
  console.log((yield* agent.prompt("Tell Ada that her order is on its way.")).text)
}).pipe(Effect.scoped)

const MailerLive = Layer.succeed(Mailer, {
  send: (to, text) => Effect.sync(() => console.log(`to ${to}: ${text}`))
})
const script = [
  ScriptedProvider.toolCall("find_customer", { name: "Ada" }),
  ScriptedProvider.toolCall("send_mail", { to: "ada@example.com", text: "It is on its way." }),
  ScriptedProvider.text("Ada knows.")
]
await Effect.runPromise(
  Effect.provide(program, [
    NodeSqlite.layer({ filename: ":memory:" }),
    MailerLive,
    ScriptedProvider.layer(script)
  ])
)
