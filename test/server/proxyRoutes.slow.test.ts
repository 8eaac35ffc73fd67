import { streamProxy } from "@earendil-works/pi-agent-core"
import { type Context, normalizeContext } from "@earendil-works/pi-ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Stream } from "effect"
import { FetchHttpClient, HttpServerResponse } from "effect/http"
import { Message, ModelEvent } from "effect-agent"
import { ProxyProvider } from "effect-agent/proxy"
import { Routes } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { model } from "../proxy/served.ts"
import { send, serve, token } from "./http.ts"

const serving = Effect.gen(function* () {
  const scripted = yield* ScriptedProvider.make([ScriptedProvider.text("Hi"), ScriptedProvider.text("Hi")])
  const proxy = { provider: scripted.provider, models: ["acme/large"] }
  const { port, url } = yield* serve([], {}, { proxy })
  return { port, url, requests: scripted.requests }
})

const request = { model: "acme/large", messages: [Message.user("Hi", 0)], tools: [], options: {} }
const context: Context = { messages: [{ role: "user", content: "Hi", timestamp: 1 }] }

describe("ProxyRoutes", () => {
  it.live("answers ProxyProvider and pi's streamProxy", () =>
    Effect.gen(function* () {
      const { url } = yield* serving
      const provider = yield* ProxyProvider.make({ url, token: Redacted.make(token) })
      const events = yield* Stream.runCollect(provider.stream({ ...request }))
      const reply = events.reduce(ModelEvent.append, ModelEvent.emptyReply)
      assert.deepStrictEqual(reply.content, [{ type: "text", text: "Hi" }])
      const options = { proxyUrl: url, authToken: token }
      const message = yield* Effect.promise(() =>
        streamProxy(model, normalizeContext(context), options).result()
      )
      assert.strictEqual(message.stopReason, "stop")
      const [text] = message.content
      assert.deepInclude(text, { type: "text", text: "Hi" })
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live(
    "are there where the application gives models, and those for user interfaces unless it wants none",
    () =>
      Effect.gen(function* () {
        const statuses = (port: number) =>
          Effect.forEach(["/model/stream", "/api/stream", "/ui/chat", "/ag-ui"], (path) =>
            Effect.map(send(port, { path, body: {} }), ({ status }) => status)
          )
        const usual = yield* serve([])
        assert.deepStrictEqual(yield* statuses(usual.port), [404, 404, 400, 400])
        const without = yield* serve([], {}, { ui: false })
        assert.deepStrictEqual(yield* statuses(without.port), [404, 404, 404, 404])
        const own = Routes.make("POST", "/ui/chat", Effect.succeed(HttpServerResponse.text("own")), {
          body: "json"
        })
        const replaced = yield* serve([], {}, { routes: [own] })
        assert.deepStrictEqual(yield* statuses(replaced.port), [404, 404, 200, 400])
        const { port } = yield* serving
        assert.deepStrictEqual(yield* statuses(port), [400, 400, 400, 400])
      })
  )

  it.live("stands behind the guards of the server, and asks its models alone", () =>
    Effect.gen(function* () {
      const { port, requests } = yield* serving
      const pi = { model, context }
      const wire = { request }
      for (const [path, body, other] of [
        ["/model/stream", wire, { request: { ...request, model: "dear" } }],
        ["/api/stream", pi, { ...pi, model: { ...model, id: "dear" } }]
      ] as const) {
        const statusOf = (asked: object) => Effect.map(send(port, { path, ...asked }), ({ status }) => status)
        assert.strictEqual(yield* statusOf({ body, headers: { authorization: undefined } }), 401)
        assert.strictEqual(yield* statusOf({ body, headers: { authorization: "Bearer other" } }), 401)
        assert.strictEqual(yield* statusOf({ body, headers: { host: "evil.example" } }), 421)
        assert.strictEqual(yield* statusOf({ body, headers: { origin: "https://evil.example" } }), 403)
        assert.strictEqual(yield* statusOf({ body: "{}", headers: { "content-type": "text/plain" } }), 415)
        assert.strictEqual(yield* statusOf({}), 405)
        assert.strictEqual(yield* statusOf({ body: {} }), 400)
        const refused = yield* send(port, { path, body: other })
        assert.deepInclude(refused.json, { type: "urn:effect-agent:problem:model-forbidden", status: 403 })
      }
      assert.strictEqual((yield* requests).length, 0)
    })
  )
})
