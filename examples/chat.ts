import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import type { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { LocalRules } from "effect-agent/providers"
import { Agents, LiveRuns, RunLogStore, Server } from "effect-agent/server"
import { MemorySessionStore } from "effect-agent/sessions"
import { createServer } from "node:http"

const weather = Tool.make({
  name: "weather",
  description: "The weather in a city.",
  params: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed({ city, celsius: 4 })
})
const book = Tool.make({
  name: "book",
  description: "Books a hotel.",
  params: Schema.Struct({ city: Schema.String, nights: Schema.Int }),
  execute: ({ city, nights }) => Effect.succeed(`booked ${nights} nights in ${city}`)
})

/** The tools of the parts of a page. */
export type Tools = AiSdkUi.UiTools<[typeof weather, typeof book]>

const AgentsLive = Agents.layer(({ session }) =>
  Agent.make({ model: "rules", system: "You plan trips.", tools: [weather, book], session })
).pipe(
  Layer.provide([
    LocalRules.layer,
    // A person decides about all other calls.
    Approval.layer({ rules: [Approval.allow(weather)], asked: "wait" })
  ])
)
const RunsLive = LiveRuns.layer().pipe(
  Layer.provide([AgentsLive, MemorySessionStore.layer(), RunLogStore.layerMemory])
)
const ServerLive = Server.layer({
  tokens: [Redacted.make("a-secret-of-this-server")],
  origins: ["http://localhost:3000"]
}).pipe(
  Layer.provide(RunsLive),
  Layer.provide(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 4119 }))
)

// `NodeRuntime.runMain(Layer.launch(ServerLive))` serves until the process ends. This program sends one message.
const program = Effect.gen(function* () {
  yield* Layer.build(ServerLive)
  const message = { id: "message-1", role: "user", parts: [{ type: "text", text: "Hello" }] }
  const response = yield* Effect.promise(() =>
    fetch("http://127.0.0.1:4119/ui/chat", {
      method: "POST",
      headers: { authorization: "Bearer a-secret-of-this-server", "content-type": "application/json" },
      body: JSON.stringify({ id: "chat-1", trigger: "submit-message", messages: [message] })
    })
  )
  console.log(response.status, response.headers.get("x-vercel-ai-ui-message-stream"))
})
await Effect.runPromise(Effect.scoped(program)) // 200 v1
