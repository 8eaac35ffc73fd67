/** The tables of all vendors, for gateways and for those who name a vendor. The provider of a vendor imports its own table only. */
import { amazon, groq, minimax, others } from "./others.ts"
import { anthropic } from "./anthropic.ts"
import { deepseek, moonshot, qwen, zai } from "./openModels.ts"
import { google } from "./google.ts"
import { mistral } from "./mistral.ts"
import { openai } from "./openai.ts"
import * as Ids from "./rule.ts"
import { type Rule, type Served, type Table, type Thinking, among, makerOf } from "./rule.ts"
import { xai } from "./xai.ts"

const tables: ReadonlyArray<Table> = [
  anthropic,
  openai,
  groq,
  google,
  xai,
  deepseek,
  mistral,
  moonshot,
  zai,
  qwen,
  minimax,
  ...others,
  amazon
]

export const rules: ReadonlyArray<Rule> = tables.flatMap(({ rules }) => rules)

/** A server, and whether it is a gateway to other vendors. */
export interface Server extends Served {
  readonly isGateway?: boolean | undefined
}

/** Makes a function that finds the rules of the models of a server. */
export const rulesOf =
  (server: Server) =>
  (model: string): Rule | undefined => {
    if (server.isGateway === true) return atGateway(model, server.id)
    const maker = makerOf(server, model)
    const table = tables.find(({ vendor }) => vendor === maker)
    return table && among(table)(model)
  }

/** At a gateway only limits and inputs are known, and at some hosts how they take a thinking level. */
const atGateway = (model: string, id: string | undefined): Rule | undefined => {
  const matches = (pattern: string) => Ids.matches(pattern, Ids.withoutPrefix(model))
  const here = id === undefined ? undefined : find(id, matches)
  const rule =
    here ?? ofFamily(matches) ?? rules.find((rule) => rule.isResold !== true && matches(rule.pattern))
  if (rule === undefined) return undefined
  const { contextWindow, family, input, maxOutput, pattern } = rule
  return {
    pattern,
    isSecondHand: true,
    ...(family === undefined ? {} : { family }),
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
    ...(input === undefined ? {} : { input }),
    ...(here?.thinking === undefined ? {} : { thinking: here.thinking })
  }
}

// ───────────────────────── Hosts and families

// Models at hosts that serve those of others, and the families of open models, with sources as of `Models.readOn`:
// `@earendil-works/pi-ai@1.5.2` dist/providers/data, `@ai-sdk/cerebras@3.0.59`.

/**
 * A model at a host: a pattern of its id, its context window there, what it reads, and how it takes a thinking level. Words are the
 * values of `reasoning_effort`, `medium:high` that of a level with another name; a model without `none` does not stop thinking.
 */
type Row = readonly [
  pattern: string,
  contextWindow: number,
  input: "text" | "image",
  thinking?: string | Thinking
]

/** The rule of a model at a host. */
export const find = (host: string, matches: (pattern: string) => boolean): Rule | undefined => {
  const row = [...(hosts[host] ?? []), ...(common.has(host) ? open : [])].find(([pattern]) =>
    matches(pattern)
  )
  return row && ruleOf(row)
}

/** The limits of an open model at most hosts. */
export const ofFamily = (matches: (pattern: string) => boolean): Rule | undefined => {
  const row = families.find(([pattern]) => matches(pattern))
  return row && ruleOf(row)
}

const ruleOf = ([pattern, contextWindow, input, thinking]: Row): Rule => ({
  pattern,
  contextWindow,
  input: input === "text" ? ["text"] : ["text", "image"],
  ...(thinking === undefined
    ? {}
    : { thinking: typeof thinking === "string" ? effortOf(thinking) : thinking })
})

const effortOf = (words: string): Thinking => {
  const levels = Object.fromEntries(
    words.split(" ").map((word) => {
      const [level = word, name = level] = word.split(":")
      return [level === "none" ? "off" : level, name]
    })
  )
  return {
    kind: levels["off"] === undefined ? "always-on" : "effort",
    wire: { chat: { reasoning_effort: "$" } },
    levels,
    omitted: "thinks"
  }
}

/** Together: on or off. */
const enabled: Thinking = {
  kind: "switch",
  levels: { off: { reasoning: { enabled: false } }, minimal: { reasoning: { enabled: true } } },
  omitted: "thinks"
}
/** As DeepSeek itself, without an effort. */
const typed: Thinking = {
  kind: "switch",
  levels: { off: { thinking: { type: "disabled" } }, minimal: { thinking: { type: "enabled" } } },
  omitted: "thinks"
}

const toHigh = "low medium high"
const orNone = "none low medium high"
const toMax = "low high max"
const orNoneToMax = "none low high max"
const kimi = "low medium:high high xhigh:max max"

/** Hosts whose servers take `reasoning_effort` for gpt-oss, as OpenAI describes it. */
const common: ReadonlySet<string> = new Set([
  "baseten",
  "cerebras",
  "cloudflare",
  "deepinfra",
  "fireworks",
  "huggingface",
  "nebius",
  "nvidia",
  "sambanova",
  "together"
])
const open: ReadonlyArray<Row> = [["gpt-oss", 131_072, "text", toHigh]]

export const hosts: Readonly<Record<string, ReadonlyArray<Row>>> = {
  cerebras: [
    [String.raw`qwen-?3\.8`, 131_072, "image", orNone],
    ["gemma-4", 131_072, "image"]
  ],
  together: [
    [String.raw`deepseek-v4(?:[.-]\d)?-pro`, 1_048_576, "text", enabled],
    ["minimax-m3(?!.\\d)", 524_288, "image", enabled],
    ["nemotron", 262_144, "image", enabled],
    [String.raw`qwen3\.5`, 262_144, "image", enabled],
    [String.raw`qwen3\.[67]`, 1_000_000, "text", enabled],
    [String.raw`glm-5.(?:2|3(?!-flash))|beam`, 1_048_575, "text", enabled],
    ["inkling", 524_288, "image", enabled],
    [String.raw`deepseek-v4|muse-spark|kimi-k3|glm-5.3`, 1_048_575, "image", enabled]
  ],
  fireworks: [
    ["deepseek-(?:v4|flash)", 1_000_000, "image", orNoneToMax],
    ["glm-(?:flash|.*-flash)", 1_048_572, "image", toMax],
    [String.raw`glm-(?:5\.3|latest|fast)`, 1_048_572, "text", toMax],
    ["kimi-k3", 1_048_576, "image", kimi],
    ["ember|kimi-(?:fast-)?latest", 1_048_576, "image", "none low medium high max"],
    [String.raw`minimax-m3\.1`, 1_000_000, "image", `${toHigh} xhigh max`],
    ["minimax-(?:m3|latest)", 512_000, "text", toHigh],
    ["muse-spark", 1_048_576, "image", `${toHigh} xhigh`],
    [String.raw`qwen3\.8-2`, 262_144, "text", "none low medium xhigh"],
    [String.raw`qwen(?:3\.8|-max)`, 262_144, "image", "none low medium xhigh"]
  ],
  baseten: [
    [String.raw`deepseek-v4\.1-flash-1017`, 1_048_576, "image", `${orNone} max`],
    [String.raw`deepseek-v4\.1`, 1_048_576, "image", "none high max"],
    ["deepseek-v4", 1_048_576, "text", orNoneToMax],
    [String.raw`kimi-k3\.1`, 1_000_000, "image"],
    ["kimi-k3", 1_048_576, "image", orNoneToMax],
    ["nemotron-3-ultra", 202_800, "text", "none high"],
    ["gpt-oss", 128_072, "text", toHigh],
    [String.raw`glm-5\.2`, 1_048_576, "text", "none high max"],
    [String.raw`glm-5\.3`, 1_048_576, "image", toMax]
  ],
  nvidia: [
    [String.raw`deepseek-v4`, 1_000_000, "image", typed],
    ["minimax-m3", 262_144, "image"],
    ["mistral-7b", 65_536, "text"],
    [String.raw`nemotron-3-nano-omni`, 256_000, "image"],
    ["nemotron-3-ultra", 1_000_000, "text"],
    [String.raw`nemotron-3\.5-super-vl`, 1_048_576, "image"],
    [String.raw`nemotron-3\.5`, 262_144, "text"],
    ["nemotron|llama", 128_000, "text"],
    ["step-5", 1_048_576, "image"],
    ["laguna", 262_144, "text"]
  ]
}

/** By OpenRouter's list, the smaller window where free models differ. */
const families: ReadonlyArray<Row> = [
  ["gpt-oss", 131_072, "text"],
  ["muse-glimmer", 131_072, "image"],
  ["ling-.*-vl", 131_072, "image"],
  ["nemotron-3-ultra", 202_800, "text"],
  [String.raw`nemotron-3\.5-super-vl`, 1_000_000, "image"],
  ["nemotron-3", 256_000, "image"],
  ["nemotron", 128_000, "text"],
  ["inkling-2|inkling-small", 524_288, "image"],
  ["inkling", 256_000, "image"],
  ["(?:^|/)hy4", 1_024_000, "image"],
  [String.raw`(?:^|/)hy\d`, 262_144, "text"],
  ["beam-1", 1_048_576, "text"],
  ["(?:^|/)ember-", 1_048_576, "image"],
  ["laguna", 262_144, "text"],
  ["llama-?4", 1_000_000, "image"],
  ["llama", 128_000, "text"],
  ["seed-2", 262_144, "image"],
  ["command-a-plus", 192_000, "image"],
  ["command-a", 256_000, "text"],
  ["command-r", 128_000, "text"],
  ["granite-4", 131_072, "text"],
  ["palmyra-x5", 1_040_000, "text"]
]
