/** The facts on OpenAI's models, with sources as of `Models.readOn`. */
import { type Facts, type Levels, type Table, type Thinking, never } from "./rule.ts"

const effort: Thinking["wire"] = {
  chat: { reasoning_effort: "$" },
  responses: { reasoning: { effort: "$", summary: "auto" } }
}
const fromLow: Levels = { low: "low", medium: "medium", high: "high", xhigh: "xhigh", max: "max" }
/** Chat Completions has no `max`. */
const perEndpoint: Thinking["perEndpoint"] = { chat: { max: "xhigh" } }
const unstoppable: Thinking = {
  kind: "always-on",
  wire: effort,
  levels: fromLow,
  perEndpoint,
  omitted: "thinks"
}
const stoppable: Thinking = { ...unstoppable, kind: "effort", levels: { off: "none", ...fromLow } }
const toXhigh: Thinking = {
  kind: "effort",
  wire: effort,
  levels: { off: "none", low: "low", medium: "medium", high: "high", xhigh: "xhigh" },
  omitted: "thinks"
}
const fixed: Thinking = { kind: "none", omitted: "thinks" }
const onBedrock: Thinking = {
  kind: "effort",
  wire: { converse: { additionalModelRequestFields: { reasoning_effort: "$" } } },
  levels: { low: "low", medium: "medium", high: "high" },
  omitted: "thinks"
}

/** Models that answer by Responses alone. */
const responses = { endpoints: ["responses"], stop: false, tools: "responses" } satisfies Facts
const newest = {
  tokens: [1_050_000, 128_000],
  stop: false,
  toolSearch: true,
  longCache: "options"
} satisfies Facts
const gpt5 = { tokens: [400_000, 128_000], stop: false } satisfies Facts
/** GPT-5.4 mini and nano, which differ in the search for tools. */
const small = {
  ...gpt5,
  thinking: "none low medium high xhigh",
  usual: "none",
  sampling: "whileOff",
  tools: "chatWithoutEffort",
  longCache: "retention"
} satisfies Facts
const reasoning = {
  tokens: [200_000, 100_000],
  thinking: "low medium high",
  usual: "medium",
  stop: false
} satisfies Facts
const gpt4 = { thinking: never, sampling: "any" } satisfies Facts

/** The facts on OpenAI's models. */
export const openai: Table = {
  vendor: "openai",
  wire: effort,
  common: {
    forcedTools: "taken",
    endpoints: ["responses", "chat"],
    input: ["text", "image", "pdf"],
    sampling: "refused"
  },
  families: [
    [
      "GPT-6 Astra, GPT-6.1 Sol, GPT-6.2 Astra and Sol",
      /gpt-6(?:(?:\.\d)?-astra|\.[1-9]-sol)/i,
      {
        ...newest,
        thinking: unstoppable,
        usual: "medium",
        promptChanges: { responses: ["system", "tools", "effort"] },
        tools: "responses"
      },
      "developers.openai.com/api/docs/guides/deployment-checklist; BerriAI/litellm-docs#1173; UKGovernmentBEIS/inspect_ai#5254; bolna-ai/bolna#1019; coder/xum#4064; @openai/codex@0.171.0 built-in model list (6.2)"
    ],
    [
      "GPT-6 Sol, Luna, GPT-6.1 Terra",
      /gpt-6(?:-(?:sol|luna)|\.1-terra)/i,
      {
        ...newest,
        thinking: stoppable,
        sampling: "whileOff",
        promptChanges: { responses: ["system", "tools", "effort"] },
        tools: "chatWithEffortNone"
      },
      "developers.openai.com/api/docs/guides/deployment-checklist; onyx-dot-app/onyx#15008; @ai-sdk/openai@4.0.118 src/openai-model-catalog.ts"
    ],
    [
      "GPT Daybreak Blue",
      /gpt-daybreak-blue/i,
      { ...newest, ...responses, thinking: unstoppable, verified: false },
      "openai@7.57.0 resources/shared.d.ts ResponsesModel; @openai/codex@0.171.0 built-in model list; @earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json",
      "@earendil-works/pi-ai sends none, Codex does not"
    ],
    [
      "GPT Cyber, Rosalind, Daybreak Red",
      /gpt-(?:5\.6-cyber|6-cyber|daybreak|(?:6-)?rosalind)/i,
      { ...gpt5, ...responses, thinking: unstoppable, longCache: "options", verified: false },
      "openai@7.57.0 resources/shared.d.ts ResponsesModel; @earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    [
      "chat-latest",
      /^chat-latest/i,
      { ...gpt5, thinking: fixed, longCache: "options", verified: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json",
      "its levels are not documented, so none is sent"
    ],
    [
      "GPT-5.6 Sol, Terra, Luna",
      /gpt-5\.6/i,
      {
        ...newest,
        thinking: stoppable,
        sampling: "whileOff",
        promptChanges: { responses: ["system", "tools"] },
        tools: "chatWithEffortNone"
      },
      "BerriAI/litellm#34569; TheR1D/shell_gpt#801; danny-avila/LibreChat#14231; @ai-sdk/openai@4.0.118 src/openai-model-catalog.ts"
    ],
    [
      "GPT-5.2 Pro",
      /gpt-5\.2-pro/i,
      { ...gpt5, ...responses, thinking: "medium high xhigh", longCache: "retention" },
      "CherryHQ/cherry-studio#11920; @earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    [
      "GPT-5.4 Pro, 5.5 Pro",
      /gpt-5\.[45]-pro/i,
      { ...responses, tokens: [1_050_000, 128_000], thinking: "medium high xhigh", longCache: "retention" },
      "CherryHQ/cherry-studio#11920; @earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    [
      "GPT-5.4 mini",
      /gpt-5\.4-mini/i,
      { ...small, toolSearch: true, promptChanges: { responses: ["system"] } },
      "fazer-ai/agents#66; @ai-sdk/openai@4.0.118 src/openai-model-catalog.ts; @earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json; Oaklight/llm-rosetta#394"
    ],
    [
      "GPT-5.4 nano",
      /gpt-5\.4-nano/i,
      { ...small },
      "fazer-ai/agents#66; @ai-sdk/openai@4.0.118 src/openai-model-catalog.ts; @earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json; Oaklight/llm-rosetta#394"
    ],
    [
      "GPT-5.4, GPT-5.5",
      /gpt-5\.[45](?!\d)/i,
      {
        tokens: [1_050_000, 128_000],
        thinking: toXhigh,
        sampling: "whileOff",
        toolSearch: true,
        promptChanges: { responses: ["system"] },
        stop: false,
        tools: "chatWithoutEffort",
        longCache: "retention"
      },
      "pipecat-ai/pipecat#4043; openai/openai-openapi#541; developers.openai.com/api/docs/guides/tools-tool-search; charmbracelet/crush#2913; bolna-ai/bolna#1019",
      "5.4 defaults to none; the default of 5.5 is not verified"
    ],
    [
      "GPT-5.x chat-latest",
      /gpt-5\.\d-chat/i,
      { tokens: [128_000, 16_384], thinking: fixed, usual: "medium", stop: false, longCache: "retention" },
      "Laisky/one-api#285",
      "reasons at medium only: no other value is taken, so none is sent"
    ],
    [
      "GPT-5 chat-latest",
      /gpt-5-chat/i,
      { ...gpt4, tokens: [128_000, 16_384], tools: "none" },
      "@ai-sdk/openai@4.0.118 src/openai-model-catalog.ts"
    ],
    [
      "GPT-5.3 Codex Spark",
      /gpt-5\.3-codex-spark/i,
      {
        ...responses,
        tokens: [128_000, 32_000],
        thinking: "low medium high xhigh max:xhigh",
        longCache: "retention"
      },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    [
      "GPT-5.2 and 5.3 Codex, 5.1 Codex Max",
      /gpt-5\.(?:[23]-codex|1-codex-max)/i,
      {
        ...gpt5,
        ...responses,
        thinking: "low medium high xhigh max:xhigh",
        longCache: "retention",
        verified: false
      },
      "openai/codex#7911; router-for-me/CLIProxyAPI#249",
      "@earendil-works/pi-ai sends none to gpt-5.3-codex"
    ],
    [
      "GPT-5.1 Codex, mini",
      /gpt-5\.1-codex/i,
      { ...gpt5, ...responses, thinking: "low medium high", longCache: "retention", verified: false },
      "router-for-me/CLIProxyAPI#249",
      "mini: medium and high only"
    ],
    [
      "GPT-5.2",
      /gpt-5\.[23](?!\d)/i,
      { ...small },
      "livekit/agents#5088; gwdg/chat-ai#113; openai/codex#7911"
    ],
    [
      "GPT-5.1",
      /gpt-5\.1(?!\d)/i,
      {
        ...gpt5,
        thinking: "none low medium high",
        usual: "none",
        sampling: "whileOff",
        longCache: "retention"
      },
      "anomalyco/opencode#4451; CortexReach/memory-lancedb-pro#201; learn.microsoft.com @azure/ai-projects ReasoningEffort"
    ],
    [
      "GPT-5 Pro",
      /gpt-5-pro/i,
      { ...gpt5, ...responses, thinking: "max:high", usual: "high" },
      "learn.microsoft.com @azure/ai-projects ReasoningEffort"
    ],
    [
      "GPT-5 Codex",
      /gpt-5-codex/i,
      { ...gpt5, ...responses, thinking: "low medium high", usual: "medium", verified: false },
      "@ai-sdk/openai@4.0.118 src/openai-model-catalog.ts"
    ],
    [
      "GPT-5, mini, nano",
      /gpt-5(?![.\d])/i,
      { ...gpt5, thinking: "minimal low medium high", usual: "medium" },
      "microsoft/vscode#301045; rikkahub/rikkahub#856"
    ],
    [
      "o1-pro, o3-pro, deep research, codex-mini",
      /(?:^|\/)o\d(?:-mini)?-(?:pro|deep-research)|^codex-mini/i,
      { ...reasoning, ...responses },
      "openai@7.57.0 resources/shared.d.ts ResponsesModel; @earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    [
      "o1-preview, o1-mini (retired)",
      /(?:^|\/)o1-(?:preview|mini)/i,
      {
        tokens: [128_000, 32_768],
        thinking: fixed,
        input: ["text"],
        stop: false,
        tools: "none",
        verified: false
      },
      "openai@7.57.0 resources/shared.d.ts"
    ],
    [
      "o3-mini",
      /(?:^|\/)o3-mini/i,
      { ...reasoning, input: ["text"] },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    [
      "o1, o3, o4-mini",
      /(?:^|\/)o\d/i,
      { ...reasoning },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json; openai@7.57.0 resources/chat/completions/completions.d.ts (stop)"
    ],
    [
      "GPT-4.1",
      /gpt-4\.1/i,
      { ...gpt4, tokens: [1_047_576, 32_768], longCache: "retention" },
      "BoundaryML/baml#2708; @earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json",
      "reasoning_effort is refused"
    ],
    [
      "GPT audio",
      /^gpt-(?:audio|4o-(?:mini-)?audio|realtime)/i,
      {
        ...gpt4,
        tokens: [128_000, 16_384],
        endpoints: ["chat"],
        input: ["text", "audio"],
        structuredOutput: false,
        verified: false
      },
      "openai@7.57.0 resources/shared.d.ts ChatModel"
    ],
    [
      "computer-use-preview",
      /^computer-use/i,
      {
        tokens: [8192, 1024],
        thinking: fixed,
        endpoints: ["responses"],
        input: ["text", "image"],
        stop: false,
        verified: false
      },
      "openai@7.57.0 resources/shared.d.ts ResponsesModel"
    ],
    [
      "GPT-4o of May 2024",
      /gpt-4o-2024-05-13/i,
      { ...gpt4, tokens: [128_000, 4096], structuredOutput: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json"
    ],
    [
      "GPT-4o",
      /gpt-4o|chatgpt-4o/i,
      { ...gpt4, tokens: [128_000, 16_384] },
      "AAswordman/Operit#1048; @ai-sdk/openai@4.0.118 src/openai-model-catalog.ts",
      "reasoning_effort is refused, none as well; *-search-preview refuses temperature"
    ],
    [
      "GPT-4 Turbo and Vision",
      /gpt-4-(?:turbo|vision|0125|1106)/i,
      {
        ...gpt4,
        tokens: [128_000, 4096],
        input: ["text", "image"],
        structuredOutput: false,
        verified: false
      },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json",
      "reasoning_effort is refused"
    ],
    [
      "GPT-4 32k (retired)",
      /gpt-4-32k/i,
      { ...gpt4, tokens: [32_768, 32_768], input: ["text"], structuredOutput: false, verified: false },
      "openai@7.57.0 resources/shared.d.ts"
    ],
    [
      "GPT-3.5",
      /gpt-3\.5/i,
      { ...gpt4, tokens: [16_385, 4096], input: ["text"], structuredOutput: false, verified: false },
      "openai@7.57.0 resources/shared.d.ts"
    ],
    [
      "GPT-4",
      /gpt-4/i,
      { ...gpt4, tokens: [8192, 8192], input: ["text"], structuredOutput: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openai.json",
      "reasoning_effort is refused"
    ],
    [
      "unknown GPT",
      /gpt-(?:5\.(?:[7-9]|\d\d)|[6-9]|\d\d|[a-z]+-latest)/i,
      {
        ...gpt5,
        ...responses,
        thinking: unstoppable,
        toolSearch: true,
        longCache: "options",
        isUnknown: true,
        verified: false
      },
      "rule for unknown ids: as the newest"
    ],
    [
      "gpt-oss on Amazon Bedrock",
      /openai\.gpt-oss/i,
      {
        tokens: [128_000],
        thinking: onBedrock,
        usual: "medium",
        endpoints: ["converse"],
        input: ["text"],
        isResold: true,
        stop: false,
        sampling: "any"
      },
      "@ai-sdk/amazon-bedrock@5.0.101 src/amazon-bedrock-chat-language-model.ts"
    ]
  ],
  // openai@7.57.0 resources/shared.d.ts
  endings: {
    "2026-02-12": /codex-mini/i,
    "2026-02-17": /chatgpt-4o/i,
    "2026-03-26": /^gpt-4-(?:0125|turbo-preview|0314)/i,
    "2026-05-07": /^gpt-4o-(?:mini-)?audio/i,
    "2026-07-23": /^gpt-(?:5\.1-codex$|5(?:\.1)?-chat|4o-(?:mini-)?search)/i,
    "2026-08-10": /^gpt-5\.[23]-chat/i,
    "2026-09-28": /gpt-3\.5-turbo-1106/i,
    "2026-10-23":
      /^(?:gpt-4(?:-0613|-turbo|-1106-preview)?$|gpt-4-turbo|gpt-3\.5-turbo(?:-0125)?$|gpt-4\.1-nano|gpt-4o-2024-05-13|o4-mini(?!-d)|o3-mini|o1(?!-))/i,
    "2026-12-11": /^(?:gpt-5(?:-mini|-nano)?|o3)(?:-20|$)/i,
    "2027-01-14": /^gpt-4(?:\.1(?!-nano)|o(?:-mini)?(?:-20|$))/i,
    "2027-01-20": /^gpt-audio-mini/i,
    "2027-04-01": /^gpt-5\.(?:4-nano|1$|1-2)/i
  },
  atBedrock: [
    [/openai\.gpt-oss-safeguard/i, "text", 128_000, 16_384],
    [/openai\.gpt-oss/i, "text", 131_072, 128_000],
    [/openai\.gpt-\d/i]
  ]
}
