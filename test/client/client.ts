/** Clients of a server over real HTTP, and a relay that cuts their connections. */
import { NodeHttpServer } from "@effect/platform-node"
import { Context, Effect, Layer, Redacted, Schedule, type Scope, Stream } from "effect"
import { Agent, type AgentEvent, type Approval, type Provider, type Tool } from "effect-agent"
import { AgentClient } from "effect-agent/client"
import { Agents, LiveRuns, RunLogStore, Server } from "effect-agent/server"
import { MemorySessionStore, type SessionStore } from "effect-agent/sessions"
import { FetchHttpClient, HttpServer } from "effect/http"
import { createServer as createHttpServer } from "node:http"
import { connect, createServer, type Socket } from "node:net"
import { token } from "../server/http.ts"

export interface Hosted {
  readonly provider: Layer.Layer<Provider.Provider>
  readonly policy?: ReturnType<typeof Approval.layer>
  readonly tools?: ReadonlyArray<
    Tool.Tool<string, any, unknown, unknown, Scope.Scope | Tool.ToolContext | Provider.Provider>
  >
  readonly flush?: number
  readonly server?: Partial<Server.Options>
  readonly places?: Layer.Layer<SessionStore.SessionStore | RunLogStore.RunLogStore>
}

/** A server of an agent over real HTTP, until the scope closes. */
export const host = Effect.fnUntraced(function* ({
  flush = 1,
  policy,
  provider,
  server,
  tools = [],
  ...rest
}: Hosted) {
  const { places = Layer.mergeAll(MemorySessionStore.layer(), RunLogStore.layerMemory) } = rest
  const agents = Agents.layer(({ session }) => Agent.make({ model: "scripted", tools, session })).pipe(
    Layer.provide(policy === undefined ? provider : Layer.mergeAll(provider, policy))
  )
  const runs = LiveRuns.layer({ flush }).pipe(Layer.provide([agents, places]))
  const node = NodeHttpServer.layer(() => createHttpServer(), { host: "127.0.0.1", port: 0 })
  const context = yield* Layer.build(
    Server.layer({ tokens: [Redacted.make(token)], grace: 0, ...server }).pipe(
      Layer.provideMerge(runs),
      Layer.provideMerge(node)
    )
  )
  const { address } = Context.get(context, HttpServer.HttpServer)
  const port = "port" in address ? address.port : 0
  return { context, port, url: `http://127.0.0.1:${port}` }
})

/** Reconnects at once, and often. */
const eager: Partial<AgentClient.Options> = {
  reconnect: Schedule.spaced("5 millis").pipe(Schedule.upTo({ duration: "30 seconds" })),
  retry: Schedule.spaced("5 millis").pipe(Schedule.upTo({ duration: "30 seconds" }))
}

export const clientOf = (url: string, options: Partial<AgentClient.Options> = {}) =>
  AgentClient.make(url, { token: Redacted.make(token), ...eager, ...options }).pipe(
    Effect.provide(FetchHttpClient.layer)
  )

/** A session at the server, opened. */
export const opened = Effect.fnUntraced(function* (url: string, options?: Partial<AgentClient.Options>) {
  const client = yield* clientOf(url, options)
  return { client, agent: yield* client.open(yield* client.sessions.create()) }
})

/** Waits for a state of the session. */
export const until = (
  agent: { readonly state: { readonly changes: Stream.Stream<AgentEvent.View> } },
  holds: (view: AgentEvent.View) => boolean
) => Stream.runHead(Stream.filter(agent.state.changes, holds))

/** A relay to a server. `room` is the number of bytes after which it cuts the answer to a connection. */
export const relay = (port: () => number, room: () => number) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ url: string; cuts: () => number; close: () => void }>((resolve) => {
          let cuts = 0
          const open = new Set<Socket>()
          const server = createServer((client) => {
            const upstream = connect(port(), "127.0.0.1")
            open.add(client)
            let left = room()
            client.on("data", (data) => upstream.write(data))
            upstream.on("data", (data) => {
              left -= data.length
              if (left > 0) return void client.write(data)
              cuts++
              client.write(data.subarray(0, Math.max(0, data.length + left)))
              client.destroySoon()
              upstream.destroy()
            })
            upstream.on("end", () => client.end())
            upstream.on("error", () => client.destroy())
            client.on("error", () => upstream.destroy())
            client.on("close", () => {
              open.delete(client)
              upstream.destroy()
            })
          })
          server.listen(0, "127.0.0.1", () => {
            const address = server.address()
            const own = typeof address === "object" && address !== null ? address.port : 0
            const close = () => {
              server.close()
              for (const socket of open) socket.destroy()
            }
            resolve({ url: `http://127.0.0.1:${own}`, cuts: () => cuts, close })
          })
        })
    ),
    ({ close }) => Effect.sync(close)
  )

/** A generator of numbers from 0 to 1 that a seed determines. */
export const randomOf = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
}
