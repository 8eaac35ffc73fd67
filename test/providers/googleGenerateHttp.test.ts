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

  const long = (id: string, text: string, finish: object) =>
    events(
      { responseId: id, candidates: [{ content: { parts: [{ text }] }, continuationToken: `${id}-early` }] },
      {
        candidates: [{ content: { parts: [] }, ...finish }],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
      }
    )

  it.live(
    "sends the same request with the token for the rest of a long answer, and makes one answer of it",
    () =>
      Effect.gen(function* () {
        const server = yield* serve((response, _, count) => {
          const next = { finishReason: "CONTINUATION", continuationToken: `token-${count}` }
          stream(response).end(
            count < 3
              ? long(`r${count}`, `part ${count}, `, next)
              : long("r3", "end", { finishReason: "STOP" })
          )
        })
        const reply = yield* ask({ baseUrl: server.baseUrl, apiKey: Redacted.make(key) }, "gemini-4-argon")
        assert.deepStrictEqual(reply.content, [{ type: "text", text: "part 1, part 2, end" }])
        assert.strictEqual(reply.finish?.stopReason, "stop")
        assert.deepInclude(reply.finish?.usage, { input: 30, output: 15, total: 45 })
        const bodies = server.requests.map(({ body }) => JSON.parse(body))
        const tokens = bodies.map(({ continuationToken, ...rest }) => {
          assert.deepStrictEqual(rest, bodies[0])
          return continuationToken
        })
        assert.deepStrictEqual(tokens, [undefined, "token-1", "token-2"])
      })
  )

  it.live("ends an answer that has no end at its limit, with its text", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        const next = { finishReason: "CONTINUATION", continuationToken: "more" }
        stream(response).end(long("r", "x", next))
      })
      const { content, finish } = yield* ask({ baseUrl: server.baseUrl, apiKey: Redacted.make(key) })
      assert.strictEqual(server.requests.length, 33)
      assert.strictEqual(finish?.stopReason, "length")
      assert.deepStrictEqual(content, [{ type: "text", text: "x".repeat(33) }])
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
