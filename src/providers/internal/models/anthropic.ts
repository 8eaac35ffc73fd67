/** Rules for Claude, with sources as of `Models.readOn`. */
import type { PromptPart, Rule, Table, Thinking } from "./rule.ts"

const adaptive: Thinking["wire"] = {
  messages: { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "$" } }
}
const budget: Thinking["wire"] = { messages: { thinking: { type: "enabled", budget_tokens: "$" } } }
const fromLow: Thinking["levels"] = { low: "low", medium: "medium", high: "high", xhigh: "xhigh", max: "max" }
const stoppable: Thinking["levels"] = {
  off: { thinking: { type: "disabled" } },
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "max"
}
const budgets: Thinking["levels"] = {
  off: null,
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
  max: 48_000
}
const common = {
  vendor: "anthropic",
  endpoints: ["messages"],
  input: ["text", "image", "pdf"],
  sampling: "refused",
  forcedTools: "taken"
} satisfies Partial<Rule>

/** Of platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages, and `@earendil-works/pi-ai@1.5.2`. */
const changes: ReadonlyArray<PromptPart> = ["system", "tools"]
const promptChanges: Rule["promptChanges"] = { messages: [...changes, "effort"] }

/** Claude Opus 4 and 4.1. */
const opus4 = {
  ...common,
  thinking: {
    kind: "budget",
    wire: budget,
    levels: { off: null, minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_768, max: 30_000 },
    budget: { min: 1024 },
    omitted: "doesNotThink"
  },
  sampling: "one",
  contextWindow: 200_000,
  maxOutput: 32_000,
  forcedTools: "whileOff",
  note: "1024 ≤ budget_tokens < max_tokens",
  sources: ["@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts"],
  verified: true
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "Claude Fable 5.1+, Mythos 5.1+",
    pattern: String.raw`claude-(?:fable|mythos)-5[-.][1-9](?!\d)`,
    thinking: { kind: "always-on", wire: adaptive, levels: fromLow, omitted: "thinks", usual: "high" },
    toolSearch: true,
    promptChanges,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    forcedTools: "refused",
    sources: [
      "platform.claude.com/docs/en/models/fable-5-2/whats-new-fable-5-2",
      "platform.claude.com/docs/models/fable-5-1/whats-new-fable-5-1",
      "@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts"
    ],
    verified: true
  },
  {
    ...common,
    family: "Claude Fable 5, Mythos 5, Mythos Preview",
    pattern: String.raw`claude-(?:fable|mythos)-(?:5|preview)`,
    thinking: { kind: "always-on", wire: adaptive, levels: fromLow, omitted: "thinks", usual: "high" },
    toolSearch: true,
    promptChanges: { messages: changes },
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    sources: [
      "ex-machina-co/opencode-anthropic-auth#159",
      "langchain-ai/langchain-aws#1141",
      "@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts"
    ],
    verified: true
  },
  {
    ...common,
    family: "Claude Opus 5.5",
    pattern: String.raw`claude-opus-5[-.]5(?!\d)`,
    thinking: { kind: "always-on", wire: adaptive, levels: fromLow, omitted: "thinks", usual: "medium" },
    toolSearch: true,
    promptChanges,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    forcedTools: "refused",
    sources: [
      "platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5",
      "can1357/oh-my-pi#12939",
      "stdapi-ai/stdapi.ai#284"
    ],
    verified: true
  },
  {
    ...common,
    family: "Claude Sonnet 5.5",
    pattern: String.raw`claude-sonnet-5[-.]5(?!\d)`,
    thinking: {
      kind: "adaptive",
      wire: adaptive,
      levels: {
        off: { thinking: { type: "between_tools" } },
        low: "low",
        medium: "medium",
        high: "high",
        xhigh: "xhigh",
        max: "max"
      },
      omitted: "thinks",
      usual: "high"
    },
    toolSearch: true,
    promptChanges,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    forcedTools: "refused",
    sources: [
      "platform.claude.com/docs/en/models/sonnet-5-5/migration-guide",
      "@ai-sdk/anthropic@4.0.105 CHANGELOG e361d39"
    ],
    verified: true
  },
  {
    ...common,
    family: "Claude Haiku 5.5",
    pattern: String.raw`claude-haiku-5[-.]5(?!\d)`,
    thinking: { kind: "adaptive", wire: adaptive, levels: stoppable, omitted: "thinks", usual: "medium" },
    toolSearch: true,
    promptChanges,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    sources: [
      "platform.claude.com/docs/en/models/haiku-5-5/migration-guide",
      "docs.apiyi.com/en/live/2026-11/claude-thinking-guide-refresh",
      "@ai-sdk/anthropic@4.0.105 CHANGELOG 866e884"
    ],
    verified: true
  },
  {
    ...common,
    family: "Claude Opus 5",
    pattern: String.raw`claude-opus-5(?![-.]?\d(?!\d))`,
    thinking: { kind: "adaptive", wire: adaptive, levels: stoppable, omitted: "thinks", usual: "high" },
    toolSearch: true,
    promptChanges,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    sources: ["earendil-works/pi#7081", "elgorro/aiquila#410", "Kilo-Org/kilocode#12526"],
    verified: true
  },
  {
    ...common,
    family: "Claude Sonnet 5",
    pattern: String.raw`claude-sonnet-5(?![-.]?\d(?!\d))`,
    thinking: { kind: "adaptive", wire: adaptive, levels: stoppable, omitted: "thinks", usual: "high" },
    toolSearch: true,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    sources: [
      "langgenius/dify-official-plugins#3372",
      "AAClause/nvda-OpenAI#126",
      "langchain-ai/langchain-aws#1141"
    ],
    verified: true
  },
  {
    ...common,
    family: "Claude Opus 4.8",
    pattern: String.raw`claude-opus-4[-.]8(?!\d)`,
    thinking: { kind: "adaptive", wire: adaptive, levels: stoppable, omitted: "doesNotThink", usual: "high" },
    toolSearch: true,
    promptChanges: { messages: changes },
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    sources: ["decolua/9router#2635", "The-PR-Agent/pr-agent#2456", "langchain-ai/langchain-aws#1141"],
    verified: true
  },
  {
    ...common,
    family: "Claude Opus 4.7",
    pattern: String.raw`claude-opus-4[-.]7(?!\d)`,
    thinking: { kind: "adaptive", wire: adaptive, levels: stoppable, omitted: "doesNotThink", usual: "high" },
    toolSearch: true,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    sources: ["earendil-works/pi#3297", "anomalyco/models.dev#1468", "decolua/9router#2635"],
    verified: true
  },
  {
    ...common,
    family: "Claude Opus 4.6, Sonnet 4.6",
    pattern: String.raw`claude-(?:opus|sonnet)-4[-.]6(?!\d)`,
    thinking: {
      kind: "adaptive",
      wire: adaptive,
      levels: { off: null, low: "low", medium: "medium", high: "high", max: "max" },
      omitted: "doesNotThink",
      usual: "high"
    },
    sampling: "oneWhileOff",
    toolSearch: true,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    sources: [
      "@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts",
      "@anthropic-ai/sdk@1.12.0 resources/messages/messages.js",
      "platform.claude.com/docs/en/build-with-claude/effort"
    ],
    verified: true
  },
  {
    ...common,
    family: "Claude Opus 4.5",
    pattern: String.raw`claude-opus-4[-.]5(?!\d)`,
    thinking: {
      kind: "budget",
      wire: budget,
      levels: budgets,
      budget: { min: 1024 },
      omitted: "doesNotThink"
    },
    sampling: "one",
    toolSearch: true,
    contextWindow: 200_000,
    maxOutput: 64_000,
    forcedTools: "whileOff",
    note: "1024 ≤ budget_tokens < max_tokens",
    sources: [
      "reference.langchain.com deepagents-code ANTHROPIC_EFFORTS_NO_MAX",
      "@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts"
    ],
    verified: true
  },
  {
    ...common,
    family: "Claude Sonnet 4.5, Haiku 4.5",
    pattern: String.raw`claude-(?:sonnet|haiku)-4[-.]5(?!\d)`,
    thinking: {
      kind: "budget",
      wire: budget,
      levels: budgets,
      budget: { min: 1024 },
      omitted: "doesNotThink"
    },
    sampling: "one",
    toolSearch: true,
    contextWindow: 200_000,
    maxOutput: 64_000,
    forcedTools: "whileOff",
    note: "1024 ≤ budget_tokens < max_tokens",
    sources: [
      "diegosouzapw/OmniRoute#4661",
      "THU-MAIC/OpenMAIC#497",
      "@anthropic-ai/sdk@1.12.0 (Sonnet 4.5 ends 2026-11-30)"
    ],
    verified: true
  },
  {
    ...opus4,
    family: "Claude Opus 4.1 (retired at Anthropic)",
    pattern: String.raw`claude-opus-4[-.]1(?!\d)`
  },
  {
    ...opus4,
    family: "Claude Opus 4 (retired at Anthropic)",
    pattern: String.raw`claude-opus-4(?![-.][1-9](?!\d))`,
    structuredOutput: false
  },
  {
    ...common,
    family: "Claude Sonnet 4, 3.7 (retired at Anthropic)",
    pattern: String.raw`claude-(?:sonnet-4(?![-.][5-9](?!\d))|3[-.]7)`,
    structuredOutput: false,
    thinking: {
      kind: "budget",
      wire: budget,
      levels: budgets,
      budget: { min: 1024 },
      omitted: "doesNotThink"
    },
    sampling: "one",
    contextWindow: 200_000,
    maxOutput: 64_000,
    forcedTools: "whileOff",
    note: "1024 ≤ budget_tokens < max_tokens",
    sources: ["@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts"],
    verified: true
  },
  {
    ...common,
    family: "Claude 3.5 and before (retired at Anthropic)",
    pattern: String.raw`claude-(?:instant|v?[12]\b|3(?![-.]7))`,
    structuredOutput: false,
    thinking: { kind: "none", omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 200_000,
    maxOutput: 4096,
    sources: ["@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts"],
    verified: true
  },
  {
    ...common,
    family: "unknown Claude",
    pattern: String.raw`claude-`,
    thinking: {
      kind: "adaptive",
      wire: adaptive,
      levels: {
        off: { output_config: { effort: "low" } },
        low: "low",
        medium: "medium",
        high: "high",
        xhigh: "xhigh",
        max: "max"
      },
      omitted: "thinks",
      usual: "high"
    },
    contextWindow: 200_000,
    maxOutput: 64_000,
    forcedTools: "refused",
    sources: [
      "rule for unknown ids; GET /v1/models tells max_tokens, thinking.types and effort levels: @anthropic-ai/sdk@1.12.0 resources/models.d.ts"
    ],
    verified: false,
    isUnknown: true
  }
]

/** The facts on Claude. */
export const anthropic: Table = {
  vendor: "anthropic",
  rules,
  // @anthropic-ai/sdk@1.14.0 internal/data/deprecated-models.js
  endings: {
    "2026-06-30": "claude-mythos-preview",
    "2026-11-30": String.raw`claude-sonnet-4[-.]5(?!\d)`,
    "2027-01-22": String.raw`claude-opus-4[-.]5(?!\d)`
  },
  atBedrock: [[String.raw`anthropic\.claude`]]
}
