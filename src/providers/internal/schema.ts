/**
 * Converts JSON Schema for vendors without `oneOf`, which zod writes for a discriminated union. The reader of
 * the output has to check that exactly one of the schemas matches.
 */
import * as Json from "./json.ts"

/** Whether the schema accepts objects, alone or among other types. */
export const takesObjects = ({ type }: Json.JsonObject): boolean =>
  type === "object" || Json.array(type).includes("object")

/** The schema with `anyOf` in place of each `oneOf`. */
export const withAnyOf = (schema: Json.Json): Json.Json => {
  if (!Json.isObject(schema)) return schema
  if ("oneOf" in schema && "anyOf" in schema) {
    const { oneOf, ...rest } = schema
    return withAnyOf({ ...rest, allOf: [...Json.array(rest["allOf"]), { oneOf }] })
  }
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [
      keyword === "oneOf" ? "anyOf" : keyword,
      within(keyword, value)
    ])
  )
}

const within = (keyword: string, value: Json.Json): Json.Json => {
  if (keyword === "$ref" && typeof value === "string") return value.replace(step, "/anyOf")
  if (holders.has(keyword)) return Json.isArray(value) ? value.map(withAnyOf) : withAnyOf(value)
  if (!named.has(keyword) || !Json.isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, withAnyOf(schema)]))
}

// A property named `oneOf` is followed by a keyword, never by a number.
const step = /\/oneOf(?=\/\d)/g

/** Keywords whose value is a schema or a list of schemas. The values of other keywords are data. */
const holders: ReadonlySet<string> = new Set([
  "additionalItems",
  "additionalProperties",
  "allOf",
  "anyOf",
  "contains",
  "else",
  "if",
  "items",
  "not",
  "oneOf",
  "prefixItems",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties"
])

/** Keywords whose value maps names to schemas. */
const named: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependentSchemas",
  "patternProperties",
  "properties"
])
