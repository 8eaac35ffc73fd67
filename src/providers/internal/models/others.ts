/** The facts on models of Meta, Xiaomi, StepFun and Ant Ling, and on those that only Amazon Bedrock serves, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const effort: Thinking["wire"] = {
  chat: { reasoning_effort: "$" },
  responses: { reasoning: { effort: "$" } }
}
const threeLevels: Thinking = {
  kind: "always-on",
  wire: effort,
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
          wire: effort,
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
          wire: effort,
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
