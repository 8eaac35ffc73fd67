/**
 * Prices that the package does not have, or has of another model, as of 26 November 2026.
 *
 * Sources: `@earendil-works/pi-ai@1.5.2` dist/providers/data; GPT-6.2: docs.laozhang.ai/en/announcements/gpt-6-2-2026-11,
 * BerriAI/litellm#52347, iyulab/TokenMeter v0.17.0; Gemini 4: BerriAI/litellm#50970, #51436.
 */
import * as Prices from "../../Prices.ts"

/**
 * Dollars for a million tokens: input, output, read from the cache, written to it. After `>`: from how many tokens of input others
 * hold, and these. After `@`: the day from which others hold, and these.
 */
type Row = string

const muse = "1.25 4.25 0.15"
const flash41 = "0.3 1.2 0.006"
const openai: Readonly<Record<string, Row>> = {
  "chat-latest": "5 30 0.5",
  "gpt-5.3-codex-spark": "1.75 14 0.175",
  "gpt-5.6-cyber": "12.5 75 1.25 15.625",
  "gpt-6.1-sol": "2 10 0.1 2.5 > 272000 4 15 0.2 5",
  "gpt-6.1-terra": "1 5 0.05 1.25 > 272000 2 7.5 0.1 2.5",
  "gpt-6.2-astra": "8 40 0.4 10 > 272000 16 60 0.8 20",
  "gpt-6.2-sol": "2 10 0.1 2.5 > 272000 4 15 0.2 5",
  "gpt-daybreak-blue-latest": "4 20 0.4 5 > 272000 8 30 0.8 10",
  "gpt-daybreak-red-latest": "12.5 75 1.25 15.625"
}
const anthropic: Readonly<Record<string, Row>> = {
  "claude-fable-5-2": "8 40 0.2 10",
  "claude-haiku-5-5": "0.1 0.5 0.01 0.125 > 100000 0.5 2.5 0.05 0.625",
  "claude-sonnet-5-5": "2 10 0.1 2.5"
}

/** By the id of the provider in the package, else here. */
const list: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  openai,
  azure: openai,
  anthropic,
  google: {
    ...anthropic,
    "gemini-4-argon": "2 10 0.1 @ 2026-12-01 4 20 0.2",
    "gemini-4-carbon": "2 10 0.1 @ 2026-12-01 4 20 0.2",
    "gemini-4-hydrogen": "1.5 7.5 0.075",
    "gemini-4-neon": "3 15 0.15",
    "gemini-flash-latest": "1.5 9 0.15",
    "gemini-flash-lite-latest": "0.25 1.5 0.025",
    "gemini-pro-latest": "2 12 0.2 > 200000 4 18 0.4"
  },
  "x-ai": { "grok-4.7": "2 6 0.5 > 200000 4 12 1" },
  deepseek: { "deepseek-flash": flash41 },
  mistral: {
    "deepseek-v4-1-flash-1017": "0.3 1.2 0.007",
    "devstral-latest": "0.4 2 0.04",
    "devstral-medium-latest": "0.4 2 0.04",
    "mistral-large-4": "0.7 2.1 0.07",
    "mistral-medium-2604": "1.5 7.5 0.15",
    "zai-glm-5-2": "1.4 4.4 0.14",
    "zai-glm-5-3": "1.4 4.4 0.14",
    "zai-glm-5-3-flash": "0.15 0.5 0.03"
  },
  groq: { "qwen/qwen3.6-27b": "0.6 3 0.3", "qwen/qwen3.8-27b": "0.8 4" },
  moonshotai: { "kimi-k3.1-pro": "2 10 0.2", "kimi-k3.1-pro-highspeed": "4 20 0.2" },
  zai: { "glm-4.7": "0.6 2.2 0.11", "glm-5-turbo": "1.2 4 0.24" },
  minimax: { "MiniMax-M3.1-Flash": "0.15 0.6 0.015" },
  cerebras: { "qwen-3.8-27b": "0.99 1.49" },
  together: {
    "deepseek-ai/DeepSeek-V4.1-Flash": flash41,
    "deepseek-ai/DeepSeek-V4-Pro-0813": "1.32 3.96 0.13",
    "MiniMaxAI/MiniMax-M3": "0.3 1.2 0.06",
    "moonshotai/Kimi-K3": "3 15 0.3",
    "moonshotai/Kimi-K3.1-Pro": "2 10 0.2",
    "openai/gpt-oss-120b": "0.15 0.6",
    "Qwen/Qwen3.7-Max": "2.5 7.5 0.5",
    "zai-org/GLM-5.2": "1.4 4.4 0.26",
    "zai-org/GLM-5.3": "1.4 4.4 0.26",
    "zai-org/GLM-5.3-Flash": "0.15 0.5 0.03"
  },
  fireworks: {
    "accounts/fireworks/models/deepseek-v4p1-flash": flash41,
    "accounts/fireworks/models/glm-5p3": "1.4 4.4 0.26",
    "accounts/fireworks/models/glm-5p3-flash": "0.15 0.5 0.03",
    "accounts/fireworks/models/kimi-k3p1-pro": "2 10 0.2",
    "accounts/fireworks/models/minimax-m3p1-flash": "0.15 0.6 0.015",
    "accounts/fireworks/models/qwen3p8-max": "2 6 0.25"
  },
  baseten: {
    "deepseek-ai/DeepSeek-V4.1-Flash": "0.3 1.2 0.007",
    "moonshotai/Kimi-K3.1-Pro": "2 10 0.2"
  },
  openrouter: {
    "anthropic/claude-fable-5.2": "8 40 0.2 10",
    "anthropic/claude-haiku-5.5": "0.1 0.5 0.01 0.125 > 100000 0.5 2.5 0.05 0.625",
    "anthropic/claude-sonnet-5.5": "2 10 0.1 2.5",
    "google/gemini-4-argon": "2 10 0.1 @ 2026-12-01 4 20 0.2",
    "moonshotai/kimi-k3.1-pro": "2 10 0.2"
  },
  meta: {
    "muse-ember-1.0": "0.1 0.5 0.004 > 200000 0.3 1.5 0.012",
    "muse-spark-1.1": muse,
    "muse-spark-1.2": muse,
    "muse-spark-1.3": muse,
    "muse-wonder-1.0": "4 20 0.2"
  },
  xiaomi: { "mimo-v2.6-flash": "0.14 0.28 0.0028", "mimo-v2.6-pro": "0.435 0.87 0.0036" },
  stepfun: { "step-3.7-flash": "0.2 1.15", "step-5-preview": "1 2.7" },
  "ant-ling": { "Ling-2.6-1T": "0.06 0.25", "Ling-2.6-flash": "0.01 0.02", "Ring-2.6-1T": "0.06 0.25" },
  // The price of `global.`; in a region it is a tenth more.
  aws: {
    "global.anthropic.claude-fable-5-2": "8 40 0.2 10",
    "global.anthropic.claude-haiku-5-5": "0.1 0.5 0.01 0.125 > 100000 0.5 2.5 0.05 0.625",
    "global.openai.gpt-6-astra": "10 50 1 12.5 > 272000 20 75 2 25",
    "global.openai.gpt-6-sol": "2 10 0.2 2.5 > 272000 4 15 0.4 5",
    "global.openai.gpt-6-luna": "0.1 0.5 0.01 0.125 > 272000 0.2 0.75 0.02 0.25",
    "global.openai.gpt-6.1-sol": "2 10 0.1 2.5 > 272000 4 15 0.2 5",
    "global.openai.gpt-6.1-terra": "1 5 0.05 1.25 > 272000 2 7.5 0.1 2.5",
    "global.moonshotai.kimi-k3": "3 15 0.3 3.75",
    "global.moonshotai.kimi-k3.1": "4 20 0.2 5",
    "global.xai.grok-4.6": "2 6 0.5",
    "global.xai.grok-4.7": "2 6 0.5",
    "global.zai.glm-5.3": "1.68 5.28 0.312 2.1",
    "amazon.nova-2-lite-v1:0": "0.33 2.75 0.0825 0.33",
    "deepseek.v3-v1:0": "0.58 1.68",
    "deepseek.v3.2": "0.62 1.85",
    "minimax.minimax-m2.5": "0.3 1.2",
    "moonshotai.kimi-k2.5": "0.6 3",
    "qwen.qwen3-235b-a22b-2507-v1:0": "0.22 0.88",
    "qwen.qwen3-coder-next": "0.5 1.2",
    "qwen.qwen3-next-80b-a3b": "0.15 1.2",
    "xai.grok-4.3": "1.25 2.5 0.2",
    "zai.glm-4.7": "0.6 2.2",
    "zai.glm-5": "1 3.2"
  }
}

/** The ids of the models of a provider. */
export const models = (providerId: string): ReadonlyArray<string> => Object.keys(list[providerId] ?? {})

/** The price of a model by its id. A date at the end of an id is ignored. */
export const find = (
  providerId: string,
  id: string,
  at: Date,
  cacheRetention: Prices.Model["cacheRetention"]
): Prices.Price | undefined => {
  const rows = list[providerId] ?? {}
  const bare = providerId === "aws" ? id.replace(region, "") : id.replace(date, "")
  const row = rows[id] ?? rows[bare]
  if (row !== undefined) return priceOf(row, at, cacheRetention, 1)
  const elsewhere = providerId === "aws" ? rows[`global.${bare}`] : undefined
  return elsewhere === undefined ? undefined : priceOf(elsewhere, at, cacheRetention, 1.1)
}

type Other = "contextWindow" | "cacheWriteLong"

const date = /-(?:\d{4}-\d{2}-\d{2}|20\d{6})$|@\d{8}$/
const region = /^[a-z-]+\.(?=[a-z\d]+\.)/

const priceOf = (
  row: Row,
  at: Date,
  cacheRetention: Prices.Model["cacheRetention"],
  factor: number
): Prices.Price => {
  const [now = "", later] = row.split(" @ ")
  const [day = "", ...changed] = (later ?? "").split(" ")
  const current = later !== undefined && at >= new Date(day) ? changed.join(" ") : now
  const [short = "", long] = current.split(" > ")
  const rates = ratesOf(short, factor)
  const [above = Infinity, ...more] = (long ?? "").split(" ")
  const others = ratesOf(more.join(" "), factor)
  return {
    rates,
    cost: (usage) => {
      const { cacheRead, cacheWrite, cacheWriteLong, output, plain } = Prices.split(usage, cacheRetention)
      const of = long !== undefined && usage.input > Number(above) ? others : rates
      const written = (cacheWrite + cacheWriteLong) * of.cacheWrite
      return (plain * of.input + cacheRead * of.cacheRead + written + output * of.output) / 1e6
    }
  }
}

const ratesOf = (numbers: string, factor: number): Required<Omit<Prices.Rates, Other>> => {
  const [input = 0, output = 0, cacheRead = input, cacheWrite = input] = numbers
    .split(" ")
    .map((number) => Math.round(Number(number) * factor * 1e6) / 1e6)
  return { input, output, cacheRead, cacheWrite }
}
