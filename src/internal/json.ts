/** Reads JSON of unknown shape. */
import type * as Schema from "effect/Schema"

export type Json = Schema.Json
export type JsonObject = Schema.JsonObject

export const isArray: (json: Json | undefined) => json is ReadonlyArray<Json> = Array.isArray

/** As `isObject`, inlined because it runs several times for each delta. */
export const object = (json: Json | undefined): JsonObject | undefined =>
  typeof json === "object" && json !== null && !isArray(json) ? json : undefined

export const array = (json: Json | undefined): ReadonlyArray<Json> => (isArray(json) ? json : none)

/** Shared, because `array` runs for each delta. */
const none: ReadonlyArray<Json> = []

/** A string that is not empty. */
export const text = (json: Json | undefined): string | undefined =>
  typeof json === "string" && json !== "" ? json : undefined

export const number = (json: Json | undefined): number | undefined =>
  typeof json === "number" && Number.isFinite(json) ? json : undefined

// ───────────────────────── Depth

/** Most levels of brackets. */
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

// ───────────────────────── Coercion

/** The types of JSON Schema. */
export const typeNames: ReadonlySet<string> = new Set([
  "array",
  "boolean",
  "integer",
  "null",
  "number",
  "object",
  "string"
])

/** The most faults of one decoding. A model has no use for more, and each costs time. */
export const maxFaults = 100

/** Returns whether the value has one of the types. Without types every value fits. */
export const fits = (types: ReadonlyArray<string>, value: Json): boolean =>
  types.length === 0 || types.some((type) => isType(type, value))

/** Converts a value to the first of the types that it can be converted to. */
export const coerce = (types: ReadonlyArray<string>, value: Json): Json | undefined =>
  types.map((type) => coerceTo(type, value)).find((coerced) => coerced !== undefined)

/** A scalar becomes text, and a text becomes the value that it writes down. */
const coerceTo = (type: string, value: Json): Json | undefined => {
  if (typeof value !== "string") return type === "string" && isScalar(value) ? String(value) : undefined
  const isNumber = (type === "number" || type === "integer") && value.trim() !== ""
  const written = isNumber ? Number(value) : parse(value)
  return written !== undefined && isType(type, written) ? written : undefined
}

const isScalar = (value: Json): boolean => typeof value === "number" || typeof value === "boolean"

/** Returns whether a value has a type of JSON Schema. */
const isType = (type: string, value: Json): boolean => {
  switch (type) {
    case "null":
      return value === null
    case "array":
      return Array.isArray(value)
    case "object":
      return isObject(value)
    case "integer":
      return Number.isInteger(value)
    case "number":
      return typeof value === "number" && Number.isFinite(value)
    default:
      return typeof value === type
  }
}

/** Returns whether a value is a JSON object. */
export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

// ───────────────────────── References

/** Returns the schema that a schema refers to, or `undefined` if the reference leads nowhere or in a circle. */
export const follow = (
  root: Json,
  schema: Json | undefined,
  seen: ReadonlyArray<string> = []
): Json | undefined => {
  if (!isObject(schema) || typeof schema["$ref"] !== "string") return schema
  const { $ref } = schema
  return seen.includes($ref) ? undefined : follow(root, resolve(root, $ref), [...seen, $ref])
}

const resolve = (root: Json, ref: string): Json | undefined =>
  ref
    .replace(/^#\/?/, "")
    .split("/")
    .filter((step) => step !== "")
    .reduce<Json | undefined>((at, step) => inner(at, unescaped(step)), root)

const inner = (at: Json | undefined, name: string): Json | undefined =>
  isObject(at) ? at[name] : Array.isArray(at) ? at[Number(name)] : undefined

/** Decodes a step of a reference, which may or may not be encoded as part of a URI. */
const unescaped = (step: string): string => decoded(step).replaceAll("~1", "/").replaceAll("~0", "~")

const decoded = (step: string): string => {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}
