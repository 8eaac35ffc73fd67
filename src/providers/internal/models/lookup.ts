/** Finds the rule of a model in the table of its vendor, and among the rules of an application. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Ids from "./ids.ts"
import type { Rule, Table } from "./rule.ts"

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
 * The vendor of the models of a server, or of each model by its id.
 *
 * @since 0.2.0
 * @category models
 */
export type Vendor = string | ((model: string) => string | undefined)

/** The rules that apply to the models of a server. */
export interface Served {
  readonly id?: string | undefined
  readonly vendor?: Vendor | undefined
  readonly own?: ReadonlyArray<Rule> | undefined
}

/** The vendor of a model. */
export const makerOf = ({ vendor }: Served, model: string): string | undefined =>
  typeof vendor === "function" ? vendor(model) : vendor

/** A rule of the table with those of the application, which win member by member. */
export const joined = (known: Rule | undefined, model: string, served: Served): Rule | undefined => {
  const maker = makerOf(served, model)
  const isOurs = ({ vendor }: Rule) => vendor === undefined || vendor === maker || vendor === served.id
  const added = served.own?.find((rule) => isOurs(rule) && Ids.matches(rule.pattern, model))
  if (added === undefined || known === undefined) return added ?? known
  const isLimited = added.maxOutput !== undefined || added.input !== undefined
  return { ...known, ...(isLimited ? { isSecondHand: false } : {}), ...added }
}

/** A server, and the rules of its models if its vendor module has them. */
export interface Server extends Omit<Served, "own"> {
  readonly isGateway?: boolean | undefined
  readonly rules?: ((model: string) => Rule | undefined) | undefined
}

/** Makes a function that finds the rule of a model. Loads the tables of all vendors for a server that only names one, and for a gateway. */
export const finder = Effect.fnUntraced(function* (
  server: Server
): Effect.fn.Return<(model: string) => Rule | undefined> {
  const { isGateway = false, vendor } = server
  const served = { ...server, own: yield* Rules }
  const isKnown = isGateway || (vendor !== undefined && (typeof vendor === "function" || vendors.has(vendor)))
  const known = server.rules ?? (isKnown ? yield* loaded(server) : () => undefined)
  return (model) => joined(known(model), model, served)
})

const loaded = (server: Server): Effect.Effect<(model: string) => Rule | undefined> =>
  Effect.map(
    Effect.promise(() => import("./tables.ts")),
    ({ rulesOf }) => rulesOf(server)
  )

/** Makes a function that finds the rule of a model in the table of its vendor. */
export const among =
  ({ atBedrock = [], endings = {}, rules }: Table) =>
  (model: string): Rule | undefined => {
    const matches = (pattern: string) => Ids.matches(pattern, model)
    const rule = rules.find(({ pattern }) => matches(pattern))
    if (Ids.vendorAtBedrock(model) !== undefined) {
      const row = atBedrock.find(([pattern]) => matches(pattern))
      const { media: _none, ...here } = rule ?? { pattern: "" }
      if (row === undefined) return rule && { ...here, isSecondHand: true }
      return { ...here, ...limits(row) }
    }
    const endsOn = Object.keys(endings).find((day) => matches(endings[day] ?? ""))
    return rule === undefined || endsOn === undefined ? rule : { ...rule, endsOn }
  }

const limits = ([pattern, input, contextWindow, maxOutput]: NonNullable<
  Table["atBedrock"]
>[number]): Partial<Rule> =>
  input === undefined || contextWindow === undefined
    ? {}
    : {
        pattern,
        contextWindow,
        input: input === "text" ? ["text"] : ["text", "image"],
        sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/amazon-bedrock.json"],
        ...(maxOutput === undefined ? {} : { maxOutput })
      }

/** The vendors whose tables have rules. */
const vendors: ReadonlySet<string> = new Set([
  "amazon",
  "ant-ling",
  "anthropic",
  "deepseek",
  "google",
  "groq",
  "meta",
  "minimax",
  "mistral",
  "moonshot",
  "openai",
  "qwen",
  "stepfun",
  "xai",
  "xiaomi",
  "zai"
])

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
  vendors.has(id) ? id : usual
