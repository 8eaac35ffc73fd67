import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Stream } from "effect"
import { Message, Provider, ProviderError } from "effect-agent"
import { AiSdk } from "effect-agent/ai-sdk"
import { events, refuse, type Server, serve, stream } from "../providers/server.ts"
import { claude, gemini, openai, openaiChat, type Vendor, vendors } from "./vendors.ts"

const request = { model: "any", messages: [Message.user("Hi")], tools: [], options: {} }

const ask = ({ model }: Vendor, { baseUrl }: Server) =>
  Stream.runCollect(AiSdk.make({ model: model(baseUrl) }).stream(request))

/** The reason for which the call fails that a server answers so. */
const refused = (vendor: Vendor, status: number, body: unknown, headers = {}) =>
  Effect.gen(function* () {
    const server = yield* serve((response) => refuse(response, status, body, headers))
    const error = yield* Effect.flip(ask(vendor, server))
    assert.strictEqual(server.requests.length, 1)
    return error
  })

const openaiError = (message: string, code: string | null, type = "invalid_request_error") => ({
  error: { message, type, param: null, code }
})
const claudeError = (type: string, message: string) => ({ type: "error", error: { type, message } })
const googleError = (code: number, status: string, message: string, details: ReadonlyArray<object> = []) => ({
  error: { code, message, status, details }
})

type Tag = ProviderError.Reason["_tag"]

/** Error responses, as the vendors document them. */
const responses: ReadonlyArray<readonly [Tag, Vendor, number, unknown]> = [
  ["Unauthenticated", openai, 401, openaiError("Incorrect API key provided: a key.", "invalid_api_key")],
  ["Unauthenticated", openaiChat, 401, openaiError("Incorrect API key provided: a key.", "invalid_api_key")],
  ["Unauthenticated", claude, 401, claudeError("authentication_error", "invalid x-api-key")],
  [
    "Unauthenticated",
    gemini,
    400,
    googleError(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", [
      { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }
    ])
  ],
  [
    "ContextOverflow",
    openai,
    400,
    openaiError("Your input exceeds the context window of this model.", "context_length_exceeded")
  ],
  [
    "ContextOverflow",
    claude,
    400,
    claudeError("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
  ],
  [
    "ContextOverflow",
    gemini,
    400,
    googleError(
      400,
      "INVALID_ARGUMENT",
      "The input token count (1200000) exceeds the maximum number of tokens"
    )
  ],
  ["QuotaExceeded", openai, 429, openaiError("You exceeded your current quota", "insufficient_quota")],
  ["QuotaExceeded", claude, 400, claudeError("invalid_request_error", "Your credit balance is too low")],
  ["Forbidden", claude, 403, claudeError("permission_error", "no access")],
  ["NotFound", openai, 404, openaiError("The model does not exist", "model_not_found")],
  ["InvalidRequest", openaiChat, 400, openaiError("Unknown parameter", "unknown_parameter")],
  ["ServerError", gemini, 500, googleError(500, "INTERNAL", "internal")],
  ["Overloaded", claude, 529, claudeError("overloaded_error", "Overloaded")],
  ["Overloaded", gemini, 503, googleError(503, "UNAVAILABLE", "The model is overloaded.")],
  ["ServerError", openai, 502, "<html>bad gateway</html>"]
]

describe("an error response", () => {
  it.live.each(responses)("is %s", ([tag, vendor, status, body]) =>
    Effect.gen(function* () {
      const { provider, reason } = yield* refused(vendor, status, body)
      assert.deepStrictEqual([reason._tag, reason.status], [tag, status])
      assert.strictEqual(provider, AiSdk.make({ model: vendor.model("http://127.0.0.1:1/v1") }).id)
    })
  )

  it.live.each(vendors)("of a limit names the wait and the request, at $name", (vendor) =>
    Effect.gen(function* () {
      const body = openaiError("Rate limit reached", "rate_limit_exceeded", "requests")
      const headers = { "retry-after": "7", "x-request-id": "req_1" }
      const error = yield* refused(vendor, 429, body, headers)
      assert.strictEqual(error.reason._tag, "RateLimited")
      assert.strictEqual(error.reason.requestId, "req_1")
      assert.deepStrictEqual(error.retryAfter, Duration.seconds(7))
      assert.isTrue(error.isRetryable)
    })
  )

  it.live("of Google names the wait in its body", () =>
    Effect.gen(function* () {
      const delay = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.4s" }
      const error = yield* refused(
        gemini,
        429,
        googleError(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", [delay])
      )
      assert.deepStrictEqual(error.retryAfter, Duration.seconds(34.4))
    })
  )

  it.live("shows the message that a package cannot read", () =>
    Effect.gen(function* () {
      const bodies: ReadonlyArray<readonly [unknown, string]> = [
        ["not loaded", "Bad Request: not loaded"],
        [{ error: "not loaded" }, '"not loaded"'],
        [[{ error: { message: "not loaded" } }], "not loaded"],
        [{ detail: "not loaded" }, "not loaded"]
      ]
      for (const [body, detail] of bodies) {
        const { reason } = yield* refused(openaiChat, 400, body)
        assert.deepStrictEqual([reason._tag, reason.detail], ["InvalidRequest", detail])
      }
    })
  )

  it.live("shows no key that a server repeats", () =>
    Effect.gen(function* () {
      const key = "sk-proj-0123456789abcdef0123"
      const error = yield* refused(openai, 401, openaiError(`Incorrect API key provided: ${key}`, null))
      assert.notInclude(JSON.stringify(error.reason), key)
      assert.include(error.message, "[redacted]")
    })
  )
})

describe("a response", () => {
  it.live.each(vendors)("shows its headers but those that may be secret, at $name", (vendor) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        response.setHeader("x-request-id", "req_1")
        response.setHeader("set-cookie", "session=1")
        stream(response).end(vendor.fixtures[0]?.body)
      })
      const [start] = yield* ask(vendor, server)
      const headers = start?._tag === "Start" ? start.headers : undefined
      assert.deepInclude(headers, { "x-request-id": "req_1", "content-type": "text/event-stream" })
      assert.notProperty(headers, "set-cookie")
    })
  )
})

const first = (vendor: Vendor) => {
  const { body = "" } = vendor.fixtures[0] ?? {}
  return body.slice(0, body.indexOf("\n\n", body.length * 0.4) + 2)
}

describe("a stream", () => {
  it.live.each(vendors)("whose connection breaks is no answer, at $name", (vendor) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        stream(response).write(first(vendor), () => response.destroy())
      })
      const error = yield* Effect.flip(ask(vendor, server))
      assert.include(["Transport", "StreamTruncated"], error.reason._tag)
      assert.isTrue(error.isRetryable)
    })
  )

  it.live("may report an error in the midst of an answer", () =>
    Effect.gen(function* () {
      const overloaded = yield* serve((response) => {
        stream(response).end(
          `${first(claude)}event: error\n${events(claudeError("overloaded_error", "Overloaded"))}`
        )
      })
      assert.strictEqual((yield* Effect.flip(ask(claude, overloaded))).reason._tag, "Overloaded")

      const failed = {
        type: "response.failed",
        sequence_number: 9,
        response: { error: { code: "server_error", message: "failed" }, incomplete_details: null }
      }
      const broken = yield* serve((response) => {
        stream(response).end(first(openai) + events(failed))
      })
      assert.strictEqual((yield* Effect.flip(ask(openai, broken))).reason._tag, "ServerError")
    })
  )
})

describe("a connection", () => {
  it.live("that nothing accepts is refused", () =>
    Effect.gen(function* () {
      const { reason } = yield* Effect.flip(
        Stream.runCollect(AiSdk.make({ model: claude.model("http://127.0.0.1:47831/v1") }).stream(request))
      )
      assert.deepInclude(reason, { _tag: "Transport", kind: "refused" })
    })
  )

  it.live.each(vendors)("closes when the reader leaves the answer of $name", (vendor) =>
    Effect.gen(function* () {
      const began = yield* Deferred.make<void>()
      const server = yield* serve((response) => {
        stream(response).write(first(vendor))
      })
      const provider: Provider.Provider["Service"] = AiSdk.make({ model: vendor.model(server.baseUrl) })
      const fiber = yield* provider.stream(request).pipe(
        Stream.runForEach(() => Deferred.succeed(began, undefined)),
        Effect.forkChild
      )
      yield* Deferred.await(began)
      yield* Fiber.interrupt(fiber)
      yield* server.idle
    })
  )

  it.live.each(vendors)("closes when the reader leaves before the response of $name", (vendor) =>
    Effect.gen(function* () {
      const began = yield* Deferred.make<void>()
      const run = yield* Effect.context()
      const server = yield* serve(() => Effect.runForkWith(run)(Deferred.succeed(began, undefined)))
      const fiber = yield* Effect.forkChild(ask(vendor, server))
      yield* Deferred.await(began)
      yield* Fiber.interrupt(fiber)
      yield* server.idle
    })
  )
})
