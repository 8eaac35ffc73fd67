/** The facts on Claude, with sources as of `Models.readOn`. */
import { type Facts, type Levels, type PromptPart, type Table, type Thinking, never } from "./rule.ts"

const fromLow: Levels = { low: "low", medium: "medium", high: "high", xhigh: "xhigh", max: "max" }
const effort: Thinking["wire"] = {
  messages: { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "$" } }
}
const adaptive: Thinking = {
  kind: "adaptive",
  wire: effort,
  levels: { off: { thinking: { type: "disabled" } }, ...fromLow },
  omitted: "thinks"
}
const still: Thinking = { ...adaptive, omitted: "doesNotThink" }
/** Opus 4.6 and Sonnet 4.6. */
const first: Thinking = {
  ...still,
  levels: { off: null, low: "low", medium: "medium", high: "high", max: "max" }
}
/** Sonnet 5.5. */
const between: Thinking = {
  ...adaptive,
  levels: { off: { thinking: { type: "between_tools" } }, ...fromLow }
}
const unknown: Thinking = { ...adaptive, levels: { off: { output_config: { effort: "low" } }, ...fromLow } }
const budgets: Levels = { off: null, minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_768 }
const budgeted: Thinking = {
  kind: "budget",
  wire: { messages: { thinking: { type: "enabled", budget_tokens: "$" } } },
  levels: { ...budgets, max: 48_000 },
  budget: { min: 1024 },
  omitted: "doesNotThink"
}
const ofOpus4: Thinking = { ...budgeted, levels: { ...budgets, max: 30_000 } }

/** Of platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages, and `@earendil-works/pi-ai@1.5.2`. */
const parts: ReadonlyArray<PromptPart> = ["system", "tools"]
const promptChanges: Facts["promptChanges"] = { messages: [...parts, "effort"] }
const large = { tokens: [1_000_000, 128_000], toolSearch: true } satisfies Facts
const withBudget = {
  tokens: [200_000, 64_000],
  thinking: budgeted,
  sampling: "one",
  forcedTools: "whileOff"
} satisfies Facts
const note = "1024 ≤ budget_tokens < max_tokens"
const opus4 = { ...withBudget, thinking: ofOpus4, tokens: [200_000, 32_000] } satisfies Facts

/** The facts on Claude. */
export const anthropic: Table = {
  vendor: "anthropic",
  wire: effort,
  common: {
    endpoints: ["messages"],
    input: ["text", "image", "pdf"],
    sampling: "refused",
    forcedTools: "taken"
  },
  families: [
    [
      "Claude Fable 5.1+, Mythos 5.1+",
      /claude-(?:fable|mythos)-5[-.][1-9](?!\d)/i,
      {
        ...large,
        thinking: "low medium high xhigh max",
        usual: "high",
        forcedTools: "refused",
        promptChanges
      },
      "platform.claude.com/docs/en/models/fable-5-2/whats-new-fable-5-2; platform.claude.com/docs/models/fable-5-1/whats-new-fable-5-1; @ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts"
    ],
    [
      "Claude Fable 5, Mythos 5, Mythos Preview",
      /claude-(?:fable|mythos)-(?:5|preview)/i,
      { ...large, thinking: "low medium high xhigh max", usual: "high", promptChanges: { messages: parts } },
      "ex-machina-co/opencode-anthropic-auth#159; langchain-ai/langchain-aws#1141; @ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts"
    ],
    [
      "Claude Opus 5.5",
      /claude-opus-5[-.]5(?!\d)/i,
      {
        ...large,
        thinking: "low medium high xhigh max",
        usual: "medium",
        forcedTools: "refused",
        promptChanges
      },
      "platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5; can1357/oh-my-pi#12939; stdapi-ai/stdapi.ai#284"
    ],
    [
      "Claude Sonnet 5.5",
      /claude-sonnet-5[-.]5(?!\d)/i,
      { ...large, thinking: between, usual: "high", forcedTools: "refused", promptChanges },
      "platform.claude.com/docs/en/models/sonnet-5-5/migration-guide; @ai-sdk/anthropic@4.0.105 CHANGELOG e361d39"
    ],
    [
      "Claude Haiku 5.5",
      /claude-haiku-5[-.]5(?!\d)/i,
      { ...large, thinking: adaptive, usual: "medium", promptChanges },
      "platform.claude.com/docs/en/models/haiku-5-5/migration-guide; docs.apiyi.com/en/live/2026-11/claude-thinking-guide-refresh; @ai-sdk/anthropic@4.0.105 CHANGELOG 866e884"
    ],
    [
      "Claude Opus 5",
      /claude-opus-5(?![-.]?\d(?!\d))/i,
      { ...large, thinking: adaptive, usual: "high", promptChanges },
      "earendil-works/pi#7081; elgorro/aiquila#410; Kilo-Org/kilocode#12526"
    ],
    [
      "Claude Sonnet 5",
      /claude-sonnet-5(?![-.]?\d(?!\d))/i,
      { ...large, thinking: adaptive, usual: "high" },
      "langgenius/dify-official-plugins#3372; AAClause/nvda-OpenAI#126; langchain-ai/langchain-aws#1141"
    ],
    [
      "Claude Opus 4.8",
      /claude-opus-4[-.]8(?!\d)/i,
      { ...large, thinking: still, usual: "high", promptChanges: { messages: parts } },
      "decolua/9router#2635; The-PR-Agent/pr-agent#2456; langchain-ai/langchain-aws#1141"
    ],
    [
      "Claude Opus 4.7",
      /claude-opus-4[-.]7(?!\d)/i,
      { ...large, thinking: still, usual: "high" },
      "earendil-works/pi#3297; anomalyco/models.dev#1468; decolua/9router#2635"
    ],
    [
      "Claude Opus 4.6, Sonnet 4.6",
      /claude-(?:opus|sonnet)-4[-.]6(?!\d)/i,
      { ...large, thinking: first, usual: "high", sampling: "oneWhileOff" },
      "@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts; @anthropic-ai/sdk@1.12.0 resources/messages/messages.js; platform.claude.com/docs/en/build-with-claude/effort"
    ],
    [
      "Claude Opus 4.5",
      /claude-opus-4[-.]5(?!\d)/i,
      { ...withBudget, toolSearch: true },
      "reference.langchain.com deepagents-code ANTHROPIC_EFFORTS_NO_MAX; @ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts",
      note
    ],
    [
      "Claude Sonnet 4.5, Haiku 4.5",
      /claude-(?:sonnet|haiku)-4[-.]5(?!\d)/i,
      { ...withBudget, toolSearch: true },
      "diegosouzapw/OmniRoute#4661; THU-MAIC/OpenMAIC#497; @anthropic-ai/sdk@1.12.0 (Sonnet 4.5 ends 2026-11-30)",
      note
    ],
    [
      "Claude Opus 4.1 (retired at Anthropic)",
      /claude-opus-4[-.]1(?!\d)/i,
      { ...opus4 },
      "@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts",
      note
    ],
    [
      "Claude Opus 4 (retired at Anthropic)",
      /claude-opus-4(?![-.][1-9](?!\d))/i,
      { ...opus4, structuredOutput: false },
      "@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts",
      note
    ],
    [
      "Claude Sonnet 4, 3.7 (retired at Anthropic)",
      /claude-(?:sonnet-4(?![-.][5-9](?!\d))|3[-.]7)/i,
      { ...withBudget, structuredOutput: false },
      "@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts",
      note
    ],
    [
      "Claude 3.5 and before (retired at Anthropic)",
      /claude-(?:instant|v?[12]\b|3(?![-.]7))/i,
      { tokens: [200_000, 4096], thinking: never, sampling: "any", structuredOutput: false },
      "@ai-sdk/anthropic@4.0.105 src/anthropic-model-catalog.ts"
    ],
    [
      "unknown Claude",
      /claude-/i,
      {
        tokens: [200_000, 64_000],
        thinking: unknown,
        usual: "high",
        forcedTools: "refused",
        isUnknown: true,
        verified: false
      },
      "rule for unknown ids; GET /v1/models tells max_tokens, thinking.types and effort levels: @anthropic-ai/sdk@1.12.0 resources/models.d.ts"
    ]
  ],
  // @anthropic-ai/sdk@1.14.0 internal/data/deprecated-models.js
  endings: {
    "2026-06-30": /claude-mythos-preview/i,
    "2026-11-30": /claude-sonnet-4[-.]5(?!\d)/i,
    "2027-01-22": /claude-opus-4[-.]5(?!\d)/i
  },
  atBedrock: [[/anthropic\.claude/i]]
}
