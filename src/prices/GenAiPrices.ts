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
import * as List from "./internal/list.ts"

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
  return [...new Set([...known, ...List.models(id)])]
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
    const own = List.find(providerId, id, timestamp, cacheRetention)
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
