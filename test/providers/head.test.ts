import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, Provider } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import * as Head from "../../src/providers/internal/connection.ts"
import { events, serve } from "./server.ts"

const apiKey = "sk-planted-0123456789abcdef"

const wires: ReadonlyArray<
  readonly [
    name: string,
    model: string,
    layer: (baseUrl: string) => ReturnType<typeof OpenAi.layer>,
    body: string
  ]
> = [
  [
    "Responses",
    "gpt-4o",
    (baseUrl) => OpenAi.layer({ baseUrl, apiKey }),
    events({ type: "response.completed", response: { id: "r", status: "completed", output: [] } })
  ],
  [
    "Chat Completions",
    "m",
    (baseUrl) => OpenAiCompatible.layer({ id: "chat", baseUrl, apiKey }),
    events({ choices: [{ index: 0, delta: { content: "Hi" }, finish_reason: "stop" }] }, "[DONE]")
  ],
  [
    "Messages",
    "claude-sonnet-4-5",
    (baseUrl) => Anthropic.layer({ baseUrl, apiKey }),
    events(
      { type: "message_start", message: { id: "m" } },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "message_stop" }
    )
  ],
  [
    "Gemini",
    "gemini-2.5-flash",
    (baseUrl) => Google.layer({ baseUrl, apiKey }),
    events({ candidates: [{ content: { parts: [{ text: "Hi" }] }, finishReason: "STOP" }] })
  ]
]

describe("the head of a response", () => {
  it.effect.each(wires)("is in Start, without cookies and secrets: %s", ([, model, layer, body]) =>
    Effect.gen(function* () {
      const server = yield* serve((response) =>
        response
          .writeHead(200, {
            "content-type": "text/event-stream",
            "set-cookie": "session=planted",
            "x-auth-token": "planted",
            "x-echo": `key ${apiKey}`,
            "X-Request-Id": "req_1",
            "x-ratelimit-limit-requests": "60",
            "x-ratelimit-remaining-requests": "59",
            "x-ratelimit-reset-requests": "1s",
            "x-ratelimit-remaining-tokens": "149984"
          })
          .end(body)
      )
      const [start] = yield* Effect.gen(function* () {
        const provider = yield* Provider.Provider
        const request = { model, messages: [Message.user("Hi", 0)], tools: [], options: {} }
        return yield* Stream.runCollect(provider.stream(request))
      }).pipe(Effect.provide(layer(server.baseUrl).pipe(Layer.provide(FetchHttpClient.layer))))
      assert(start?._tag === "Start")
      assert.deepInclude(start.headers, { "x-request-id": "req_1", "content-type": "text/event-stream" })
      assert.notProperty(start.headers, "set-cookie")
      assert.notInclude(JSON.stringify(start), "planted")
      assert.deepStrictEqual(start.rateLimits, {
        requests: { limit: 60, remaining: 59, resetAfter: Duration.seconds(1) },
        tokens: { remaining: 149984 }
      })
    }).pipe(Effect.scoped)
  )

  it("has the rate limits of each vendor", () => {
    const now = Date.parse("2026-11-23T12:00:00Z")
    const limitsOf = (headers: Readonly<Record<string, string>>) =>
      Head.headOf(headers, (text) => text, now).rateLimits
    assert.deepStrictEqual(
      limitsOf({
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-input-tokens-remaining": "1000",
        "anthropic-ratelimit-input-tokens-reset": "2026-11-23T12:00:10Z",
        "anthropic-ratelimit-output-tokens-reset": "2026-11-23T11:59:00Z"
      }),
      {
        requests: { limit: 50 },
        inputTokens: { remaining: 1000, resetAfter: Duration.seconds(10) },
        outputTokens: { resetAfter: Duration.zero }
      }
    )
    assert.deepStrictEqual(
      limitsOf({
        "x-ratelimit-limit": "20",
        "x-ratelimit-reset": String(now + 5000),
        "ratelimit-policy": "x"
      }),
      { requests: { limit: 20, resetAfter: Duration.seconds(5) } }
    )
    assert.deepStrictEqual(
      limitsOf({ "x-ratelimit-limit-tokens-minute": "500", "x-ratelimit-limit": "many" }),
      {
        tokens: { limit: 500 }
      }
    )
    assert.isUndefined(limitsOf({}))
  })
})
