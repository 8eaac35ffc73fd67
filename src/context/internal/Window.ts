/**
 * Finds the context window of a model.
 */
import * as Effect from "effect/Effect"
import * as Prices from "../../Prices.ts"

/** A number, or a function that finds it by the id of a model. */
export type Given = number | ((model: string) => number | undefined) | undefined

/** Where nothing is known of the model. */
const usual = 128_000

/** The context window of a model in tokens: as given, else as the price list has it. */
export const of = Effect.fnUntraced(function* (given: Given, asked: Prices.Model) {
  const known = typeof given === "function" ? given(asked.model) : given
  if (known !== undefined) return known
  const { find } = yield* Prices.Prices
  const price = yield* find(asked)
  if (price?.contextWindow !== undefined) return price.contextWindow
  // The id for a router begins with that of the provider.
  const slash = asked.model.indexOf("/")
  if (slash === -1) return usual
  const routed = { provider: asked.model.slice(0, slash), model: asked.model.slice(slash + 1) }
  return (yield* find(routed))?.contextWindow ?? usual
})

/** The tokens of a context window that stay free for the answer, unless the application says otherwise. */
export const reserve = (window: number): number => Math.min(16_384, window / 6)
