/**
 * The hash that binds an approval to the params of its call.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"

/** The lower-case hex SHA-256 of the RFC 8785 JSON of a value. */
export const of = (value: Schema.Json): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(value)))),
    (digest) => Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("")
  )

/**
 * The RFC 8785 JSON of a value: members sorted by the UTF-16 code units of their names, and no white space. `JSON.stringify` writes
 * numbers and texts as the RFC requires; it cannot sort, since objects keep names such as "10" in the order of numbers.
 */
export const canonical = (value: Schema.Json): string => {
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(canonical).join(",")}]`
  const members = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`
}

const isArray = (value: Schema.Json): value is Schema.JsonArray => Array.isArray(value)
