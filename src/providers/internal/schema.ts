/**
 * JSON Schema for vendors that know no `oneOf`, which zod writes for a union told apart by a member. That only one of the
 * schemas may hold stays with whoever reads what the model wrote.
 */
import * as Json from "./json.ts"

/** Whether it tells of objects, alone or among other types. */
export const takesObjects = ({ type }: Json.JsonObject): boolean =>
  type === "object" || Json.array(type).includes("object")

/** The schema with `anyOf` in the place of each `oneOf`. */
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

// What follows a property of that name is a keyword, never a number.
const step = /\/oneOf(?=\/\d)/g

/** Keywords that hold a schema, or a list of such. What others hold is data. */
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

/** Keywords that hold schemas by names, which are no keywords. */
const named: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependentSchemas",
  "patternProperties",
  "properties"
])
