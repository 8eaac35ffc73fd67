/** The prices of models. Their data is loaded when it is needed: it is large. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Prices from "../../Prices.ts"

export const find: Prices.Service["find"] = (model) =>
  Effect.flatMap(
    Effect.promise(() => import("../../prices/GenAiPrices.ts")),
    ({ make }) => make().find(model)
  )

/** The ids of the models of a provider, as the price list has them. */
export const models = (provider: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.promise(() => import("../../prices/GenAiPrices.ts")),
    ({ models }) => models(provider)
  )

export const layer: Layer.Layer<never> = Layer.succeed(Prices.Prices, { find })
