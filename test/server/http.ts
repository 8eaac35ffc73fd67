/** A server over real HTTP on the loopback address. */
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { type RunLogStore, Server } from "effect-agent/server"
import type { SessionStore } from "effect-agent/sessions"
import type { ScriptedProvider } from "effect-agent/testing"
import { createServer, request } from "node:http"
import { layer, type Setup } from "./host.ts"

export const token = "t0ken"

export interface Served {
  readonly url: string
  readonly port: number
}

/** Serves the API until the scope closes. */
export const serve = Effect.fnUntraced(function* (
  script: ScriptedProvider.Script,
  setup: Setup = {},
  options: Partial<Server.Options> = {},
  places?: Layer.Layer<SessionStore.SessionStore | RunLogStore.RunLogStore>
) {
  const node = NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })
  const app = Server.layer({ tokens: [Redacted.make(token)], grace: 0, ...options }).pipe(
    Layer.provideMerge(layer(script, setup, places)),
    Layer.provideMerge(node)
  )
  const context = yield* Layer.build(app)
  const { address } = yield* Effect.provideContext(
    Effect.map(HttpServer.HttpServer, (server) => server),
    context
  )
  const port = "port" in address ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, port, context }
})

export interface Answer {
  readonly status: number
  readonly type: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly text: string
  readonly json: any
}

export interface Asked {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: string | object
}

/** Sends a request as it is written, also with a `Host` that `fetch` would not send. */
export const send = (port: number, { body, headers = {}, method, path }: Asked) =>
  Effect.promise(
    () =>
      new Promise<Answer>((resolve, reject) => {
        const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body)
        const own = {
          authorization: `Bearer ${token}`,
          ...(text === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        }
        const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined))
        const sent = request(
          {
            port,
            host: "127.0.0.1",
            path,
            method: method ?? (text === undefined ? "GET" : "POST"),
            headers: given as Record<string, string>,
            agent: false
          },
          (response) => {
            const chunks: Array<Buffer> = []
            const done = () => {
              const all = Buffer.concat(chunks).toString()
              const type = response.headers["content-type"] ?? ""
              const json = /json/.test(type) && all !== "" ? JSON.parse(all) : undefined
              resolve({ status: response.statusCode ?? 0, type, headers: response.headers, text: all, json })
            }
            response
              .on("data", (chunk) => chunks.push(chunk))
              .on("end", done)
              .on("error", done)
          }
        )
        sent.on("error", reject)
        sent.end(text)
      })
  )

/** A frame of server-sent events. */
export interface Frame {
  readonly id: number
  readonly event: string
  readonly data: any
}

export const framesOf = (text: string): ReadonlyArray<Frame> =>
  text
    .split("\n\n")
    .filter((frame) => frame.startsWith("id: "))
    .map((frame) => {
      const [, id, event, data = ""] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/.exec(frame) ?? []
      return { id: Number(id), event: event ?? "", data: JSON.parse(data) }
    })
