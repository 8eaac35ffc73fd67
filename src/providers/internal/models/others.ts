/** The facts on models of Meta, Xiaomi, StepFun and Ant Ling, of Amazon, Groq and MiniMax, and on those that only Amazon Bedrock serves, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const metaEffort: Thinking["wire"] = {
  chat: { reasoning_effort: "$" },
  responses: { reasoning: { effort: "$" } }
}
const threeLevels: Thinking = {
  kind: "always-on",
  wire: metaEffort,
  levels: { low: "low", medium: "medium", high: "high" },
  omitted: "thinks",
  usual: "medium"
}
const meta = {
  vendor: "meta",
  endpoints: ["responses", "chat", "messages"],
  input: ["text", "image", "pdf", "video"],
  sampling: "any",
  stop: false,
  system: "message",
  forcedTools: "refused",
  structuredOutput: true,
  contextWindow: 1_048_576,
  sources: [
    "docs.litellm.ai/docs/providers/meta",
    "promptfoo.dev/docs/providers/meta",
    "ocaml.org chatoyant Meta (stop, tool choice)",
    "@earendil-works/pi-ai@1.5.2 dist/providers/data/meta.json"
  ]
} satisfies Partial<Rule>
const xiaomi = {
  vendor: "xiaomi",
  endpoints: ["chat", "messages"],
  thinking: {
    kind: "switch",
    levels: { off: { thinking: { type: "disabled" } }, minimal: { thinking: { type: "enabled" } } },
    omitted: "varies"
  },
  sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/xiaomi.json", "docs.agno.com xiaomi"],
  verified: false
} satisfies Partial<Rule>
const stepfun = {
  vendor: "stepfun",
  endpoints: ["chat", "messages"],
  sampling: "any",
  contextWindow: 256_000,
  sources: [
    "platform.stepfun.ai/docs/en/api-reference/chat/chat-completion-create.md",
    "stepfun2.mintlify.app/en/guides/developer/reasoning",
    "@earendil-works/pi-ai@1.5.2 dist/providers/data/openrouter.json"
  ]
} satisfies Partial<Rule>
const ling = {
  vendor: "ant-ling",
  endpoints: ["chat"],
  input: ["text"],
  contextWindow: 262_144,
  maxOutput: 65_536,
  sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/ant-ling.json"],
  verified: false
} satisfies Partial<Rule>

export const others: ReadonlyArray<Table> = [
  {
    vendor: "meta",
    rules: [
      {
        ...meta,
        family: "Muse Spark 1.1, 1.2",
        pattern: String.raw`muse-spark-1\.[12]`,
        thinking: {
          kind: "always-on",
          wire: metaEffort,
          levels: { minimal: "minimal", low: "low", medium: "medium", high: "high", xhigh: "xhigh" },
          omitted: "thinks"
        },
        maxOutput: 131_072,
        verified: true
      },
      {
        ...meta,
        family: "Muse",
        pattern: "muse-",
        thinking: {
          kind: "always-on",
          wire: metaEffort,
          levels: {
            minimal: "minimal",
            low: "low",
            medium: "medium",
            high: "high",
            xhigh: "xhigh",
            max: "max"
          },
          omitted: "thinks"
        },
        verified: false,
        isUnknown: true
      }
    ],
    atBedrock: [
      [String.raw`meta\.llama4-scout`, "image", 10_000_000, 8192],
      [String.raw`meta\.llama4`, "image", 1_000_000, 8192],
      [String.raw`meta\.llama`, "text", 128_000, 4096]
    ]
  },
  {
    vendor: "xiaomi",
    rules: [
      {
        ...xiaomi,
        family: "MiMo 2.5 Pro",
        pattern: String.raw`mimo-v2\.5-pro`,
        input: ["text"],
        contextWindow: 262_144
      },
      {
        ...xiaomi,
        family: "MiMo",
        pattern: "mimo-",
        input: ["text", "image"],
        contextWindow: 1_000_000,
        maxOutput: 131_072,
        isUnknown: true
      }
    ]
  },
  {
    vendor: "stepfun",
    rules: [
      {
        ...stepfun,
        family: "Step 3.5 Flash",
        pattern: String.raw`step-3\.5-flash(?!-2603)`,
        thinking: { kind: "always-on", omitted: "thinks" },
        input: ["text"],
        verified: true
      },
      {
        ...stepfun,
        family: "Step 3.7 Flash",
        pattern: String.raw`step-3`,
        thinking: threeLevels,
        input: ["text", "image", "video"],
        verified: true
      },
      {
        ...stepfun,
        family: "Step 5",
        pattern: String.raw`step-\d`,
        thinking: threeLevels,
        contextWindow: 1_000_000,
        input: ["text", "image", "video"],
        verified: false,
        isUnknown: true
      }
    ]
  },
  {
    vendor: "ant-ling",
    rules: [
      {
        ...ling,
        family: "Ring",
        pattern: "^ring-",
        thinking: {
          kind: "always-on",
          wire: { chat: { reasoning: { effort: "$" } } },
          levels: { high: "high", xhigh: "xhigh" },
          omitted: "thinks"
        }
      },
      {
        ...ling,
        family: "Ling",
        pattern: "^ling-",
        thinking: { kind: "none", omitted: "doesNotThink" },
        isUnknown: true
      }
    ]
  },
  {
    vendor: "nvidia",
    rules: [],
    atBedrock: [
      [String.raw`nvidia\.nemotron-nano-12b`, "image", 131_072, 8192],
      [String.raw`nvidia\.nemotron-nano-9b`, "text", 131_072, 8192],
      [String.raw`nvidia\.nemotron-nano-3`, "text", 262_144, 8192],
      [String.raw`nvidia\.nemotron-super-3`, "text", 262_144, 131_072]
    ]
  },
  {
    vendor: "writer",
    rules: [],
    atBedrock: [
      [String.raw`writer\.palmyra-x4`, "text", 122_880, 8192],
      [String.raw`writer\.palmyra-x5`, "text", 1_040_000, 8192]
    ]
  }
]

// ───────────────────────── Nova

const configured: Thinking["wire"] = {
  converse: {
    additionalModelRequestFields: { reasoningConfig: { type: "enabled", maxReasoningEffort: "$" } }
  }
}
const novaCommon = {
  vendor: "amazon",
  endpoints: ["converse"],
  input: ["text", "image", "pdf", "video"],
  sampling: "any",
  forcedTools: "taken"
} satisfies Partial<Rule>

const novaRules: ReadonlyArray<Rule> = [
  {
    ...novaCommon,
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
    ...novaCommon,
    family: "Nova Premier",
    pattern: String.raw`amazon\.nova-premier`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 1_000_000,
    maxOutput: 10_000,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/amazon-bedrock.json"],
    verified: true
  },
  {
    ...novaCommon,
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
  rules: novaRules,
  atBedrock: [[String.raw`amazon\.nova-micro`, "text", 128_000, 10_000], [String.raw`amazon\.nova`]]
}

// ───────────────────────── Groq

const groqEffort: Thinking["wire"] = { chat: { reasoning_effort: "$" } }
const groqCommon = {
  vendor: "groq",
  endpoints: ["chat"],
  sampling: "any",
  contextWindow: 131_072,
  forcedTools: "taken",
  isResold: true,
  // console.groq.com/docs/vision
  media: { length: 4 * 1024 * 1024, total: 4 * 1024 * 1024 },
  input: ["text", "image"]
} satisfies Partial<Rule>

const groqRules: ReadonlyArray<Rule> = [
  {
    ...groqCommon,
    family: "GPT-OSS",
    pattern: String.raw`^openai/gpt-oss`,
    thinking: {
      kind: "always-on",
      wire: groqEffort,
      levels: { low: "low", medium: "medium", high: "high" },
      omitted: "thinks",
      usual: "medium"
    },
    maxOutput: 65_536,
    input: ["text"],
    sources: [
      "@ai-sdk/groq@4.0.84 src/groq-model-catalog.ts",
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json",
      "console.groq.com/docs/reasoning"
    ],
    verified: true
  },
  {
    ...groqCommon,
    family: "Qwen 3.6",
    pattern: String.raw`^qwen/qwen3\.6`,
    thinking: {
      kind: "effort",
      wire: groqEffort,
      levels: { off: "none", max: "default" },
      omitted: "thinks",
      usual: "default"
    },
    maxOutput: 16_384,
    sources: [
      "@ai-sdk/groq@4.0.84 src/groq-model-catalog.ts",
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json"
    ],
    verified: true
  },
  {
    ...groqCommon,
    family: "Qwen 3.8",
    pattern: String.raw`^qwen/qwen3\.8`,
    thinking: {
      kind: "effort",
      wire: groqEffort,
      levels: { off: "none", low: "low", medium: "medium", high: "high" },
      omitted: "thinks"
    },
    maxOutput: 16_384,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json"],
    verified: false
  },
  {
    ...groqCommon,
    family: "Llama 4",
    pattern: String.raw`^meta-llama/llama-4`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    maxOutput: 32_768,
    sources: ["@ai-sdk/groq@4.0.84 src/groq-model-catalog.ts"],
    verified: false
  },
  {
    ...groqCommon,
    family: "Llama 3.1 8B",
    pattern: "^llama-3.1-8b",
    thinking: { kind: "none", omitted: "doesNotThink" },
    maxOutput: 131_072,
    input: ["text"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json"],
    verified: true
  },
  {
    ...groqCommon,
    family: "Llama and others",
    pattern: String.raw`^(?:llama-|meta-llama/|gemma)`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    maxOutput: 32_768,
    input: ["text"],
    sources: ["@ai-sdk/groq@4.0.84 src/groq-model-catalog.ts"],
    verified: true
  }
]

/** The facts on models that Groq serves. */
export const groq: Table = {
  vendor: "groq",
  rules: groqRules
}

// ───────────────────────── MiniMax

const adaptive: Thinking["wire"] = {
  messages: { thinking: { type: "adaptive" }, output_config: { effort: "$" } }
}
const minimaxCommon = {
  vendor: "minimax",
  endpoints: ["messages", "chat"],
  sampling: "any",
  stop: false,
  input: ["text", "image", "video"]
} satisfies Partial<Rule>

const minimaxRules: ReadonlyArray<Rule> = [
  {
    ...minimaxCommon,
    family: "MiniMax M3.1",
    pattern: String.raw`[Mm]ini[Mm]ax-[Mm]3\.`,
    thinking: {
      kind: "always-on",
      wire: adaptive,
      levels: { low: "low", medium: "medium", high: "high", xhigh: "xhigh", max: "max" },
      omitted: "thinks",
      usual: "max"
    },
    contextWindow: 1_000_000,
    maxOutput: 524_288,
    sources: [
      "dev.to/aihubmix fixing-requires-adaptive-thinking-2013",
      "platform.minimax.io/docs/guides/text-generation",
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/minimax.json"
    ],
    verified: true
  },
  {
    ...minimaxCommon,
    family: "MiniMax M3",
    pattern: String.raw`[Mm]ini[Mm]ax-[Mm]3`,
    thinking: {
      kind: "switch",
      levels: { off: { thinking: { type: "disabled" } }, max: { thinking: { type: "adaptive" } } },
      omitted: "thinks",
      usual: "adaptive"
    },
    contextWindow: 1_000_000,
    maxOutput: 524_288,
    sources: ["java.agentscope.io/v2/en/integration/model/minimax"],
    verified: true
  },
  {
    ...minimaxCommon,
    family: "MiniMax M2.x (retired 2026-11-18)",
    pattern: String.raw`[Mm]ini[Mm]ax-`,
    thinking: { kind: "always-on", omitted: "thinks" },
    contextWindow: 204_800,
    maxOutput: 131_072,
    input: ["text"],
    note: "disabled is taken and thinks all the same",
    sources: [
      "java.agentscope.io/v2/en/integration/model/minimax",
      "dev.to/aihubmix fixing-requires-adaptive-thinking-2013"
    ],
    verified: false,
    isUnknown: true
  }
]

/** The facts on MiniMax. */
export const minimax: Table = {
  vendor: "minimax",
  rules: minimaxRules,
  // dev.to/aihubmix fixing-requires-adaptive-thinking-2013
  endings: { "2026-11-18": String.raw`minimax-m2` },
  atBedrock: [
    [String.raw`minimax\.minimax-m2$`, "text", 204_608, 128_000],
    [String.raw`minimax\.minimax-m2\.1`, "text", 196_608, 131_072],
    [String.raw`minimax\.minimax-m2\.5`, "text", 196_608, 98_304]
  ]
}
