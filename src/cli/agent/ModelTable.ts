/**
 * The facts of the model table about the models of a provider, their prices, whose data is loaded when it is needed, and notes on models.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Prices from "../../Prices.ts"
import * as Models from "../../providers/Models.ts"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import type { Adjustment } from "../../ModelEvent.ts"
import * as Inert from "../terminal/Inert.ts"
import type { Screen } from "../terminal/Screen.ts"

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

// ───────────────────────── Notes on stderr
//
// Changes that a provider made to a request, parts of an answer that the program cannot show, models whose cost is not known although
// `--max-cost` bounds it, and models that their vendor turns off soon. Each note appears once.

/** Shows the new notes of an array of events. `isCostBounded`: whether the cost of the run has a bound. */
export const noting = ({ err, paint }: Screen["Service"], isCostBounded: boolean) => {
  const shown = new Set<string>()
  const models = new Set<string>()
  const isNew = (set: Set<string>, text: string): boolean => !set.has(text) && set.add(text).has(text)
  return Effect.fnUntraced(function* (events: ReadonlyArray<AgentEvent>) {
    const notes: Array<string> = []
    for (const event of events) {
      if (event._tag === "ModelCallEnd") notes.push(...notesOn(event, isCostBounded))
      if (event._tag === "ModelCallStart" && isNew(models, event.model))
        notes.push(...(yield* endOf(event.model)))
    }
    const lines = notes.filter((line) => isNew(shown, line))
    if (lines.length > 0) yield* err(lines.map((line) => `${paint.dim(line)}\n`).join(""))
  })
}

/** How long before its end a model is named. */
const ahead = 60 * 24 * 60 * 60 * 1000

const endOf = Effect.fnUntraced(function* (model: string) {
  const [provider = "", ...id] = model.split("/")
  if (provider === "local") return []
  const endsOn = ruleOf(provider, id.join("/"))?.endsOn
  if (endsOn === undefined) return []
  const left = Date.parse(endsOn) - (yield* Clock.currentTimeMillis)
  const end = left > 0 ? "will be turned off" : "was turned off"
  return left > ahead
    ? []
    : [Inert.line(`${model} ${end} on ${endsOn}: "effect-agent models ${provider}" lists others.`)]
})

const notesOn = (call: OfTag<"ModelCallEnd">, isCostBounded: boolean): ReadonlyArray<string> => {
  const { adjusted = [], unrepresented = [] } = call
  const hidden = unrepresented.map((name) => `Not shown of the answer: ${Inert.line(name)}. --json has it.`)
  return [...adjusted.map(noteOf), ...hidden, ...(isCostBounded ? unpriced(call) : [])]
}

const unpriced = ({ responseModel, usage }: OfTag<"ModelCallEnd">): ReadonlyArray<string> =>
  usage === undefined || usage.cost !== undefined || usage.total === 0
    ? []
    : [Inert.line(`--max-cost does not count ${responseModel ?? "the model"}: its price is not known.`)]

const noteOf = ({ asked, option, reason, sent }: Adjustment): string => {
  const same = JSON.stringify(sent) === JSON.stringify(asked)
  // Parts of messages are counted, such as "2 images".
  if (sent === null && typeof asked === "string" && asked.includes(` ${option}`))
    return Inert.line(`${asked} left out: ${reason}`)
  const change = same
    ? `${option} is sent as ${JSON.stringify(sent)}`
    : sent === null
      ? `${option} ${JSON.stringify(asked)} is left out`
      : `${option} is ${JSON.stringify(sent)}${asked === null ? "" : ` in place of ${JSON.stringify(asked)}`}`
  return Inert.line(`${change}: ${reason}`)
}
