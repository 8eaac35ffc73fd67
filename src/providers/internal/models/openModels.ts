/** The facts on models whose vendors publish their weights: DeepSeek, Kimi, Qwen, GLM and Mistral, with sources as of `Models.readOn`. */
import { type Facts, type Table, type Thinking, always, chatEffort, never } from "./rule.ts"

/** The words of a switch. */
const off = { thinking: { type: "disabled" } }
const on = { thinking: { type: "enabled" } }
const switched: Thinking = { kind: "switch", levels: { off, max: on }, omitted: "thinks" }
const deepseekSwitched: Thinking = { ...switched, omitted: "varies" }
const deepseekEffort: Thinking = {
  kind: "effort",
  wire: {
    chat: { thinking: { type: "enabled" }, reasoning_effort: "$" },
    messages: { thinking: { type: "enabled" }, output_config: { effort: "$" } },
    responses: { reasoning: { effort: "$" } }
  },
  levels: { off, low: "low", medium: "high", max: "max" },
  omitted: "thinks"
}
const v4 = { thinking: deepseekEffort, usual: "high", tokens: [1_000_000, 384_000] } satisfies Facts
const maps = "the server maps minimal→low, medium→high, xhigh→high, ultra→max"

// ───────────────────────── DeepSeek

/** The facts on DeepSeek. */
export const deepseek: Table = {
  vendor: "deepseek",
  common: {
    endpoints: ["chat", "messages", "responses"],
    sampling: "ignored",
    forcedTools: "whileOff",
    input: ["text"]
  },
  families: [
    [
      "DeepSeek V4 Pro",
      /deepseek-(?:v4(?:[.-]\d)?-)?pro/i,
      { ...v4 },
      "api-docs.deepseek.com/guides/thinking_mode; deepseek-ai/DeepSeek-V3#1376; BerriAI/litellm#37470",
      maps
    ],
    [
      "DeepSeek V4 Flash, V4.1 Flash",
      /deepseek-(?:flash|v4)/i,
      { ...v4, input: ["text", "image"] },
      "api-docs.deepseek.com/guides/thinking_mode; deepseek-ai/DeepSeek-V3#1376; BerriAI/litellm#37470",
      maps
    ],
    [
      "DeepSeek before V4",
      /deepseek-/i,
      { tokens: [131_072, 65_536], thinking: deepseekSwitched, isUnknown: true, verified: false },
      "@ai-sdk/deepseek@3.0.56 src/chat/is-deepseek-v4-model.ts"
    ]
  ],
  atBedrock: [[/deepseek\.v3/i, "text", 163_840, 81_920]]
}

// ───────────────────────── Kimi

/** The facts on Kimi. */
export const moonshot: Table = {
  vendor: "moonshot",
  wire: chatEffort,
  common: {
    thinking: "low medium:high xhigh:max",
    endpoints: ["chat"],
    input: ["text", "image", "video"],
    sampling: "refused"
  },
  families: [
    [
      "Kimi for coding, fast",
      /kimi-for-coding-highspeed/i,
      { tokens: [262_144, 32_768], thinking: always, verified: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/kimi-coding.json"
    ],
    [
      "Kimi for coding, K3 with a short context",
      /kimi-for-coding|(?:^|\/)k3-256k/i,
      { tokens: [262_144, 131_072], usual: "max", verified: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/kimi-coding.json",
      "@earendil-works/pi-ai has 1,048,576 for kimi-for-coding"
    ],
    [
      "Kimi K3, K3.1 Pro",
      /kimi-k3|(?:^|\/)k3/i,
      { tokens: [1_048_576, 1_048_576], usual: "max" },
      "dev.to/aihubmix kimi-k31-pro-migration-guide; @ai-sdk/moonshotai@3.0.60 src/moonshotai-chat-language-model.ts; java.agentscope.io/v2/en/integration/model/kimi",
      "the server runs medium as high and xhigh as max"
    ],
    [
      "Kimi K2.7 Code",
      /kimi-k2\.7/i,
      { tokens: [262_144, 262_144], thinking: always, forcedTools: "refused" },
      "@ai-sdk/moonshotai@3.0.60 src/moonshotai-chat-language-model.ts, src/moonshotai-prepare-tools.ts"
    ],
    [
      "Kimi K2.5, K2.6",
      /kimi-k2\.[56]/i,
      { tokens: [262_144, 262_144], thinking: switched, usual: "enabled", forcedTools: "namedWhileOff" },
      "can1357/oh-my-pi#1077; MoonshotAI/kimi-code#686; @ai-sdk/moonshotai@3.0.60 src/moonshotai-prepare-tools.ts",
      "temperature is fixed: 1 with thinking, 0.6 without"
    ],
    [
      "moonshot-v1 with vision",
      /moonshot-v1.*vision/i,
      {
        tokens: [131_072],
        thinking: never,
        input: ["text", "image"],
        sampling: "any",
        forcedTools: "taken",
        verified: false
      },
      "@ai-sdk/moonshotai@3.0.60 src/moonshotai-chat-language-model.ts"
    ],
    [
      "moonshot-v1",
      /moonshot-v1/i,
      { tokens: [131_072], thinking: never, input: ["text"], sampling: "any", forcedTools: "taken" },
      "@ai-sdk/moonshotai@3.0.60 src/moonshotai-chat-language-model.ts"
    ],
    [
      "unknown Kimi",
      /kimi-/i,
      { tokens: [262_144, 32_768], isUnknown: true, verified: false },
      "rule for unknown ids: as the newest"
    ]
  ],
  atBedrock: [
    [/moonshotai\.kimi-k3\.1/i, "image", 1_048_576, 1_048_576],
    [/moonshotai\.kimi-k[3-9]/i, "image", 1_048_576, 128_000],
    [/moonshot(?:ai)?\.kimi-k2-thinking/i, "text", 262_144, 16_000],
    [/moonshotai\.kimi-k2\.5/i, "image", 262_144, 16_384]
  ]
}

// ───────────────────────── Qwen

const qwenFlags = { off: { enable_thinking: false }, on: { enable_thinking: true } }
const flagged: Thinking["wire"] = { chat: { enable_thinking: true, reasoning_effort: "$" } }
const qwenEffort: Thinking = {
  kind: "effort",
  wire: flagged,
  levels: { off: qwenFlags.off, low: "low", medium: "medium", xhigh: "xhigh" },
  omitted: "thinks"
}
const resoldEffort: Thinking = {
  kind: "effort",
  wire: flagged,
  levels: { off: qwenFlags.off, low: "low", high: "high", max: "max" },
  omitted: "varies"
}
const resoldSwitch: Thinking = {
  kind: "switch",
  levels: { off: qwenFlags.off, minimal: qwenFlags.on },
  omitted: "varies"
}
const budgeted: Thinking = {
  kind: "budget",
  wire: { chat: { enable_thinking: true, thinking_budget: "$" } },
  levels: {
    off: qwenFlags.off,
    minimal: 1024,
    low: 2048,
    medium: 8192,
    high: 16_384,
    xhigh: 32_768,
    max: qwenFlags.on
  },
  omitted: "varies"
}

/** The facts on Qwen. */
export const qwen: Table = {
  vendor: "qwen",
  common: {
    endpoints: ["chat"],
    input: ["text", "image", "video"],
    sampling: "any",
    forcedTools: "whileOff",
    verified: false
  },
  families: [
    [
      "Qwen 3.8",
      /qwen-?3\.8/i,
      { tokens: [1_000_000, 131_072], thinking: qwenEffort, usual: "xhigh" },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/qwen-token-plan.json; docs.apiyi.com qwen-3-8/chat-completions (takes none … max); agentscope-ai/agentscope#1608"
    ],
    [
      "Qwen thinking only",
      /qwen.*-thinking|qwq/i,
      { tokens: [131_072, 32_768], thinking: always, forcedTools: "refused" },
      "@ai-sdk/alibaba@2.0.58 src/alibaba-chat-language-model-options.ts"
    ],
    [
      "Qwen 3.7 Max",
      /qwen-?3\.7-max/i,
      { tokens: [1_000_000, 131_072], thinking: budgeted, input: ["text"] },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/qwen-token-plan.json"
    ],
    [
      "Qwen Coder, open text models",
      /qwen-?3-(?:coder|next|\d+b(?!.*vl))|qwen-?3-max/i,
      { tokens: [262_144, 65_536], thinking: budgeted, input: ["text"] },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openrouter.json"
    ],
    [
      "GLM 5.2 and 5.3, DeepSeek V4 at Model Studio",
      /(?:glm-5[.-][1-9]|glm-5$|deepseek-(?:v4|flash))/i,
      { tokens: [1_000_000], thinking: resoldEffort, isResold: true },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/qwen-token-plan.json",
      "GLM 5.2 and before know high and max"
    ],
    [
      "Kimi, GLM, DeepSeek, MiniMax, MiMo at Model Studio",
      /(?:^|\/)(?:kimi|glm|deepseek|minimax|mimo)-/i,
      { tokens: [131_072], thinking: resoldSwitch, isResold: true },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/qwen-token-plan.json; help.aliyun.com/en/model-studio/mimo"
    ],
    [
      "Qwen hybrid (3 to 3.7, plus, max, flash)",
      /qwen/i,
      { tokens: [1_000_000, 65_536], thinking: budgeted, isUnknown: true },
      "@ai-sdk/alibaba@2.0.58 src/alibaba-chat-language-model-options.ts; cloudwego/eino#994; QwenLM/qwen-code#7659"
    ]
  ],
  atBedrock: [
    [/qwen\.qwen3-32b/i, "text", 32_768, 16_384],
    [/qwen\.qwen3-coder-480b/i, "text", 131_072, 65_536],
    [/qwen\.qwen3-coder-next/i, "text", 262_144, 65_536],
    [/qwen\.qwen3-vl/i, "image", 262_144, 262_000],
    [/qwen\.qwen3-next/i, "text", 262_144, 262_000],
    [/qwen\./i, "text", 262_144, 131_072]
  ]
}

// ───────────────────────── GLM

const glmWire: Thinking["wire"] = { chat: { thinking: { type: "enabled" }, reasoning_effort: "$" } }
const glmEffort: Thinking = {
  kind: "effort",
  wire: glmWire,
  levels: { off, xhigh: "high", max: "max" },
  omitted: "thinks"
}
const glmSwitch: Thinking = {
  kind: "switch",
  levels: { off, minimal: on, low: on, medium: on, high: on, xhigh: on, max: on },
  omitted: "thinks"
}
const toolStream =
  "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts"
const glm53 = toolStream + "; reasoning_effort none is taken and thinks at max depth"
const older = {
  thinking: glmSwitch,
  usual: "enabled",
  tokens: [204_800, 131_072],
  verified: false
} satisfies Facts

/** The facts on GLM. */
export const zai: Table = {
  vendor: "zai",
  wire: glmWire,
  common: {
    tokens: [1_000_000, 131_072],
    thinking: "medium:low high max",
    endpoints: ["chat"],
    sampling: "any",
    forcedTools: "refused",
    input: ["text"]
  },
  families: [
    [
      "GLM-5.3 Flash",
      /glm-5[.-]3-flash/i,
      { usual: "max", input: ["text", "image"] },
      "NousResearch/hermes-agent#85890; stefandevo/glm-acp-agent#74; ceulen-dev/ceulen v0.23.0; vectorize-io/hindsight#4246",
      glm53
    ],
    [
      "GLM-5.3",
      /glm-5[.-]3/i,
      { usual: "max" },
      "NousResearch/hermes-agent#85890; stefandevo/glm-acp-agent#74; ceulen-dev/ceulen v0.23.0; vectorize-io/hindsight#4246",
      glm53
    ],
    [
      "GLM-5.2",
      /glm-5[.-]2/i,
      { thinking: glmEffort, verified: false },
      "KiwiGaze/glm-for-copilot#40; NousResearch/hermes-agent#96373 (says disabled is refused here too)",
      toolStream
    ],
    [
      "GLM with vision",
      /glm-\d(?:[.-]\d)?v/i,
      { ...older, input: ["text", "image"] },
      "stefandevo/glm-acp-agent#74; SillyTavern/SillyTavern#5132",
      toolStream
    ],
    [
      "GLM, newest",
      /glm-(?:latest|fast)/i,
      { usual: "max", verified: false },
      "rule for unknown ids: as the newest"
    ],
    [
      "GLM-4.5 to 5.1",
      /glm-/i,
      { ...older, isUnknown: true },
      "stefandevo/glm-acp-agent#74; SillyTavern/SillyTavern#5132",
      toolStream
    ]
  ],
  atBedrock: [
    [/zai\.glm-(?:4|5(?![.-]?\d))/i, "text", 202_752, 131_072],
    [/zai\.glm-5[.-]3(?!-flash)/i, "text", 1_000_000, 128_000]
  ]
}

// ───────────────────────── Mistral

const resoldDeepseek: Thinking = {
  kind: "effort",
  wire: chatEffort,
  levels: { off: "none", low: "low", high: "high", max: "max" },
  omitted: "varies"
}

/** The facts on Mistral's models. */
export const mistral: Table = {
  vendor: "mistral",
  wire: chatEffort,
  common: { endpoints: ["chat"], sampling: "any", forcedTools: "taken", input: ["text", "image"] },
  families: [
    [
      "Mistral Large 4",
      /mistral-large-4/i,
      { tokens: [1_048_576, 262_144], thinking: "low medium high" },
      "@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts, CHANGELOG 9ab42ea"
    ],
    [
      "DeepSeek V4 at Mistral",
      /deepseek-v4/i,
      { tokens: [1_048_576], thinking: resoldDeepseek, isResold: true, verified: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json"
    ],
    [
      "GLM 5.3 at Mistral",
      /glm-(?:5(?:$|[.-]3)|latest|flash)/i,
      { tokens: [1_048_576, 131_072], thinking: "medium:low high max", usual: "max", isResold: true },
      "@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts, CHANGELOG 28e30cd; @earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json",
      "Flash reads images; whether the other does is not known"
    ],
    [
      "voxtral",
      /voxtral/i,
      { tokens: [32_768], thinking: never, input: ["text", "audio"], verified: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json"
    ],
    [
      "codestral, devstral",
      /codestral|devstral(?!-small)|mistral-code/i,
      { tokens: [256_000], thinking: never, input: ["text"] },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json; dust-tt/dust#27613"
    ],
    [
      "nemo, 7B",
      /open-mi[sx]tral|mistral-nemo|mi[sx]tral-\d+x?\d*b/i,
      { tokens: [128_000], thinking: never, input: ["text"], verified: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json"
    ],
    [
      "pixtral, Medium 3, Small 3",
      /pixtral|mistral-medium-2505|mistral-small-250\d|ministral-3b/i,
      { tokens: [128_000], thinking: never },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json"
    ],
    [
      "no dial: devstral small, ministral, Large 3, Medium 3.1",
      /devstral|ministral|mistral-large-(?:2512|3|latest)|mistral-medium-250\d/i,
      { tokens: [256_000], thinking: never },
      "@ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts; dust-tt/dust#27613; @earendil-works/pi-ai@1.5.2 dist/providers/data/mistral.json (devstral)"
    ],
    [
      "GLM at Mistral",
      /^(?:zai-)?glm-/i,
      { tokens: [1_048_576], thinking: "none high max", usual: "none", input: ["text"], isResold: true },
      "anomalyco/models.dev#1986; dust-tt/dust#27613; @ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts",
      "thinking models refuse temperature 0 (dust-tt/dust#27613, one source)"
    ],
    [
      "Medium 3.5, Small 4, Magistral and unknown ids",
      /(?:magi|mi)stral-|leanstral/i,
      { tokens: [262_144], thinking: "none max:high", usual: "none", isUnknown: true },
      "anomalyco/models.dev#1986; dust-tt/dust#27613; @ai-sdk/mistral@4.0.87 src/mistral-model-catalog.ts",
      "thinking models refuse temperature 0 (dust-tt/dust#27613, one source)"
    ]
  ],
  atBedrock: [
    [/mistral\.devstral/i, "text", 262_144, 8192],
    [/mistral\.magistral/i, "image", 128_000, 40_000],
    [/mistral\.ministral-3-3b/i, "image", 256_000, 8192],
    [/mistral\.ministral/i, "image", 128_000, 4096],
    [/mistral\.pixtral/i, "image", 128_000, 8192],
    [/mistral\.voxtral-mini/i, "text", 32_768, 4096],
    [/mistral\.voxtral/i, "text", 32_768, 8192],
    [/mistral\.mistral-large-3/i, "image", 262_144, 8192]
  ]
}
