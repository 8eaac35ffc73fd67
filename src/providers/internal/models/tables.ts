/** The tables of all vendors, for gateways and for those who name a vendor. The provider of a vendor imports its own table only. */
import { anthropic } from "./anthropic.ts"
import { google } from "./google.ts"
import { openai } from "./openai.ts"
import { deepseek, mistral, moonshot, qwen, zai } from "./openModels.ts"
import { amazon, antLing, groq, meta, minimax, nvidia, stepfun, writer, xai, xiaomi } from "./others.ts"
import * as Ids from "./rule.ts"
import {
  type Rule,
  type Served,
  type Table,
  type Thinking,
  among,
  makerOf,
  rulesIn,
  thinkingOf
} from "./rule.ts"

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
  meta,
  xiaomi,
  stepfun,
  antLing,
  nvidia,
  writer,
  amazon
]

export const rules: ReadonlyArray<Rule> = tables.flatMap(rulesIn)

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
  const matches = (pattern: RegExp) => Ids.matches(pattern, Ids.withoutPrefix(model))
  const here = id === undefined ? undefined : find(id, matches)
  const rule =
    here ??
    ofFamily(matches) ??
    rules.find((rule) => rule.isResold !== true && matches(Ids.compiled(rule.pattern)))
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
 * A model at a host: a pattern of its id, its context window there, what it reads, and how it takes a thinking level. Words are
 * levels, as `thinkingOf` takes them.
 */
type Row = readonly [
  pattern: RegExp,
  contextWindow: number,
  input: "text" | "image",
  thinking?: string | Thinking
]

/** The rule of a model at a host. */
export const find = (host: string, matches: (pattern: RegExp) => boolean): Rule | undefined => {
  const row = [...(hosts[host] ?? []), ...(common.has(host) ? open : [])].find(([pattern]) =>
    matches(pattern)
  )
  return row && ruleOf(row)
}

/** The limits of an open model at most hosts. */
const ofFamily = (matches: (pattern: RegExp) => boolean): Rule | undefined => {
  const row = families.find(([pattern]) => matches(pattern))
  return row && ruleOf(row)
}

const ruleOf = ([pattern, contextWindow, input, thinking]: Row): Rule => ({
  pattern: pattern.source,
  contextWindow,
  input: input === "text" ? ["text"] : ["text", "image"],
  ...(thinking === undefined
    ? {}
    : { thinking: typeof thinking === "string" ? thinkingOf(thinking) : thinking })
})

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
const open: ReadonlyArray<Row> = [[/gpt-oss/i, 131_072, "text", toHigh]]

export const hosts: Readonly<Record<string, ReadonlyArray<Row>>> = {
  cerebras: [
    [/qwen-?3\.8/i, 131_072, "image", orNone],
    [/gemma-4/i, 131_072, "image"]
  ],
  together: [
    [/deepseek-v4(?:[.-]\d)?-pro/i, 1_048_576, "text", enabled],
    [/minimax-m3(?!.\d)/i, 524_288, "image", enabled],
    [/nemotron/i, 262_144, "image", enabled],
    [/qwen3\.5/i, 262_144, "image", enabled],
    [/qwen3\.[67]/i, 1_000_000, "text", enabled],
    [/glm-5.(?:2|3(?!-flash))|beam/i, 1_048_575, "text", enabled],
    [/inkling/i, 524_288, "image", enabled],
    [/deepseek-v4|muse-spark|kimi-k3|glm-5.3/i, 1_048_575, "image", enabled]
  ],
  fireworks: [
    [/deepseek-(?:v4|flash)/i, 1_000_000, "image", orNoneToMax],
    [/glm-(?:flash|.*-flash)/i, 1_048_572, "image", toMax],
    [/glm-(?:5\.3|latest|fast)/i, 1_048_572, "text", toMax],
    [/kimi-k3/i, 1_048_576, "image", kimi],
    [/ember|kimi-(?:fast-)?latest/i, 1_048_576, "image", "none low medium high max"],
    [/minimax-m3\.1/i, 1_000_000, "image", `${toHigh} xhigh max`],
    [/minimax-(?:m3|latest)/i, 512_000, "text", toHigh],
    [/muse-spark/i, 1_048_576, "image", `${toHigh} xhigh`],
    [/qwen3\.8-2/i, 262_144, "text", "none low medium xhigh"],
    [/qwen(?:3\.8|-max)/i, 262_144, "image", "none low medium xhigh"]
  ],
  baseten: [
    [/deepseek-v4\.1-flash-1017/i, 1_048_576, "image", `${orNone} max`],
    [/deepseek-v4\.1/i, 1_048_576, "image", "none high max"],
    [/deepseek-v4/i, 1_048_576, "text", orNoneToMax],
    [/kimi-k3\.1/i, 1_000_000, "image"],
    [/kimi-k3/i, 1_048_576, "image", orNoneToMax],
    [/nemotron-3-ultra/i, 202_800, "text", "none high"],
    [/gpt-oss/i, 128_072, "text", toHigh],
    [/glm-5\.2/i, 1_048_576, "text", "none high max"],
    [/glm-5\.3/i, 1_048_576, "image", toMax]
  ],
  nvidia: [
    [/deepseek-v4/i, 1_000_000, "image", typed],
    [/minimax-m3/i, 262_144, "image"],
    [/mistral-7b/i, 65_536, "text"],
    [/nemotron-3-nano-omni/i, 256_000, "image"],
    [/nemotron-3-ultra/i, 1_000_000, "text"],
    [/nemotron-3\.5-super-vl/i, 1_048_576, "image"],
    [/nemotron-3\.5/i, 262_144, "text"],
    [/nemotron|llama/i, 128_000, "text"],
    [/step-5/i, 1_048_576, "image"],
    [/laguna/i, 262_144, "text"]
  ]
}

/** By OpenRouter's list, the smaller window where free models differ. */
const families: ReadonlyArray<Row> = [
  [/gpt-oss/i, 131_072, "text"],
  [/muse-glimmer/i, 131_072, "image"],
  [/ling-.*-vl/i, 131_072, "image"],
  [/nemotron-3-ultra/i, 202_800, "text"],
  [/nemotron-3\.5-super-vl/i, 1_000_000, "image"],
  [/nemotron-3/i, 256_000, "image"],
  [/nemotron/i, 128_000, "text"],
  [/inkling-2|inkling-small/i, 524_288, "image"],
  [/inkling/i, 256_000, "image"],
  [/(?:^|\/)hy4/i, 1_024_000, "image"],
  [/(?:^|\/)hy\d/i, 262_144, "text"],
  [/beam-1/i, 1_048_576, "text"],
  [/(?:^|\/)ember-/i, 1_048_576, "image"],
  [/laguna/i, 262_144, "text"],
  [/llama-?4/i, 1_000_000, "image"],
  [/llama/i, 128_000, "text"],
  [/seed-2/i, 262_144, "image"],
  [/command-a-plus/i, 192_000, "image"],
  [/command-a/i, 256_000, "text"],
  [/command-r/i, 128_000, "text"],
  [/granite-4/i, 131_072, "text"],
  [/palmyra-x5/i, 1_040_000, "text"]
]
