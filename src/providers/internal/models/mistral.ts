/** Rules for Mistral, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const effort: Thinking["wire"] = { chat: { reasoning_effort: "$" } }
const fromNone: Thinking["levels"] = { off: "none", max: "high" }
const common = {
  vendor: "mistral",
  endpoints: ["chat"],
  sampling: "any",
  forcedTools: "taken",
  input: ["text", "image"]
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "Mistral Large 4",
    pattern: String.raw`mistral-large-4`,
    thinking: {
      kind: "always-on",
      wire: effort,
      levels: { low: "low", medium: "medium", high: "high" },
      omitted: "thinks"
    },
    contextWindow: 1_048_576,
    maxOutput: 262_144,
    sources: ["@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts, CHANGELOG 9ab42ea"],
    verified: true
  },
  {
    ...common,
    family: "DeepSeek V4 at Mistral",
    pattern: "deepseek-v4",
    thinking: {
      kind: "effort",
      wire: effort,
      levels: { off: "none", low: "low", high: "high", max: "max" },
      omitted: "varies"
    },
    contextWindow: 1_048_576,
    isResold: true,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json"],
    verified: false
  },
  {
    ...common,
    family: "GLM 5.3 at Mistral",
    pattern: String.raw`glm-(?:5(?:$|[.-]3)|latest|flash)`,
    thinking: {
      kind: "always-on",
      wire: effort,
      levels: { medium: "low", high: "high", max: "max" },
      omitted: "thinks",
      usual: "max"
    },
    contextWindow: 1_048_576,
    maxOutput: 131_072,
    isResold: true,
    note: "Flash reads images; whether the other does is not known",
    sources: [
      "@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts, CHANGELOG 28e30cd",
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json"
    ],
    verified: true
  },
  {
    ...common,
    family: "voxtral",
    pattern: "voxtral",
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 32_768,
    input: ["text", "audio"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json"],
    verified: false
  },
  {
    ...common,
    family: "codestral, devstral",
    pattern: "codestral|devstral(?!-small)|mistral-code",
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 256_000,
    input: ["text"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json", "dust-tt/dust#27613"],
    verified: true
  },
  {
    ...common,
    family: "nemo, 7B",
    pattern: "open-mi[sx]tral|mistral-nemo|mi[sx]tral-\\d+x?\\d*b",
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 128_000,
    input: ["text"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json"],
    verified: false
  },
  {
    ...common,
    family: "pixtral, Medium 3, Small 3",
    pattern: String.raw`pixtral|mistral-medium-2505|mistral-small-250\d|ministral-3b`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 128_000,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json"],
    verified: true
  },
  {
    ...common,
    family: "no dial: devstral small, ministral, Large 3, Medium 3.1",
    pattern: String.raw`devstral|ministral|mistral-large-(?:2512|3|latest)|mistral-medium-250\d`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 256_000,
    sources: [
      "@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts",
      "dust-tt/dust#27613",
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json (devstral)"
    ],
    verified: true
  },
  {
    ...common,
    family: "GLM at Mistral",
    pattern: String.raw`^(?:zai-)?glm-`,
    thinking: {
      kind: "effort",
      wire: effort,
      levels: { off: "none", high: "high", max: "max" },
      omitted: "doesNotThink",
      usual: "none"
    },
    contextWindow: 1_048_576,
    input: ["text"],
    isResold: true,
    note: "thinking models refuse temperature 0 (dust-tt/dust#27613, one source)",
    sources: [
      "anomalyco/models.dev#1986",
      "dust-tt/dust#27613",
      "@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts"
    ],
    verified: true
  },
  {
    ...common,
    family: "Medium 3.5, Small 4, Magistral and unknown ids",
    pattern: String.raw`(?:magi|mi)stral-|leanstral`,
    thinking: { kind: "effort", wire: effort, levels: fromNone, omitted: "doesNotThink", usual: "none" },
    contextWindow: 262_144,
    note: "thinking models refuse temperature 0 (dust-tt/dust#27613, one source)",
    sources: [
      "anomalyco/models.dev#1986",
      "dust-tt/dust#27613",
      "@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts"
    ],
    verified: true,
    isUnknown: true
  }
]

/** The facts on Mistral's models. */
export const mistral: Table = {
  vendor: "mistral",
  rules,
  atBedrock: [
    [String.raw`mistral\.devstral`, "text", 262_144, 8192],
    [String.raw`mistral\.magistral`, "image", 128_000, 40_000],
    [String.raw`mistral\.ministral-3-3b`, "image", 256_000, 8192],
    [String.raw`mistral\.ministral`, "image", 128_000, 4096],
    [String.raw`mistral\.pixtral`, "image", 128_000, 8192],
    [String.raw`mistral\.voxtral-mini`, "text", 32_768, 4096],
    [String.raw`mistral\.voxtral`, "text", 32_768, 8192],
    [String.raw`mistral\.mistral-large-3`, "image", 262_144, 8192]
  ]
}
