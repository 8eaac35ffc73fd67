import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, type AgentEvent, Message, type RunOptions } from "effect-agent"
import { Anthropic, OpenAi } from "effect-agent/providers"
import { events, refuse, serve, stream } from "./server.ts"

const secret = "planted-0123456789abcdef"
const apiKey = Redacted.make("sk-key-0123456789")

const answers = [
  { type: "message_start", message: { id: "m", content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "Hi" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
  { type: "message_stop" }
]

/** The request that Anthropic gets for the options of a call. */
const anthropicGets = (options: RunOptions.ModelOptions, own: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const { baseUrl, requests } = yield* serve((response) => stream(response).end(events(...answers)))
    const provider = yield* Anthropic.make({ baseUrl, apiKey, headers: own })
    const messages = [Message.user("Hi")]
    yield* Stream.runDrain(provider.stream({ model: "claude-opus-5", messages, tools: [], options }))
    const [{ body = "", headers = {} } = {}] = requests
    return { headers, body: JSON.parse(body) }
  }).pipe(Effect.provide(FetchHttpClient.layer))

describe("headers of one request", () => {
  it.live(
    "go out beside those of the provider, whose lists they join and whose key they leave (row 49)",
    () =>
      Effect.gen(function* () {
        const { headers } = yield* anthropicGets(
          {
            headers: {
              "X-Trace": "t-1",
              "x-team": "b",
              "Anthropic-Beta": "two",
              "anthropic-version": "2026-10-21",
              "x-api-key": "another"
            }
          },
          { "x-team": "a", "x-kept": "k", "anthropic-beta": "one" }
        )
        assert.strictEqual(headers["x-trace"], "t-1")
        assert.strictEqual(headers["x-team"], "b")
        assert.strictEqual(headers["x-kept"], "k")
        assert.strictEqual(headers["anthropic-beta"], "one,two")
        assert.strictEqual(headers["anthropic-version"], "2026-10-21")
        assert.strictEqual(headers["x-api-key"], Redacted.value(apiKey))
      })
  )

  it.live("have the betas of the vendor, which are no member of the body", () =>
    Effect.gen(function* () {
      const { body, headers } = yield* anthropicGets({
        headers: { "anthropic-beta": "zero" },
        hostedTools: [{ type: "computerUse", width: 1, height: 1 }],
        vendor: { anthropic: { betas: ["compact-2026-01-12", "zero"], top_k: 1 } }
      })
      assert.include(headers["anthropic-beta"], "zero,compact-2026-01-12")
      assert.notProperty(body, "betas")
      assert.strictEqual(body.top_k, 1)
    })
  )

  it.live("have the betas of OpenAI in its own header", () =>
    Effect.gen(function* () {
      const { baseUrl, requests } = yield* serve((response) =>
        refuse(response, 400, { error: { message: "no" } })
      )
      const provider = yield* OpenAi.make({ baseUrl, apiKey })
      const options = { vendor: { openai: { betas: ["responses_multi_agent=v1"] } } }
      const asking = provider.stream({ model: "gpt-5.4", messages: [Message.user("Hi")], tools: [], options })
      yield* Effect.exit(Stream.runDrain(asking))
      const [{ body = "", headers = {} } = {}] = requests
      assert.strictEqual(headers["openai-beta"], "responses_multi_agent=v1")
      assert.notInclude(body, "betas")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("refuse betas that are no texts before a request goes out", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(anthropicGets({ vendor: { anthropic: { betas: [1] } } }))
      assert.include(String(failed), "betas as a list of texts")
    })
  )

  it.live("are in no event, no state and no error", () =>
    Effect.gen(function* () {
      const { baseUrl } = yield* serve((response) =>
        refuse(response, 400, { error: { type: "invalid_request_error", message: `bad token ${secret}` } })
      )
      const layer = Layer.provide(Anthropic.layer({ apiKey, baseUrl }), FetchHttpClient.layer)
      const seen: Array<AgentEvent.AgentEvent> = []
      const failed = yield* Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "claude-opus-5" })
        yield* agent.subscribe((event) => Effect.sync(() => seen.push(event)))
        const vendor = { anthropic: { metadata: { note: secret } } }
        const options = { modelOptions: { headers: { "x-session-token": secret }, vendor } }
        return yield* Effect.flip(agent.prompt("Hi", options))
      }).pipe(Effect.scoped, Effect.provide(layer))
      assert.include(String(failed), "bad token [redacted]")
      assert.notInclude(JSON.stringify([failed, seen]), secret)
    })
  )
})
