/**
 * Reduces a JSON Schema to the part that Anthropic enforces for an output, in which objects are closed.
 * https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs
 *
 * Anthropic rejects other keywords, so they are left out. The reader of the output has to check them.
 */
import { memoize } from "effect/Function"
import type { ModelOptions } from "../../RunOptions.ts"
import * as Json from "../internal/json.ts"
import { takesObjects, withAnyOf } from "../internal/schema.ts"

/** The enforceable part of an output schema, computed once for each output. */
export const enforceable = memoize(
  ({ schema }: NonNullable<ModelOptions["output"]>): Json.Json => kept(withAnyOf(schema))
)

const kept = (schema: Json.Json): Json.Json => {
  if (!Json.isObject(schema)) return schema
  const members = Object.entries(schema).flatMap(([keyword, value]) =>
    isKept(keyword, value) ? [[keyword, inner(keyword, value)] as const] : []
  )
  const isOpen = takesObjects(schema) && (schema["additionalProperties"] ?? true) === true
  return { ...Object.fromEntries(members), ...(isOpen ? { additionalProperties: false } : {}) }
}

const isKept = (keyword: string, value: Json.Json): boolean => {
  if (keyword === "format") return typeof value === "string" && formats.has(value)
  if (keyword === "minItems") return value === 0 || value === 1
  // Such as the bounds of a string or a number alone.
  if (keyword === "allOf") return Json.array(inner(keyword, value)).length > 0
  return !unenforced.has(keyword)
}

const inner = (keyword: string, value: Json.Json): Json.Json => {
  switch (keyword) {
    case "properties":
    case "$defs":
    case "definitions":
      return Object.fromEntries(
        Object.entries(Json.object(value) ?? {}).map(([name, schema]) => [name, kept(schema)])
      )
    case "allOf":
      return Json.array(value)
        .map(kept)
        .filter((schema) => !Json.isObject(schema) || Object.keys(schema).length > 0)
    case "anyOf":
      return Json.array(value).map(kept)
    case "items":
      return kept(value)
    default:
      return value
  }
}

const formats: ReadonlySet<string> = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid"
])

const unenforced: ReadonlySet<string> = new Set([
  "$schema",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "maxItems",
  "uniqueItems",
  "contains",
  "minProperties",
  "maxProperties"
])
