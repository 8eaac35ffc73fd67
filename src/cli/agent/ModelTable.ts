/** The facts of the model table about the models of a provider, and their prices, whose data is loaded when it is needed: it is large. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Prices from "../../Prices.ts"
import * as Models from "../../providers/Models.ts"

/** The vendors of the model table, by the id of the provider where it differs. */
const vendors: Readonly<Record<string, string>> = {
  kimi: "moonshot",
  "openai-chat": "openai",
  "xai-chat": "xai"
}

/** The vendor of a provider in the table. */
export const vendorOf = (provider: string): string => vendors[provider] ?? provider

/** The rule of a model. A provider without rules of its own serves the models of others. */
export const ruleOf = (provider: string, model: string): Models.Rule | undefined => {
  const vendor = vendorOf(provider)
  const isGateway = !Models.rules.some((rule) => rule.vendor === vendor)
  return Models.find(model, { id: provider, vendor, isGateway })
}

// ───────────────────────── Prices

/** The price of a model. */
export const priceOf: Prices.Service["find"] = (model) =>
  Effect.flatMap(
    Effect.promise(() => import("../../prices/GenAiPrices.ts")),
    ({ make }) => make().find(model)
  )

/** The ids of the models of a provider, as the price list has them. */
export const priced = (provider: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.promise(() => import("../../prices/GenAiPrices.ts")),
    ({ models }) => models(provider)
  )

/** The prices of models, for runs. */
export const prices: Layer.Layer<never> = Layer.succeed(Prices.Prices, { find: priceOf })
