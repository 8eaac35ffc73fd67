/** A short description of a tool call. */
import * as Predicate from "effect/Predicate"
import * as Inert from "./Inert.ts"

/** The name of the tool, and the params that distinguish calls. */
export const of = (name: string, params: unknown): string => Inert.exactLine(`${name} ${gistOf(params)}`, 160)

// In reading order: the command or pattern, then the place.
const shownParams = ["command", "pattern", "path", "url", "query"]

const gistOf = (params: unknown): string => {
  if (!Predicate.isObject(params)) return ""
  const values = shownParams.flatMap((name) => {
    const value: unknown = Predicate.hasProperty(params, name) ? params[name] : undefined
    return typeof value === "string" ? [value] : []
  })
  if (values.length > 0) return values.join(" in ")
  const json = JSON.stringify(params)
  return json === "{}" ? "" : json
}
