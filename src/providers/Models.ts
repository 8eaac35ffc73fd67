/**
 * A table of the options that each model accepts: thinking levels, sampling, limits, inputs, forced tools and
 * endpoints.
 *
 * The providers adapt each request to the rule of its model and report every change in `ModelCallEnd.adjusted`.
 * An application adds its own rules with `layer`.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isPattern, joined, type Rule, Rules, type Vendor } from "./internal/models/rule.ts"
import { rules as all, rulesOf } from "./internal/models/tables.ts"

export { Rules, type Vendor, vendorOf } from "./internal/models/rule.ts"
export type { Endpoint, MediaLimits, Rule, Thinking, Word } from "./internal/models/rule.ts"

/**
 * The date on which the facts of the table were checked, as `YYYY-MM-DD`.
 *
 * @since 0.2.0
 * @category constants
 */
export const readOn = "2026-11-26"

/**
 * The rules of the table.
 *
 * For each vendor, the first rule whose pattern matches an id applies.
 *
 * @since 0.2.0
 * @category constants
 */
export const rules: ReadonlyArray<Rule> = all

/**
 * Makes a layer that adds rules of the application to the providers that are built with it.
 *
 * **Details**
 *
 * If several patterns match an id, the first one applies. The layer dies with a `TypeError` if a pattern is not
 * a regular expression.
 *
 * **Example** (Adding a rule for a deployment)
 *
 * ```ts
 * import { Layer } from "effect"
 * import { Models, OpenAi } from "effect-agent/providers"
 *
 * const provider = OpenAi.layer({ apiKey: "sk-..." }).pipe(
 *   Layer.provide(Models.layer([{ vendor: "openai", pattern: "^my-deployment$", maxOutput: 128_000 }]))
 * )
 * console.log(Layer.isLayer(provider)) // => true
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layer = (own: ReadonlyArray<Rule>): Layer.Layer<never> =>
  Layer.effect(
    Rules,
    Effect.suspend(() => {
      const broken = own.find(({ pattern }) => !isPattern(pattern))
      return broken === undefined
        ? Effect.succeed(own)
        : Effect.die(
            new TypeError(`Models.layer: ${JSON.stringify(broken.pattern)} is no regular expression`)
          )
    })
  )

/**
 * The rules that `find` searches.
 *
 * @since 0.2.0
 * @category options
 */
export interface Served {
  /** The id of the provider, which rules of the application may name as their `vendor` (default: none). */
  readonly id?: string | undefined
  /** The vendor of the models, or of each model by its id (default: none, so that no rule of the table applies). */
  readonly vendor?: Vendor | undefined
  /**
   * Whether the provider is a gateway to other vendors, so that only limits and inputs of the model's family
   * apply, and what is known of the host with this `id` (default: `false`).
   */
  readonly isGateway?: boolean | undefined
  /** The rules of the application (default: none). */
  readonly own?: ReadonlyArray<Rule> | undefined
}

/**
 * Returns the rule for a model, `undefined` if there is none.
 *
 * **Example** (Reading the context window of a model)
 *
 * ```ts
 * import { Models } from "effect-agent/providers"
 *
 * const rule = Models.find("claude-opus-5", { vendor: "anthropic" })
 * console.log(rule?.contextWindow !== undefined) // => true
 * ```
 *
 * @since 0.2.0
 * @category getters
 */
export const find = (model: string, served: Served = {}): Rule | undefined =>
  joined(rulesOf(served)(model), model, served)
