/** Rules for OpenAI's models, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const effort: Thinking["wire"] = {
  chat: { reasoning_effort: "$" },
  responses: { reasoning: { effort: "$", summary: "auto" } }
}
const fromLow: Thinking["levels"] = { low: "low", medium: "medium", high: "high", xhigh: "xhigh", max: "max" }
const fromNone: Thinking["levels"] = {
  off: "none",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "max"
}
const fromMedium: Thinking["levels"] = { medium: "medium", high: "high", xhigh: "xhigh" }
const fromNoneToXhigh: Thinking["levels"] = {
  off: "none",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "xhigh"
}
const fromLowToHigh: Thinking["levels"] = { low: "low", medium: "medium", high: "high" }
const fromLowToXhigh: Thinking["levels"] = { ...fromLow, max: "xhigh" }
const common = {
  vendor: "openai",
  forcedTools: "taken",
  endpoints: ["responses", "chat"],
  input: ["text", "image", "pdf"],
  sampling: "refused"
} satisfies Partial<Rule>

/** The newest models, by Responses. */
const recent = {
  ...common,
  thinking: {
    kind: "always-on",
    wire: effort,
    levels: fromLow,
    perEndpoint: { chat: { max: "xhigh" } },
    omitted: "thinks"
  },
  toolSearch: true,
  maxOutput: 128_000,
  endpoints: ["responses"],
  stop: false,
  tools: "responses",
  longCache: "options"
} satisfies Partial<Rule>

/** The rules of GPT-5.4 mini and nano, which differ in the search for tools. */
const small = {
  ...common,
  thinking: { kind: "effort", wire: effort, levels: fromNoneToXhigh, omitted: "doesNotThink", usual: "none" },
  sampling: "whileOff",
  contextWindow: 400_000,
  maxOutput: 128_000,
  stop: false,
  tools: "chatWithoutEffort",
  longCache: "retention",
  sources: [
    "fazer-ai/agents#66",
    "@ai-sdk/openai@4.0.118 src/openai-model-catalog.ts",
    "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json",
    "Oaklight/llm-rosetta#394"
  ],
  verified: true
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "GPT-6 Astra, GPT-6.1 Sol, GPT-6.2 Astra and Sol",
    pattern: String.raw`gpt-6(?:(?:\.\d)?-astra|\.[1-9]-sol)`,
    thinking: {
      kind: "always-on",
      wire: effort,
      levels: fromLow,
      perEndpoint: { chat: { max: "xhigh" } },
      omitted: "thinks",
      usual: "medium"
    },
    toolSearch: true,
    promptChanges: { responses: ["system", "tools", "effort"] },
    contextWindow: 1_050_000,
    maxOutput: 128_000,
    stop: false,
    tools: "responses",
    longCache: "options",
    sources: [
      "developers.openai.com/api/docs/guides/deployment-checklist",
      "BerriAI/litellm-docs#1173",
      "UKGovernmentBEIS/inspect_ai#5254",
      "bolna-ai/bolna#1019",
      "coder/xum#4064",
      "@openai/codex@0.171.0 built-in model list (6.2)"
    ],
    verified: true
  },
  {
    ...common,
    family: "GPT-6 Sol, Luna, GPT-6.1 Terra",
    pattern: String.raw`gpt-6(?:-(?:sol|luna)|\.1-terra)`,
    thinking: {
      kind: "effort",
      wire: effort,
      levels: fromNone,
      perEndpoint: { chat: { max: "xhigh" } },
      omitted: "thinks"
    },
    sampling: "whileOff",
    toolSearch: true,
    promptChanges: { responses: ["system", "tools", "effort"] },
    contextWindow: 1_050_000,
    maxOutput: 128_000,
    stop: false,
    tools: "chatWithEffortNone",
    longCache: "options",
    sources: [
      "developers.openai.com/api/docs/guides/deployment-checklist",
      "onyx-dot-app/onyx#15008",
      "@ai-sdk/openai@4.0.118 src/openai-model-catalog.ts"
    ],
    verified: true
  },
  {
    ...recent,
    family: "GPT Daybreak Blue",
    pattern: "gpt-daybreak-blue",
    contextWindow: 1_050_000,
    note: "@earendil-works/pi-ai sends none, Codex does not",
    sources: [
      "openai@7.57.0 resources/shared.d.ts ResponsesModel",
      "@openai/codex@0.171.0 built-in model list",
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    verified: false
  },
  {
    ...common,
    family: "GPT Cyber, Rosalind, Daybreak Red",
    pattern: String.raw`gpt-(?:5\.6-cyber|6-cyber|daybreak|(?:6-)?rosalind)`,
    thinking: {
      kind: "always-on",
      wire: effort,
      levels: fromLow,
      perEndpoint: { chat: { max: "xhigh" } },
      omitted: "thinks"
    },
    contextWindow: 400_000,
    maxOutput: 128_000,
    endpoints: ["responses"],
    stop: false,
    tools: "responses",
    longCache: "options",
    sources: [
      "openai@7.57.0 resources/shared.d.ts ResponsesModel",
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    verified: false
  },
  {
    ...common,
    family: "chat-latest",
    pattern: "^chat-latest",
    thinking: { kind: "none", wire: effort, omitted: "thinks" },
    contextWindow: 400_000,
    maxOutput: 128_000,
    stop: false,
    longCache: "options",
    note: "its levels are not documented, so none is sent",
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"],
    verified: false
  },
  {
    ...common,
    family: "GPT-5.6 Sol, Terra, Luna",
    pattern: String.raw`gpt-5\.6`,
    thinking: {
      kind: "effort",
      wire: effort,
      levels: fromNone,
      perEndpoint: { chat: { max: "xhigh" } },
      omitted: "thinks"
    },
    sampling: "whileOff",
    toolSearch: true,
    promptChanges: { responses: ["system", "tools"] },
    contextWindow: 1_050_000,
    maxOutput: 128_000,
    stop: false,
    tools: "chatWithEffortNone",
    longCache: "options",
    sources: [
      "BerriAI/litellm#34569",
      "TheR1D/shell_gpt#801",
      "danny-avila/LibreChat#14231",
      "@ai-sdk/openai@4.0.118 src/openai-model-catalog.ts"
    ],
    verified: true
  },
  {
    ...common,
    family: "GPT-5.2 Pro",
    pattern: String.raw`gpt-5\.2-pro`,
    thinking: { kind: "always-on", wire: effort, levels: fromMedium, omitted: "thinks" },
    contextWindow: 400_000,
    maxOutput: 128_000,
    endpoints: ["responses"],
    stop: false,
    tools: "responses",
    longCache: "retention",
    sources: ["CherryHQ/cherry-studio#11920", "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"],
    verified: true
  },
  {
    ...common,
    family: "GPT-5.4 Pro, 5.5 Pro",
    pattern: String.raw`gpt-5\.[45]-pro`,
    thinking: { kind: "always-on", wire: effort, levels: fromMedium, omitted: "thinks" },
    contextWindow: 1_050_000,
    maxOutput: 128_000,
    endpoints: ["responses"],
    stop: false,
    tools: "responses",
    longCache: "retention",
    sources: ["CherryHQ/cherry-studio#11920", "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"],
    verified: true
  },
  {
    ...small,
    family: "GPT-5.4 mini",
    pattern: String.raw`gpt-5\.4-mini`,
    toolSearch: true,
    promptChanges: { responses: ["system"] }
  },
  {
    ...small,
    family: "GPT-5.4 nano",
    pattern: String.raw`gpt-5\.4-nano`
  },
  {
    ...common,
    family: "GPT-5.4, GPT-5.5",
    pattern: String.raw`gpt-5\.[45](?!\d)`,
    thinking: { kind: "effort", wire: effort, levels: fromNoneToXhigh, omitted: "thinks" },
    sampling: "whileOff",
    toolSearch: true,
    promptChanges: { responses: ["system"] },
    contextWindow: 1_050_000,
    maxOutput: 128_000,
    stop: false,
    tools: "chatWithoutEffort",
    longCache: "retention",
    note: "5.4 defaults to none; the default of 5.5 is not verified",
    sources: [
      "pipecat-ai/pipecat#4043",
      "openai/openai-openapi#541",
      "developers.openai.com/api/docs/guides/tools-tool-search",
      "charmbracelet/crush#2913",
      "bolna-ai/bolna#1019"
    ],
    verified: true
  },
  {
    ...common,
    family: "GPT-5.x chat-latest",
    pattern: String.raw`gpt-5\.\d-chat`,
    thinking: { kind: "none", wire: effort, omitted: "thinks", usual: "medium" },
    contextWindow: 128_000,
    maxOutput: 16_384,
    stop: false,
    longCache: "retention",
    note: "reasons at medium only: no other value is taken, so none is sent",
    sources: ["Laisky/one-api#285"],
    verified: true
  },
  {
    ...common,
    family: "GPT-5 chat-latest",
    pattern: String.raw`gpt-5-chat`,
    thinking: { kind: "none", wire: effort, omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 128_000,
    maxOutput: 16_384,
    tools: "none",
    sources: ["@ai-sdk/openai@4.0.118 src/openai-model-catalog.ts"],
    verified: true
  },
  {
    ...common,
    family: "GPT-5.3 Codex Spark",
    pattern: String.raw`gpt-5\.3-codex-spark`,
    thinking: { kind: "always-on", wire: effort, levels: fromLowToXhigh, omitted: "thinks" },
    contextWindow: 128_000,
    maxOutput: 32_000,
    endpoints: ["responses"],
    stop: false,
    tools: "responses",
    longCache: "retention",
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"],
    verified: true
  },
  {
    ...common,
    family: "GPT-5.2 and 5.3 Codex, 5.1 Codex Max",
    pattern: String.raw`gpt-5\.(?:[23]-codex|1-codex-max)`,
    thinking: { kind: "always-on", wire: effort, levels: fromLowToXhigh, omitted: "thinks" },
    contextWindow: 400_000,
    maxOutput: 128_000,
    endpoints: ["responses"],
    stop: false,
    tools: "responses",
    longCache: "retention",
    note: "@earendil-works/pi-ai sends none to gpt-5.3-codex",
    sources: ["openai/codex#7911", "router-for-me/CLIProxyAPI#249"],
    verified: false
  },
  {
    ...common,
    family: "GPT-5.1 Codex, mini",
    pattern: String.raw`gpt-5\.1-codex`,
    thinking: { kind: "always-on", wire: effort, levels: fromLowToHigh, omitted: "thinks" },
    contextWindow: 400_000,
    maxOutput: 128_000,
    endpoints: ["responses"],
    stop: false,
    tools: "responses",
    longCache: "retention",
    note: "mini: medium and high only",
    sources: ["router-for-me/CLIProxyAPI#249"],
    verified: false
  },
  {
    ...common,
    family: "GPT-5.2",
    pattern: String.raw`gpt-5\.[23](?!\d)`,
    thinking: {
      kind: "effort",
      wire: effort,
      levels: fromNoneToXhigh,
      omitted: "doesNotThink",
      usual: "none"
    },
    sampling: "whileOff",
    contextWindow: 400_000,
    maxOutput: 128_000,
    stop: false,
    tools: "chatWithoutEffort",
    longCache: "retention",
    sources: ["livekit/agents#5088", "gwdg/chat-ai#113", "openai/codex#7911"],
    verified: true
  },
  {
    ...common,
    family: "GPT-5.1",
    pattern: String.raw`gpt-5\.1(?!\d)`,
    thinking: {
      kind: "effort",
      wire: effort,
      levels: { off: "none", low: "low", medium: "medium", high: "high" },
      omitted: "doesNotThink",
      usual: "none"
    },
    sampling: "whileOff",
    contextWindow: 400_000,
    maxOutput: 128_000,
    stop: false,
    longCache: "retention",
    sources: [
      "anomalyco/opencode#4451",
      "CortexReach/memory-lancedb-pro#201",
      "learn.microsoft.com @azure/ai-projects ReasoningEffort"
    ],
    verified: true
  },
  {
    ...common,
    family: "GPT-5 Pro",
    pattern: String.raw`gpt-5-pro`,
    thinking: { kind: "always-on", wire: effort, levels: { max: "high" }, omitted: "thinks", usual: "high" },
    contextWindow: 400_000,
    maxOutput: 128_000,
    endpoints: ["responses"],
    stop: false,
    tools: "responses",
    sources: ["learn.microsoft.com @azure/ai-projects ReasoningEffort"],
    verified: true
  },
  {
    ...common,
    family: "GPT-5 Codex",
    pattern: String.raw`gpt-5-codex`,
    thinking: { kind: "always-on", wire: effort, levels: fromLowToHigh, omitted: "thinks", usual: "medium" },
    contextWindow: 400_000,
    maxOutput: 128_000,
    endpoints: ["responses"],
    stop: false,
    tools: "responses",
    sources: ["@ai-sdk/openai@4.0.118 src/openai-model-catalog.ts"],
    verified: false
  },
  {
    ...common,
    family: "GPT-5, mini, nano",
    pattern: String.raw`gpt-5(?![.\d])`,
    thinking: {
      kind: "always-on",
      wire: effort,
      levels: { minimal: "minimal", low: "low", medium: "medium", high: "high" },
      omitted: "thinks",
      usual: "medium"
    },
    contextWindow: 400_000,
    maxOutput: 128_000,
    stop: false,
    sources: ["microsoft/vscode#301045", "rikkahub/rikkahub#856"],
    verified: true
  },
  {
    ...common,
    family: "o1-pro, o3-pro, deep research, codex-mini",
    pattern: String.raw`(?:^|/)o\d(?:-mini)?-(?:pro|deep-research)|^codex-mini`,
    thinking: { kind: "always-on", wire: effort, levels: fromLowToHigh, omitted: "thinks", usual: "medium" },
    contextWindow: 200_000,
    maxOutput: 100_000,
    endpoints: ["responses"],
    stop: false,
    tools: "responses",
    sources: [
      "openai@7.57.0 resources/shared.d.ts ResponsesModel",
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    verified: true
  },
  {
    ...common,
    family: "o1-preview, o1-mini (retired)",
    pattern: String.raw`(?:^|/)o1-(?:preview|mini)`,
    thinking: { kind: "none", wire: effort, omitted: "thinks" },
    contextWindow: 128_000,
    maxOutput: 32_768,
    input: ["text"],
    stop: false,
    tools: "none",
    sources: ["openai@7.57.0 resources/shared.d.ts"],
    verified: false
  },
  {
    ...common,
    family: "o3-mini",
    pattern: String.raw`(?:^|/)o3-mini`,
    thinking: { kind: "always-on", wire: effort, levels: fromLowToHigh, omitted: "thinks", usual: "medium" },
    contextWindow: 200_000,
    maxOutput: 100_000,
    input: ["text"],
    stop: false,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"],
    verified: true
  },
  {
    ...common,
    family: "o1, o3, o4-mini",
    pattern: String.raw`(?:^|/)o\d`,
    thinking: { kind: "always-on", wire: effort, levels: fromLowToHigh, omitted: "thinks", usual: "medium" },
    contextWindow: 200_000,
    maxOutput: 100_000,
    stop: false,
    sources: [
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json",
      "openai@7.57.0 resources/chat/completions/completions.d.ts (stop)"
    ],
    verified: true
  },
  {
    ...common,
    family: "GPT-4.1",
    pattern: String.raw`gpt-4\.1`,
    thinking: { kind: "none", wire: effort, omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 1_047_576,
    maxOutput: 32_768,
    longCache: "retention",
    note: "reasoning_effort is refused",
    sources: ["BoundaryML/baml#2708", "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"],
    verified: true
  },
  {
    ...common,
    family: "GPT audio",
    pattern: "^gpt-(?:audio|4o-(?:mini-)?audio|realtime)",
    structuredOutput: false,
    thinking: { kind: "none", wire: effort, omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 128_000,
    maxOutput: 16_384,
    endpoints: ["chat"],
    input: ["text", "audio"],
    sources: ["openai@7.57.0 resources/shared.d.ts ChatModel"],
    verified: false
  },
  {
    ...common,
    family: "computer-use-preview",
    pattern: "^computer-use",
    thinking: { kind: "none", wire: effort, omitted: "thinks" },
    contextWindow: 8192,
    maxOutput: 1024,
    endpoints: ["responses"],
    input: ["text", "image"],
    stop: false,
    sources: ["openai@7.57.0 resources/shared.d.ts ResponsesModel"],
    verified: false
  },
  {
    ...common,
    family: "GPT-4o of May 2024",
    pattern: "gpt-4o-2024-05-13",
    structuredOutput: false,
    thinking: { kind: "none", wire: effort, omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 128_000,
    maxOutput: 4096,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"],
    verified: true
  },
  {
    ...common,
    family: "GPT-4o",
    pattern: String.raw`gpt-4o|chatgpt-4o`,
    thinking: { kind: "none", wire: effort, omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 128_000,
    maxOutput: 16_384,
    note: "reasoning_effort is refused, none as well; *-search-preview refuses temperature",
    sources: ["AAswordman/Operit#1048", "@ai-sdk/openai@4.0.118 src/openai-model-catalog.ts"],
    verified: true
  },
  {
    ...common,
    family: "GPT-4 Turbo and Vision",
    pattern: String.raw`gpt-4-(?:turbo|vision|0125|1106)`,
    structuredOutput: false,
    thinking: { kind: "none", wire: effort, omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 128_000,
    maxOutput: 4096,
    input: ["text", "image"],
    note: "reasoning_effort is refused",
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"],
    verified: false
  },
  {
    ...common,
    family: "GPT-4 32k (retired)",
    pattern: "gpt-4-32k",
    structuredOutput: false,
    thinking: { kind: "none", wire: effort, omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 32_768,
    maxOutput: 32_768,
    input: ["text"],
    sources: ["openai@7.57.0 resources/shared.d.ts"],
    verified: false
  },
  {
    ...common,
    family: "GPT-3.5",
    pattern: String.raw`gpt-3\.5`,
    structuredOutput: false,
    thinking: { kind: "none", wire: effort, omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 16_385,
    maxOutput: 4096,
    input: ["text"],
    sources: ["openai@7.57.0 resources/shared.d.ts"],
    verified: false
  },
  {
    ...common,
    family: "GPT-4",
    pattern: String.raw`gpt-4`,
    structuredOutput: false,
    thinking: { kind: "none", wire: effort, omitted: "doesNotThink" },
    sampling: "any",
    contextWindow: 8192,
    maxOutput: 8192,
    input: ["text"],
    note: "reasoning_effort is refused",
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"],
    verified: true
  },
  {
    ...recent,
    family: "unknown GPT",
    pattern: String.raw`gpt-(?:5\.(?:[7-9]|\d\d)|[6-9]|\d\d|[a-z]+-latest)`,
    contextWindow: 400_000,
    sources: ["rule for unknown ids: as the newest"],
    verified: false,
    isUnknown: true
  },
  {
    vendor: "openai",
    endpoints: ["converse"],
    input: ["text"],
    family: "gpt-oss on Amazon Bedrock",
    pattern: String.raw`openai\.gpt-oss`,
    isResold: true,
    thinking: {
      kind: "effort",
      wire: { converse: { additionalModelRequestFields: { reasoning_effort: "$" } } },
      levels: { low: "low", medium: "medium", high: "high" },
      omitted: "thinks",
      usual: "medium"
    },
    stop: false,
    contextWindow: 128_000,
    sources: ["@ai-sdk/amazon-bedrock@5.0.101 src/amazon-bedrock-chat-language-model.ts"],
    verified: true
  }
]

/** The facts on OpenAI's models. */
export const openai: Table = {
  vendor: "openai",
  rules,
  // openai@7.57.0 resources/shared.d.ts
  endings: {
    "2026-02-12": "codex-mini",
    "2026-02-17": "chatgpt-4o",
    "2026-03-26": "^gpt-4-(?:0125|turbo-preview|0314)",
    "2026-05-07": "^gpt-4o-(?:mini-)?audio",
    "2026-07-23": String.raw`^gpt-(?:5\.1-codex$|5(?:\.1)?-chat|4o-(?:mini-)?search)`,
    "2026-08-10": String.raw`^gpt-5\.[23]-chat`,
    "2026-09-28": String.raw`gpt-3\.5-turbo-1106`,
    "2026-10-23":
      "^(?:gpt-4(?:-0613|-turbo|-1106-preview)?$|gpt-4-turbo|gpt-3\\.5-turbo(?:-0125)?$|gpt-4\\.1-nano|gpt-4o-2024-05-13|o4-mini(?!-d)|o3-mini|o1(?!-))",
    "2026-12-11": "^(?:gpt-5(?:-mini|-nano)?|o3)(?:-20|$)",
    "2027-01-14": String.raw`^gpt-4(?:\.1(?!-nano)|o(?:-mini)?(?:-20|$))`,
    "2027-01-20": "^gpt-audio-mini",
    "2027-04-01": String.raw`^gpt-5\.(?:4-nano|1$|1-2)`
  },
  atBedrock: [
    [String.raw`openai\.gpt-oss-safeguard`, "text", 128_000, 16_384],
    [String.raw`openai\.gpt-oss`, "text", 131_072, 128_000],
    [String.raw`openai\.gpt-\d`]
  ]
}
