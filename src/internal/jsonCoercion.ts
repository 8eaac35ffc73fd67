/**
 * Converts JSON values to the type that a schema requires, where the conversion loses and invents nothing.
 */
import type * as Schema from "effect/Schema"
import { parse } from "./jsonDepth.ts"

type Json = Schema.Json
export type JsonObject = { readonly [key: string]: Json }

/** Returns whether the value has one of the types. Without types every value fits. */
export const fits = (types: ReadonlyArray<string>, value: Json): boolean => {
  for (const type of types) if (isType(type, value)) return true
  return types.length === 0
}

/** Converts a value to the first of the types that it can be converted to. */
export const coerce = (types: ReadonlyArray<string>, value: Json): Json | undefined => {
  for (const type of types) {
    const coerced = coerceTo(type, value)
    if (coerced !== undefined) return coerced
  }
  return undefined
}

const coerceTo = (type: string, value: Json): Json | undefined => {
  if (type === "string") {
    return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined
  }
  if (typeof value !== "string") return undefined
  switch (type) {
    case "number":
    case "integer": {
      const number = value.trim() === "" ? Number.NaN : Number(value)
      return isType(type, number) ? number : undefined
    }
    case "null":
      return value === "null" ? null : undefined
    case "boolean":
      return value === "true" ? true : value === "false" ? false : undefined
    case "array":
    case "object": {
      const parsed = parse(value)
      return parsed !== undefined && isType(type, parsed) ? parsed : undefined
    }
    default:
      return undefined
  }
}

/** Returns whether a value has a type of JSON Schema. */
export const isType = (type: string, value: Json): boolean => {
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
