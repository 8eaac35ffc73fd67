import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Message, Provider } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"

const bodyOf = Effect.fnUntraced(function* (
  make: Effect.Effect<Provider.Provider["Service"], never, HttpClient.HttpClient>,
  model: string,
  answer: Message.Assistant
) {
  let body = ""
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      if (request.body._tag === "Uint8Array") body = new TextDecoder().decode(request.body.body)
      return HttpClientResponse.fromWeb(request, new Response("{}", { status: 400 }))
    })
  )
  const provider = yield* Effect.provideService(make, HttpClient.HttpClient, client)
  const messages = [Message.user("Draw the weather", 0), answer, Message.user("Again", 0)]
  yield* Effect.exit(Stream.runDrain(provider.stream({ model, messages, tools: [], options: {} })))
  return body
})

const parts: Message.Assistant["content"] = [
  { type: "hostedTool", id: "s1", name: "foreign_search", params: {}, result: ["foreign"] },
  { type: "source", sourceType: "url", url: "https://foreign.test" },
  { type: "media", source: { data: "aGVsbG8=", mediaType: "image/png" }, transcript: "foreign" }
]

const providers = [
  ["OpenAi", OpenAi.make({ apiKey: "k" }), "gpt-5-mini"],
  ["OpenAiCompatible", OpenAiCompatible.make({ id: "local", baseUrl: "http://127.0.0.1/v1" }), "m"],
  ["Anthropic", Anthropic.make({ apiKey: "k" }), "claude-sonnet-4-5"],
  ["Google", Google.make({ apiKey: "k" }), "gemini-2.5-flash"]
] as const

describe("parts of another vendor in a conversation", () => {
  for (const [name, make, model] of providers) {
    it.effect(`${name} leaves them out`, () =>
      Effect.gen(function* () {
        const mixed = yield* bodyOf(make, model, Message.assistant([Message.text("Rain"), ...parts]))
        assert.include(mixed, "Rain")
        assert.notInclude(mixed, "foreign")
        const alone = yield* bodyOf(make, model, Message.assistant(parts))
        assert.include(alone, "Again")
        assert.notInclude(alone, "foreign")
      })
    )
  }
})
