/** Rules for Kimi, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const effort: Thinking["wire"] = { chat: { reasoning_effort: "$" } }
const fromLow: Thinking["levels"] = { low: "low", medium: "high", xhigh: "max" }
const common = {
  vendor: "moonshot",
  endpoints: ["chat"],
  input: ["text", "image", "video"],
  sampling: "refused"
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "Kimi for coding, fast",
    pattern: "kimi-for-coding-highspeed",
    thinking: { kind: "always-on", omitted: "thinks" },
    contextWindow: 262_144,
    maxOutput: 32_768,
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/kimi-coding.json"],
    verified: false
  },
  {
    ...common,
    family: "Kimi for coding, K3 with a short context",
    pattern: "kimi-for-coding|(?:^|/)k3-256k",
    thinking: { kind: "always-on", wire: effort, levels: fromLow, omitted: "thinks", usual: "max" },
    contextWindow: 262_144,
    maxOutput: 131_072,
    note: "@earendil-works/pi-ai has 1,048,576 for kimi-for-coding",
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/kimi-coding.json"],
    verified: false
  },
  {
    ...common,
    family: "Kimi K3, K3.1 Pro",
    pattern: String.raw`kimi-k3|(?:^|/)k3`,
    thinking: { kind: "always-on", wire: effort, levels: fromLow, omitted: "thinks", usual: "max" },
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
    ...common,
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
    ...common,
    family: "Kimi K2.5, K2.6",
    pattern: String.raw`kimi-k2\.[56]`,
    thinking: {
      kind: "switch",
      levels: { off: { thinking: { type: "disabled" } }, max: { thinking: { type: "enabled" } } },
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
    ...common,
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
    ...common,
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
    ...common,
    family: "unknown Kimi",
    pattern: String.raw`kimi-`,
    thinking: { kind: "always-on", wire: effort, levels: fromLow, omitted: "thinks" },
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
  rules,
  atBedrock: [
    [String.raw`moonshotai\.kimi-k3\.1`, "image", 1_048_576, 1_048_576],
    [String.raw`moonshotai\.kimi-k[3-9]`, "image", 1_048_576, 128_000],
    [String.raw`moonshot(?:ai)?\.kimi-k2-thinking`, "text", 262_144, 16_000],
    [String.raw`moonshotai\.kimi-k2\.5`, "image", 262_144, 16_384]
  ]
}
