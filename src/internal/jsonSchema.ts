/**
 * Decodes values by a JSON Schema: the params of tools whose schema is not a `Schema` of Effect, such as those of MCP servers, of plain
 * JSON and of a Standard Schema.
 *
 * It knows the keywords of tool schemas: `type`, `properties`, `required`, `additionalProperties`, `items`, `prefixItems`, `enum`,
 * `const`, `anyOf`, `oneOf`, `allOf`, `not`, local `$ref`, and the bounds of numbers, strings and arrays. It ignores other keywords.
 *
 * It does not use `effect/SchemaRepresentation`, which refuses keywords that foreign schemas have (patterns, vendor keywords), does
 * not coerce scalars, and would add a third to the size of the core.
 */
import * as Equal from "effect/Equal"
import { memoize } from "effect/Function"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { isObject, type JsonObject, parse } from "./json.ts"

type Json = Schema.Json

/**
 * Decodes a value by a JSON Schema, and coerces scalars as models need it.
 *
 * - A scalar of another type is coerced where no information is invented: `"42"` to 42, `"true"` to `true`, 7 to `"7"`, and JSON text
 *   to the array or the object that it holds.
 * - A property that is `null` is left out if the schema neither requires it nor accepts `null`.
 * - The failure has one line for each fault, with the path of the value.
 * - With `coercion: false` a value of another type is a fault, and so is a property that is `null`.
 */
export const decode = (
  schema: Json,
  value: Json,
  { coercion = true }: { readonly coercion?: boolean } = {}
): Result.Result<Json, ReadonlyArray<string>> => {
  const faults: Array<string> = []
  const leftOut: Array<string> = []
  const reading = { root: schema, faults, leftOut, isStrict: !coercion }
  const decoded = read(reading, schema, value, "")
  // A part of an `allOf` may require a property that another part left out.
  if (leftOut.length > 0 && faults.length === 0) read(reading, schema, decoded, "")
  return faults.length === 0 ? Result.succeed(decoded) : Result.fail(faults)
}

/** The state of one decoding. */
interface Reading {
  readonly root: Json
  readonly faults: Array<string>
  /** The paths of the properties that were left out. */
  readonly leftOut: Array<string>
  /** Whether nothing is coerced or left out. */
  readonly isStrict?: boolean
}

const read = (reading: Reading, schema: Json, value: Json, path: string): Json => {
  if (reading.faults.length >= maxFaults) return value
  const target = follow(reading.root, schema)
  if (target === false) return fault(reading, path, "is not allowed", value)
  if (!isObject(target)) return value

  const sort = sortOf(target)
  const coerced = fits(sort.types, value) ? value : readType(reading, sort.types, value, path)
  checkValue(reading, target, coerced, path)
  const within = isObject(coerced)
    ? readProperties(reading, sort, coerced, path)
    : Array.isArray(coerced)
      ? readItems(reading, target, coerced, path)
      : coerced
  return readCombined(reading, target, within, path)
}

/** The keywords of a schema, prepared for decoding. */
interface Sort {
  readonly types: ReadonlyArray<string>
  readonly properties: JsonObject
  readonly required: ReadonlyArray<string>
  /** The schema of the properties that `properties` does not name. */
  readonly others: Json
}

/** The keywords of a schema, read once. */
const sortOf = /* @__PURE__ */ memoize((schema: JsonObject): Sort => {
  const {
    additionalProperties: others = true,
    nullable,
    patternProperties,
    properties,
    required,
    type
  } = schema
  const types = (typeof type === "string" ? [type] : strings(type)).filter((name) => typeNames.has(name))
  return {
    // OpenAPI 3.0 has `nullable` instead of the type "null". An unknown type allows every value.
    types: nullable === true && types.length > 0 ? [...types, "null"] : types,
    properties: isObject(properties) ? properties : {},
    required: strings(required),
    // `patternProperties` is not evaluated: it allows every property.
    others: others === false && patternProperties !== undefined ? true : others
  }
})

const readProperties = (
  reading: Reading,
  { others, properties, required }: Sort,
  value: JsonObject,
  path: string
): JsonObject => {
  for (const key of required) {
    if (!Object.hasOwn(value, key)) fault(reading, at(path, key), "is missing", null)
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      const place = at(path, key)
      const known = Object.hasOwn(properties, key) ? properties[key] : undefined
      if (known !== undefined) {
        const isLeftOut =
          reading.isStrict !== true &&
          item === null &&
          !required.includes(key) &&
          !accepts(reading.root, known, null)
        if (isLeftOut) reading.leftOut.push(place)
        return isLeftOut ? [] : [[key, read(reading, known, item, place)]]
      }
      if (others === false) return [[key, fault(reading, place, "is not a known property", item)]]
      return [[key, isObject(others) ? read(reading, others, item, place) : item]]
    })
  )
}

const readItems = (
  reading: Reading,
  schema: JsonObject,
  value: ReadonlyArray<Json>,
  path: string
): ReadonlyArray<Json> => {
  const prefix = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : []
  const items = schema["items"]
  return value.map((item, index) => {
    const schemaOfItem = prefix[index] ?? items
    return schemaOfItem === undefined || Array.isArray(schemaOfItem)
      ? item
      : read(reading, schemaOfItem, item, `${path}[${index}]`)
  })
}

const readCombined = (reading: Reading, schema: JsonObject, value: Json, path: string): Json => {
  let result = value
  for (const part of list(schema["allOf"])) result = read(reading, part, result, path)
  for (const key of ["anyOf", "oneOf"]) {
    const options = list(schema[key])
    if (options.length > 0) result = readAlternative(reading, options, result, path)
  }
  if (schema["not"] !== undefined && accepts(reading.root, schema["not"], result)) {
    fault(reading, path, "has a value that is not allowed", result)
  }
  return result
}

/** Decodes by the first alternative that accepts the value unchanged, else by the first that accepts it coerced. */
const readAlternative = (reading: Reading, options: ReadonlyArray<Json>, value: Json, path: string): Json => {
  const tried = options.map((option) => {
    const faults: Array<string> = []
    return { faults, decoded: read({ ...reading, faults }, option, value, path) }
  })
  const fitting = tried.filter((attempt) => attempt.faults.length === 0)
  const chosen = fitting.find((attempt) => same(attempt.decoded, value)) ?? fitting[0]
  if (chosen !== undefined) return chosen.decoded
  const firstFaults = tried.map((attempt) => attempt.faults[0]).join(" | ")
  return fault(reading, path, `matches no alternative (${firstFaults})`, value)
}

/** Whether a schema accepts a value without a coercion. */
const accepts = (root: Json, schema: Json, value: Json): boolean => {
  const faults: Array<string> = []
  const taken = read({ root, faults, leftOut: [] }, schema, value, "")
  return faults.length === 0 && same(taken, value)
}

/** Coerces a value of another type. */
const readType = (reading: Reading, types: ReadonlyArray<string>, value: Json, path: string): Json => {
  const coerced = reading.isStrict === true ? undefined : coerce(types, value)
  return coerced === undefined ? fault(reading, path, `must be ${types.join(" or ")}`, value) : coerced
}

const checkValue = (reading: Reading, schema: JsonObject, value: Json, path: string): void => {
  const { const: only, enum: options } = schema
  // An empty `enum` would accept no value. Generators write it for an enum that they do not know: it counts as none.
  if (Array.isArray(options) && options.length > 0 && !options.some((option) => same(option, value))) {
    const known = options.map((option) => JSON.stringify(option)).join(", ")
    fault(reading, path, `must be one of ${known}`, value)
  }
  if (only !== undefined && !same(only, value)) fault(reading, path, `must be ${JSON.stringify(only)}`, value)
  if (typeof value === "number") checkLimits(reading, schema, ofNumbers, () => value, path)
  if (typeof value === "string") checkLimits(reading, schema, ofTexts, () => characters(value), path)
  if (Array.isArray(value)) checkLimits(reading, schema, ofLists, () => value.length, path)
}

/** The number of Unicode characters, as the specification counts them, without a copy of the text. */
const characters = (text: string): number => text.length - (text.match(surrogatePairs)?.length ?? 0)

const surrogatePairs = /[\ud800-\udbff][\udc00-\udfff]/g

/** The keyword of a limit, whether an amount keeps it, and the words of its fault, which the limit follows. */
type Limit = readonly [
  keyword: string,
  isKept: (amount: number, limit: number) => boolean,
  fault: string,
  unit?: string
]

const atLeast = (amount: number, limit: number): boolean => amount >= limit
const atMost = (amount: number, limit: number): boolean => amount <= limit
const isMultiple = (amount: number, limit: number): boolean => limit <= 0 || Number.isInteger(amount / limit)

const ofNumbers: ReadonlyArray<Limit> = [
  ["minimum", atLeast, "be at least"],
  ["maximum", atMost, "be at most"],
  ["exclusiveMinimum", (amount, limit) => amount > limit, "be more than"],
  ["exclusiveMaximum", (amount, limit) => amount < limit, "be less than"],
  ["multipleOf", isMultiple, "be a multiple of"]
]
const ofTexts: ReadonlyArray<Limit> = [
  ["minLength", atLeast, "have at least", " characters"],
  ["maxLength", atMost, "have at most", " characters"]
]
const ofLists: ReadonlyArray<Limit> = [
  ["minItems", atLeast, "have at least", " items"],
  ["maxItems", atMost, "have at most", " items"]
]

/** Checks the bounds of a value. Counts the characters of a text only where the schema has a bound for them. */
const checkLimits = (
  reading: Reading,
  schema: JsonObject,
  limits: ReadonlyArray<Limit>,
  measure: () => number,
  path: string
): void => {
  for (const [keyword, isKept, words, unit = ""] of limits) {
    const limit = schema[keyword]
    if (typeof limit === "number" && !isKept(measure(), limit))
      fault(reading, path, `must ${words} ${limit}${unit}`, measure())
  }
}

const list = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

const strings = (value: Json | undefined): ReadonlyArray<string> =>
  list(value).filter((item) => typeof item === "string")

const at = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`)

/** Returns whether two values are equal JSON, whatever the order of their members. */
export const same = (self: Json, that: Json): boolean => Equal.equals(self, that)

const fault = <Value extends Json>(reading: Reading, path: string, what: string, value: Value): Value => {
  const shown = what === "is missing" ? "" : `, got ${JSON.stringify(value).slice(0, 100)}`
  reading.faults.push(`${path === "" ? "the value" : path} ${what}${shown}`)
  return value
}

// ───────────────────────── Coercion

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

/** The most faults of one decoding. More would not help the model, and each takes time. */
export const maxFaults = 100

/** Returns whether the value has one of the types. Without types every value fits. */
const fits = (types: ReadonlyArray<string>, value: Json): boolean =>
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

// ───────────────────────── References

/** Returns the schema that a schema refers to, or `undefined` if the reference leads nowhere or in a circle. */
export const follow = (
  root: Json,
  schema: Json | undefined,
  seen: ReadonlyArray<string> = []
): Json | undefined => {
  if (!isObject(schema) || typeof schema["$ref"] !== "string") return schema
  const { $ref } = schema
  return seen.includes($ref) ? undefined : follow(root, resolve(root, $ref), [...seen, $ref])
}

const resolve = (root: Json, ref: string): Json | undefined =>
  ref
    .replace(/^#\/?/, "")
    .split("/")
    .filter((step) => step !== "")
    .reduce<Json | undefined>((at, step) => inner(at, unescaped(step)), root)

const inner = (at: Json | undefined, name: string): Json | undefined =>
  isObject(at) ? at[name] : Array.isArray(at) ? at[Number(name)] : undefined

/** Decodes one step of a JSON pointer, which may be percent-encoded. */
const unescaped = (step: string): string => decoded(step).replaceAll("~1", "/").replaceAll("~0", "~")

const decoded = (step: string): string => {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}
