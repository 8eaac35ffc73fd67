/**
 * A tool call in a few words.
 */
import * as Predicate from "effect/Predicate"
import * as Inert from "./Inert.ts"

/** The name, and the params that tell one call from another. */
export const of = (name: string, params: unknown): string => Inert.line(`${name} ${gistOf(params)}`, 160)

// In the order people read them: what is run or looked for, and where.
const telling = ["command", "pattern", "path", "url", "query"]

const gistOf = (params: unknown): string => {
  if (!Predicate.isObject(params)) return ""
  const told = telling.flatMap((name) => {
    const value: unknown = Predicate.hasProperty(params, name) ? params[name] : undefined
    return typeof value === "string" ? [value] : []
  })
  if (told.length > 0) return told.join(" in ")
  const json = JSON.stringify(params)
  return json === "{}" ? "" : json
}
