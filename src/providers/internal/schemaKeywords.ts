/**
 * The keywords of JSON Schema as one draft: 2020-12. Schemas of tools come in every draft, with keywords of OpenAPI, of
 * forms and of no standard, and vendors reject a whole request for one value that its keyword does not take.
 */
import * as Json from "./json.ts"
import { typeNames } from "../../internal/jsonSchema.ts"

type Node = Json.JsonObject

/** How the value of a keyword is read: as data of a kind, or as schemas. */
type Kind = "schema" | "schemas" | "named schemas" | ((value: Json.Json) => boolean)

const isText = (value: Json.Json): boolean => typeof value === "string"
const isNumber = (value: Json.Json): boolean => Json.number(value) !== undefined
const isFlag = (value: Json.Json): boolean => typeof value === "boolean"
const isCount = (value: Json.Json): boolean => Number.isInteger(value) && Number(value) >= 0
const isList = (value: Json.Json): boolean => Json.array(value).length > 0

/** Whether a text is a pattern of JSON Schema, which has the syntax of JavaScript. */
const isPattern = (value: Json.Json): boolean => {
  try {
    return typeof value === "string" && new RegExp(value, "u") instanceof RegExp
  } catch {
    return false
  }
}

const kinds: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ["$ref", isText],
  ["type", () => true],
  ["title", isText],
  ["description", isText],
  ["default", () => true],
  ["examples", isList],
  ["deprecated", isFlag],
  ["readOnly", isFlag],
  ["writeOnly", isFlag],
  ["format", isText],
  ["contentEncoding", isText],
  ["contentMediaType", isText],
  ["enum", isList],
  ["const", () => true],
  ["minimum", isNumber],
  ["maximum", isNumber],
  ["exclusiveMinimum", isNumber],
  ["exclusiveMaximum", isNumber],
  ["multipleOf", (value) => isNumber(value) && Number(value) > 0],
  ["minLength", isCount],
  ["maxLength", isCount],
  ["pattern", isPattern],
  ["minItems", isCount],
  ["maxItems", isCount],
  ["uniqueItems", isFlag],
  ["minContains", isCount],
  ["maxContains", isCount],
  ["minProperties", isCount],
  ["maxProperties", isCount],
  ["required", isList],
  ["dependentRequired", Json.isObject],
  ["items", "schema"],
  ["additionalProperties", "schema"],
  ["contains", "schema"],
  ["propertyNames", "schema"],
  ["not", "schema"],
  ["if", "schema"],
  ["then", "schema"],
  ["else", "schema"],
  ["unevaluatedItems", "schema"],
  ["unevaluatedProperties", "schema"],
  ["anyOf", "schemas"],
  ["allOf", "schemas"],
  ["prefixItems", "schemas"],
  ["properties", "named schemas"],
  ["patternProperties", "named schemas"],
  ["dependentSchemas", "named schemas"]
])

/** The kind of the value of a keyword, `undefined` for a keyword that no vendor knows. */
export const kindOf = (keyword: string): Kind | undefined => kinds.get(keyword)

const isOfKind = (kind: Kind, value: Json.Json): boolean => {
  if (kind === "schema") return Json.isObject(value) || typeof value === "boolean"
  if (kind === "schemas") return isList(value)
  return kind === "named schemas" ? Json.isObject(value) : kind(value)
}

/** The types of a schema, in lower case. Names that are no types are left out. */
export const typesOf = ({ type }: Node): ReadonlyArray<string> => {
  const named = Json.isArray(type) ? type : [type]
  const types = named.flatMap((name) => (typeof name === "string" ? [name.toLowerCase()] : []))
  return [...new Set(types)].filter((name) => typeNames.has(name))
}

/** A type or a list of types as a member. */
export const withTypes = (node: Node, types: ReadonlyArray<string>): Node => {
  const { type: _, ...rest } = node
  const [first] = types
  return first === undefined ? rest : { type: types.length === 1 ? first : types, ...rest }
}

/** Names of members, each once. */
export const texts = (value: Json.Json | undefined): ReadonlyArray<string> => [
  ...new Set(Json.array(value).filter((item) => typeof item === "string"))
]

/** A schema with the keywords of 2020-12 alone, whose values are of their kinds. The schemas within it stay as they are. */
export const readSchema = (schema: Json.Json | undefined): Node => {
  if (!Json.isObject(schema)) return {}
  const node = modern(schema)
  const kept = Object.entries(node).filter(([keyword, value]) => {
    const kind = kinds.get(keyword)
    return kind !== undefined && isOfKind(kind, value)
  })
  const { required, ...rest } = Object.fromEntries(kept)
  const names = texts(required)
  const types = typesOf(node)
  return withTypes(
    names.length === 0 ? rest : { ...rest, required: names },
    node["nullable"] === true && types.length > 0 ? [...new Set([...types, "null"])] : types
  )
}

/** The words of older drafts in those of 2020-12. */
const modern = (schema: Node): Node => {
  const { additionalItems, dependencies, example, items, oneOf, ...rest } = schema
  const bounds = [...exclusive(schema, "Minimum"), ...exclusive(schema, "Maximum")]
  return Json.defined({
    ...rest,
    ...(Json.isArray(items) ? { prefixItems: items, items: additionalItems } : { items }),
    ...(Json.isObject(dependencies) ? split(dependencies) : {}),
    ...(example === undefined || "examples" in schema ? {} : { examples: [example] }),
    ...either(rest, oneOf),
    ...Object.fromEntries(bounds)
  })
}

/** No vendor takes both, and some none but `anyOf`. The reader of the value checks that exactly one matches. */
const either = (rest: Node, oneOf: Json.Json | undefined): Node => {
  if (!Json.isArray(oneOf) || oneOf.length === 0) return {}
  return "anyOf" in rest ? { allOf: [...Json.array(rest["allOf"]), { anyOf: oneOf }] } : { anyOf: oneOf }
}

/** In draft 4 `exclusiveMinimum` says how `minimum` is meant. */
const exclusive = (
  schema: Node,
  which: "Minimum" | "Maximum"
): ReadonlyArray<readonly [string, Json.Json | undefined]> => {
  const plain = which.toLowerCase()
  return schema[`exclusive${which}`] === true
    ? [
        [`exclusive${which}`, schema[plain]],
        [plain, undefined]
      ]
    : []
}

const split = (dependencies: Node): Node => {
  const entries = Object.entries(dependencies)
  return {
    dependentRequired: Object.fromEntries(entries.filter(([, value]) => Json.isArray(value))),
    dependentSchemas: Object.fromEntries(entries.filter(([, value]) => !Json.isArray(value)))
  }
}

/** The types that a schema without any means, by its keywords. */
const implied: ReadonlyArray<readonly [type: string, keywords: ReadonlyArray<string>]> = [
  [
    "object",
    [
      "properties",
      "required",
      "additionalProperties",
      "patternProperties",
      "propertyNames",
      "minProperties",
      "maxProperties"
    ]
  ],
  ["array", ["items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"]],
  ["string", ["minLength", "maxLength", "pattern", "format"]],
  ["number", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]]
]

export const impliedType = (node: Node): string | undefined =>
  implied.find(([, keywords]) => keywords.some((keyword) => keyword in node))?.[0]

/** The members of a schema that a type has no use for are left out. */
export const only = (type: string, node: Node): Node => {
  const others = implied.flatMap(([of, keywords]) => (fits(type, of) ? [] : keywords))
  return Json.without(withTypes(node, [type]), ...others)
}

const fits = (type: string, of: string): boolean => type === of || (type === "integer" && of === "number")

// ───────────────────────── Both of two schemas

/** A schema for the values that two schemas take. Where one schema cannot express both, it takes more. */
export const both = (one: Node, other: Node): Node => {
  const merged = Object.entries(other).map(([keyword, value]): readonly [string, Json.Json] => {
    const own = Object.hasOwn(one, keyword) ? one[keyword] : undefined
    return [keyword, own === undefined ? value : meet(keyword, own, value)]
  })
  return { ...one, ...Object.fromEntries(merged) }
}

const meet = (keyword: string, one: Json.Json, other: Json.Json): Json.Json => {
  switch (keyword) {
    case "type":
      return meetTypes(typesOf({ type: one }), typesOf({ type: other }))
    case "required":
      return [...new Set([...texts(one), ...texts(other)])]
    case "allOf":
      return [...Json.array(one), ...Json.array(other)]
    case "enum":
      return meetValues(Json.array(one), Json.array(other))
    case "properties":
    case "patternProperties":
    case "dependentSchemas":
      return meetNamed(Json.object(one) ?? {}, Json.object(other) ?? {})
    case "items":
    case "additionalProperties":
      return one === false || other === false ? false : meetSchemas(one, other)
    default:
      return meetBounds(keyword, one, other)
  }
}

const meetBounds = (keyword: string, one: Json.Json, other: Json.Json): Json.Json => {
  if (typeof one !== "number" || typeof other !== "number") return one
  if (/^(?:min|exclusiveMin)/.test(keyword)) return Math.max(one, other)
  return /^(?:max|exclusiveMax)/.test(keyword) ? Math.min(one, other) : one
}

const meetTypes = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): Json.Json => {
  const shared = [
    ...one.filter((type) => other.includes(type) || (type === "integer" && other.includes("number"))),
    ...other.filter((type) => type === "integer" && one.includes("number"))
  ]
  const types = shared.length === 0 ? one : [...new Set(shared)]
  return types.length === 1 ? (types[0] ?? types) : types
}

const meetValues = (
  one: ReadonlyArray<Json.Json>,
  other: ReadonlyArray<Json.Json>
): ReadonlyArray<Json.Json> => {
  const texts = new Set(other.map((value) => JSON.stringify(value)))
  const shared = one.filter((value) => texts.has(JSON.stringify(value)))
  return shared.length === 0 ? one : shared
}

const meetNamed = (one: Node, other: Node): Node => {
  const added = Object.entries(other).map(([name, schema]): readonly [string, Json.Json] => {
    const own = Object.hasOwn(one, name) ? one[name] : undefined
    return [name, own === undefined ? schema : meetSchemas(own, schema)]
  })
  return Object.fromEntries([...Object.entries(one), ...added])
}

/** Met when their turn comes, as the parts of a whole. */
const meetSchemas = (one: Json.Json, other: Json.Json): Json.Json => {
  if (!Json.isObject(one) || JSON.stringify(one) === JSON.stringify(other)) return other
  return Json.isObject(other) ? { allOf: [one, other] } : one
}
