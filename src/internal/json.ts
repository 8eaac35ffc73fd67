/** Reads JSON of unknown shape, and hashes JSON. */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"

export type Json = Schema.Json
export type JsonObject = Schema.JsonObject

export const isArray: (json: Json | undefined) => json is ReadonlyArray<Json> = Array.isArray

/** Returns a JSON object, else `undefined`. It does not call `isObject`, because it runs several times for each delta. */
export const object = (json: Json | undefined): JsonObject | undefined =>
  typeof json === "object" && json !== null && !isArray(json) ? json : undefined

export const array = (json: Json | undefined): ReadonlyArray<Json> => (isArray(json) ? json : none)

/** The one empty list that `array` returns, because it runs for each delta. */
const none: ReadonlyArray<Json> = []

/** Returns a string that is not empty, and `undefined` for any other value. */
export const text = (json: Json | undefined): string | undefined =>
  typeof json === "string" && json !== "" ? json : undefined

export const number = (json: Json | undefined): number | undefined =>
  typeof json === "number" && Number.isFinite(json) ? json : undefined

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

// ───────────────────────── Depth

/** The most levels of brackets that `parse` accepts. */
export const maxDepth = 256

/**
 * Returns whether a JSON text nests deeper than `maxDepth`. Counts brackets and skips strings: 10 MB take a few milliseconds. A
 * text of at most `2 * maxDepth` characters cannot nest deeper and still be JSON.
 */
export const nestsTooDeep = (json: string): boolean => {
  if (json.length <= 2 * maxDepth) return false
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const char = json.charCodeAt(at)
    if (char === 0x22) at = endOfString(json, at)
    else depth += levelsOf(char)
    if (depth > maxDepth) return true
  }
  return false
}

/** The value of a JSON text, or `undefined` if the text is not JSON or nests too deep. */
export const parse = (text: string): Schema.Json | undefined => {
  if (nestsTooDeep(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The levels that a bracket opens or closes. */
const levelsOf = (char: number): number =>
  char === 0x7b || char === 0x5b ? 1 : char === 0x7d || char === 0x5d ? -1 : 0

/** The index of the quote that ends the string which begins at `start`, or the length of the text if no quote does. */
export const endOfString = (json: string, start: number): number => {
  let end = json.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf('"', end + 1)
  return end === -1 ? json.length : end
}

/** Returns whether an odd number of backslashes stands before the character. */
const isEscaped = (json: string, at: number): boolean => {
  let slashes = 0
  while (json.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
  return slashes % 2 === 1
}

// ───────────────────────── Hashes

/** The lower-case hex SHA-256 of the RFC 8785 JSON of a value. */
export const hash = (value: Schema.Json): Effect.Effect<string> =>
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
