/** Rules for Mistral, with sources as of `Models.readOn`. */
import type { Rule, Thinking } from "./rule.ts"

const effort: Thinking["wire"] = { chat: { reasoning_effort: "$" } }
const fromNone: Thinking["levels"] = {
  off: "none",
  minimal: "high",
  low: "high",
  medium: "high",
  high: "high",
  xhigh: "high",
  max: "high"
}
const common = {
  vendor: "mistral",
  endpoints: ["chat"],
  sampling: "any",
  forcedTools: "taken",
  input: ["text", "image"]
} satisfies Partial<Rule>

export const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "Mistral Large 4",
    pattern: String.raw`mistral-large-4`,
    thinking: {
      kind: "always-on",
      wire: effort,
      levels: {
        off: "low",
        minimal: "low",
        low: "low",
        medium: "medium",
        high: "high",
        xhigh: "high",
        max: "high"
      },
      omitted: "thinks"
    },
    contextWindow: 1_048_576,
    maxOutput: 262_144,
    sources: ["@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts, CHANGELOG 9ab42ea"],
    verified: true
  },
  {
    ...common,
    family: "GLM 5.3 at Mistral",
    pattern: String.raw`zai-glm-(?:5(?:$|-3)|latest)`,
    thinking: {
      kind: "always-on",
      wire: effort,
      levels: {
        off: "low",
        minimal: "low",
        low: "low",
        medium: "low",
        high: "high",
        xhigh: "high",
        max: "max"
      },
      omitted: "thinks",
      usual: "max"
    },
    contextWindow: 1_048_576,
    maxOutput: 131_072,
    input: ["text"],
    isResold: true,
    sources: ["@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts, CHANGELOG 28e30cd"],
    verified: true
  },
  {
    ...common,
    family: "no dial: codestral, devstral, ministral, Large 3, voxtral, pixtral, nemo, Medium 3 and 3.1",
    pattern: String.raw`codestral|devstral|ministral|mistral-code|mistral-large-(?:2512|latest)|voxtral|pixtral|open-mistral|mistral-medium-250\d|mistral-small-250\d`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 262_144,
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
    thinking: { kind: "effort", wire: effort, levels: fromNone, omitted: "doesNotThink", usual: "none" },
    contextWindow: 262_144,
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
