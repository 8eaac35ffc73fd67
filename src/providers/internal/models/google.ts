/** The facts on Gemini and Gemma, with sources as of `Models.readOn`. */
import { type Levels, type Table, type Thinking, never } from "./rule.ts"

const level: Thinking["wire"] = {
  generateContent: { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingLevel: "$" } } }
}
const budgets: Levels = {
  off: 0,
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 24_576
}
const flash: Thinking = {
  kind: "budget",
  wire: {
    generateContent: { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: "$" } } }
  },
  levels: budgets,
  budget: { min: 1, max: 24_576 },
  omitted: "thinks"
}
const flashLite: Thinking = { ...flash, budget: { min: 512, max: 24_576 }, omitted: "doesNotThink" }
const pro: Thinking = {
  ...flash,
  levels: { ...budgets, off: 128, xhigh: 32_768, max: 32_768 },
  budget: { min: 128, max: 32_768 }
}
const nano: Thinking = {
  kind: "effort",
  wire: level,
  levels: { minimal: "minimal", high: "high" },
  omitted: "thinks"
}
const varying: Thinking = { kind: "none", omitted: "varies" }

/** The facts on Gemini and Gemma. */
export const google: Table = {
  vendor: "google",
  wire: level,
  common: {
    tokens: [1_048_576, 65_536],
    endpoints: ["generateContent"],
    forcedTools: "taken",
    input: ["text", "image", "pdf", "audio", "video"],
    sampling: "any"
  },
  families: [
    [
      "Gemini Nano Banana",
      /nano-banana/i,
      {
        tokens: [65_536, 32_768],
        thinking: nano,
        input: ["text", "image"],
        structuredOutput: false,
        tools: "none",
        verified: false
      },
      "@ai-sdk/google@4.0.121 src/google-model-catalog.ts (no tools); @earendil-works/pi-ai@1.5.2 dist/providers/data/openrouter.json"
    ],
    [
      "Gemini image, audio, live, tts",
      /gemini-.*(?:image|tts|audio|live)/i,
      { tokens: [32_768, 8192], thinking: varying, structuredOutput: false, verified: false },
      "not looked into"
    ],
    [
      "Gemini 2.5 Pro",
      /gemini-2\.5-pro/i,
      { thinking: pro, usual: "dynamic (-1)" },
      "vercel/ai#8027; saurabhav88/EnviousWispr#1769; juspay/neurolink#1707"
    ],
    [
      "Gemini 2.5 Flash-Lite",
      /gemini-2\.5-flash-lite/i,
      { thinking: flashLite, usual: "dynamic (-1)" },
      "juspay/neurolink#1707"
    ],
    [
      "Gemini 2.5 computer use",
      /gemini-2\.5-computer/i,
      { tokens: [128_000, 64_000], thinking: flash, input: ["text", "image"], verified: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"
    ],
    [
      "Gemini 2.5 Flash",
      /gemini-2\.5/i,
      { thinking: flash, usual: "dynamic (-1)" },
      "juspay/neurolink#1707; Kilo-Org/kilocode#5139"
    ],
    [
      "Gemini 2.0 and before",
      /gemini-(?:[12](?![.]5)|1\.5|pro$)/i,
      { tokens: [1_048_576, 8192], thinking: never, structuredOutput: false },
      "@ai-sdk/google@4.0.121 src/google-model-catalog.ts"
    ],
    [
      "Gemini 3.0 Pro preview (off)",
      /gemini-3-pro/i,
      { thinking: "low medium:high", usual: "high", verified: false },
      "@ai-sdk/google@4.0.121 src/google-model-catalog.ts"
    ],
    [
      "Gemini 3.1 Pro, pro-latest",
      /gemini-(?:3\.\d-pro|pro-latest)/i,
      { thinking: "low medium high", usual: "high" },
      "checkmarble/llmberjack#14; @earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"
    ],
    [
      "Gemini 3.x Flash-Lite",
      /gemini-(?:3\.\d-)?flash-lite/i,
      { thinking: "minimal low medium high" },
      "googleapis/python-genai#2936; @earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"
    ],
    [
      "Gemini 3 to 3.6 Flash",
      /gemini-3(?:\.[1-6])?-flash/i,
      { thinking: "minimal low medium high" },
      "checkmarble/llmberjack#14; @ai-sdk/google@4.0.121 src/google-model-catalog.ts"
    ],
    [
      "Gemini 3.7+ Flash, flash-latest",
      /gemini-(?:3\.(?:[7-9]|\d\d)-flash|flash-latest)/i,
      { thinking: "low medium high", usual: "medium" },
      "checkmarble/llmberjack#14; @ai-sdk/google@4.0.121 CHANGELOG bb0cf2e f69920a",
      "@earendil-works/pi-ai takes minimal for flash-latest"
    ],
    [
      "Gemini 4 Hydrogen",
      /gemini-4-hydrogen/i,
      { tokens: [1_048_576, 1_048_576], thinking: "low medium high xhigh", verified: false },
      "@ai-sdk/google@4.0.121 CHANGELOG 4e43721; ai.google.dev/gemini-api/docs/generate-content/long-decode",
      "over 65,536 tokens in several answers: long decode"
    ],
    [
      "Gemini 4 Argon, Carbon",
      /gemini-4-(?:argon|carbon)/i,
      { tokens: [1_048_576, 1_048_576], thinking: "low medium high", usual: "medium", sampling: "ignored" },
      "ai.google.dev/gemini-api/docs/generate-content/long-decode; ai.google.dev/gemini-api/docs/generate-content/latest-model; docs.cloud.google.com get-started-with-gemini-4; dev.to/aihubmix gemini-4-argon",
      "over 65,536 tokens, of thinking and answer, in several answers: long decode"
    ],
    [
      "Gemma 3",
      /gemma-3/i,
      {
        tokens: [131_072, 8192],
        thinking: never,
        input: ["text", "image"],
        structuredOutput: false,
        system: "firstMessage",
        tools: "none",
        verified: false
      },
      "@ai-sdk/google@4.0.121 src/google-model-catalog.ts"
    ],
    [
      "Gemma 4",
      /gemma-4/i,
      {
        tokens: [262_144, 32_768],
        thinking: "minimal low:high",
        input: ["text", "image"],
        structuredOutput: false,
        system: "firstMessage",
        verified: false
      },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"
    ],
    [
      "Gemini Robotics",
      /gemini-robotics/i,
      { tokens: [131_072, 65_536], thinking: "minimal low medium high", verified: false },
      "@earendil-works/pi-ai@1.5.2 dist/providers/data/google.json"
    ],
    [
      "unknown Gemini",
      /gemini-/i,
      { thinking: "low medium high", isUnknown: true, verified: false },
      "rule for unknown ids: as the newest; @ai-sdk/google@4.0.121 src/google-model-catalog.ts does the same"
    ]
  ],
  atBedrock: [
    [/google\.gemma-4-e2b/i, "image", 131_072, 8192],
    [/google\.gemma-4/i, "image", 262_144, 32_768]
  ]
}
