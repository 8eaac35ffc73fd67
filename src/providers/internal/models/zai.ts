/** Rules for GLM, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const switched: Thinking["wire"] = { chat: { thinking: { type: "enabled" }, reasoning_effort: "$" } }
const fromLow: Thinking["levels"] = { medium: "low", high: "high", max: "max" }
const stoppable: Thinking["levels"] = {
  off: { thinking: { type: "disabled" } },
  minimal: { thinking: { type: "enabled" } },
  low: { thinking: { type: "enabled" } },
  medium: { thinking: { type: "enabled" } },
  high: { thinking: { type: "enabled" } },
  xhigh: { thinking: { type: "enabled" } },
  max: { thinking: { type: "enabled" } }
}
const common = {
  vendor: "zai",
  endpoints: ["chat"],
  sampling: "any",
  maxOutput: 131_072,
  forcedTools: "refused",
  input: ["text"]
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
    family: "GLM-5.3 Flash",
    pattern: String.raw`glm-5[.-]3-flash`,
    thinking: { kind: "always-on", wire: switched, levels: fromLow, omitted: "thinks", usual: "max" },
    contextWindow: 1_000_000,
    input: ["text", "image"],
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts; reasoning_effort none is taken and thinks at max depth",
    sources: [
      "NousResearch/hermes-agent#85890",
      "stefandevo/glm-acp-agent#74",
      "ceulen-dev/ceulen v0.23.0",
      "vectorize-io/hindsight#4246"
    ],
    verified: true
  },
  {
    ...common,
    family: "GLM-5.3",
    pattern: String.raw`glm-5[.-]3`,
    thinking: { kind: "always-on", wire: switched, levels: fromLow, omitted: "thinks", usual: "max" },
    contextWindow: 1_000_000,
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts; reasoning_effort none is taken and thinks at max depth",
    sources: [
      "NousResearch/hermes-agent#85890",
      "stefandevo/glm-acp-agent#74",
      "ceulen-dev/ceulen v0.23.0",
      "vectorize-io/hindsight#4246"
    ],
    verified: true
  },
  {
    ...common,
    family: "GLM-5.2",
    pattern: String.raw`glm-5[.-]2`,
    thinking: {
      kind: "effort",
      wire: switched,
      levels: { off: { thinking: { type: "disabled" } }, xhigh: "high", max: "max" },
      omitted: "thinks"
    },
    contextWindow: 1_000_000,
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts",
    sources: [
      "KiwiGaze/glm-for-copilot#40",
      "NousResearch/hermes-agent#96373 (says disabled is refused here too)"
    ],
    verified: false
  },
  {
    ...common,
    family: "GLM with vision",
    pattern: String.raw`glm-\d(?:[.-]\d)?v`,
    thinking: { kind: "switch", levels: stoppable, omitted: "thinks", usual: "enabled" },
    contextWindow: 204_800,
    input: ["text", "image"],
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts",
    sources: ["stefandevo/glm-acp-agent#74", "SillyTavern/SillyTavern#5132"],
    verified: false
  },
  {
    ...common,
    family: "GLM, newest",
    pattern: "glm-(?:latest|fast)",
    thinking: { kind: "always-on", wire: switched, levels: fromLow, omitted: "thinks", usual: "max" },
    contextWindow: 1_000_000,
    sources: ["rule for unknown ids: as the newest"],
    verified: false
  },
  {
    ...common,
    family: "GLM-4.5 to 5.1",
    pattern: String.raw`glm-`,
    thinking: { kind: "switch", levels: stoppable, omitted: "thinks", usual: "enabled" },
    contextWindow: 204_800,
    note: "tool_stream: true, else a call arrives whole; clear_thinking: false keeps earlier thoughts",
    sources: ["stefandevo/glm-acp-agent#74", "SillyTavern/SillyTavern#5132"],
    verified: false,
    isUnknown: true
  }
]

/** The facts on GLM. */
export const zai: Table = {
  vendor: "zai",
  rules,
  atBedrock: [
    [String.raw`zai\.glm-(?:4|5(?![.-]?\d))`, "text", 202_752, 131_072],
    [String.raw`zai\.glm-5[.-]3(?!-flash)`, "text", 1_000_000, 128_000]
  ]
}
