import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, Provider } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { Fallback, Retry } from "effect-agent/resilience"
import { refuse, serve } from "./server.ts"

const apiKey = "sk-planted-0123456789abcdef"
const request = (model: string): Provider.ModelRequest => ({
  model,
  system: "Be brief.",
  messages: [Message.user("Hi", 0)],
  tools: [],
  options: { maxTokens: 100 }
})

const layers = {
  anthropic: (baseUrl: string) => Anthropic.layer({ baseUrl, apiKey }),
  openai: (baseUrl: string) => OpenAi.layer({ baseUrl, apiKey }),
  google: (baseUrl: string) => Google.layer({ baseUrl: baseUrl.replace(/\/v1$/, "/v1beta"), apiKey }),
  chat: (baseUrl: string) => OpenAiCompatible.layer({ id: "chat", baseUrl, apiKey })
}

const counted = (vendor: keyof typeof layers, model: string, response: unknown, status = 200) =>
  Effect.gen(function* () {
    const server = yield* serve((out) => refuse(out, status, response))
    const outcome = yield* Provider.countTokens(request(model)).pipe(
      Effect.provide(layers[vendor](server.baseUrl)),
      Effect.provide(FetchHttpClient.layer),
      Effect.result
    )
    const [seen] = server.requests
    const body: unknown = seen === undefined ? undefined : JSON.parse(seen.body)
    return { outcome, url: seen?.url, body }
  }).pipe(Effect.scoped)

describe("countTokens", () => {
  it.effect("asks Anthropic", () =>
    Effect.gen(function* () {
      const { body, outcome, url } = yield* counted("anthropic", "claude-sonnet-4-5", { input_tokens: 7 })
      assert(outcome._tag === "Success")
      assert.deepStrictEqual(outcome.success, { inputTokens: 7 })
      assert.strictEqual(url, "/v1/messages/count_tokens")
      assert.hasAllKeys(body, ["model", "system", "messages"])
    })
  )

  it.effect("asks OpenAI", () =>
    Effect.gen(function* () {
      const { body, outcome, url } = yield* counted("openai", "gpt-4o", { input_tokens: 7 })
      assert(outcome._tag === "Success")
      assert.deepStrictEqual(outcome.success, { inputTokens: 7 })
      assert.strictEqual(url, "/v1/responses/input_tokens")
      assert.hasAllKeys(body, ["model", "instructions", "input"])
    })
  )

  it.effect("asks Google", () =>
    Effect.gen(function* () {
      const { outcome, url } = yield* counted("google", "gemini-2.5-flash", { totalTokens: 7 })
      assert(outcome._tag === "Success")
      assert.deepStrictEqual(outcome.success, { inputTokens: 7 })
      assert.strictEqual(url, "/v1beta/models/gemini-2.5-flash:countTokens")
    })
  )

  it.effect("is unsupported where the protocol or the server has no route for it", () =>
    Effect.gen(function* () {
      const chat = yield* counted("chat", "m", {})
      assert(chat.outcome._tag === "Failure")
      assert.deepInclude(chat.outcome.failure, { _tag: "CountingUnsupported", provider: "chat" })
      assert.isUndefined(chat.url)
      const gateway = yield* counted("openai", "gpt-4o", { error: { message: "Not found" } }, 404)
      assert(gateway.outcome._tag === "Failure")
      assert.deepInclude(gateway.outcome.failure, { _tag: "CountingUnsupported", provider: "openai" })
    })
  )

  it.effect("fails as a call does", () =>
    Effect.gen(function* () {
      const echoed = { error: { message: `Wrong key ${apiKey}` } }
      const refused = yield* counted("openai", "gpt-4o", echoed, 401)
      assert(refused.outcome._tag === "Failure" && refused.outcome.failure._tag === "ProviderError")
      assert.strictEqual(refused.outcome.failure.reason._tag, "Unauthenticated")
      const strange = yield* counted("openai", "gpt-4o", { tokens: apiKey })
      assert(strange.outcome._tag === "Failure" && strange.outcome.failure._tag === "ProviderError")
      assert.strictEqual(strange.outcome.failure.reason._tag, "Protocol")
      assert.notInclude(JSON.stringify([refused.outcome, strange.outcome]), apiKey)
    })
  )

  it.effect("reaches the provider behind decorators, fallbacks and routers", () =>
    Effect.gen(function* () {
      const models: Array<string> = []
      const inner = Layer.succeed(Provider.Provider, {
        id: "one",
        stream: () => {
          throw new Error("no call")
        },
        countTokens: ({ model }) =>
          Effect.sync(() => {
            models.push(model)
            return { inputTokens: 1 }
          })
      })
      const context = yield* Layer.build(Fallback.layer([{ layer: Retry.layer()(inner), model: "other" }]))
      const router = Provider.router({ one: Context.get(context, Provider.Provider) })
      const count = (model: string) =>
        Effect.provideService(Provider.countTokens(request(model)), Provider.Provider, router)
      assert.deepStrictEqual(yield* count("one/m"), { inputTokens: 1 })
      assert.deepStrictEqual(models, ["other"])
      const failure = yield* Effect.flip(count("two/m"))
      assert.strictEqual(failure._tag, "ProviderError")
    }).pipe(Effect.scoped)
  )
})
