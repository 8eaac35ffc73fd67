/** The facts on Grok, on models of Amazon, MiniMax, Meta, Xiaomi, StepFun and Ant Ling, on those that Groq serves, and on those that only Amazon Bedrock serves, with sources as of `Models.readOn`. */
import { type Facts, type Table, type Thinking, always, chatEffort, never } from "./rule.ts"

const effort: Thinking["wire"] = {
  chat: { reasoning_effort: "$" },
  responses: { reasoning: { effort: "$" } }
}

const agents: Thinking = {
  kind: "effort",
  wire: effort,
  levels: { low: "low", medium: "medium", high: "high", xhigh: "xhigh" },
  omitted: "thinks"
}
const mini: Thinking = {
  kind: "effort",
  wire: effort,
  levels: { low: "low", medium: "high" },
  omitted: "thinks"
}
const varying: Thinking = { kind: "none", omitted: "varies" }

// ───────────────────────── Grok

/** The facts on Grok. */
export const xai: Table = {
  vendor: "xai",
  wire: effort,
  common: {
    endpoints: ["responses", "chat"],
    input: ["text", "image"],
    sampling: "any",
    // docs.x.ai/docs/guides/image-understanding
    media: { length: 20 * 1024 * 1024 },
    stop: false,
    system: "message",
    forcedTools: "taken"
  },
  families: [
    [
      "Grok 4.3",
      /grok-4\.3/i,
      { tokens: [1_000_000], thinking: "none low medium high", usual: "low" },
      "docs.rs mindfork 0.17.0 xai_tests.rs; enricoros/big-AGI#1104; @ai-sdk/xai@5.0.12 CHANGELOG 80e1702",
      "xhigh: in the list that xAI publishes by October, not in the docs of May"
    ],
    [
      "Grok 4.5",
      /grok-4\.5/i,
      { tokens: [500_000], thinking: "low medium high", usual: "high" },
      "mnfst/modelparams.dev#330; can1357/oh-my-pi#4888; anomalyco/opencode#39448"
    ],
    [
      "Grok 4.6, 4.7",
      /grok-4\.[6-9]/i,
      { tokens: [500_000], thinking: "low medium high xhigh", usual: "high" },
      "docs.rs mindfork 0.17.0 xai_tests.rs; mnfst/modelparams.dev#330; chenyme/grok2api#901"
    ],
    [
      "Grok 4.20 multi-agent",
      /grok-4\.20-multi-agent/i,
      { tokens: [2_000_000], thinking: agents },
      "enricoros/big-AGI#1104; NousResearch/hermes-agent#23435",
      "the number of agents"
    ],
    [
      "Grok 3 mini",
      /grok-3-mini/i,
      { tokens: [131_072], thinking: mini, verified: false },
      "NousResearch/hermes-agent#23435"
    ],
    [
      "Grok 4, 4 fast, 4.1 fast, 4.20, code fast, build",
      /grok-/i,
      { tokens: [256_000], thinking: varying, isUnknown: true, verified: false },
      "NousResearch/hermes-agent#23435; chenyme/grok2api#814; @ai-sdk/xai@5.0.12 src/supports-reasoning-effort.ts"
    ]
  ],
  atBedrock: [[/xai\.grok/i]]
}

// ───────────────────────── Meta, Xiaomi, StepFun, Ant Ling

/** The facts on Muse and Llama. */
export const meta: Table = {
  vendor: "meta",
  wire: effort,
  common: {
    tokens: [1_048_576],
    endpoints: ["responses", "chat", "messages"],
    input: ["text", "image", "pdf", "video"],
    sampling: "any",
    stop: false,
    system: "message",
    forcedTools: "refused",
    structuredOutput: true
  },
  families: [
    [
      "Muse Spark 1.1, 1.2",
      /muse-spark-1\.[12]/i,
      { tokens: [1_048_576, 131_072], thinking: "minimal low medium high xhigh" },
      "docs.litellm.ai/docs/providers/meta; promptfoo.dev/docs/providers/meta; ocaml.org chatoyant Meta (stop, tool choice); @earendil-works/pi-ai@1.5.2 dist/providers/data/meta.json"
    ],
    [
      "Muse",
      /muse-/i,
      { thinking: "minimal low medium high xhigh max", isUnknown: true, verified: false },
      "docs.litellm.ai/docs/providers/meta; promptfoo.dev/docs/providers/meta; ocaml.org chatoyant Meta (stop, tool choice); @earendil-works/pi-ai@1.5.2 dist/providers/data/meta.json"
    ]
  ],
  atBedrock: [
    [/meta\.llama4-scout/i, "image", 10_000_000, 8192],
    [/meta\.llama4/i, "image", 1_000_000, 8192],
    [/meta\.llama/i, "text", 128_000, 4096]
  ]
}

const mimo: Thinking = {
  kind: "switch",
  levels: { off: { thinking: { type: "disabled" } }, minimal: { thinking: { type: "enabled" } } },
  omitted: "varies"
}

/** The facts on MiMo. */
export const xiaomi: Table = {
  vendor: "xiaomi",
  common: { thinking: mimo, endpoints: ["chat", "messages"], verified: false },
  families: [
    [
      "MiMo 2.5 Pro",
      /mimo-v2\.5-pro/i,
      { tokens: [262_144], input: ["text"] },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/xiaomi.json; docs.agno.com xiaomi"
    ],
    [
      "MiMo",
      /mimo-/i,
      { tokens: [1_000_000, 131_072], input: ["text", "image"], isUnknown: true },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/xiaomi.json; docs.agno.com xiaomi"
    ]
  ]
}

const step = {
  thinking: "low medium high",
  usual: "medium",
  input: ["text", "image", "video"]
} satisfies Facts

/** The facts on Step. */
export const stepfun: Table = {
  vendor: "stepfun",
  wire: effort,
  common: { endpoints: ["chat", "messages"], sampling: "any" },
  families: [
    [
      "Step 3.5 Flash",
      /step-3\.5-flash(?!-2603)/i,
      { tokens: [256_000], thinking: always, input: ["text"] },
      "platform.stepfun.ai/docs/en/api-reference/chat/chat-completion-create.md; stepfun2.mintlify.app/en/guides/developer/reasoning; @earendil-works/pi-ai@1.5.2 dist/providers/data/openrouter.json"
    ],
    [
      "Step 3.7 Flash",
      /step-3/i,
      { ...step, tokens: [256_000] },
      "platform.stepfun.ai/docs/en/api-reference/chat/chat-completion-create.md; stepfun2.mintlify.app/en/guides/developer/reasoning; @earendil-works/pi-ai@1.5.2 dist/providers/data/openrouter.json"
    ],
    [
      "Step 5",
      /step-\d/i,
      { ...step, tokens: [1_000_000], isUnknown: true, verified: false },
      "platform.stepfun.ai/docs/en/api-reference/chat/chat-completion-create.md; stepfun2.mintlify.app/en/guides/developer/reasoning; @earendil-works/pi-ai@1.5.2 dist/providers/data/openrouter.json"
    ]
  ]
}

const ring: Thinking = {
  kind: "always-on",
  wire: { chat: { reasoning: { effort: "$" } } },
  levels: { high: "high", xhigh: "xhigh" },
  omitted: "thinks"
}

/** The facts on Ring and Ling. */
export const antLing: Table = {
  vendor: "ant-ling",
  common: { tokens: [262_144, 65_536], endpoints: ["chat"], input: ["text"], verified: false },
  families: [
    ["Ring", /^ring-/i, { thinking: ring }, "@earendil-works/pi-ai@1.5.2 dist/providers/data/ant-ling.json"],
    [
      "Ling",
      /^ling-/i,
      { thinking: never, isUnknown: true },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/ant-ling.json"
    ]
  ]
}

// ───────────────────────── Nova

const nova2: Thinking = {
  kind: "effort",
  wire: {
    converse: {
      additionalModelRequestFields: { reasoningConfig: { type: "enabled", maxReasoningEffort: "$" } }
    }
  },
  levels: { off: null, low: "low", medium: "medium", high: "high" },
  omitted: "doesNotThink"
}

/** The facts on Nova. */
export const amazon: Table = {
  vendor: "amazon",
  common: {
    endpoints: ["converse"],
    input: ["text", "image", "pdf", "video"],
    sampling: "any",
    forcedTools: "taken"
  },
  families: [
    [
      "Nova 2",
      /amazon\.nova-2/i,
      { tokens: [1_000_000, 65_535], thinking: nova2 },
      "@ai-sdk/amazon-bedrock@5.0.101 src/amazon-bedrock-chat-language-model.ts; @ai-sdk/anthropic@4.0.105 CHANGELOG 268225c (xhigh is high)",
      "at high no maxTokens (and no temperature, topP: not verified)"
    ],
    [
      "Nova Premier",
      /amazon\.nova-premier/i,
      { tokens: [1_000_000, 10_000], thinking: never },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/amazon-bedrock.json"
    ],
    [
      "Nova 1",
      /amazon\.nova/i,
      { tokens: [300_000, 10_000], thinking: never },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/amazon-bedrock.json"
    ]
  ],
  atBedrock: [[/amazon\.nova-micro/i, "text", 128_000, 10_000], [/amazon\.nova/i]]
}

// ───────────────────────── Groq

/** The facts on models that Groq serves. */
export const groq: Table = {
  vendor: "groq",
  wire: chatEffort,
  common: {
    endpoints: ["chat"],
    sampling: "any",
    forcedTools: "taken",
    isResold: true,
    // console.groq.com/docs/vision
    media: { length: 4 * 1024 * 1024, total: 4 * 1024 * 1024 },
    input: ["text", "image"]
  },
  families: [
    [
      "GPT-OSS",
      /^openai\/gpt-oss/i,
      { tokens: [131_072, 65_536], thinking: "low medium high", usual: "medium", input: ["text"] },
      "@ai-sdk/groq@4.0.84 src/groq-model-catalog.ts; @earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json; console.groq.com/docs/reasoning"
    ],
    [
      "Qwen 3.6",
      /^qwen\/qwen3\.6/i,
      { tokens: [131_072, 16_384], thinking: "none max:default", usual: "default" },
      "@ai-sdk/groq@4.0.84 src/groq-model-catalog.ts; @earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json"
    ],
    [
      "Qwen 3.8",
      /^qwen\/qwen3\.8/i,
      { tokens: [131_072, 16_384], thinking: "none low medium high", verified: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json"
    ],
    [
      "Llama 4",
      /^meta-llama\/llama-4/i,
      { tokens: [131_072, 32_768], thinking: never, verified: false },
      "@ai-sdk/groq@4.0.84 src/groq-model-catalog.ts"
    ],
    [
      "Llama 3.1 8B",
      /^llama-3.1-8b/i,
      { tokens: [131_072, 131_072], thinking: never, input: ["text"] },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json"
    ],
    [
      "Llama and others",
      /^(?:llama-|meta-llama\/|gemma)/i,
      { tokens: [131_072, 32_768], thinking: never, input: ["text"] },
      "@ai-sdk/groq@4.0.84 src/groq-model-catalog.ts"
    ]
  ]
}

// ───────────────────────── MiniMax

const minimaxEffort: Thinking["wire"] = {
  messages: { thinking: { type: "adaptive" }, output_config: { effort: "$" } }
}
const m3: Thinking = {
  kind: "switch",
  levels: { off: { thinking: { type: "disabled" } }, max: { thinking: { type: "adaptive" } } },
  omitted: "thinks"
}

/** The facts on MiniMax. */
export const minimax: Table = {
  vendor: "minimax",
  wire: minimaxEffort,
  common: {
    endpoints: ["messages", "chat"],
    sampling: "any",
    stop: false,
    input: ["text", "image", "video"]
  },
  families: [
    [
      "MiniMax M3.1",
      /[Mm]ini[Mm]ax-[Mm]3\./i,
      { tokens: [1_000_000, 524_288], thinking: "low medium high xhigh max", usual: "max" },
      "dev.to/aihubmix fixing-requires-adaptive-thinking-2013; platform.minimax.io/docs/guides/text-generation; @earendil-works/pi-ai@1.5.2 dist/providers/data/minimax.json"
    ],
    [
      "MiniMax M3",
      /[Mm]ini[Mm]ax-[Mm]3/i,
      { tokens: [1_000_000, 524_288], thinking: m3, usual: "adaptive" },
      "java.agentscope.io/v2/en/integration/model/minimax"
    ],
    [
      "MiniMax M2.x (retired 2026-11-18)",
      /[Mm]ini[Mm]ax-/i,
      { tokens: [204_800, 131_072], thinking: always, input: ["text"], isUnknown: true, verified: false },
      "java.agentscope.io/v2/en/integration/model/minimax; dev.to/aihubmix fixing-requires-adaptive-thinking-2013",
      "disabled is taken and thinks all the same"
    ]
  ],
  // dev.to/aihubmix fixing-requires-adaptive-thinking-2013
  endings: { "2026-11-18": /minimax-m2/i },
  atBedrock: [
    [/minimax\.minimax-m2$/i, "text", 204_608, 128_000],
    [/minimax\.minimax-m2\.1/i, "text", 196_608, 131_072],
    [/minimax\.minimax-m2\.5/i, "text", 196_608, 98_304]
  ]
}

// ───────────────────────── At Amazon Bedrock alone

export const nvidia: Table = {
  vendor: "nvidia",
  common: {},
  families: [],
  atBedrock: [
    [/nvidia\.nemotron-nano-12b/i, "image", 131_072, 8192],
    [/nvidia\.nemotron-nano-9b/i, "text", 131_072, 8192],
    [/nvidia\.nemotron-nano-3/i, "text", 262_144, 8192],
    [/nvidia\.nemotron-super-3/i, "text", 262_144, 131_072]
  ]
}
export const writer: Table = {
  vendor: "writer",
  common: {},
  families: [],
  atBedrock: [
    [/writer\.palmyra-x4/i, "text", 122_880, 8192],
    [/writer\.palmyra-x5/i, "text", 1_040_000, 8192]
  ]
}
