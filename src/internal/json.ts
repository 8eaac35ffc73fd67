/** Reads JSON of unknown shape. */
import type * as Schema from "effect/Schema"

export { isObject } from "./jsonCoercion.ts"

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
