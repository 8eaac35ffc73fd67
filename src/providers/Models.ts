/**
 * What each model accepts, as data: how it is asked to think, sampling, limits, inputs, forced tools, endpoints.
 *
 * The providers adapt each request to the rule of its model and report every change in `ModelCallEnd.adjusted`. The table
 * was read on `readOn`; an application adds rules of its own with `layer`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ids from "./internal/models/ids.ts"
import { rules as amazon } from "./internal/models/amazon.ts"
import { rules as anthropic } from "./internal/models/anthropic.ts"
import { rules as deepseek } from "./internal/models/deepseek.ts"
import { rules as google } from "./internal/models/google.ts"
import { rules as groq } from "./internal/models/groq.ts"
import { rules as minimax } from "./internal/models/minimax.ts"
import { rules as mistral } from "./internal/models/mistral.ts"
import { rules as moonshot } from "./internal/models/moonshot.ts"
import { rules as openai } from "./internal/models/openai.ts"
import { rules as qwen } from "./internal/models/qwen.ts"
import { rules as xai } from "./internal/models/xai.ts"
import type { Rule } from "./internal/models/rule.ts"
import { rules as zai } from "./internal/models/zai.ts"

export type { Endpoint, Rule, Thinking, Word } from "./internal/models/rule.ts"

/** The day on which the facts of the table were read. */
export const readOn = "2026-11-22"

/** The table: of each vendor, the first rule whose pattern finds an id holds. */
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
  ...amazon
]

/** Rules of the application. They win over the table, member by member. Default none. */
export const Rules = Context.Reference<ReadonlyArray<Rule>>("effect-agent/Models/Rules", {
  defaultValue: () => []
})

/**
 * Adds rules of the application to the providers that are built with it. Of several, the first whose pattern finds an id
 * holds.
 *
 * ```ts
 * import { Layer } from "effect"
 * import { Models, OpenAi } from "effect-agent/providers"
 *
 * const provider = OpenAi.layerConfig().pipe(
 *   Layer.provide(Models.layer([{ vendor: "openai", pattern: "^my-deployment$", maxOutput: 128_000 }]))
 * )
 * ```
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

/** Whose rules an id is looked up in. */
export interface Served {
  /** The provider's id: rules of the application may name it in the place of a vendor. */
  readonly id?: string | undefined
  /** The vendor that the provider says it serves. Default none: no rule of the table holds. */
  readonly vendor?: string | undefined
  /** The provider passes requests on to other vendors: limits and inputs of the id's family hold, nothing else. */
  readonly isGateway?: boolean | undefined
  /** Rules of the application. Default none. */
  readonly own?: ReadonlyArray<Rule> | undefined
}

/** The rule for a model, if one is known. */
export const find = (
  model: string,
  { id, isGateway = false, own = [], vendor }: Served = {}
): Rule | undefined => {
  const isOurs = (rule: Rule) => rule.vendor === undefined || rule.vendor === vendor || rule.vendor === id
  const added = own.find((rule) => isOurs(rule) && Ids.matches(rule.pattern, model))
  const known = isGateway ? ofFamily(model) : ofVendor(model, vendor)
  return added === undefined || known === undefined ? (added ?? known) : { ...known, ...added }
}

const ofVendor = (model: string, vendor: string | undefined): Rule | undefined =>
  rules.find((rule) => rule.vendor === vendor && Ids.matches(rule.pattern, model))

/** Behind a gateway nothing but limits and inputs is the vendor's: the rest is as the gateway has it. */
const ofFamily = (model: string): Rule | undefined => {
  const id = Ids.withoutPrefix(model)
  const rule = rules.find((rule) => rule.isResold !== true && Ids.matches(rule.pattern, id))
  if (rule === undefined) return undefined
  const { contextWindow, family, input, maxOutput, pattern } = rule
  return {
    pattern,
    ...(family === undefined ? {} : { family }),
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
    ...(input === undefined ? {} : { input })
  }
}

/** The vendor whose rules hold for a provider that names none: its id, if the table has rules of that name, else `usual`. */
export const vendorOf = <Usual extends string | undefined>(id: string, usual: Usual): string | Usual =>
  rules.some((rule) => rule.vendor === id) ? id : usual
