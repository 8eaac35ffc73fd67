import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Provider } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import * as Telemetry from "../../src/internal/telemetry.ts"

describe("a provider in the telemetry", () => {
  it.each([
    ["openai", "openai"],
    ["openai-chat", "openai"],
    ["anthropic", "anthropic"],
    ["google", "gcp.gemini"],
    ["vertex", "gcp.vertex_ai"],
    ["bedrock", "aws.bedrock"],
    ["azure", "azure.ai.openai"],
    ["mistral", "mistral_ai"],
    ["kimi", "moonshot_ai"],
    ["xai", "x_ai"],
    ["deepseek", "deepseek"],
    ["groq", "groq"],
    ["my-gateway", "my-gateway"],
    ["constructor", "constructor"]
  ])("%s is named %s", (id, name) => {
    assert.strictEqual(Telemetry.providerName(id), name)
  })

  const local = (baseUrl: string) => OpenAiCompatible.layer({ id: "local", baseUrl })
  const cases: ReadonlyArray<
    readonly [layer: ReturnType<typeof local>, server: Provider.Server | undefined]
  > = [
    [OpenAi.layer({}), { address: "api.openai.com", port: 443 }],
    [Anthropic.layer({}), { address: "api.anthropic.com", port: 443 }],
    [Google.layer({}), { address: "generativelanguage.googleapis.com", port: 443 }],
    [local("http://127.0.0.1:8080/v1"), { address: "127.0.0.1", port: 8080 }],
    [local("http://local/v1"), { address: "local", port: 80 }],
    [local("no address"), undefined]
  ]

  it.effect.each(cases)("knows its server, also where it retries", ([layer, expected]) =>
    Effect.gen(function* () {
      const { server } = yield* Provider.Provider
      assert.deepStrictEqual(server, expected)
    }).pipe(Effect.provide(Retry.layer()(layer).pipe(Layer.provide(FetchHttpClient.layer))))
  )
})
