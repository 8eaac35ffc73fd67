/** Rules for MiniMax, with sources as of `Models.readOn`. */
import type { Rule, Table, Thinking } from "./rule.ts"

const adaptive: Thinking["wire"] = {
  messages: { thinking: { type: "adaptive" }, output_config: { effort: "$" } }
}
const common = {
  vendor: "minimax",
  endpoints: ["messages", "chat"],
  sampling: "any",
  stop: false,
  input: ["text", "image", "video"]
} satisfies Partial<Rule>

const rules: ReadonlyArray<Rule> = [
  {
    ...common,
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
    ...common,
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
    ...common,
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
  rules,
  // dev.to/aihubmix fixing-requires-adaptive-thinking-2013
  endings: { "2026-11-18": String.raw`minimax-m2` },
  atBedrock: [
    [String.raw`minimax\.minimax-m2$`, "text", 204_608, 128_000],
    [String.raw`minimax\.minimax-m2\.1`, "text", 196_608, 131_072],
    [String.raw`minimax\.minimax-m2\.5`, "text", 196_608, 98_304]
  ]
}
