/**
 * The prices of `effect-agent/prices`, where its package is installed. They are loaded for the first answer.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Prices from "../../Prices.ts"

interface Entry {
  readonly GenAiPrices: { readonly make: () => Prices.Service }
}

/** The entry point is a parameter, so that bundlers leave the optional package out. */
const load = async (entry: string): Promise<Prices.Service | undefined> => {
  try {
    const loaded: Entry = await import(/* webpackIgnore: true */ /* @vite-ignore */ entry)
    return loaded.GenAiPrices.make()
  } catch {
    return undefined
  }
}

let loading: Promise<Prices.Service | undefined> | undefined

const service: Prices.Service = {
  find: (model) =>
    Effect.flatMap(
      Effect.promise(() => (loading ??= load("effect-agent/prices"))),
      (prices) => prices?.find(model) ?? Effect.undefined
    )
}

export const layer: Layer.Layer<never> = Layer.succeed(Prices.Prices, service)
