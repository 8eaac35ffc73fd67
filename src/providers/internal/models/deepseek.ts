/** Rules for DeepSeek, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const switched: Thinking["wire"] = {
  chat: { thinking: { type: "enabled" }, reasoning_effort: "$" },
  messages: { thinking: { type: "enabled" }, output_config: { effort: "$" } },
  responses: { reasoning: { effort: "$" } }
}
const stoppable: Thinking["levels"] = {
  off: { thinking: { type: "disabled" } },
  low: "low",
  medium: "high",
  max: "max"
}
const common = {
  vendor: "deepseek",
  endpoints: ["chat", "messages", "responses"],
  sampling: "ignored",
  forcedTools: "whileOff",
  input: ["text"]
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "DeepSeek V4 Pro",
    pattern: String.raw`deepseek-(?:v4(?:[.-]\d)?-)?pro`,
    thinking: { kind: "effort", wire: switched, levels: stoppable, omitted: "thinks", usual: "high" },
    contextWindow: 1_000_000,
    maxOutput: 384_000,
    note: "the server maps minimal→low, medium→high, xhigh→high, ultra→max",
    sources: [
      "api-docs.deepseek.com/guides/thinking_mode",
      "deepseek-ai/DeepSeek-V3#1376",
      "BerriAI/litellm#37470"
    ],
    verified: true
  },
  {
    ...common,
    family: "DeepSeek V4 Flash, V4.1 Flash",
    pattern: String.raw`deepseek-(?:flash|v4)`,
    thinking: { kind: "effort", wire: switched, levels: stoppable, omitted: "thinks", usual: "high" },
    contextWindow: 1_000_000,
    maxOutput: 384_000,
    input: ["text", "image"],
    note: "the server maps minimal→low, medium→high, xhigh→high, ultra→max",
    sources: [
      "api-docs.deepseek.com/guides/thinking_mode",
      "deepseek-ai/DeepSeek-V3#1376",
      "BerriAI/litellm#37470"
    ],
    verified: true
  },
  {
    ...common,
    family: "DeepSeek before V4",
    pattern: String.raw`deepseek-`,
    thinking: {
      kind: "switch",
      levels: { off: { thinking: { type: "disabled" } }, max: { thinking: { type: "enabled" } } },
      omitted: "varies"
    },
    contextWindow: 131_072,
    maxOutput: 65_536,
    sources: ["@ai-sdk/deepseek@3.0.56 src/chat/is-deepseek-v4-model.ts"],
    verified: false,
    isUnknown: true
  }
]

/** The facts on DeepSeek. */
export const deepseek: Table = {
  vendor: "deepseek",
  rules,
  atBedrock: [[String.raw`deepseek\.v3`, "text", 163_840, 81_920]]
}
