/** Rules for Grok, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const effort: Thinking["wire"] = {
  chat: { reasoning_effort: "$" },
  responses: { reasoning: { effort: "$" } }
}
const fromLow: Thinking["levels"] = { low: "low", medium: "medium", high: "high", xhigh: "xhigh" }
const common = {
  vendor: "xai",
  endpoints: ["responses", "chat"],
  input: ["text", "image"],
  sampling: "any",
  // docs.x.ai/docs/guides/image-understanding
  media: { length: 20 * 1024 * 1024 },
  stop: false,
  system: "message",
  forcedTools: "taken"
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "Grok 4.3",
    pattern: String.raw`grok-4\.3`,
    thinking: {
      kind: "effort",
      wire: effort,
      levels: { off: "none", low: "low", medium: "medium", high: "high" },
      omitted: "thinks",
      usual: "low"
    },
    contextWindow: 1_000_000,
    note: "xhigh: in the list that xAI publishes by October, not in the docs of May",
    sources: [
      "docs.rs mindfork 0.17.0 xai_tests.rs",
      "enricoros/big-AGI#1104",
      "@ai-sdk/xai@5.0.12 CHANGELOG 80e1702"
    ],
    verified: true
  },
  {
    ...common,
    family: "Grok 4.5",
    pattern: String.raw`grok-4\.5`,
    thinking: {
      kind: "always-on",
      wire: effort,
      levels: { low: "low", medium: "medium", high: "high" },
      omitted: "thinks",
      usual: "high"
    },
    contextWindow: 500_000,
    sources: ["mnfst/modelparams.dev#330", "can1357/oh-my-pi#4888", "anomalyco/opencode#39448"],
    verified: true
  },
  {
    ...common,
    family: "Grok 4.6, 4.7",
    pattern: String.raw`grok-4\.[6-9]`,
    thinking: { kind: "always-on", wire: effort, levels: fromLow, omitted: "thinks", usual: "high" },
    contextWindow: 500_000,
    sources: ["docs.rs mindfork 0.17.0 xai_tests.rs", "mnfst/modelparams.dev#330", "chenyme/grok2api#901"],
    verified: true
  },
  {
    ...common,
    family: "Grok 4.20 multi-agent",
    pattern: String.raw`grok-4\.20-multi-agent`,
    thinking: { kind: "effort", wire: effort, levels: fromLow, omitted: "thinks" },
    contextWindow: 2_000_000,
    note: "the number of agents",
    sources: ["enricoros/big-AGI#1104", "NousResearch/hermes-agent#23435"],
    verified: true
  },
  {
    ...common,
    family: "Grok 3 mini",
    pattern: String.raw`grok-3-mini`,
    thinking: { kind: "effort", wire: effort, levels: { low: "low", medium: "high" }, omitted: "thinks" },
    contextWindow: 131_072,
    sources: ["NousResearch/hermes-agent#23435"],
    verified: false
  },
  {
    ...common,
    family: "Grok 4, 4 fast, 4.1 fast, 4.20, code fast, build",
    pattern: String.raw`grok-`,
    thinking: { kind: "none", omitted: "varies" },
    contextWindow: 256_000,
    sources: [
      "NousResearch/hermes-agent#23435",
      "chenyme/grok2api#814",
      "@ai-sdk/xai@5.0.12 src/supports-reasoning-effort.ts"
    ],
    verified: false,
    isUnknown: true
  }
]

/** The facts on Grok. */
export const xai: Table = {
  vendor: "xai",
  rules,
  atBedrock: [[String.raw`xai\.grok`]]
}
