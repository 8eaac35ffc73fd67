/** Rules for models that Groq serves, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const effort: Thinking["wire"] = { chat: { reasoning_effort: "$" } }
const common = {
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

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "GPT-OSS",
    pattern: String.raw`^openai/gpt-oss`,
    thinking: {
      kind: "always-on",
      wire: effort,
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
    ...common,
    family: "Qwen 3.6",
    pattern: String.raw`^qwen/qwen3\.6`,
    thinking: {
      kind: "effort",
      wire: effort,
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
    ...common,
    family: "Qwen 3.8",
    pattern: String.raw`^qwen/qwen3\.8`,
    thinking: {
      kind: "effort",
      wire: effort,
      levels: { off: "none", low: "low", medium: "medium", high: "high" },
      omitted: "thinks"
    },
    maxOutput: 16_384,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json"],
    verified: false
  },
  {
    ...common,
    family: "Llama 4",
    pattern: String.raw`^meta-llama/llama-4`,
    thinking: { kind: "none", omitted: "doesNotThink" },
    maxOutput: 32_768,
    sources: ["@ai-sdk/groq@4.0.84 src/groq-model-catalog.ts"],
    verified: false
  },
  {
    ...common,
    family: "Llama 3.1 8B",
    pattern: "^llama-3.1-8b",
    thinking: { kind: "none", omitted: "doesNotThink" },
    maxOutput: 131_072,
    input: ["text"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/groq.json"],
    verified: true
  },
  {
    ...common,
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
  rules
}
