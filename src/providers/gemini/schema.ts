/**
 * Converts JSON Schema to the form that Gemini accepts for the parameters of a function: a subset of OpenAPI
 * 3.0. Gemini answers 400 to an unknown keyword. https://ai.google.dev/api/caching#Schema, read in November
 * 2026.
 *
 * Keywords outside the subset are rewritten (references, constants, unions with null), described in the
 * description, or left out. The tool validates its arguments with the complete schema.
 */
import { both, type Flat, flat, type Reading, requiredBy } from "./flatSchema.ts"
import * as Json from "../internal/json.ts"

/** The schema of a function's parameters, always an object. `undefined` if the function has none. */
export const toParameters = (schema: Json.Json): Json.JsonObject | undefined => {
  const whole = flat({ root: schema, refs: [], depth: 0, left: { nodes: maxNodes } }, schema)
  const objects = alternatives(whole).filter((kind) => kind.schema["type"] === "object")
  const [first, ...others] = objects
  if (first === undefined) return undefined
  const object = single(others.reduce(either, first))
  return object["properties"] === undefined ? undefined : object
}

/** Resolved definitions that refer to one another can grow without bound. */
const maxNodes = 2000
const maxDepth = 64

const convert = (reading: Reading, json: Json.Json): Json.JsonObject => {
  const { reading: within, schema } = flat({ ...reading, depth: reading.depth + 1 }, json)
  if (within.depth > maxDepth || --within.left.nodes < 0) return { type: "object" }
  const notes = picked(schema, ["title", "description", "default"])
  const { default: _default, description: _description, title: _title, ...bare } = schema
  const all = alternatives({ schema: bare, reading: within })
  const kinds = oneOfLiterals(all.filter((kind) => kind.schema["type"] !== "null"))
  const takesNull =
    schema["nullable"] === true ||
    literalsOf(schema).includes(null) ||
    all.some((kind) => kind.schema["type"] === "null")
  const isNull = takesNull ? { nullable: true } : {}
  const [only, ...others] = kinds
  if (only === undefined) return { type: "null", ...notes }
  if (others.length > 0) return { anyOf: kinds.map(single), ...notes, ...isNull }
  return { ...single({ ...only, schema: { ...only.schema, ...notes } }), ...isNull }
}

/** One object for two alternatives: it has the members of both, and requires those that both require. */
const either = (first: Flat, second: Flat): Flat => {
  const others = requiredBy(second.schema)
  const required = requiredBy(first.schema).filter((name) => others.includes(name))
  const { reading, schema } = both(first, second)
  return { schema: { ...schema, required }, reading }
}

// ───────────────────────── Unions

/** All alternatives of a value: schemas of one type each, including "null". */
const alternatives = ({ reading, schema }: Flat): ReadonlyArray<Flat> => {
  const { anyOf, oneOf, ...own } = schema
  const variants = [...Json.array(anyOf), ...Json.array(oneOf)].map((variant) => flat(reading, variant))
  // Other variants only add a condition, such as "one of these two is required", which Gemini cannot express.
  const typed = variants.filter((variant) => kindKeywords.some((keyword) => keyword in variant.schema))
  if (typed.length > 0)
    return typed.flatMap((variant) => alternatives(both({ schema: own, reading }, variant)))
  return typesOf(own).map((type) => ({ schema: { ...own, type }, reading }))
}

const kindKeywords = ["type", "properties", "items", "enum", "const", "anyOf", "oneOf"]

const typesOf = (schema: Json.JsonObject): ReadonlyArray<string> => {
  const { type } = schema
  const listed = Json.isArray(type)
    ? type.filter((each) => typeof each === "string")
    : [Json.text(type) ?? ""]
  const known = listed.map((each) => each.toLowerCase()).filter((each) => types.includes(each))
  if (known.length > 0) return known.filter((each) => each !== "integer" || !known.includes("number"))
  const values = literalsOf(schema)
  if (values.length > 0) return [...new Set(values.map(typeOf))]
  const implied = implications.find(([keywords]) => keywords.some((keyword) => keyword in schema))
  return implied === undefined ? anything : [implied[1]]
}

const types = ["string", "number", "integer", "boolean", "object", "array", "null"]
const anything = ["string", "number", "boolean", "object", "array"]

const implications: ReadonlyArray<readonly [keywords: ReadonlyArray<string>, type: string]> = [
  [["properties", "required", "additionalProperties", "patternProperties"], "object"],
  [["items", "prefixItems", "minItems", "maxItems"], "array"],
  [["pattern", "format", "minLength", "maxLength"], "string"],
  [["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"], "number"]
]

const typeOf = (value: Json.Json): string =>
  value === null ? "null" : Json.isArray(value) ? "array" : typeof value

/** The values that a schema lists. */
const literalsOf = (schema: Json.JsonObject): ReadonlyArray<Json.Json> =>
  schema["const"] === undefined ? Json.array(schema["enum"]) : [schema["const"]]

/** A union of string literals becomes one list. */
const oneOfLiterals = (kinds: ReadonlyArray<Flat>): ReadonlyArray<Flat> => {
  const [first] = kinds
  const literals = kinds.map(({ schema }) => (schema["type"] === "string" ? literalsOf(schema) : []))
  if (first === undefined || kinds.length === 1 || literals.some((values) => values.length === 0))
    return kinds
  return [{ ...first, schema: { type: "string", enum: [...new Set(literals.flat())] } }]
}

// ───────────────────────── Schemas of one type

const single = ({ reading, schema }: Flat): Json.JsonObject => {
  const type = Json.text(schema["type"]) ?? "object"
  const description = describe(schema, type)
  return {
    type,
    ...picked(schema, ["title", "default", "example"]),
    ...(description === "" ? {} : { description }),
    ...constraints(reading, schema, type)
  }
}

const constraints = (reading: Reading, schema: Json.JsonObject, type: string): Json.JsonObject => {
  switch (type) {
    case "object":
      return { ...picked(schema, ["minProperties", "maxProperties"]), ...toMembers(reading, schema) }
    case "array":
      return { ...picked(schema, ["minItems", "maxItems"]), items: toItems(reading, schema) }
    case "string":
      return { ...picked(schema, ["minLength", "maxLength"]), ...toText(schema) }
    default:
      return { ...picked(schema, ["minimum", "maximum"]), ...toFormat(schema, type) }
  }
}

const toMembers = (reading: Reading, schema: Json.JsonObject): Json.JsonObject => {
  const members = Object.entries(Json.object(schema["properties"]) ?? {}).filter(
    ([, member]) => member !== false
  )
  if (members.length === 0) return {}
  const required = requiredBy(schema).filter((name) => members.some(([member]) => member === name))
  return {
    properties: Object.fromEntries(members.map(([name, member]) => [name, convert(reading, member)])),
    ...(required.length === 0 ? {} : { required })
  }
}

/** One schema for all items. The items of a tuple may have any of its types. */
const toItems = (reading: Reading, schema: Json.JsonObject): Json.JsonObject => {
  const { items, prefixItems } = schema
  const rest = Json.isObject(items) && Object.keys(items).length > 0 ? [items] : []
  const kinds = [...Json.array(prefixItems), ...Json.array(items), ...rest]
  return kinds.length === 0
    ? anyItem
    : convert(reading, kinds.length === 1 ? (kinds[0] ?? {}) : { anyOf: kinds })
}

const anyItem = { anyOf: ["string", "number", "boolean", "object"].map((type) => ({ type })) }

const toText = (schema: Json.JsonObject): Json.JsonObject => {
  const named = literalsOf(schema).filter((value) => typeof value === "string" && value !== "")
  return {
    ...(named.length === 0 ? {} : { enum: named }),
    ...(isPlain(schema["pattern"]) ? picked(schema, ["pattern"]) : {}),
    ...toFormat(schema, "string")
  }
}

/** RE2 supports neither look-around nor back references. */
const isPlain = (pattern: Json.Json | undefined): boolean =>
  typeof pattern === "string" && !/\(\?[^:]|\\\d/.test(pattern)

const toFormat = (schema: Json.JsonObject, type: string): Json.JsonObject =>
  hasFormat(schema, type) ? picked(schema, ["format"]) : {}

const hasFormat = ({ format }: Json.JsonObject, type: string): boolean =>
  typeof format === "string" && formats[type]?.includes(format) === true

const formats: Readonly<Record<string, ReadonlyArray<string>>> = {
  string: ["date-time", "enum"],
  number: ["float", "double"],
  integer: ["int32", "int64"]
}

const picked = (schema: Json.JsonObject, keywords: ReadonlyArray<string>): Json.JsonObject =>
  Object.fromEntries(
    keywords.flatMap((keyword) => (schema[keyword] === undefined ? [] : [[keyword, schema[keyword]]]))
  )

/** The description, with the keywords that Gemini does not have. */
const describe = (schema: Json.JsonObject, type: string): string => {
  const { additionalProperties: members, format, pattern, properties, uniqueItems } = schema
  const values = type === "string" ? [] : literalsOf(schema)
  const notes = [
    ...(values.length === 0 ? [] : [`one of ${values.map((value) => JSON.stringify(value)).join(", ")}`]),
    ...(type === "string" && typeof format === "string" && !hasFormat(schema, type)
      ? [`format ${format}`]
      : []),
    ...(typeof pattern === "string" && !isPlain(pattern) ? [`pattern ${pattern}`] : []),
    ...bounds.flatMap(([keyword, words]) =>
      typeof schema[keyword] === "number" ? [`${words} ${schema[keyword]}`] : []
    ),
    ...(uniqueItems === true ? ["no item twice"] : []),
    ...(properties === undefined && Json.isObject(members)
      ? [`members of any name, each ${JSON.stringify(members).slice(0, 200)}`]
      : [])
  ].join("; ")
  return [Json.text(schema["description"]) ?? "", notes === "" ? "" : `(${notes})`]
    .filter((text) => text !== "")
    .join(" ")
}

const bounds = [
  ["exclusiveMinimum", "more than"],
  ["exclusiveMaximum", "less than"],
  ["multipleOf", "a multiple of"]
] as const
