/**
 * The JSON Schema that Anthropic enforces for an output: a part of JSON Schema, in which objects are closed.
 * https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs
 *
 * It refuses a schema that says more. So what it cannot enforce is left out, and stays with whoever reads the output.
 */
import * as Json from "./json.ts"

/** The schema as far as the vendor takes it. */
export const enforceable = (schema: Json.Json): Json.Json => {
  if (!Json.isObject(schema)) return schema
  const kept = Object.entries(schema).flatMap(([keyword, value]) =>
    isKept(keyword, value) ? [[keyword, inner(keyword, value)] as const] : []
  )
  const isOpen = schema["type"] === "object" && (schema["additionalProperties"] ?? true) === true
  return { ...Object.fromEntries(kept), ...(isOpen ? { additionalProperties: false } : {}) }
}

const isKept = (keyword: string, value: Json.Json): boolean => {
  if (keyword === "format") return typeof value === "string" && formats.has(value)
  if (keyword === "minItems") return value === 0 || value === 1
  // Such as the bare bounds of a string or a number.
  if (keyword === "allOf") return Json.array(inner(keyword, value)).length > 0
  return !unenforced.has(keyword)
}

const inner = (keyword: string, value: Json.Json): Json.Json => {
  switch (keyword) {
    case "properties":
    case "$defs":
    case "definitions":
      return Object.fromEntries(
        Object.entries(Json.object(value) ?? {}).map(([name, schema]) => [name, enforceable(schema)])
      )
    case "allOf":
      return Json.array(value)
        .map(enforceable)
        .filter((schema) => !Json.isObject(schema) || Object.keys(schema).length > 0)
    case "anyOf":
      return Json.array(value).map(enforceable)
    case "items":
      return enforceable(value)
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
