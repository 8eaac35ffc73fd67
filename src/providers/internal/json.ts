/** Reads JSON of unknown shape, and writes JSON that strict parsers accept. */
import {
  array,
  isArray,
  isObject,
  type Json,
  type JsonObject,
  number,
  object,
  text
} from "../../internal/json.ts"

export { array, isArray, isObject, number, object, text, type Json, type JsonObject }
export { parse as parseShallow } from "../../internal/json.ts"

/** The value of a JSON text, `undefined` for invalid JSON. */
export const parse = (text: string): Json | undefined => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The error message of the JSON parser, empty for valid JSON. */
export const problem = (text: string): string => {
  try {
    JSON.parse(text)
    return ""
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** The object without members that are `undefined`. */
export const defined = (members: Readonly<Record<string, Json | undefined>>): JsonObject =>
  Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  )

/** The object without the named members. */
export const without = (json: JsonObject, ...members: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(json).filter(([member]) => !members.includes(member)))

/**
 * Encodes JSON without unpaired surrogates, which some vendors reject with 400. `JSON.stringify` writes them as
 * escapes and never escapes pairs, so the replacement is safe.
 */
export const encode = (value: unknown): string => {
  const json = JSON.stringify(value)
  return json.includes("\\ud") ? json.replace(loneSurrogate, "\\ufffd") : json
}

/** How the members of an object are read, by their names. */
type Readers = Readonly<Record<string, (json: Json | undefined) => unknown>>

/** The members of an object that a reader knows. */
export type Read<R extends Readers> = { readonly [Name in keyof R]: ReturnType<R[Name]> }

/** Makes a reader of objects of known members, which are all read. Not for deltas: it makes an object for each. */
export function record<R extends Readers>(readers: R): (json: Json | undefined) => Read<R>
export function record(readers: Readers) {
  const all = Object.entries(readers)
  return (json: Json | undefined) => {
    const members = object(json) ?? {}
    const known: Record<string, unknown> = {}
    for (const [name, read] of all) known[name] = read(members[name])
    return known
  }
}

/** Makes an encoder of lists from an encoder of items. */
export const listOf =
  <Item>(write: (item: Item) => string) =>
  (items: ReadonlyArray<Item>): string =>
    `[${items.map(write).join(",")}]`

// An odd number of backslashes before the `u`. After an even number the text only resembles an escape.
const loneSurrogate = /(?<=(?<!\\)(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g

/** The first choice of an event. With several choices their events are interleaved. */
export const firstAnswer = (answers: Json | undefined): JsonObject | undefined => {
  for (const answer of array(answers)) {
    if (isObject(answer) && (answer["index"] ?? 0) === 0) return answer
  }
  return undefined
}

/** Removes members whose value is `undefined`, so that they keep their defaults. */
export const given = <Options extends object>(options: Options): Options => {
  const kept = { ...options }
  for (const name in kept) if (kept[name] === undefined) Reflect.deleteProperty(kept, name)
  return kept
}

/** Merges two objects: nested objects are merged, all other members of `over` win. */
export const merge = (under: JsonObject, over: JsonObject): JsonObject => {
  const merged: Record<string, Json> = { ...under }
  for (const [name, value] of Object.entries(over)) {
    const below = Object.hasOwn(under, name) ? under[name] : undefined
    merged[name] = isObject(below) && isObject(value) ? merge(below, value) : value
  }
  return merged
}
