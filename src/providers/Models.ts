/**
 * A table of the options that each model accepts: thinking levels, sampling, limits, inputs, forced tools and
 * endpoints.
 *
 * The providers adapt each request to the rule of its model and report every change in `ModelCallEnd.adjusted`.
 * An application adds its own rules with `layer`.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ids from "./internal/models/ids.ts"
import { rules as amazon } from "./internal/models/amazon.ts"
import * as Bedrock from "./internal/models/bedrock.ts"
import { endOf } from "./internal/models/endings.ts"
import * as Hosts from "./internal/models/hosts.ts"
import { rules as anthropic } from "./internal/models/anthropic.ts"
import { rules as deepseek } from "./internal/models/deepseek.ts"
import { rules as google } from "./internal/models/google.ts"
import { rules as groq } from "./internal/models/groq.ts"
import { rules as minimax } from "./internal/models/minimax.ts"
import { rules as mistral } from "./internal/models/mistral.ts"
import { rules as moonshot } from "./internal/models/moonshot.ts"
import { rules as openai } from "./internal/models/openai.ts"
import { rules as others } from "./internal/models/others.ts"
import { rules as qwen } from "./internal/models/qwen.ts"
import { rules as xai } from "./internal/models/xai.ts"
import type { Rule } from "./internal/models/rule.ts"
import { rules as zai } from "./internal/models/zai.ts"

export type { Endpoint, Rule, Thinking, Word } from "./internal/models/rule.ts"

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
export const rules: ReadonlyArray<Rule> = [
  ...anthropic,
  ...openai,
  ...groq,
  ...google,
  ...xai,
  ...deepseek,
  ...mistral,
  ...moonshot,
  ...zai,
  ...qwen,
  ...minimax,
  ...others,
  ...amazon
]

/**
 * The rules of the application, which win over the table member by member (default: none).
 *
 * **Example** (Reading the rules of the application)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Models } from "effect-agent/providers"
 *
 * const program = Effect.map(Models.Rules, (rules) => rules.length)
 * console.log(await Effect.runPromise(program)) // => 0
 * ```
 *
 * @since 0.2.0
 * @category services
 */
export const Rules = Context.Reference<ReadonlyArray<Rule>>("effect-agent/Models/Rules", {
  defaultValue: () => []
})

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
      const broken = own.find(({ pattern }) => !Ids.isPattern(pattern))
      return broken === undefined
        ? Effect.succeed(own)
        : Effect.die(
            new TypeError(`Models.layer: ${JSON.stringify(broken.pattern)} is no regular expression`)
          )
    })
  )

/**
 * The vendor of the models of a server, or of each model by its id.
 *
 * @since 0.2.0
 * @category models
 */
export type Vendor = string | ((model: string) => string | undefined)

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
export const find = (
  model: string,
  { id, isGateway = false, own = [], vendor }: Served = {}
): Rule | undefined => {
  const maker = typeof vendor === "function" ? vendor(model) : vendor
  const isOurs = (rule: Rule) => rule.vendor === undefined || rule.vendor === maker || rule.vendor === id
  const added = own.find((rule) => isOurs(rule) && Ids.matches(rule.pattern, model))
  const known = isGateway ? atGateway(model, id) : ofVendor(model, maker)
  if (added === undefined || known === undefined) return added ?? known
  const isLimited = added.maxOutput !== undefined || added.input !== undefined
  return { ...known, ...(isLimited ? { isSecondHand: false } : {}), ...added }
}

const ofVendor = (model: string, vendor: string | undefined): Rule | undefined => {
  const rule = rules.find((rule) => rule.vendor === vendor && Ids.matches(rule.pattern, model))
  if (Ids.vendorAtBedrock(model) !== undefined) return atBedrock(model, rule)
  if (rule === undefined) return undefined
  const endsOn = endOf(vendor, (pattern) => Ids.matches(pattern, model))
  return endsOn === undefined ? rule : { ...rule, endsOn }
}

const atBedrock = (model: string, rule: Rule | undefined): Rule | undefined => {
  const here = Bedrock.find((pattern) => Ids.matches(pattern, model))
  if (here === undefined) return rule && { ...rule, isSecondHand: true }
  return { pattern: "", ...rule, ...here }
}

/** At a gateway only limits and inputs are known, and at some hosts how they take a thinking level. */
const atGateway = (model: string, id: string | undefined): Rule | undefined => {
  const matches = (pattern: string) => Ids.matches(pattern, Ids.withoutPrefix(model))
  const here = id === undefined ? undefined : Hosts.find(id, matches)
  const rule =
    here ?? Hosts.ofFamily(matches) ?? rules.find((rule) => rule.isResold !== true && matches(rule.pattern))
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

/**
 * Returns the vendor of a provider whose options name none: its id if the table has rules for it, else `usual`.
 *
 * **Example** (Finding the vendor of a provider id)
 *
 * ```ts
 * import { Models } from "effect-agent/providers"
 *
 * console.log(Models.vendorOf("mistral", undefined)) // => mistral
 * console.log(Models.vendorOf("my-server", "openai")) // => openai
 * ```
 *
 * @since 0.2.0
 * @category getters
 */
export const vendorOf = <Usual extends string | undefined>(id: string, usual: Usual): string | Usual =>
  rules.some((rule) => rule.vendor === id) ? id : usual
