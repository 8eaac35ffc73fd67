/**
 * JSON that somebody else wrote: nothing is what it should be until it has been looked at. And JSON we write: text that
 * a strict parser takes.
 */
import type * as Schema from "effect/Schema"
import { isObject } from "../../internal/jsonCoercion.ts"
import { nestsTooDeep } from "../../internal/jsonDepth.ts"

export { isObject }

export type Json = Schema.Json
export type JsonObject = Schema.JsonObject

/** The value of a JSON text, `undefined` when it is none. */
export const parse = (text: string): Json | undefined => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The same, and `undefined` too for JSON that nests deeper than 256 levels. */
export const parseShallow = (text: string): Json | undefined => (nestsTooDeep(text) ? undefined : parse(text))

/** Why a text is no JSON, in the words of the engine. */
export const problem = (text: string): string => {
  try {
    JSON.parse(text)
    return ""
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

export const isArray: (json: Json | undefined) => json is ReadonlyArray<Json> = Array.isArray

/** Asked for several times with every delta: what `isObject` does, without the call. */
export const object = (json: Json | undefined): JsonObject | undefined =>
  typeof json === "object" && json !== null && !isArray(json) ? json : undefined

export const array = (json: Json | undefined): ReadonlyArray<Json> => (isArray(json) ? json : none)

/** Asked for with every delta. */
const none: ReadonlyArray<Json> = []

/** A string that says something. */
export const text = (json: Json | undefined): string | undefined =>
  typeof json === "string" && json !== "" ? json : undefined

export const number = (json: Json | undefined): number | undefined =>
  typeof json === "number" && Number.isFinite(json) ? json : undefined

/** An object without the members that are `undefined`. */
export const defined = (members: Readonly<Record<string, Json | undefined>>): JsonObject =>
  Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  )

/** An object less some of its members. */
export const without = (json: JsonObject, ...members: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(json).filter(([member]) => !members.includes(member)))

/**
 * JSON with no half of a surrogate pair in it, which some vendors answer with 400. `JSON.stringify` writes such a half
 * as an escape, and whole pairs never, so the escapes to replace are easy to tell.
 */
export const encode = (value: unknown): string => {
  const json = JSON.stringify(value)
  return json.includes("\\ud") ? json.replace(loneSurrogate, "\\ufffd") : json
}

/** Writes a list, given how to write one of it. */
export const listOf =
  <Item>(write: (item: Item) => string) =>
  (items: ReadonlyArray<Item>): string =>
    `[${items.map(write).join(",")}]`

// An odd number of backslashes before the `u`: an even number is text that only looks like an escape.
const loneSurrogate = /(?<=(?<!\\)(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g
