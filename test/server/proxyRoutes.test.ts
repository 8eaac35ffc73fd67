import { streamProxy } from "@earendil-works/pi-agent-core"
import { type Context, normalizeContext } from "@earendil-works/pi-ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, ModelEvent } from "effect-agent"
import { ProxyProvider } from "effect-agent/proxy"
import { ProxyRoutes } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { model } from "../proxy/served.ts"
import { send, serve, token } from "./http.ts"

const serving = Effect.gen(function* () {
  const scripted = yield* ScriptedProvider.make([ScriptedProvider.text("Hi"), ScriptedProvider.text("Hi")])
  const routes = ProxyRoutes.make(scripted.provider, { models: ["acme/large"] })
  const { port, url } = yield* serve([], {}, { routes })
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
