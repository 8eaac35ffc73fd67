import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Layer, Logger, Schema } from "effect"
import { Prices, Usage } from "effect-agent"
import { GenAiPrices } from "effect-agent/prices"
import { OpenAiCompatible } from "effect-agent/providers"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { ofTag, play, reasonOf, say } from "../behaviour/play.ts"

const prices = GenAiPrices.make()
const find = (provider: string, model: string, more: Partial<Prices.Model> = {}) =>
  prices.find({ provider, model, ...more })

/** The cost of a million tokens of each kind. */
const costOf = (
  provider: string,
  model: string,
  usage: Partial<Usage.Usage>,
  more: Partial<Prices.Model> = {}
) => Effect.map(find(provider, model, more), (price) => price?.cost(Usage.make(usage)))

const M = 1_000_000
const k = 1_000

// The list prices are those of the vendors for models whose prices are settled.
describe("the prices of the package", () => {
  it.effect("Anthropic: reads and writes of the cache, for minutes and for an hour", () =>
    Effect.gen(function* () {
      const opus = (usage: Partial<Usage.Usage>, more: Partial<Prices.Model> = {}) =>
        costOf("anthropic", "claude-opus-4-5", usage, more)
      assert.closeTo((yield* opus({ input: M })) ?? NaN, 5, 1e-9)
      assert.closeTo((yield* opus({ output: M, reasoning: 400 * k })) ?? NaN, 25, 1e-9)
      assert.closeTo((yield* opus({ input: M, cacheRead: M })) ?? NaN, 0.5, 1e-9)
      assert.closeTo((yield* opus({ input: M, cacheWrite: M })) ?? NaN, 6.25, 1e-9)
      assert.closeTo((yield* opus({ input: M, cacheWrite: M }, { cacheRetention: "long" })) ?? NaN, 10, 1e-9)
      const both = { input: M, cacheWrite: M, cacheWriteLong: M / 2 }
      assert.closeTo((yield* opus(both, { cacheRetention: "long" })) ?? NaN, 3.125 + 5, 1e-9)
    })
  )

  it.effect("OpenAI: cached input, audio, and long requests", () =>
    Effect.gen(function* () {
      const usage = { input: M, cacheRead: M / 2, output: M, reasoning: M / 2 }
      assert.closeTo((yield* costOf("openai", "gpt-4.1", usage)) ?? NaN, 1 + 0.25 + 8, 1e-9)
      const audio = { input: M, inputAudio: M / 2, output: M, outputAudio: M / 4 }
      const expected = 2.5 / 2 + 32 / 2 + 10 * 0.75 + 64 / 4
      assert.closeTo((yield* costOf("openai", "gpt-audio", audio)) ?? NaN, expected, 1e-9)
      const long = yield* costOf("openai", "gpt-5.5", { input: 300 * k })
      assert.closeTo(long ?? NaN, 2 * 5 * 0.3, 1e-9)
    })
  )

  it.effect("Google: audio, also where a part of the request is cached, and thoughts", () =>
    Effect.gen(function* () {
      const flash = (usage: Partial<Usage.Usage>) => costOf("google", "gemini-2.5-flash", usage)
      assert.closeTo((yield* flash({ input: M, output: M, reasoning: M / 2 })) ?? NaN, 0.3 + 2.5, 1e-9)
      assert.closeTo((yield* flash({ input: M, inputAudio: M / 2 })) ?? NaN, 0.15 + 0.5, 1e-9)
      // As much as must be is from the cache.
      const cached = { input: M, inputAudio: M / 2, cacheRead: M / 2 }
      assert.closeTo((yield* flash(cached)) ?? NaN, 0.5 + 0.015, 1e-9)
      assert.closeTo((yield* flash({ ...cached, cacheRead: M })) ?? NaN, 0.015 + 0.05, 1e-9)
      const pro = yield* costOf("google", "gemini-2.5-pro", { input: 100 * k, output: 10 * k })
      assert.closeTo(pro ?? NaN, 0.125 + 0.1, 1e-9)
    })
  )

  it.effect("DeepSeek: the price at the time of the request", () =>
    Effect.gen(function* () {
      const at = (time: string) =>
        costOf("deepseek", "deepseek-reasoner", { input: M }, { at: Date.parse(time) })
      assert.closeTo((yield* at("2025-03-01T12:00:00Z")) ?? NaN, 0.55, 1e-9)
      assert.closeTo((yield* at("2025-03-01T18:00:00Z")) ?? NaN, 0.135, 1e-9)
    })
  )

  it.effect("xAI, Moonshot, Groq and OpenRouter, by the ids of the providers here", () =>
    Effect.gen(function* () {
      const usage = { input: M, cacheRead: M, output: M }
      assert.closeTo((yield* costOf("xai", "grok-4", usage)) ?? NaN, 0.75 + 15, 1e-9)
      assert.closeTo((yield* costOf("kimi", "kimi-k2.6", usage)) ?? NaN, 0.16 + 4, 1e-9)
      assert.closeTo((yield* costOf("groq", "llama-3.3-70b-versatile", usage)) ?? NaN, 0.59 + 0.79, 1e-9)
      const routed = yield* costOf("openrouter", "anthropic/claude-sonnet-4.5", { input: 100 * k })
      assert.closeTo(routed ?? NaN, 0.3, 1e-9)
    })
  )

  it.effect("clouds, that serve models of others", () =>
    Effect.gen(function* () {
      const usage = { input: 100 * k }
      const bedrock = yield* costOf("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", usage)
      assert.closeTo(bedrock ?? NaN, 0.33, 1e-9)
      assert.closeTo((yield* costOf("vertex", "claude-sonnet-4-5@20250929", usage)) ?? NaN, 0.3, 1e-9)
      assert.closeTo((yield* costOf("azure", "gpt-4.1", usage)) ?? NaN, 0.2, 1e-9)
    })
  )

  it.effect("models that the package does not know, with those of long requests and of later days", () =>
    Effect.gen(function* () {
      const usage = { input: 100 * k, cacheRead: 50 * k, output: 10 * k }
      assert.closeTo((yield* costOf("openai", "gpt-6.2-sol", usage)) ?? NaN, 0.1 + 0.005 + 0.1, 1e-9)
      const long = { input: 300 * k }
      assert.closeTo((yield* costOf("openai", "gpt-6.2-sol", long)) ?? NaN, 1.2, 1e-9)
      const argon = (day: string) => costOf("google", "gemini-4-argon", long, { at: Date.parse(day) })
      assert.closeTo((yield* argon("2026-11-30T12:00:00Z")) ?? NaN, 0.6, 1e-9)
      assert.closeTo((yield* argon("2026-12-01T12:00:00Z")) ?? NaN, 1.2, 1e-9)
      const regional = yield* costOf("amazon-bedrock", "us.openai.gpt-6.1-sol", { input: 100 * k })
      assert.closeTo(regional ?? NaN, 0.22, 1e-9)
      const dated = { responseModel: "claude-sonnet-5-5-20261001" }
      assert.closeTo((yield* costOf("anthropic", "claude-sonnet-5-5", usage, dated)) ?? NaN, 0.205, 1e-9)
      assert.strictEqual((yield* find("meta", "muse-spark-1.3"))?.rates?.output, 4.25)
    })
  )

  it.effect("of every flagship, so that a bound of cost holds", () =>
    Effect.gen(function* () {
      const flagships = {
        openai:
          "gpt-6.2-astra gpt-6.2-sol gpt-6.1-terra gpt-6.1-sol gpt-6-astra gpt-6-sol gpt-6-luna gpt-5.6-sol gpt-5.5 gpt-5.4-mini",
        anthropic:
          "claude-fable-5-2 claude-opus-5-5 claude-sonnet-5-5 claude-haiku-5-5 claude-opus-5 claude-sonnet-5",
        google:
          "gemini-4-argon gemini-4-carbon gemini-4-hydrogen gemini-3.8-flash gemini-3.7-flash gemini-3.6-flash gemini-3.5-flash",
        xai: "grok-4.7 grok-4.6 grok-4.5",
        deepseek: "deepseek-v4-pro deepseek-flash",
        mistral: "mistral-large-4",
        kimi: "kimi-k3.1-pro kimi-k3",
        groq: "openai/gpt-oss-120b",
        "amazon-bedrock": "us.anthropic.claude-opus-5-5 us.openai.gpt-6.1-sol",
        cohere: "command-a-03-2025"
      }
      for (const [provider, ids] of Object.entries(flagships))
        for (const id of ids.split(" ")) assert.isDefined(yield* find(provider, id), `${provider}/${id}`)
    })
  )

  it.effect("know the context window", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* find("anthropic", "claude-opus-4-5"))?.contextWindow, 200_000)
      assert.strictEqual((yield* find("groq", "openai/gpt-oss-120b"))?.contextWindow, 131_072)
    })
  )

  it.effect("are those of the model that answers, else of the one in the request", () =>
    Effect.gen(function* () {
      const usage = { input: M }
      const deployment = { responseModel: "gpt-4.1-2025-04-14" }
      assert.closeTo((yield* costOf("azure", "my-deployment", usage, deployment)) ?? NaN, 2, 1e-9)
      const unknown = { responseModel: "something-new" }
      assert.closeTo((yield* costOf("openai", "gpt-4.1", usage, unknown)) ?? NaN, 2, 1e-9)
    })
  )

  it.effect("give way to those of the application", () =>
    Effect.gen(function* () {
      const prices = GenAiPrices.make({
        prices: { "openai/gpt-4.1": { input: 1, output: 1 }, "my-model": { input: 7, output: 7 } },
        providers: { "my-gateway": "openai" }
      })
      const inputOf = (provider: string, model: string) =>
        Effect.map(
          prices.find({ provider, model, responseModel: "gpt-4.1-2025-04-14" }),
          (price) => price?.rates?.input
        )
      assert.strictEqual(yield* inputOf("openai", "gpt-4.1"), 1)
      assert.strictEqual(yield* inputOf("anywhere", "my-model"), 7)
      assert.strictEqual(yield* inputOf("my-gateway", "gpt-4.1"), 2)
    })
  )

  it.effect("are not known for models and providers that only resemble known ones", () =>
    Effect.gen(function* () {
      for (const [provider, model] of [
        ["openai", "nothing-like-it"],
        ["my-openai-server", "gpt-4.1"],
        ["ollama", "qwen3"],
        ["scripted", "claude-opus-4-5"]
      ] as const) {
        assert.strictEqual(yield* find(provider, model), undefined, `${provider}/${model}`)
      }
    })
  )

  it.effect("are there for each preset of a vendor, but for these", () =>
    Effect.gen(function* () {
      const models: Readonly<Record<string, string>> = {
        openai: "gpt-4.1",
        openrouter: "openai/gpt-4.1",
        deepseek: "deepseek-chat",
        mistral: "mistral-large-latest",
        groq: "llama-3.3-70b-versatile",
        xai: "grok-4",
        kimi: "kimi-k2.6",
        together: "meta-llama/Llama-3.3-70B-Instruct-Turbo",
        fireworks: "accounts/fireworks/models/kimi-k2p6",
        cerebras: "zai-glm-4.7",
        minimax: "MiniMax-M2",
        cohere: "command-a",
        baseten: "zai-org/GLM-4.7",
        perplexity: "sonar-pro",
        cloudflare: "@cf/meta/llama-3.3-70b-instruct-fp8-fast",
        xiaomi: "mimo-v2.6-pro",
        stepfun: "step-3.7-flash",
        "ant-ling": "Ling-2.6-1T"
      }
      const without: Array<string> = []
      for (const { apiKeyName, id } of Object.values(OpenAiCompatible.presets)) {
        const price = yield* find(id, models[id] ?? "")
        if (apiKeyName !== undefined && price === undefined) without.push(id)
      }
      // The package knows three models of Z.ai, and no list prices of the others.
      const unknown = [
        "vercel",
        "zai",
        "qwen",
        "tencent",
        "deepinfra",
        "sambanova",
        "nebius",
        "nvidia",
        "huggingface",
        "github"
      ]
      assert.deepStrictEqual(without, unknown)
    })
  )
})

describe("a cost", () => {
  const Count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000 }))
  const Counts = Schema.Struct({
    plain: Count,
    cacheRead: Count,
    written: Count,
    long: Count,
    inputAudio: Count,
    output: Count,
    outputAudio: Count,
    reasoning: Count
  })
  const usageOf = ({ long, plain, written, ...counts }: typeof Counts.Type) =>
    Usage.make({
      ...counts,
      input: plain + counts.cacheRead + written,
      cacheWrite: written,
      cacheWriteLong: Math.min(long, written)
    })
  const models = [
    ["anthropic", "claude-opus-4-5"],
    ["openai", "gpt-4.1"],
    ["openai", "gpt-5.5"],
    ["google", "gemini-2.5-flash"],
    ["google", "gemini-2.5-pro"],
    ["deepseek", "deepseek-chat"],
    ["xai", "grok-4"],
    ["openrouter", "anthropic/claude-sonnet-4.5"],
    ["bedrock", "amazon.nova-pro-v1:0"]
  ] as const
  /** Those whose price of a token depends on the length of the request. */
  const tiered = new Set(["gpt-5.5", "gemini-2.5-pro", "anthropic/claude-sonnet-4.5"])
  const check = <A>(schema: Schema.Codec<A, unknown>, holds: (value: A) => Effect.Effect<unknown, unknown>) =>
    Effect.map(
      Arbitrary.checkEffect(Arbitrary.schema(schema), (value) => Effect.as(holds(value), true), {
        seed: 1,
        runs: 60,
        maxShrinks: 200
      }),
      (result) => assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
    )

  it.effect("is a number from 0 for whatever a provider claims", () =>
    check(Schema.Struct({ ...Counts.fields, input: Count, cacheWrite: Count }), (claimed) =>
      Effect.gen(function* () {
        for (const [provider, model] of models) {
          const cost = yield* costOf(provider, model, { ...claimed, cacheWriteLong: claimed.long })
          assert.isAtLeast(cost ?? -1, 0, model)
          assert.isTrue(Number.isFinite(cost))
        }
      })
    )
  )

  it.effect("is the sum of the costs of its parts; more where the whole is a long request", () =>
    check(Schema.Struct({ one: Counts, other: Counts }), ({ one, other }) =>
      Effect.gen(function* () {
        const withoutAudio = { inputAudio: 0, outputAudio: 0 }
        const [a, b] = [usageOf({ ...one, ...withoutAudio }), usageOf({ ...other, ...withoutAudio })]
        for (const [provider, model] of models) {
          const price = yield* find(provider, model)
          const parts = (price?.cost(a) ?? NaN) + (price?.cost(b) ?? NaN)
          const whole = price?.cost(Usage.add(a, b)) ?? NaN
          if (tiered.has(model)) assert.isAtLeast(whole, parts - 1e-9, model)
          else assert.closeTo(whole, parts, 1e-9, model)
        }
      })
    )
  )

  it.effect("grows with the tokens, and is no higher with those that are read from a cache", () =>
    check(Schema.Struct({ counts: Counts, more: Count }), ({ counts, more }) =>
      Effect.gen(function* () {
        for (const [provider, model] of models) {
          const price = yield* find(provider, model)
          // Which part of the audio is cached, is not known.
          const cost = (counts: typeof Counts.Type) =>
            price?.cost(usageOf({ ...counts, inputAudio: 0 })) ?? NaN
          const before = cost(counts) - 1e-9
          assert.isAtLeast(cost({ ...counts, plain: counts.plain + more }), before, model)
          assert.isAtLeast(cost({ ...counts, cacheRead: counts.cacheRead + more }), before, model)
          assert.isAtLeast(cost({ ...counts, written: counts.written + more }), before, model)
          assert.isAtLeast(cost({ ...counts, output: counts.output + more }), before, model)
          const { cacheRead, plain } = counts
          const uncached = { ...counts, plain: plain + cacheRead, cacheRead: 0 }
          assert.isAtLeast(cost(uncached), before, model)
        }
      })
    )
  )
})

describe("maxCost with the prices of the package", () => {
  const calling = (provider: string, model: string, usage: Partial<Usage.Usage>) =>
    ScriptedProvider.turn(
      Step.event({ _tag: "Start", provider, model, protocol: "none" }),
      Step.toolCall("a", {}),
      Step.finish("toolUse", usage)
    )

  it.effect("ends a run without a price by hand", () =>
    Effect.gen(function* () {
      const turn = calling("anthropic", "claude-opus-4-5", { input: 100 * k, output: 2 * k })
      const { events, exit, requests } = yield* play([turn, turn, turn], {
        tools: [say("a")],
        layer: GenAiPrices.layer(),
        options: { limits: { maxCost: 1 } }
      })
      assert.strictEqual(requests.length, 2)
      assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "maxCost", max: 1 })
      const usage = ofTag(events, "RunEnd")[0]?.usage
      assert.closeTo(usage?.cost ?? NaN, 2 * (0.5 + 0.05), 1e-9)
      assert.strictEqual(usage?.costSource, "computed")
    })
  )

  it.effect("warns of a model that it does not know", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      const turn = calling("openai", "gpt-of-tomorrow", { input: 100 * k })
      const { events } = yield* play([turn, turn, ScriptedProvider.text("done")], {
        tools: [say("a")],
        layer: Layer.merge(GenAiPrices.layer(), Logger.layer([logger])),
        options: { limits: { maxCost: 1 } }
      })
      assert.deepInclude(ofTag(events, "RunEnd")[0], { status: "completed" })
      assert.notProperty(ofTag(events, "RunEnd")[0]?.usage, "cost")
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0], "openai/gpt-of-tomorrow")
    })
  )
})
