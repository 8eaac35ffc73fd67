import { methods, ndJsonStream } from "@agentclientprotocol/sdk"
import { HttpAgent } from "@ag-ui/client"
import { NodeHttpServer } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { DefaultChatTransport } from "ai"
import { Context, Effect, Fiber, Layer, Redacted, type Scope } from "effect"
import { FetchHttpClient, HttpRouter, HttpServer } from "effect/http"
import { AcpAgent } from "effect-agent/acp"
import { AgentClient } from "effect-agent/client"
import { DurableRuns } from "effect-agent/durable"
import * as NodeCluster from "effect-agent/node/NodeCluster"
import { AgentMcpServer } from "effect-agent/mcp"
import { LiveRuns, RunLogStore, Runs, Server, SqlRunLogStore, UiRoutes } from "effect-agent/server"
import { MemorySessionStore, SqlSessionStore } from "effect-agent/sessions"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { editor } from "../acp/editor.ts"
import * as Embedded from "../durable/embedded.ts"
import { freePort } from "../durable/ports.ts"
import * as Postgres from "../sql/postgres.ts"
import { Chat } from "../ui/aiSdk.ts"
import { agents, calls, mcp } from "./application.ts"

const token = "t0ken"

/** The folder of an agent. */
const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const root = mkdtempSync(join(tmpdir(), "doors-"))
    writeFileSync(join(root, "a.txt"), "alpha\n")
    return root
  }),
  (root) => Effect.sync(() => rmSync(root, { recursive: true }))
)

/** The address of a server over these runs. */
const served = <E>(runs: Layer.Layer<Runs.Runs, E>) =>
  Effect.gen(function* () {
    const kept = Layer.succeedContext(yield* Layer.build(runs))
    const routes = yield* Effect.provide(UiRoutes.make, kept)
    return yield* listening(
      Layer.provide(Server.layer({ tokens: [Redacted.make(token)], routes, grace: 0 }), kept)
    )
  })

const listening = (app: Layer.Layer<never, never, HttpServer.HttpServer>) =>
  Effect.gen(function* () {
    const node = NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })
    const { address } = Context.get(yield* Layer.build(Layer.provideMerge(app, node)), HttpServer.HttpServer)
    return "port" in address ? `http://127.0.0.1:${address.port}` : ""
  })

const live = (root: string) =>
  LiveRuns.layer().pipe(Layer.provide([agents(root), MemorySessionStore.layer(), RunLogStore.layerMemory]))

const headers = { authorization: `Bearer ${token}` }

const json = async (url: string, body?: object): Promise<any> => {
  const method = body === undefined ? "GET" : "POST"
  const response = await fetch(url, {
    method,
    headers: { ...headers, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) })
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response.json()
}

/** The answer to a prompt by the HTTP API. */
const overRest = (url: string) =>
  Effect.gen(function* () {
    const { sessionId } = yield* Effect.promise(() => json(`${url}/sessions`, {}))
    const { runId } = yield* Effect.promise(() => json(`${url}/sessions/${sessionId}/runs`, { prompt: "go" }))
    const run = Effect.promise(() => json(`${url}/runs/${runId}`))
    yield* Effect.repeat(Effect.delay(run, 50), { until: ({ status }) => !/queued|running/.test(status) })
    const { view } = yield* Effect.promise(() => json(`${url}/sessions/${sessionId}`))
    return String(view.messages.at(-1).content[0].text)
  })

/** The answer of an agent that is served at an address. */
type Door = (root: string) => Effect.Effect<string, unknown, Scope.Scope>

const doors: { readonly [name: string]: Door } = {
  "the HTTP API": (root) => Effect.flatMap(served(live(root)), overRest),

  "the chat of the AI SDK": (root) =>
    Effect.gen(function* () {
      const api = `${yield* served(live(root))}/ui/chat`
      const chat = new Chat({ id: "chat-1", transport: new DefaultChatTransport({ api, headers }) })
      yield* Effect.promise(() => chat.sendMessage({ text: "go" }))
      const parts = chat.messages.at(-1)?.parts ?? []
      return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
    }),

  "AG-UI": (root) =>
    Effect.gen(function* () {
      const url = `${yield* served(live(root))}/ag-ui`
      const agent = new HttpAgent({ url, threadId: "thread-1", headers })
      agent.addMessage({ id: "user-1", role: "user", content: "go" })
      yield* Effect.promise(() => agent.runAgent({ runId: "run-1" }))
      return String(agent.messages.at(-1)?.content)
    }),

  ACP: (root) =>
    Effect.gen(function* () {
      const [toAgent, toEditor] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()]
      const streams = { input: toAgent.readable, output: toEditor.writable }
      const context = yield* Layer.build(live(root))
      const serving = yield* AcpAgent.serve({ name: "test", version: "1.0.0" }, streams).pipe(
        Effect.provideContext(context),
        Effect.forkChild
      )
      const { app, seen } = editor()
      yield* Effect.promise(() =>
        app.connectWith(ndJsonStream(toAgent.writable, toEditor.readable), async (agent) => {
          await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} })
          const session = await agent.request(methods.agent.session.new, { cwd: root, mcpServers: [] })
          const prompt = [{ type: "text" as const, text: "go" }]
          await agent.request(methods.agent.session.prompt, { sessionId: session.sessionId, prompt })
        })
      )
      yield* Fiber.interrupt(serving)
      return seen.updates
        .flatMap((update) => (update.sessionUpdate === "agent_message_chunk" ? [update.content] : []))
        .map((content) => (content.type === "text" ? content.text : ""))
        .join("")
    }),

  "an agent of an MCP server": (root) =>
    Effect.gen(function* () {
      const { call } = yield* mcpClient(root)
      return (yield* Effect.promise(() => call("agent", { prompt: "go" }))).text
    }),

  "the tools of an MCP server": (root) =>
    Effect.gen(function* () {
      const { call } = yield* mcpClient(root)
      const results: Record<string, unknown> = { mcp__everything__echo: expected.mcp__everything__echo }
      for (const [name, params] of Object.entries(calls))
        if (name !== "mcp__everything__echo") results[name] = yield* Effect.promise(() => call(name, params))
      return JSON.stringify(results)
    }),

  "the client": (root) =>
    Effect.gen(function* () {
      const client = yield* AgentClient.make(yield* served(live(root)), { token: Redacted.make(token) })
      const agent = yield* client.open(yield* client.sessions.create())
      return (yield* agent.prompt("go")).text
    }).pipe(Effect.provide(FetchHttpClient.layer)),

  "durable runs": (root) => {
    const places = SqlRunLogStore.layer().pipe(
      Layer.provideMerge(SqlSessionStore.layer({ takeOver: true })),
      Layer.provide(Embedded.database),
      Layer.orDie
    )
    const runs = DurableRuns.layer().pipe(
      Layer.provideMerge(DurableRuns.worker({ flush: 0 })),
      Layer.provide([agents(root), Embedded.cluster, places])
    )
    return Effect.flatMap(served(runs), overRest)
  },

  "a worker": (root) =>
    Effect.gen(function* () {
      const { url } = yield* Postgres.start
      yield* workerOf(url, root)
      const runs = DurableRuns.layer().pipe(
        Layer.provide(NodeCluster.client()),
        Layer.provide(Layer.provideMerge(SqlRunLogStore.layer(), SqlSessionStore.layer())),
        Layer.provide(PgClient.layer({ url, maxConnections: 4, startupParameters: { timezone: "UTC" } }))
      )
      return yield* Effect.flatMap(served(runs), overRest)
    })
}

/** A client of an MCP server over HTTP. */
const mcpClient = (root: string) =>
  Effect.gen(function* () {
    const { agent, services } = mcp(root)
    const app = AgentMcpServer.layerHttp({ name: "test", version: "1.0.0", agent })
    const url = yield* listening(
      HttpRouter.serve(Layer.provide(app, services), { disableLogger: true, disableListenLog: true })
    )
    const client = new Client({ name: "test", version: "1.0.0" })
    yield* Effect.acquireRelease(
      Effect.promise(() => client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))),
      () => Effect.promise(() => client.close())
    )
    const call = async (name: string, params: Record<string, unknown>) => {
      const { content, isError = false } = await client.callTool({ name, arguments: params })
      return { isError, text: content.map((block) => (block.type === "text" ? block.text : "")).join("") }
    }
    return { call }
  })

const workerOf = (url: Redacted.Redacted, root: string) =>
  Effect.gen(function* () {
    const file = join(import.meta.dirname, "worker.ts")
    const port = String(yield* freePort)
    const args = ["--conditions", "effect-agent-source", file, Redacted.value(url), port, root]
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    yield* Effect.promise(() => once(createInterface(child.stdout), "line"))
  })

const expected = {
  read: { isError: false, text: "alpha" },
  mcp__everything__echo: { isError: false, text: "Echo: ping" },
  desk: { isError: false, text: "the desk" }
}

describe("the services of the application reach the tools of a run that is started by", () => {
  for (const [name, answer] of Object.entries(doors))
    it.live.skipIf(name === "a worker" && !Postgres.isInstalled)(
      name,
      () =>
        Effect.gen(function* () {
          const root = yield* folder
          const results = JSON.parse(yield* answer(root))
          assert.deepInclude(results, expected)
          assert.include(results.shell.text, "alpha\n42")
          assert.isFalse(results.shell.isError || results.write.isError)
          assert.strictEqual(readFileSync(join(root, "b.txt"), "utf8"), "beta")
        }).pipe(Effect.scoped),
      60_000
    )
})
