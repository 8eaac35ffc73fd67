/** Rules for Qwen, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const flagged: Thinking["wire"] = { chat: { enable_thinking: true, reasoning_effort: "$" } }
const budget: Thinking["wire"] = { chat: { enable_thinking: true, thinking_budget: "$" } }
const budgets: Thinking["levels"] = {
  off: { enable_thinking: false },
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
  max: { enable_thinking: true }
}
const common = {
  vendor: "qwen",
  endpoints: ["chat"],
  input: ["text", "image", "video"],
  sampling: "any",
  forcedTools: "whileOff"
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "Qwen 3.8",
    pattern: String.raw`qwen-?3\.8`,
    thinking: {
      kind: "effort",
      wire: flagged,
      levels: { off: { enable_thinking: false }, low: "low", medium: "medium", xhigh: "xhigh" },
      omitted: "thinks",
      usual: "xhigh"
    },
    contextWindow: 1_000_000,
    maxOutput: 131_072,
    sources: [
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/qwen-token-plan.json",
      "docs.apiyi.com qwen-3-8/chat-completions (takes none … max)",
      "agentscope-ai/agentscope#1608"
    ],
    verified: false
  },
  {
    ...common,
    family: "Qwen thinking only",
    pattern: String.raw`qwen.*-thinking|qwq`,
    thinking: { kind: "always-on", omitted: "thinks" },
    contextWindow: 131_072,
    maxOutput: 32_768,
    forcedTools: "refused",
    sources: ["@ai-sdk/alibaba@2.0.58 src/alibaba-chat-language-model-options.ts"],
    verified: false
  },
  {
    ...common,
    family: "Qwen 3.7 Max",
    pattern: String.raw`qwen-?3\.7-max`,
    thinking: { kind: "budget", wire: budget, levels: budgets, omitted: "varies" },
    contextWindow: 1_000_000,
    maxOutput: 131_072,
    input: ["text"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/qwen-token-plan.json"],
    verified: false
  },
  {
    ...common,
    family: "Qwen Coder, open text models",
    pattern: String.raw`qwen-?3-(?:coder|next|\d+b(?!.*vl))|qwen-?3-max`,
    thinking: { kind: "budget", wire: budget, levels: budgets, omitted: "varies" },
    contextWindow: 262_144,
    maxOutput: 65_536,
    input: ["text"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/openrouter.json"],
    verified: false
  },
  {
    ...common,
    family: "GLM 5.2 and 5.3, DeepSeek V4 at Model Studio",
    pattern: String.raw`(?:glm-5[.-][1-9]|glm-5$|deepseek-(?:v4|flash))`,
    isResold: true,
    thinking: {
      kind: "effort",
      wire: flagged,
      levels: { off: { enable_thinking: false }, low: "low", high: "high", max: "max" },
      omitted: "varies"
    },
    contextWindow: 1_000_000,
    note: "GLM 5.2 and before know high and max",
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/qwen-token-plan.json"],
    verified: false
  },
  {
    ...common,
    family: "Kimi, GLM, DeepSeek, MiniMax, MiMo at Model Studio",
    pattern: "(?:^|/)(?:kimi|glm|deepseek|minimax|mimo)-",
    isResold: true,
    thinking: {
      kind: "switch",
      levels: { off: { enable_thinking: false }, minimal: { enable_thinking: true } },
      omitted: "varies"
    },
    contextWindow: 131_072,
    sources: [
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/qwen-token-plan.json",
      "help.aliyun.com/en/model-studio/mimo"
    ],
    verified: false
  },
  {
    ...common,
    family: "Qwen hybrid (3 to 3.7, plus, max, flash)",
    pattern: String.raw`qwen`,
    thinking: { kind: "budget", wire: budget, levels: budgets, omitted: "varies" },
    contextWindow: 1_000_000,
    maxOutput: 65_536,
    sources: [
      "@ai-sdk/alibaba@2.0.58 src/alibaba-chat-language-model-options.ts",
      "cloudwego/eino#994",
      "QwenLM/qwen-code#7659"
    ],
    verified: false,
    isUnknown: true
  }
]

/** The facts on Qwen. */
export const qwen: Table = {
  vendor: "qwen",
  rules,
  atBedrock: [
    [String.raw`qwen\.qwen3-32b`, "text", 32_768, 16_384],
    [String.raw`qwen\.qwen3-coder-480b`, "text", 131_072, 65_536],
    [String.raw`qwen\.qwen3-coder-next`, "text", 262_144, 65_536],
    [String.raw`qwen\.qwen3-vl`, "image", 262_144, 262_000],
    [String.raw`qwen\.qwen3-next`, "text", 262_144, 262_000],
    [String.raw`qwen\.`, "text", 262_144, 131_072]
  ]
}
