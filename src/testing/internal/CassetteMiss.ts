/**
 * The error text for a request without a recording.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { Slot } from "./CassetteDeck.ts"
import type { CassetteFailed, Files } from "./CassetteFile.ts"
import * as Difference from "./Difference.ts"
import { isObject } from "../../internal/json.ts"

/** Names the request, and its first difference to the nearest recording. */
export const describe = (
  files: Files,
  { number, tape: { answers, key, request } }: Slot
): Effect.Effect<string, CassetteFailed> => {
  const subject = summary(request)
  if (answers.length > 0) {
    const times = answers.length === 1 ? "once" : `${answers.length} times`
    return Effect.succeed(
      `${subject} was recorded ${times} (${files.pathOf(key)}), and this is call ${number + 1}`
    )
  }
  return Effect.map(files.requests, (recorded) => {
    const [nearest] = recorded
      .map(([other, candidate]) => ({ other, differences: Difference.all(candidate, request) }))
      .sort((a, b) => Difference.distance(a.differences) - Difference.distance(b.differences))
    const [first] = nearest?.differences ?? []
    const where =
      nearest === undefined || first === undefined
        ? "nothing is recorded there"
        : `the nearest recording is ${nearest.other}.json, and differs first at ${Difference.render(first)}`
    return `${subject} was not recorded: there is no ${files.pathOf(key)}; ${where}`
  })
}

/** Names a request by its model and its last message. */
const summary = (request: Schema.Json): string => {
  const { messages, model } = isObject(request) ? request : {}
  const all = Array.isArray(messages) ? messages : []
  const last = JSON.stringify(all.at(-1) ?? null)
  const shown = last.length <= maxShown ? last : `${last.slice(0, maxShown)}…`
  return `The request to ${JSON.stringify(model)} with ${all.length} ${all.length === 1 ? "message" : "messages"}, the last ${shown},`
}

const maxShown = 200
