import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, Provider } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { serve } from "./server.ts"

const presets = Object.values(OpenAiCompatible.presets)
const answer =
  'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\ndata: [DONE]\n\n'

describe("presets", () => {
  it("have names of their own", () => {
    assert.strictEqual(new Set(presets.map(({ id }) => id)).size, presets.length)
    assert.isAtLeast(presets.length, 16)
  })

  it.effect.each(presets)("$id answers, with its key, and under its name", (preset) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.end(answer)
      })
      const env = preset.apiKeyName === undefined ? {} : { [preset.apiKeyName]: "key-of-vendor" }
      const layer = OpenAiCompatible.layerConfig(preset, { baseUrl: server.baseUrl }).pipe(
        Layer.provide([ConfigProvider.layer(ConfigProvider.fromEnvRecord(env)), FetchHttpClient.layer])
      )
      const events = yield* Provider.Provider.use((provider) =>
        Stream.runCollect(
          provider.stream({
            model: "m",
            messages: [Message.user("hi")],
            tools: [],
            options: { maxTokens: 9 }
          })
        )
      ).pipe(Effect.provide(layer))
      assert.strictEqual(events[0]?._tag === "Start" ? events[0].provider : "", preset.id)
      assert.strictEqual(events.at(-1)?._tag, "Finish")
      const [seen] = server.requests
      const sent = preset.apiKeyName === undefined ? undefined : "Bearer key-of-vendor"
      assert.strictEqual(seen?.headers.authorization, sent)
      const field = preset.compat?.maxTokensField ?? "max_tokens"
      assert.include(seen?.body, `"${field}":9`)
    })
  )
})
