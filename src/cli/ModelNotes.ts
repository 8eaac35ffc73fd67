/**
 * Notes on stderr: changes that a provider made to a request, parts of an answer that the program cannot show, and models whose cost is
 * not known although `--max-cost` bounds it. Each note appears once.
 */
import * as Effect from "effect/Effect"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import type { Adjustment } from "../ModelEvent.ts"
import * as Inert from "./Inert.ts"
import type { Screen } from "./Screen.ts"

/** Shows the new notes of an array of events. `isCostBounded`: whether the cost of the run has a bound. */
export const make = ({ err, paint }: Screen["Service"], isCostBounded: boolean) => {
  const shown = new Set<string>()
  const fresh = (line: string): boolean => !shown.has(line) && shown.add(line).has(line)
  return (events: ReadonlyArray<AgentEvent>): Effect.Effect<void> => {
    const notes = events.flatMap((event) =>
      event._tag === "ModelCallEnd" ? notesOn(event, isCostBounded) : []
    )
    const lines = notes.filter(fresh)
    return lines.length === 0 ? Effect.void : err(lines.map((line) => `${paint.dim(line)}\n`).join(""))
  }
}

const notesOn = (call: OfTag<"ModelCallEnd">, isCostBounded: boolean): ReadonlyArray<string> => {
  const { adjusted = [], unrepresented = [] } = call
  const hidden = unrepresented.map(
    (name) => `The answer holds ${Inert.line(name)}, which are not shown: --json has them.`
  )
  return [...adjusted.map(lineOf), ...hidden, ...(isCostBounded ? unpriced(call) : [])]
}

const unpriced = ({ responseModel, usage }: OfTag<"ModelCallEnd">): ReadonlyArray<string> =>
  usage === undefined || usage.cost !== undefined || usage.total === 0
    ? []
    : [Inert.line(`--max-cost does not count ${responseModel ?? "the model"}: its price is not known.`)]

const lineOf = ({ asked, option, reason, sent }: Adjustment): string => {
  const change =
    sent === null
      ? `${option} ${JSON.stringify(asked)} is left out`
      : `${option} is ${JSON.stringify(sent)}${asked === null ? "" : ` in place of ${JSON.stringify(asked)}`}`
  return Inert.line(`${change}: ${reason}`)
}
