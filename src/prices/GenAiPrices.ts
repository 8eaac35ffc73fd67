/**
 * The prices and context windows of models, from the data of `@pydantic/genai-prices`, and prices of newer models.
 *
 * **Details**
 *
 * The data is a part of the package: nothing is downloaded. It has the list prices of the vendors in US dollars, with those of cached
 * tokens, audio and long requests, and those that hold at certain times. It has no discounts, and no prices of batches and service tiers.
 *
 * @since 0.2.0
 */
import {
  calcPrice,
  findProvider,
  type ModelPrice,
  type PriceCalculation,
  type Provider
} from "@pydantic/genai-prices"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Prices from "../Prices.ts"
import { sane, type Usage } from "../Usage.ts"

/**
 * The options of the prices.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The prices of the application, as `Prices.make` takes them. They win over those of the package. Default none. */
  readonly prices?: Readonly<Record<string, Prices.Rates>>
  /**
   * The id of a provider in the package, by the id of the provider here, such as `{ "my-gateway": "openai" }`. Default: the providers of
   * `effect-agent/providers`, and each id of the package for itself. The options add to that.
   */
  readonly providers?: Readonly<Record<string, string>>
}

/** The ids that differ. */
const vendors: Readonly<Record<string, string>> = {
  "amazon-bedrock": "aws",
  "azure-openai": "azure",
  bedrock: "aws",
  "google-vertex": "google",
  "google-vertex-anthropic": "google",
  kimi: "moonshotai",
  moonshot: "moonshotai",
  "openai-chat": "openai",
  vertex: "google",
  "vertex-anthropic": "google",
  xai: "x-ai",
  "xai-chat": "x-ai"
}

/**
 * Makes a service with the prices of the package.
 *
 * **Details**
 *
 * The model of the answer counts before that of the request: an alias has the price of the model that it stands for. A model or a provider
 * that the package does not know has no price. Local servers have none.
 *
 * **Example** (Reading a price)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { GenAiPrices } from "effect-agent/prices"
 *
 * const program = Effect.gen(function* () {
 *   const price = yield* GenAiPrices.make().find({ provider: "anthropic", model: "claude-sonnet-4-5" })
 *   return [price?.rates?.input, price?.contextWindow]
 * })
 *
 * console.log(await Effect.runPromise(program)) // => [ 3, 200000 ]
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = ({ prices = {}, providers = {} }: Options = {}): Prices.Service => {
  const ids = new Map(Object.entries({ ...vendors, ...providers }))
  return Prices.make(prices, {
    find: (model) => Effect.sync(() => found(ids.get(model.provider) ?? model.provider, model))
  })
}

/**
 * Lists the ids of the models of a provider.
 *
 * **Details**
 *
 * The list has the models of the package that are not deprecated. It is empty for a provider that the package does not know.
 *
 * **Example** (Listing models)
 *
 * ```ts
 * import { GenAiPrices } from "effect-agent/prices"
 *
 * console.log(GenAiPrices.models("anthropic").includes("claude-opus-5")) // => true
 * console.log(GenAiPrices.models("ollama").length) // => 0
 * ```
 *
 * @category getters
 * @since 0.2.0
 */
export const models = (provider: string, { providers = {} }: Options = {}): ReadonlyArray<string> => {
  const id = { ...vendors, ...providers }[provider] ?? provider
  const known =
    vendorOf(id)
      ?.models.filter(({ deprecated }) => deprecated !== true)
      .map(({ id }) => id) ?? []
  return [...new Set([...known, ...listed(id)])]
}

/**
 * Makes a layer with the prices of the package.
 *
 * **When to use**
 *
 * Use so that runs know what they cost: `usage.cost` of each answer and result is there, and `limits.maxCost` holds.
 *
 * **Example** (Computing the cost of a run)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { GenAiPrices } from "effect-agent/prices"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "my-model", limits: { maxCost: 0.5 } })
 *   const { usage } = yield* agent.prompt("Hello")
 *   return usage.cost
 * }).pipe(
 *   Effect.provide([
 *     ScriptedProvider.layer([ScriptedProvider.text("Hi", { usage: { input: 50_000, output: 10_000 } })]),
 *     GenAiPrices.layer({ prices: { "my-model": { input: 2, output: 10 } } })
 *   ]),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => 0.2
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options?: Options): Layer.Layer<never> => Layer.succeed(Prices.Prices, make(options))

/** A calculation of the package, which throws for data that it does not understand. */
const calculated = (...args: Parameters<typeof calcPrice>): PriceCalculation | undefined =>
  Result.getOrElse(
    Result.try(() => calcPrice(...args) ?? undefined),
    () => undefined
  )

/** The package also takes an id for a provider that it resembles. */
const vendorOf = (providerId: string): Provider | undefined => {
  const found = findProvider({ providerId })
  return found?.id === providerId ? found : undefined
}

const found = (providerId: string, model: Prices.Model): Prices.Price | undefined => {
  const isKnown = vendorOf(providerId) !== undefined
  const { at, cacheRetention, responseModel } = model
  const timestamp = at === undefined ? new Date() : new Date(at)
  for (const id of responseModel === undefined ? [model.model] : [responseModel, model.model]) {
    const own = ownPrice(providerId, id, timestamp, cacheRetention)
    if (own !== undefined) return own
    const priced = isKnown ? calculated({}, id, { providerId, timestamp }) : undefined
    if (priced !== undefined) return priceOf(priced, id, timestamp, model)
  }
  return undefined
}

const priceOf = (
  { model, model_price, provider }: PriceCalculation,
  id: string,
  timestamp: Date,
  { cacheRetention }: Prices.Model
): Prices.Price => {
  // The search of a model takes longer than the sum.
  const only = { ...provider, models: [model] }
  const rates = ratesOf(model_price)
  return {
    cost: (usage) =>
      calculated(counted(usage, cacheRetention), id, { provider: only, timestamp })?.total_price,
    ...(rates === undefined ? {} : { rates }),
    ...(model.context_window === undefined ? {} : { contextWindow: model.context_window })
  }
}

/** The tokens by the names of the package, in which each part is at most the whole. */
const counted = (given: Usage, cacheRetention: Prices.Model["cacheRetention"]): Record<string, number> => {
  const { input, inputAudio = 0, output, outputAudio = 0, reasoning = 0 } = sane(given)
  const { cacheRead, cacheWrite, cacheWriteLong, plain } = Prices.split(given, cacheRetention)
  const audio = Math.min(inputAudio, input)
  const spoken = Math.min(outputAudio, output)
  const thought = Math.min(reasoning, output)
  return {
    input_tokens: input,
    cache_read_tokens: cacheRead,
    cache_write_tokens: cacheWrite + cacheWriteLong,
    cache_write_1h_tokens: cacheWriteLong,
    output_tokens: output,
    output_reasoning_tokens: thought,
    ...(audio === 0 ? {} : audioOf({ audio, plain, cacheRead })),
    ...(spoken === 0
      ? {}
      : {
          output_audio_tokens: spoken,
          output_audio_reasoning_tokens: Math.max(0, spoken + thought - output)
        })
  }
}

/** Vendors do not tell how much of the audio comes from a cache: as little as possible. */
const audioOf = ({
  audio,
  cacheRead,
  plain
}: {
  readonly audio: number
  readonly cacheRead: number
  readonly plain: number
}): Record<string, number> => {
  const cached = Math.min(cacheRead, Math.max(0, audio - plain))
  return {
    input_audio_tokens: audio,
    cache_audio_read_tokens: cached,
    cache_audio_write_tokens: Math.max(0, audio - plain - cached)
  }
}

/** The prices of short requests. */
const ratesOf = (price: ModelPrice): Prices.Rates | undefined => {
  const rate = (key: string): number | undefined => {
    const given = price[key]
    return typeof given === "object" ? given.base : given
  }
  const [input, output] = [rate("input_mtok"), rate("output_mtok")]
  const [cacheRead, cacheWrite] = [rate("cache_read_mtok"), rate("cache_write_mtok")]
  const cacheWriteLong = rate("cache_write_1h_mtok")
  if (input === undefined || output === undefined) return undefined
  return {
    input,
    output,
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
    ...(cacheWriteLong === undefined ? {} : { cacheWriteLong })
  }
}

// ───────────────────────── Prices that the package does not have, or has of another model, as of 26 November 2026
//
// Sources: `@earendil-works/pi-ai@1.5.2` dist/providers/data; GPT-6.2: docs.laozhang.ai/en/announcements/gpt-6-2-2026-11,
// BerriAI/litellm#52347, iyulab/TokenMeter v0.17.0; Gemini 4: BerriAI/litellm#50970, #51436.

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
const listed = (providerId: string): ReadonlyArray<string> => Object.keys(list[providerId] ?? {})

/** The price of a model by its id. A date at the end of an id is ignored. */
const ownPrice = (
  providerId: string,
  id: string,
  at: Date,
  cacheRetention: Prices.Model["cacheRetention"]
): Prices.Price | undefined => {
  const rows = list[providerId] ?? {}
  const bare = providerId === "aws" ? id.replace(region, "") : id.replace(date, "")
  const row = rows[id] ?? rows[bare]
  if (row !== undefined) return priceOfRow(row, at, cacheRetention, 1)
  const elsewhere = providerId === "aws" ? rows[`global.${bare}`] : undefined
  return elsewhere === undefined ? undefined : priceOfRow(elsewhere, at, cacheRetention, 1.1)
}

type Other = "contextWindow" | "cacheWriteLong"

const date = /-(?:\d{4}-\d{2}-\d{2}|20\d{6})$|@\d{8}$/
const region = /^[a-z-]+\.(?=[a-z\d]+\.)/

const priceOfRow = (
  row: Row,
  at: Date,
  cacheRetention: Prices.Model["cacheRetention"],
  factor: number
): Prices.Price => {
  const [now = "", later] = row.split(" @ ")
  const [day = "", ...changed] = (later ?? "").split(" ")
  const current = later !== undefined && at >= new Date(day) ? changed.join(" ") : now
  const [short = "", long] = current.split(" > ")
  const rates = ratesOfRow(short, factor)
  const [above = Infinity, ...more] = (long ?? "").split(" ")
  const others = ratesOfRow(more.join(" "), factor)
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

const ratesOfRow = (numbers: string, factor: number): Required<Omit<Prices.Rates, Other>> => {
  const [input = 0, output = 0, cacheRead = input, cacheWrite = input] = numbers
    .split(" ")
    .map((number) => Math.round(Number(number) * factor * 1e6) / 1e6)
  return { input, output, cacheRead, cacheWrite }
}
