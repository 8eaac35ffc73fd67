/**
 * Notes on stderr: changes that a provider made to a request, and parts of an answer that the program cannot
 * show. Each note appears once.
 */
import * as Effect from "effect/Effect"
import type { AgentEvent } from "../AgentEvent.ts"
import type { Adjustment } from "../ModelEvent.ts"
import * as Inert from "./Inert.ts"
import type { Screen } from "./Screen.ts"

/** Shows the new notes of an array of events. */
export const make = ({ err, paint }: Screen["Service"]) => {
  const shown = new Set<string>()
  const fresh = (line: string): boolean => !shown.has(line) && shown.add(line).has(line)
  return (events: ReadonlyArray<AgentEvent>): Effect.Effect<void> => {
    const lines = events.flatMap(notesIn).filter(fresh)
    return lines.length === 0 ? Effect.void : err(lines.map((line) => `${paint.dim(line)}\n`).join(""))
  }
}

const notesIn = (event: AgentEvent): ReadonlyArray<string> => {
  if (event._tag !== "ModelCallEnd") return []
  const { adjusted = [], unrepresented = [] } = event
  const hidden = unrepresented.map(
    (name) => `The answer holds ${Inert.line(name)}, which are not shown: --json has them.`
  )
  return [...adjusted.map(lineOf), ...hidden]
}

const lineOf = ({ asked, option, reason, sent }: Adjustment): string => {
  const change =
    sent === null
      ? `${option} ${JSON.stringify(asked)} is left out`
      : `${option} is ${JSON.stringify(sent)}${asked === null ? "" : ` in place of ${JSON.stringify(asked)}`}`
  return Inert.line(`${change}: ${reason}`)
}
