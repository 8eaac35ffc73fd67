/** Rules for Amazon Nova, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const configured: Thinking["wire"] = {
  converse: {
    additionalModelRequestFields: { reasoningConfig: { type: "enabled", maxReasoningEffort: "$" } }
  }
}
const common = {
  vendor: "amazon",
  endpoints: ["converse"],
  input: ["text", "image", "pdf", "video"],
  sampling: "any",
  forcedTools: "taken"
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "Nova 2",
    pattern: String.raw`amazon\.nova-2`,
    thinking: {
      kind: "effort",
      wire: configured,
      levels: { off: null, low: "low", medium: "medium", high: "high" },
      omitted: "doesNotThink"
    },
    contextWindow: 1_000_000,
    maxOutput: 65_535,
    note: "at high no maxTokens (and no temperature, topP: not verified)",
    sources: [
      "@ai-sdk/amazon-bedrock@5.0.101 src/amazon-bedrock-chat-language-model.ts",
      "@ai-sdk/anthropic@4.0.105 CHANGELOG 268225c (xhigh is high)"
    ],
    verified: true
  },
  {
    ...common,
    family: "Nova Premier",
    pattern: String.raw`amazon\.nova-premier`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 1_000_000,
    maxOutput: 10_000,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/amazon-bedrock.json"],
    verified: true
  },
  {
    ...common,
    family: "Nova 1",
    pattern: String.raw`amazon\.nova`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 300_000,
    maxOutput: 10_000,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/amazon-bedrock.json"],
    verified: true
  }
]

/** The facts on Nova. */
export const amazon: Table = {
  vendor: "amazon",
  rules,
  atBedrock: [[String.raw`amazon\.nova-micro`, "text", 128_000, 10_000], [String.raw`amazon\.nova`]]
}
