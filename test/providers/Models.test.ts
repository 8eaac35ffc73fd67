import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Redacted, Stream } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import { Message, Provider } from "effect-agent"
import {
  Anthropic,
  Auth,
  Models,
  OpenAi,
  OpenAiCompatible,
  Protocols,
  Transport
} from "effect-agent/providers"
import { serve, refuse } from "./server.ts"

const familyOf = (vendor: string, model: string) => Models.find(model, { vendor })?.family

describe("the table of models", () => {
  it("says when it was read, and of each rule where from", () => {
    assert.match(Models.readOn, /^\d{4}-\d{2}-\d{2}$/)
    for (const { family, pattern, sources = [], vendor } of Models.rules) {
      assert.isAbove(sources.length, 0, family)
      assert.isDefined(vendor, family)
      assert.doesNotThrow(() => new RegExp(pattern), family)
    }
  })

  it("has words for levels where a request has a place for one", () => {
    for (const { family, thinking } of Models.rules) {
      if (thinking?.wire !== undefined && thinking.kind !== "none") assert.isNotEmpty(thinking.levels, family)
    }
  })

  it.each([
    ["anthropic", "claude-opus-5-5", "Claude Opus 5.5"],
    ["anthropic", "us.anthropic.claude-opus-5-5-20261001-v1:0", "Claude Opus 5.5"],
    ["anthropic", "claude-opus-5@20260401", "Claude Opus 5"],
    ["anthropic", "anthropic/claude-opus-5.5", "Claude Opus 5.5"],
    ["anthropic", "claude-opus-4-20250514", "Claude Opus 4 (retired at Anthropic)"],
    ["anthropic", "claude-tomorrow-9", "unknown Claude"],
    ["openai", "gpt-5-2025-08-07", "GPT-5, mini, nano"],
    ["openai", "gpt-5-6-sol", "GPT-5.6 Sol, Terra, Luna"],
    ["openai", "gpt-4-1-mini", "GPT-4.1"],
    ["openai", "gpt-4-1106-preview", "GPT-4 Turbo and Vision"],
    ["openai", "GPT-4o-2024-08-06", "GPT-4o"],
    ["openai", "gpt-9", "unknown GPT"],
    ["openai", "ft:gpt-4o:me::1", "GPT-4o"],
    ["openai", "babbage-002", undefined],
    ["google", "models/gemini-2.5-pro", "Gemini 2.5 Pro"],
    ["google", "gemini-9-ultra", "unknown Gemini"],
    ["groq", "openai/gpt-oss-120b", "GPT-OSS"],
    ["qwen", "qwen3-8b", "Qwen Coder, open text models"],
    ["moonshot", "kimi-k2-6", "Kimi K2.5, K2.6"],
    ["zai", "glm-5-3", "GLM-5.3"],
    ["nobody", "gpt-5", undefined]
  ])("finds of %s %s: %s", (vendor, model, family) => {
    assert.strictEqual(familyOf(vendor, model), family)
  })

  it("knows limits and inputs of an id behind a gateway, and nothing else (row 48)", () => {
    const rule = Models.find("deepseek/deepseek-v4-pro", { isGateway: true })
    assert.deepInclude(rule, { contextWindow: 1_000_000, maxOutput: 384_000, input: ["text"] })
    assert.doesNotHaveAnyKeys(rule, ["thinking", "sampling", "forcedTools", "stop"])
    assert.strictEqual(Models.find("z-ai/glm-5.3", { isGateway: true })?.family, "GLM-5.3")
    assert.isUndefined(Models.find("acme/some-model", { isGateway: true }))
  })

  it("is not slow on an id of any length", () => {
    const began = performance.now()
    for (const part of ["claude-", "1-", "/", "-20250101", "gpt-5."])
      for (const vendor of ["anthropic", "openai", "google", "xai"])
        Models.find(part.repeat(262_144 / part.length), { vendor })
    assert.isBelow(performance.now() - began, 1000)
  })
})

describe("the rules of the models of a provider", () => {
  it("are those of its id, of each vendor that has some", () => {
    const vendors = [...new Set(Models.rules.map(({ vendor = "" }) => vendor))]
    assert.deepStrictEqual(
      vendors.filter((vendor) => Models.vendorOf(vendor, undefined) !== vendor),
      []
    )
    assert.isUndefined(Models.vendorOf("nvidia", undefined))
  })

  const bodyOf = (layer: (baseUrl: string) => Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => refuse(response, 501, { error: { message: "captured" } }))
      const provider = yield* Provider.Provider.pipe(Effect.provide(layer(server.baseUrl)))
      const options = { thinkingLevel: "off", maxTokens: 10_000_000 } as const
      const request = { model: "glm-4.6", messages: [Message.user("Hi")], tools: [], options }
      yield* Effect.flip(Stream.runDrain(provider.stream(request)))
      return JSON.parse(server.requests[0]?.body ?? "")
    }).pipe(Effect.provide(FetchHttpClient.layer))

  it.live.each([
    (baseUrl: string) => OpenAiCompatible.layer({ id: "zai", baseUrl }),
    (baseUrl: string) => OpenAiCompatible.layer({ id: "x", baseUrl, compat: { vendor: "zai" } }),
    (baseUrl: string) =>
      Transport.layer({
        protocol: Protocols.openAiChat("x"),
        deployment: { url: () => baseUrl, auth: Auth.bearer, serves: { vendor: "zai" } }
      })
  ])("are loaded for the id or the name of their vendor", (layer) =>
    Effect.map(bodyOf(layer), (body) => {
      assert.deepInclude(body, { thinking: { type: "disabled" }, max_tokens: 131_072 })
    })
  )

  it.live("are those of a deployment that has its own", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf((baseUrl) =>
        Transport.layer({
          protocol: Protocols.openAiChat("x"),
          deployment: {
            url: () => baseUrl,
            auth: Auth.bearer,
            serves: { vendor: "zai", rules: () => ({ pattern: "", maxOutput: 7 }) }
          }
        })
      )
      assert.strictEqual(body.max_tokens, 7)
    })
  )

  it.live("are loaded for a vendor besides that of the API", () =>
    Effect.gen(function* () {
      const responses = yield* bodyOf((baseUrl) => OpenAi.layer({ id: "zai", baseUrl }))
      const messages = yield* bodyOf((baseUrl) => Anthropic.layer({ id: "zai", baseUrl }))
      assert.deepStrictEqual([responses.max_output_tokens, messages.max_tokens], [131_072, 131_072])
    })
  )
})

describe("rules of an application", () => {
  const own: Models.Rule = { vendor: "acme", pattern: "^fast", maxOutput: 99 }

  it("win over the table member by member, and hold for their vendor only (row 48)", () => {
    const added = { vendor: "openai", pattern: "^gpt-4o$", maxOutput: 5 }
    const found = Models.find("gpt-4o", { vendor: "openai", own: [own, added] })
    assert.deepInclude(found, { maxOutput: 5, family: "GPT-4o", contextWindow: 128_000 })
    assert.strictEqual(Models.find("gpt-4o", { vendor: "xai", own: [added] })?.maxOutput, undefined)
    assert.strictEqual(Models.find("fast-1", { vendor: "acme", own: [own] })?.maxOutput, 99)
    assert.strictEqual(Models.find("fast-1", { own: [{ pattern: "^fast", maxOutput: 7 }] })?.maxOutput, 7)
  })

  it.live("reach the providers that are built with them", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => refuse(response, 501, { error: { message: "captured" } }))
      const { baseUrl } = server
      const apiKey = Redacted.make("key")
      const thinking: Models.Thinking = {
        kind: "effort",
        wire: { chat: { effort: "$" } },
        levels: { low: "some", high: "much" }
      }
      const provider = yield* Provider.Provider.pipe(
        Effect.provide(
          OpenAiCompatible.layer({ id: "acme", baseUrl, apiKey }).pipe(
            Layer.provide(Models.layer([{ ...own, thinking }]))
          )
        )
      )
      const request = { model: "fast-1", messages: [Message.user("Hi")], tools: [] }
      for (const thinkingLevel of ["medium", "max", "minimal"] as const)
        yield* Effect.flip(
          Stream.runDrain(provider.stream({ ...request, options: { thinkingLevel, maxTokens: 100 } }))
        )
      const bodies = server.requests.map(({ body }) => JSON.parse(body))
      assert.deepStrictEqual(
        bodies.map(({ effort }) => effort),
        ["some", "much", "some"]
      )
      assert.strictEqual(bodies[0].max_tokens, 99)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("must be regular expressions", () =>
    Effect.gen(function* () {
      const layer = OpenAi.layer({}).pipe(
        Layer.provide([Models.layer([{ pattern: "(" }]), FetchHttpClient.layer])
      )
      const exit = yield* Effect.exit(Effect.scoped(Layer.build(layer)))
      assert.isTrue(Exit.isFailure(exit) && /"\(" is no regular expression/.test(Cause.pretty(exit.cause)))
    })
  )
})
