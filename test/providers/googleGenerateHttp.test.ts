import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted, Result, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, ModelEvent, Provider } from "effect-agent"
import * as Google from "../../src/providers/Google.ts"
import { events, refuse, serve, stream } from "./server.ts"

const key = "planted-0123456789abcdef"

const ask = (options: Google.Options, model = "gemini-2.5-flash") =>
  Google.make(options).pipe(
    Effect.flatMap((provider) =>
      provider
        .stream({ model, messages: [Message.user("Hi", 0)], tools: [], options: {} })
        .pipe(Stream.runFold(() => ModelEvent.emptyReply, ModelEvent.append))
    ),
    Effect.provide(FetchHttpClient.layer)
  )

const answer = events(
  { candidates: [{ content: { parts: [{ text: "Hel" }] } }] },
  { candidates: [{ content: { parts: [{ text: "lo" }] }, finishReason: "STOP" }] }
)

describe("Google", () => {
  it.live("asks for a stream, with its key in a header", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(answer))
      const reply = yield* ask({
        baseUrl: server.baseUrl,
        apiKey: Redacted.make(key),
        headers: { "x-a": "b" }
      })
      assert.deepStrictEqual(reply.content, [{ type: "text", text: "Hello" }])
      const [seen] = server.requests
      assert.strictEqual(seen?.url, "/v1/models/gemini-2.5-flash:streamGenerateContent?alt=sse")
      assert.strictEqual(seen?.headers["x-goog-api-key"], key)
      assert.strictEqual(seen?.headers["x-a"], "b")
      assert.deepStrictEqual(JSON.parse(seen?.body ?? ""), {
        contents: [{ role: "user", parts: [{ text: "Hi" }] }]
      })
    })
  )

  it.live("takes an address without a version, and a model with its path", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(answer))
      const root = server.baseUrl.replace("/v1", "/")
      yield* ask({ baseUrl: root })
      yield* ask({ baseUrl: `${root}v1beta/` }, "tunedModels/mine")
      yield* ask({ baseUrl: `${root}v1/publishers/google` })
      assert.deepStrictEqual(
        server.requests.map(({ url }) => url.replace(":streamGenerateContent?alt=sse", "")),
        [
          "/v1beta/models/gemini-2.5-flash",
          "/v1beta/tunedModels/mine",
          "/v1/publishers/google/models/gemini-2.5-flash"
        ]
      )
    })
  )

  it.live("fails with what Google said", () =>
    Effect.gen(function* () {
      const error = { code: 400, message: `API key not valid: ${key}`, status: "INVALID_ARGUMENT" }
      const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }]
      const server = yield* serve((response) => refuse(response, 400, [{ error: { ...error, details } }]))
      const failure = yield* Effect.flip(ask({ baseUrl: server.baseUrl, apiKey: Redacted.make(key) }))
      assert.strictEqual(failure.provider, "google")
      assert.deepInclude(failure.reason, { _tag: "Unauthenticated", detail: "API key not valid: [redacted]" })
    })
  )

  const keyOf = (env: Record<string, string>) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(answer))
      const config = ConfigProvider.layer(
        ConfigProvider.fromUnknown({ GEMINI_BASE_URL: server.baseUrl, ...env })
      )
      yield* Provider.Provider.pipe(
        Effect.flatMap((provider) =>
          Stream.runDrain(provider.stream({ model: "gemini-x", messages: [], tools: [], options: {} }))
        ),
        Effect.provide(Google.layerConfig().pipe(Layer.provide([config, FetchHttpClient.layer])))
      )
      return server.requests[0]?.headers["x-goog-api-key"]
    })

  it.live("reads the key and the address from their usual names", () =>
    Effect.gen(function* () {
      const all = { GEMINI_API_KEY: "a", GOOGLE_API_KEY: "b", GOOGLE_GENERATIVE_AI_API_KEY: "c" }
      assert.strictEqual(yield* keyOf(all), "a")
      assert.strictEqual(yield* keyOf({ ...all, GEMINI_API_KEY: "" }), "b")
      assert.strictEqual(yield* keyOf({ GOOGLE_GENERATIVE_AI_API_KEY: "c" }), "c")
      const none = yield* Effect.result(keyOf({}))
      assert.include(Result.isFailure(none) ? String(none.failure) : "", "GEMINI_API_KEY")
    })
  )
})
