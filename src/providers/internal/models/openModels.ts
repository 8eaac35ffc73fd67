/** The facts on models whose vendors publish their weights: DeepSeek, Kimi, Qwen and GLM, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

/** The words of a switch. */
const off = { thinking: { type: "disabled" } }
const on = { thinking: { type: "enabled" } }

const deepseekSwitched: Thinking["wire"] = {
  chat: { thinking: { type: "enabled" }, reasoning_effort: "$" },
  messages: { thinking: { type: "enabled" }, output_config: { effort: "$" } },
  responses: { reasoning: { effort: "$" } }
}
const deepseekStoppable: Thinking["levels"] = { off, low: "low", medium: "high", max: "max" }
const deepseekCommon = {
  vendor: "deepseek",
  endpoints: ["chat", "messages", "responses"],
  sampling: "ignored",
  forcedTools: "whileOff",
  input: ["text"]
} satisfies Partial<Rule>

const deepseekRules: ReadonlyArray<Rule> = [
  {
    ...deepseekCommon,
    family: "DeepSeek V4 Pro",
    pattern: String.raw`deepseek-(?:v4(?:[.-]\d)?-)?pro`,
    thinking: {
      kind: "effort",
      wire: deepseekSwitched,
      levels: deepseekStoppable,
      omitted: "thinks",
      usual: "high"
    },
    contextWindow: 1_000_000,
    maxOutput: 384_000,
    note: "the server maps minimal→low, medium→high, xhigh→high, ultra→max",
    sources: [
      "api-docs.deepseek.com/guides/thinking_mode",
      "deepseek-ai/DeepSeek-V3#1376",
      "BerriAI/litellm#37470"
    ],
    verified: true
  },
  {
    ...deepseekCommon,
    family: "DeepSeek V4 Flash, V4.1 Flash",
    pattern: String.raw`deepseek-(?:flash|v4)`,
    thinking: {
      kind: "effort",
      wire: deepseekSwitched,
      levels: deepseekStoppable,
      omitted: "thinks",
      usual: "high"
    },
    contextWindow: 1_000_000,
    maxOutput: 384_000,
    input: ["text", "image"],
    note: "the server maps minimal→low, medium→high, xhigh→high, ultra→max",
    sources: [
      "api-docs.deepseek.com/guides/thinking_mode",
      "deepseek-ai/DeepSeek-V3#1376",
      "BerriAI/litellm#37470"
    ],
    verified: true
  },
  {
    ...deepseekCommon,
    family: "DeepSeek before V4",
    pattern: String.raw`deepseek-`,
    thinking: {
      kind: "switch",
      levels: { off, max: on },
      omitted: "varies"
    },
    contextWindow: 131_072,
    maxOutput: 65_536,
    sources: ["@ai-sdk/deepseek@3.0.56 src/chat/is-deepseek-v4-model.ts"],
    verified: false,
    isUnknown: true
  }
]

/** The facts on DeepSeek. */
export const deepseek: Table = {
  vendor: "deepseek",
  rules: deepseekRules,
  atBedrock: [[String.raw`deepseek\.v3`, "text", 163_840, 81_920]]
}

// ───────────────────────── Kimi

const effort: Thinking["wire"] = { chat: { reasoning_effort: "$" } }
const kimiFromLow: Thinking["levels"] = { low: "low", medium: "high", xhigh: "max" }
const kimiCommon = {
  vendor: "moonshot",
  endpoints: ["chat"],
  input: ["text", "image", "video"],
  sampling: "refused"
} satisfies Partial<Rule>

const kimiRules: ReadonlyArray<Rule> = [
  {
    ...kimiCommon,
    family: "Kimi for coding, fast",
    pattern: "kimi-for-coding-highspeed",
    thinking: { kind: "always-on", omitted: "thinks" },
    contextWindow: 262_144,
    maxOutput: 32_768,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/kimi-coding.json"],
    verified: false
  },
  {
    ...kimiCommon,
    family: "Kimi for coding, K3 with a short context",
    pattern: "kimi-for-coding|(?:^|/)k3-256k",
    thinking: { kind: "always-on", wire: effort, levels: kimiFromLow, omitted: "thinks", usual: "max" },
    contextWindow: 262_144,
    maxOutput: 131_072,
    note: "@earendil-works/pi-ai has 1,048,576 for kimi-for-coding",
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/kimi-coding.json"],
    verified: false
  },
  {
    ...kimiCommon,
    family: "Kimi K3, K3.1 Pro",
    pattern: String.raw`kimi-k3|(?:^|/)k3`,
    thinking: { kind: "always-on", wire: effort, levels: kimiFromLow, omitted: "thinks", usual: "max" },
    contextWindow: 1_048_576,
    maxOutput: 1_048_576,
    note: "the server runs medium as high and xhigh as max",
    sources: [
      "dev.to/aihubmix kimi-k31-pro-migration-guide",
      "@ai-sdk/moonshotai@3.0.60 src/moonshotai-chat-language-model.ts",
      "java.agentscope.io/v2/en/integration/model/kimi"
    ],
    verified: true
  },
  {
    ...kimiCommon,
    family: "Kimi K2.7 Code",
    pattern: String.raw`kimi-k2\.7`,
    thinking: { kind: "always-on", omitted: "thinks" },
    contextWindow: 262_144,
    maxOutput: 262_144,
    forcedTools: "refused",
    sources: [
      "@ai-sdk/moonshotai@3.0.60 src/moonshotai-chat-language-model.ts, src/moonshotai-prepare-tools.ts"
    ],
    verified: true
  },
  {
    ...kimiCommon,
    family: "Kimi K2.5, K2.6",
    pattern: String.raw`kimi-k2\.[56]`,
    thinking: {
      kind: "switch",
      levels: { off, max: on },
      omitted: "thinks",
      usual: "enabled"
    },
    contextWindow: 262_144,
    maxOutput: 262_144,
    forcedTools: "namedWhileOff",
    note: "temperature is fixed: 1 with thinking, 0.6 without",
    sources: [
      "can1357/oh-my-pi#1077",
      "MoonshotAI/kimi-code#686",
      "@ai-sdk/moonshotai@3.0.60 src/moonshotai-prepare-tools.ts"
    ],
    verified: true
  },
  {
    ...kimiCommon,
    family: "moonshot-v1 with vision",
    pattern: String.raw`moonshot-v1.*vision`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 131_072,
    input: ["text", "image"],
    forcedTools: "taken",
    sources: ["@ai-sdk/moonshotai@3.0.60 src/moonshotai-chat-language-model.ts"],
    verified: false
  },
  {
    ...kimiCommon,
    family: "moonshot-v1",
    pattern: String.raw`moonshot-v1`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 131_072,
    input: ["text"],
    forcedTools: "taken",
    sources: ["@ai-sdk/moonshotai@3.0.60 src/moonshotai-chat-language-model.ts"],
    verified: true
  },
  {
    ...kimiCommon,
    family: "unknown Kimi",
    pattern: String.raw`kimi-`,
    thinking: { kind: "always-on", wire: effort, levels: kimiFromLow, omitted: "thinks" },
    contextWindow: 262_144,
    maxOutput: 32_768,
    sources: ["rule for unknown ids: as the newest"],
    verified: false,
    isUnknown: true
  }
]

/** The facts on Kimi. */
export const moonshot: Table = {
  vendor: "moonshot",
  rules: kimiRules,
  atBedrock: [
    [String.raw`moonshotai\.kimi-k3\.1`, "image", 1_048_576, 1_048_576],
    [String.raw`moonshotai\.kimi-k[3-9]`, "image", 1_048_576, 128_000],
    [String.raw`moonshot(?:ai)?\.kimi-k2-thinking`, "text", 262_144, 16_000],
    [String.raw`moonshotai\.kimi-k2\.5`, "image", 262_144, 16_384]
  ]
}

// ───────────────────────── Qwen

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
const qwenCommon = {
  vendor: "qwen",
  endpoints: ["chat"],
  input: ["text", "image", "video"],
  sampling: "any",
  forcedTools: "whileOff"
} satisfies Partial<Rule>

const qwenRules: ReadonlyArray<Rule> = [
  {
    ...qwenCommon,
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
    ...qwenCommon,
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
    ...qwenCommon,
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
    ...qwenCommon,
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
    ...qwenCommon,
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
    ...qwenCommon,
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
    ...qwenCommon,
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
  rules: qwenRules,
  atBedrock: [
    [String.raw`qwen\.qwen3-32b`, "text", 32_768, 16_384],
    [String.raw`qwen\.qwen3-coder-480b`, "text", 131_072, 65_536],
    [String.raw`qwen\.qwen3-coder-next`, "text", 262_144, 65_536],
    [String.raw`qwen\.qwen3-vl`, "image", 262_144, 262_000],
    [String.raw`qwen\.qwen3-next`, "text", 262_144, 262_000],
    [String.raw`qwen\.`, "text", 262_144, 131_072]
  ]
}

// ───────────────────────── GLM

const glmSwitched: Thinking["wire"] = { chat: { thinking: { type: "enabled" }, reasoning_effort: "$" } }
const glmFromLow: Thinking["levels"] = { medium: "low", high: "high", max: "max" }
const glmStoppable: Thinking["levels"] = {
  off,
  minimal: on,
  low: on,
  medium: on,
  high: on,
  xhigh: on,
  max: on
}
const glmCommon = {
  vendor: "zai",
  endpoints: ["chat"],
  sampling: "any",
  maxOutput: 131_072,
  forcedTools: "refused",
  input: ["text"]
} satisfies Partial<Rule>

const glmRules: ReadonlyArray<Rule> = [
  {
    ...glmCommon,
    family: "GLM-5.3 Flash",
    pattern: String.raw`glm-5[.-]3-flash`,
    thinking: { kind: "always-on", wire: glmSwitched, levels: glmFromLow, omitted: "thinks", usual: "max" },
    contextWindow: 1_000_000,
    input: ["text", "image"],
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts; reasoning_effort none is taken and thinks at max depth",
    sources: [
      "NousResearch/hermes-agent#85890",
      "stefandevo/glm-acp-agent#74",
      "ceulen-dev/ceulen v0.23.0",
      "vectorize-io/hindsight#4246"
    ],
    verified: true
  },
  {
    ...glmCommon,
    family: "GLM-5.3",
    pattern: String.raw`glm-5[.-]3`,
    thinking: { kind: "always-on", wire: glmSwitched, levels: glmFromLow, omitted: "thinks", usual: "max" },
    contextWindow: 1_000_000,
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts; reasoning_effort none is taken and thinks at max depth",
    sources: [
      "NousResearch/hermes-agent#85890",
      "stefandevo/glm-acp-agent#74",
      "ceulen-dev/ceulen v0.23.0",
      "vectorize-io/hindsight#4246"
    ],
    verified: true
  },
  {
    ...glmCommon,
    family: "GLM-5.2",
    pattern: String.raw`glm-5[.-]2`,
    thinking: {
      kind: "effort",
      wire: glmSwitched,
      levels: { off, xhigh: "high", max: "max" },
      omitted: "thinks"
    },
    contextWindow: 1_000_000,
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts",
    sources: [
      "KiwiGaze/glm-for-copilot#40",
      "NousResearch/hermes-agent#96373 (says disabled is refused here too)"
    ],
    verified: false
  },
  {
    ...glmCommon,
    family: "GLM with vision",
    pattern: String.raw`glm-\d(?:[.-]\d)?v`,
    thinking: { kind: "switch", levels: glmStoppable, omitted: "thinks", usual: "enabled" },
    contextWindow: 204_800,
    input: ["text", "image"],
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts",
    sources: ["stefandevo/glm-acp-agent#74", "SillyTavern/SillyTavern#5132"],
    verified: false
  },
  {
    ...glmCommon,
    family: "GLM, newest",
    pattern: "glm-(?:latest|fast)",
    thinking: { kind: "always-on", wire: glmSwitched, levels: glmFromLow, omitted: "thinks", usual: "max" },
    contextWindow: 1_000_000,
    sources: ["rule for unknown ids: as the newest"],
    verified: false
  },
  {
    ...glmCommon,
    family: "GLM-4.5 to 5.1",
    pattern: String.raw`glm-`,
    thinking: { kind: "switch", levels: glmStoppable, omitted: "thinks", usual: "enabled" },
    contextWindow: 204_800,
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts",
    sources: ["stefandevo/glm-acp-agent#74", "SillyTavern/SillyTavern#5132"],
    verified: false,
    isUnknown: true
  }
]

/** The facts on GLM. */
export const zai: Table = {
  vendor: "zai",
  rules: glmRules,
  atBedrock: [
    [String.raw`zai\.glm-(?:4|5(?![.-]?\d))`, "text", 202_752, 131_072],
    [String.raw`zai\.glm-5[.-]3(?!-flash)`, "text", 1_000_000, 128_000]
  ]
}
