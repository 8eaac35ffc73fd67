import { assert, describe, it } from "@effect/vitest"
import { Models, OpenAiCompatible } from "effect-agent/providers"
import { vendorAtBedrock } from "../../src/providers/internal/models/rule.ts"
import * as Ids from "./modelIds.ts"

const unknown = (ids: ReadonlyArray<string>, served: Models.Served): ReadonlyArray<string> =>
  ids.filter((id) => {
    const rule = Models.find(id, served)
    return rule === undefined || rule.isUnknown === true
  })

describe("each model of the lists of the vendors has a rule of its own", () => {
  it("of OpenAI", () => assert.deepStrictEqual(unknown(Ids.openai, { vendor: "openai" }), []))
  it("of Anthropic", () => assert.deepStrictEqual(unknown(Ids.anthropic, { vendor: "anthropic" }), []))
  it("of Google, but for those that no conversation is for", () => {
    assert.deepStrictEqual(unknown(Ids.google, { vendor: "google" }), [
      "aqa",
      "deep-research-max-preview-04-2026",
      "deep-research-preview-04-2026",
      "deep-research-pro-preview-12-2025"
    ])
  })
  it("of Amazon Bedrock, with a context window", () => {
    const rules = Ids.bedrock.map((id) => Models.find(id, { vendor: vendorAtBedrock }))
    assert.deepStrictEqual(
      Ids.bedrock.filter((_, index) => rules[index]?.contextWindow === undefined),
      []
    )
  })
})

describe("limits", () => {
  const limits = (model: string, served: Models.Served) => {
    const {
      contextWindow,
      input = [],
      isSecondHand = false,
      maxOutput
    } = Models.find(model, served) ?? {
      input: []
    }
    return [contextWindow, maxOutput, input.includes("image"), isSecondHand]
  }

  it.each([
    ["openai", "gpt-6.2-astra", [1_050_000, 128_000, true, false]],
    ["openai", "gpt-6.2-sol", [1_050_000, 128_000, true, false]],
    ["openai", "gpt-5.3-codex-spark", [128_000, 32_000, true, false]],
    ["openai", "gpt-4", [8192, 8192, false, false]],
    ["openai", "gpt-4o-2024-05-13", [128_000, 4096, true, false]],
    ["openai", "o3-mini-2025-01-31", [200_000, 100_000, false, false]],
    ["google", "gemini-4-argon", [1_048_576, 1_048_576, true, false]],
    ["groq", "llama-3.1-8b-instant", [131_072, 131_072, false, false]],
    ["mistral", "codestral-latest", [256_000, undefined, false, false]],
    ["mistral", "voxtral-small-latest", [32_768, undefined, false, false]],
    ["mistral", "zai-glm-5-3-flash", [1_048_576, 131_072, true, false]],
    ["meta", "muse-spark-1.3", [1_048_576, undefined, true, false]]
  ])("at %s of %s are its own", (vendor, model, expected) => {
    assert.deepStrictEqual(limits(model, { vendor }), expected)
  })

  it.each([
    ["qwen.qwen3-32b-v1:0", [32_768, 16_384, false, false]],
    ["us.moonshotai.kimi-k3", [1_048_576, 128_000, true, false]],
    ["apac.amazon.nova-micro-v1:0", [128_000, 10_000, false, false]],
    ["us.amazon.nova-premier-v1:0", [1_000_000, 10_000, true, false]],
    ["mistral.voxtral-mini-3b-2507", [32_768, 4096, false, false]],
    ["us.meta.llama3-3-70b-instruct-v1:0", [128_000, 4096, false, false]],
    ["deepseek.v3.2", [163_840, 81_920, false, false]],
    ["global.anthropic.claude-opus-5-5", [1_000_000, 128_000, true, false]],
    ["zai.glm-9", [204_800, 131_072, false, true]]
  ])("at Amazon Bedrock of %s are those of Bedrock, else second-hand", (model, expected) => {
    assert.deepStrictEqual(limits(model, { vendor: vendorAtBedrock }), expected)
  })

  it.each([
    ["openrouter", "z-ai/glm-5.3", [1_000_000, 131_072, false, true]],
    ["openrouter", "openai/gpt-6.2-astra", [1_050_000, 128_000, true, true]],
    ["openrouter", "openai/gpt-oss-120b", [131_072, undefined, false, true]],
    ["openrouter", "meta-llama/llama-3.3-70b-instruct", [128_000, undefined, false, true]],
    ["vercel", "xiaomi/mimo-v2.6-pro", [1_000_000, 131_072, true, true]],
    ["fireworks", "accounts/fireworks/models/glm-5p3", [1_048_572, undefined, false, true]],
    ["fireworks", "accounts/fireworks/models/glm-5p3-flash", [1_048_572, undefined, true, true]],
    ["fireworks", "accounts/fireworks/models/kimi-k2p6", [262_144, 262_144, true, true]],
    ["fireworks", "accounts/fireworks/routers/kimi-latest", [1_048_576, undefined, true, true]],
    ["together", "MiniMaxAI/MiniMax-M3", [524_288, undefined, true, true]],
    ["cerebras", "qwen-3.8-27b", [131_072, undefined, true, true]],
    ["nvidia", "stepfun-ai/step-5-preview", [1_048_576, undefined, true, true]]
  ])("at %s of %s are those of the host, or of the family, and second-hand", (id, model, expected) => {
    assert.deepStrictEqual(limits(model, { id, isGateway: true }), expected)
  })

  it("of an application are first-hand", () => {
    const own = [{ vendor: "openrouter", pattern: "glm-5.3", maxOutput: 9 }]
    const rule = Models.find("z-ai/glm-5.3", { id: "openrouter", isGateway: true, own })
    assert.deepInclude(rule, { maxOutput: 9, isSecondHand: false })
  })
})

describe("the day on which a model ends", () => {
  it.each([
    ["anthropic", "claude-sonnet-4-5", "2026-11-30"],
    ["anthropic", "claude-opus-4-5-20251101", "2027-01-22"],
    ["anthropic", "claude-haiku-4-5", undefined],
    ["openai", "gpt-5-mini-2025-08-07", "2026-12-11"],
    ["openai", "gpt-5.1", "2027-04-01"],
    ["openai", "gpt-4o", "2027-01-14"],
    ["openai", "gpt-4o-2024-05-13", "2026-10-23"],
    ["openai", "o3-2025-04-16", "2026-12-11"],
    ["openai", "o3-pro", undefined],
    ["openai", "gpt-5.2", undefined],
    ["openai", "gpt-5-codex", undefined],
    ["minimax", "MiniMax-M2.7", "2026-11-18"]
  ])("is known at %s of %s: %s", (vendor, model, endsOn) => {
    assert.strictEqual(Models.find(model, { vendor })?.endsOn, endsOn)
  })

  it("is that of the vendor's own host alone", () => {
    assert.isUndefined(Models.find("anthropic/claude-sonnet-4-5", { isGateway: true })?.endsOn)
  })
})

describe("hosts of open models", () => {
  const words = (id: string, model: string) => Models.find(model, { id, isGateway: true })?.thinking?.levels

  it("take an effort where it is known of them", () => {
    const three = { low: "low", medium: "medium", high: "high" }
    for (const id of ["cerebras", "together", "fireworks", "baseten", "nvidia", "sambanova", "nebius"])
      assert.deepStrictEqual(words(id, "openai/gpt-oss-120b"), three, id)
    assert.deepStrictEqual(words("cerebras", "qwen-3.8-27b"), { off: "none", ...three })
    assert.deepStrictEqual(words("fireworks", "accounts/fireworks/models/glm-5p3"), {
      low: "low",
      high: "high",
      max: "max"
    })
    assert.isUndefined(words("huggingface", "zai-org/GLM-5.3"))
  })

  it("have a window for their usual model", () => {
    for (const { compat, id, model } of Object.values(OpenAiCompatible.presets)) {
      if (model === undefined || compat?.gateway !== true) continue
      assert.isDefined(Models.find(model, { id, isGateway: true })?.contextWindow, id)
    }
  })
})
