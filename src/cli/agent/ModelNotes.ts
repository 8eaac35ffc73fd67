/**
 * Notes on stderr: changes that a provider made to a request, parts of an answer that the program cannot show, models whose cost is
 * not known although `--max-cost` bounds it, and models that their vendor turns off soon. Each note appears once.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import type { Adjustment } from "../../ModelEvent.ts"
import * as Inert from "../terminal/Inert.ts"
import type { Screen } from "../terminal/Screen.ts"

/** Shows the new notes of an array of events. `isCostBounded`: whether the cost of the run has a bound. */
export const make = ({ err, paint }: Screen["Service"], isCostBounded: boolean) => {
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
  const { ruleOf } = yield* Effect.promise(() => import("./ModelTable.ts"))
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
  return [...adjusted.map(lineOf), ...hidden, ...(isCostBounded ? unpriced(call) : [])]
}

const unpriced = ({ responseModel, usage }: OfTag<"ModelCallEnd">): ReadonlyArray<string> =>
  usage === undefined || usage.cost !== undefined || usage.total === 0
    ? []
    : [Inert.line(`--max-cost does not count ${responseModel ?? "the model"}: its price is not known.`)]

const lineOf = ({ asked, option, reason, sent }: Adjustment): string => {
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
