/**
 * Converts JSON values to the type that a schema requires, where the conversion loses and invents nothing.
 */
import type * as Schema from "effect/Schema"
import { parse } from "./jsonDepth.ts"

type Json = Schema.Json
export type JsonObject = { readonly [key: string]: Json }

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
