import { Layer, Redacted } from "effect"
import { Agent } from "effect-agent"
import { Agents, LiveRuns, RunLogStore, Server } from "effect-agent/server"
import { MemorySessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"

const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
  Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes, take a coat.")]))
)
const RunsLive = LiveRuns.layer().pipe(
  Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory])
)

/** A function from a web `Request` to a `Response`. */
const { dispose, handler } = Server.toWebHandler(
  { tokens: [Redacted.make("a-secret-of-this-server")], hosts: ["localhost"] },
  RunsLive
)

// Hono:        app.mount("/agent", handler)
// Next.js:     export { handler as GET, handler as POST } in app/agent/[...path]/route.ts
// Cloudflare:  export default { fetch: (request) => handler(request) }

const headers = { authorization: "Bearer a-secret-of-this-server", "content-type": "application/json" }
const created = await handler(
  new Request("http://localhost/sessions", { method: "POST", headers, body: JSON.stringify({}) })
)
console.log(created.status) // 201
await dispose()
