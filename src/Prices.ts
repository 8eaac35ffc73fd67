/**
 * The service that knows the prices of models, by which a run computes the cost of answers.
 *
 * **Details**
 *
 * By default no price is known. `effect-agent/prices` has a layer with the prices of most vendors, and {@link layer} takes prices of the
 * application. A cost that the provider reports always wins.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ModelOptions } from "./RunOptions.ts"
import { sane, type Usage } from "./Usage.ts"

/**
 * The model whose price is wanted.
 *
 * @category models
 * @since 0.2.0
 */
export interface Model {
  /** The id of the provider that answers, such as `"openai"`. */
  readonly provider: string
  /** The id of the model in the request, without a prefix of a router. */
  readonly model: string
  /** The id of the model in the answer. Default: that of the request. */
  readonly responseModel?: string | undefined
  /** The time of the request in milliseconds since the epoch. Default: now. */
  readonly at?: number | undefined
  /** The time for which the vendor caches the prompt. Default `"short"`. */
  readonly cacheRetention?: ModelOptions["cacheRetention"] | undefined
}

/**
 * The price of a model, and its context window.
 *
 * @category models
 * @since 0.2.0
 */
export interface Price {
  /** Computes the cost of a model call, in US dollars unless the application has prices in another currency. */
  readonly cost: (usage: Usage) => number | undefined
  /** The price of a million tokens, where it is known as such: for display. */
  readonly rates?: Rates
  /** The most tokens of a request and its answer. Default: not known. */
  readonly contextWindow?: number
}

/**
 * The prices of a million tokens.
 *
 * @category models
 * @since 0.2.0
 */
export interface Rates {
  /** The price of tokens of the request. */
  readonly input: number
  /** The price of tokens of the answer, reasoning included. */
  readonly output: number
  /** The price of tokens that the vendor reads from its cache. Default: `input`. */
  readonly cacheRead?: number
  /** The price of tokens that the vendor writes to its cache. Default: `input`. */
  readonly cacheWrite?: number
  /** The price of tokens that the vendor writes to its cache for an hour. Default: `cacheWrite`. */
  readonly cacheWriteLong?: number
  /** The most tokens of a request and its answer. Default: not known. */
  readonly contextWindow?: number
}

/**
 * The function that finds prices.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** Finds the price of a model; `undefined` if it is not known. */
  readonly find: (model: Model) => Effect.Effect<Price | undefined>
}

/**
 * The service that knows the prices of models.
 *
 * **Details**
 *
 * By default it knows none. A run asks for the price of the model that answers, once for each answer. It takes the provider and the model from the answer, so that
 * the cost is right behind a router and a `Fallback` too.
 *
 * **Example** (Reading the context window of a model)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Prices } from "effect-agent"
 *
 * const program = Effect.gen(function* () {
 *   const prices = yield* Prices.Prices
 *   const price = yield* prices.find({ provider: "openai", model: "my-model" })
 *   return price?.contextWindow
 * }).pipe(Effect.provide(Prices.layer({ "my-model": { input: 1, output: 4, contextWindow: 64_000 } })))
 *
 * console.log(await Effect.runPromise(program)) // => 64000
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export const Prices = Context.Reference<Service>("effect-agent/Prices", {
  defaultValue: () => ({ find: () => Effect.undefined })
})

/**
 * Makes a service of prices of the application.
 *
 * **Details**
 *
 * A key of `prices` is the id of a model, or `provider/id`, which wins. The id is that of the request. `orElse` finds the prices of other
 * models. Default: they are not known.
 *
 * **Example** (Computing a cost)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Prices, Usage } from "effect-agent"
 *
 * const prices = Prices.make({ "openai/my-model": { input: 2, output: 8, cacheRead: 0.5 } })
 * const usage = Usage.make({ input: 1_000_000, output: 100_000, cacheRead: 400_000 })
 *
 * const program = Effect.map(
 *   prices.find({ provider: "openai", model: "my-model" }),
 *   (price) => price?.cost(usage)?.toFixed(2)
 * )
 *
 * console.log(await Effect.runPromise(program)) // => 2.20
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (prices: Readonly<Record<string, Rates>>, orElse?: Service): Service => {
  const known = new Map(Object.entries(prices))
  return {
    find: (model) => {
      const rates = known.get(`${model.provider}/${model.model}`) ?? known.get(model.model)
      if (rates !== undefined) return Effect.succeed(priceOf(rates, model))
      return orElse === undefined ? Effect.undefined : orElse.find(model)
    }
  }
}

/**
 * Makes a layer with prices of the application.
 *
 * **When to use**
 *
 * Use for models whose provider reports no cost, where the prices of `effect-agent/prices` are not wanted. Its layer takes prices of the
 * application too.
 *
 * **Example** (Stopping a run by its cost)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Prices } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "my-model", limits: { maxCost: 0.5 } })
 *   const { usage } = yield* agent.prompt("Hello")
 *   return [usage.cost, usage.costSource]
 * }).pipe(
 *   Effect.provide([
 *     ScriptedProvider.layer([ScriptedProvider.text("Hi", { usage: { input: 50_000, output: 10_000 } })]),
 *     Prices.layer({ "my-model": { input: 2, output: 10 } })
 *   ]),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => [ 0.2, 'computed' ]
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (prices: Readonly<Record<string, Rates>>): Layer.Layer<never> =>
  Layer.succeed(Prices, make(prices))

/**
 * Splits the tokens of a usage into parts that do not overlap.
 *
 * **Details**
 *
 * The parts are never negative, whatever the provider reports. `plain` are tokens of the request that the vendor neither reads from a
 * cache nor writes to one. Without `usage.cacheWriteLong` all writes are `cacheWriteLong` if `cacheRetention` is `"long"`.
 *
 * **Example** (Splitting a request)
 *
 * ```ts
 * import { Prices, Usage } from "effect-agent"
 *
 * const usage = Usage.make({ input: 100, cacheRead: 60, cacheWrite: 30 })
 * const { cacheRead, cacheWrite, plain } = Prices.split(usage, "short")
 *
 * console.log(plain, cacheRead, cacheWrite) // => 10 60 30
 * ```
 *
 * @category getters
 * @since 0.2.0
 */
export const split = (
  given: Usage,
  cacheRetention: ModelOptions["cacheRetention"] | undefined
): {
  readonly plain: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly cacheWriteLong: number
  readonly output: number
} => {
  const usage = sane(given)
  const cacheRead = Math.min(usage.cacheRead, usage.input)
  const written = Math.min(usage.cacheWrite, usage.input - cacheRead)
  const kept = usage.cacheWriteLong ?? (cacheRetention === "long" ? written : 0)
  const cacheWriteLong = Math.min(kept, written)
  return {
    plain: usage.input - cacheRead - written,
    cacheRead,
    cacheWrite: written - cacheWriteLong,
    cacheWriteLong,
    output: usage.output
  }
}

const priceOf = (rates: Rates, { cacheRetention }: Model): Price => {
  const { cacheRead = rates.input, cacheWrite = rates.input, contextWindow, input, output } = rates
  const { cacheWriteLong = cacheWrite } = rates
  return {
    cost: (usage) => {
      const parts = split(usage, cacheRetention)
      const sum =
        parts.plain * input +
        parts.cacheRead * cacheRead +
        parts.cacheWrite * cacheWrite +
        parts.cacheWriteLong * cacheWriteLong +
        parts.output * output
      return sum / 1e6
    },
    rates,
    ...(contextWindow === undefined ? {} : { contextWindow })
  }
}
