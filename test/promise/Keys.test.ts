import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { createAgent } from "effect-agent/promise"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"

const key = "sk-plain-text"

/** Refuses every request, and keeps its headers. */
const recorder = () => {
  const headers: Array<Readonly<Record<string, string>>> = []
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      headers.push(request.headers)
      return HttpClientResponse.fromWeb(request, new Response(`{"error":{"message":"no"}}`, { status: 401 }))
    })
  )
  return { headers, layer: Layer.succeed(HttpClient.HttpClient, client) }
}

describe("a key as plain text", () => {
  it.each([
    ["OpenAi", OpenAi.layer({ apiKey: key }), "authorization", `Bearer ${key}`],
    ["Anthropic", Anthropic.layer({ apiKey: key }), "x-api-key", key],
    ["Google", Google.layer({ apiKey: key }), "x-goog-api-key", key],
    [
      "OpenAiCompatible",
      OpenAiCompatible.layer({ ...OpenAiCompatible.presets.groq, apiKey: key }),
      "authorization",
      `Bearer ${key}`
    ],
    ["a Redacted key", OpenAi.layer({ apiKey: Redacted.make(key) }), "authorization", `Bearer ${key}`]
  ])("is sent by %s, and not in the error", async (_, provider, name, value) => {
    const { headers, layer } = recorder()
    await using agent = createAgent({ provider, layer, model: "m" })
    const error = await agent.prompt("Hi").catch((error: unknown) => error)
    assert.strictEqual(headers[0]?.[name], value)
    assert.match(String(error), /Unauthenticated/)
    assert.notInclude(JSON.stringify(error) + String(error), key)
  })
})
