/** Rules for Gemini and Gemma, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const budget: Thinking["wire"] = {
  generateContent: { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: "$" } } }
}
const level: Thinking["wire"] = {
  generateContent: { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingLevel: "$" } } }
}
const budgetsFrom0: Thinking["levels"] = {
  off: 0,
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 24_576
}
const fromLow: Thinking["levels"] = { low: "low", medium: "medium", high: "high" }
const fromMinimal: Thinking["levels"] = { minimal: "minimal", low: "low", medium: "medium", high: "high" }
const common = {
  vendor: "google",
  endpoints: ["generateContent"],
  forcedTools: "taken",
  input: ["text", "image", "pdf", "audio", "video"],
  sampling: "any"
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "Gemini Nano Banana",
    pattern: "nano-banana",
    structuredOutput: false,
    thinking: {
      kind: "effort",
      wire: level,
      levels: { minimal: "minimal", high: "high" },
      omitted: "thinks"
    },
    tools: "none",
    contextWindow: 65_536,
    maxOutput: 32_768,
    input: ["text", "image"],
    sources: [
      "@ai-sdk/google@4.0.121 src/google-model-catalog.ts (no tools)",
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/openrouter.json"
    ],
    verified: false
  },
  {
    ...common,
    family: "Gemini image, audio, live, tts",
    pattern: String.raw`gemini-.*(?:image|tts|audio|live)`,
    structuredOutput: false,
    thinking: { kind: "none", omitted: "varies" },
    contextWindow: 32_768,
    maxOutput: 8192,
    sources: ["not looked into"],
    verified: false
  },
  {
    ...common,
    family: "Gemini 2.5 Pro",
    pattern: String.raw`gemini-2\.5-pro`,
    thinking: {
      kind: "budget",
      wire: budget,
      levels: { off: 128, minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_768, max: 32_768 },
      budget: { min: 128, max: 32_768 },
      omitted: "thinks",
      usual: "dynamic (-1)"
    },
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    sources: ["vercel/ai#8027", "saurabhav88/EnviousWispr#1769", "juspay/neurolink#1707"],
    verified: true
  },
  {
    ...common,
    family: "Gemini 2.5 Flash-Lite",
    pattern: String.raw`gemini-2\.5-flash-lite`,
    thinking: {
      kind: "budget",
      wire: budget,
      levels: budgetsFrom0,
      budget: { min: 512, max: 24_576 },
      omitted: "doesNotThink",
      usual: "dynamic (-1)"
    },
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    sources: ["juspay/neurolink#1707"],
    verified: true
  },
  {
    ...common,
    family: "Gemini 2.5 computer use",
    pattern: String.raw`gemini-2\.5-computer`,
    thinking: {
      kind: "budget",
      wire: budget,
      levels: budgetsFrom0,
      budget: { min: 1, max: 24_576 },
      omitted: "thinks"
    },
    contextWindow: 128_000,
    maxOutput: 64_000,
    input: ["text", "image"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"],
    verified: false
  },
  {
    ...common,
    family: "Gemini 2.5 Flash",
    pattern: String.raw`gemini-2\.5`,
    thinking: {
      kind: "budget",
      wire: budget,
      levels: budgetsFrom0,
      budget: { min: 1, max: 24_576 },
      omitted: "thinks",
      usual: "dynamic (-1)"
    },
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    sources: ["juspay/neurolink#1707", "Kilo-Org/kilocode#5139"],
    verified: true
  },
  {
    ...common,
    family: "Gemini 2.0 and before",
    pattern: String.raw`gemini-(?:[12](?![.]5)|1\.5|pro$)`,
    structuredOutput: false,
    thinking: { kind: "none", omitted: "doesNotThink" },
    contextWindow: 1_048_576,
    maxOutput: 8192,
    sources: ["@ai-sdk/google@4.0.121 src/google-model-catalog.ts"],
    verified: true
  },
  {
    ...common,
    family: "Gemini 3.0 Pro preview (off)",
    pattern: String.raw`gemini-3-pro`,
    thinking: {
      kind: "always-on",
      wire: level,
      levels: { low: "low", medium: "high" },
      omitted: "thinks",
      usual: "high"
    },
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    sources: ["@ai-sdk/google@4.0.121 src/google-model-catalog.ts"],
    verified: false
  },
  {
    ...common,
    family: "Gemini 3.1 Pro, pro-latest",
    pattern: String.raw`gemini-(?:3\.\d-pro|pro-latest)`,
    thinking: { kind: "always-on", wire: level, levels: fromLow, omitted: "thinks", usual: "high" },
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    sources: ["checkmarble/llmberjack#14", "@earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"],
    verified: true
  },
  {
    ...common,
    family: "Gemini 3.x Flash-Lite",
    pattern: String.raw`gemini-(?:3\.\d-)?flash-lite`,
    thinking: { kind: "always-on", wire: level, levels: fromMinimal, omitted: "thinks" },
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    sources: ["googleapis/python-genai#2936", "@earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"],
    verified: true
  },
  {
    ...common,
    family: "Gemini 3 to 3.6 Flash",
    pattern: String.raw`gemini-3(?:\.[1-6])?-flash`,
    thinking: { kind: "always-on", wire: level, levels: fromMinimal, omitted: "thinks" },
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    sources: ["checkmarble/llmberjack#14", "@ai-sdk/google@4.0.121 src/google-model-catalog.ts"],
    verified: true
  },
  {
    ...common,
    family: "Gemini 3.7+ Flash, flash-latest",
    pattern: String.raw`gemini-(?:3\.(?:[7-9]|\d\d)-flash|flash-latest)`,
    thinking: { kind: "always-on", wire: level, levels: fromLow, omitted: "thinks", usual: "medium" },
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    note: "@earendil-works/pi-ai takes minimal for flash-latest",
    sources: ["checkmarble/llmberjack#14", "@ai-sdk/google@4.0.121 CHANGELOG bb0cf2e f69920a"],
    verified: true
  },
  {
    ...common,
    family: "Gemini 4 Hydrogen",
    pattern: String.raw`gemini-4-hydrogen`,
    thinking: {
      kind: "always-on",
      wire: level,
      levels: { low: "low", medium: "medium", high: "high", xhigh: "xhigh" },
      omitted: "thinks"
    },
    contextWindow: 1_048_576,
    maxOutput: 1_048_576,
    note: "over 65,536 tokens in several answers: long decode",
    sources: [
      "@ai-sdk/google@4.0.121 CHANGELOG 4e43721",
      "ai.google.dev/gemini-api/docs/generate-content/long-decode"
    ],
    verified: false
  },
  {
    ...common,
    family: "Gemini 4 Argon, Carbon",
    pattern: String.raw`gemini-4-(?:argon|carbon)`,
    thinking: { kind: "always-on", wire: level, levels: fromLow, omitted: "thinks", usual: "medium" },
    sampling: "ignored",
    contextWindow: 1_048_576,
    maxOutput: 1_048_576,
    note: "over 65,536 tokens, of thinking and answer, in several answers: long decode",
    sources: [
      "ai.google.dev/gemini-api/docs/generate-content/long-decode",
      "ai.google.dev/gemini-api/docs/generate-content/latest-model",
      "docs.cloud.google.com get-started-with-gemini-4",
      "dev.to/aihubmix gemini-4-argon"
    ],
    verified: true
  },
  {
    ...common,
    family: "Gemma 3",
    pattern: "gemma-3",
    structuredOutput: false,
    thinking: { kind: "none", omitted: "doesNotThink" },
    system: "firstMessage",
    tools: "none",
    contextWindow: 131_072,
    maxOutput: 8192,
    input: ["text", "image"],
    sources: ["@ai-sdk/google@4.0.121 src/google-model-catalog.ts"],
    verified: false
  },
  {
    ...common,
    family: "Gemma 4",
    pattern: String.raw`gemma-4`,
    structuredOutput: false,
    system: "firstMessage",
    thinking: {
      kind: "always-on",
      wire: level,
      levels: { minimal: "minimal", low: "high" },
      omitted: "thinks"
    },
    contextWindow: 262_144,
    maxOutput: 32_768,
    input: ["text", "image"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"],
    verified: false
  },
  {
    ...common,
    family: "Gemini Robotics",
    pattern: "gemini-robotics",
    thinking: { kind: "always-on", wire: level, levels: fromMinimal, omitted: "thinks" },
    contextWindow: 131_072,
    maxOutput: 65_536,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"],
    verified: false
  },
  {
    ...common,
    family: "unknown Gemini",
    pattern: String.raw`gemini-`,
    thinking: { kind: "always-on", wire: level, levels: fromLow, omitted: "thinks" },
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    sources: [
      "rule for unknown ids: as the newest; @ai-sdk/google@4.0.121 src/google-model-catalog.ts does the same"
    ],
    verified: false,
    isUnknown: true
  }
]

/** The facts on Gemini and Gemma. */
export const google: Table = {
  vendor: "google",
  rules,
  atBedrock: [
    [String.raw`google\.gemma-4-e2b`, "image", 131_072, 8192],
    [String.raw`google\.gemma-4`, "image", 262_144, 32_768]
  ]
}
