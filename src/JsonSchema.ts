/**
 * Reads tool params against a JSON Schema: for tools whose schema is not ours (MCP servers, plain JSON).
 *
 * Written here, and not with `effect/SchemaRepresentation`, because schemas from outside hold what an importer refuses
 * (patterns, vendor keywords), because models need scalars coerced, and because importing that would cost every user
 * of the core a third of its size. Covers what tool schemas use: `type`, `properties`, `required`,
 * `additionalProperties`, `items`, `prefixItems`, `enum`, `const`, `anyOf`, `oneOf`, `allOf`, `not`, local `$ref`, and
 * the bounds of numbers, strings and arrays. A keyword it does not know says nothing.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { JsonObject } from "./internal/jsonCoercion.ts"
import { coerce, fits, isObject } from "./internal/jsonCoercion.ts"
import * as JsonReference from "./internal/jsonReference.ts"
import { once } from "./internal/once.ts"

type Json = Schema.Json

/**
 * Decodes `value`. Scalars of the wrong kind are coerced where nothing is invented: `"42"` to 42, `"true"` to true, 7
 * to `"7"`, and JSON text to the array or object it holds. A property that is `null` is left out where the schema neither
 * requires it nor accepts `null`. Fails with one line per fault, each naming its path.
 */
export const decode = (schema: Json, value: Json): Result.Result<Json, ReadonlyArray<string>> => {
  const faults: Array<string> = []
  const leftOut: Array<string> = []
  const decoded = read({ root: schema, faults, leftOut }, schema, value, "")
  // A part of an `allOf` may require a property that another part left out.
  if (leftOut.length > 0 && faults.length === 0) read({ root: schema, faults, leftOut }, schema, decoded, "")
  return faults.length === 0 ? Result.succeed(decoded) : Result.fail(faults)
}

interface Reading {
  readonly root: Json
  readonly faults: Array<string>
  /** Paths of the properties that were left out. */
  readonly leftOut: Array<string>
}

const read = (reading: Reading, schema: Json, value: Json, path: string): Json => {
  const target = JsonReference.follow(reading.root, schema)
  if (target === false) return fault(reading, path, "is not allowed", value)
  if (!isObject(target)) return value

  const sort = sortOf(target)
  const { asks, combines, types } = sort
  const coerced = fits(types, value) ? value : readType(reading, types, value, path)
  if (asks) checkValue(reading, target, coerced, path)
  const within = isObject(coerced)
    ? readProperties(reading, sort, coerced, path)
    : Array.isArray(coerced)
      ? readItems(reading, target, coerced, path)
      : coerced
  return combines ? readCombined(reading, target, within, path) : within
}

/** What a schema says, as it is asked for with every value. */
interface Sort {
  readonly types: ReadonlyArray<string>
  readonly properties: JsonObject
  readonly required: ReadonlyArray<string>
  /** What properties beside those must be: anything, where nothing is said. */
  readonly others: Json
  /** Asks something of the value beside its type. */
  readonly asks: boolean
  /** Is made of other schemas. */
  readonly combines: boolean
}

/** Most schemas say little more than a type. */
const sortOf = once((schema: JsonObject): Sort => {
  const { additionalProperties: others = true, properties, required, type } = schema
  const has = (keyword: string) => schema[keyword] !== undefined
  return {
    types: typeof type === "string" ? [type] : strings(type),
    properties: isObject(properties) ? properties : {},
    required: strings(required),
    // Which of them a pattern allows is not looked at.
    others: others === false && has("patternProperties") ? true : others,
    asks: askers.some(has),
    combines: combiners.some(has)
  }
})

const combiners = ["allOf", "anyOf", "oneOf", "not"]
const bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]
const sizes = ["minLength", "maxLength", "minItems", "maxItems"]
const askers = ["enum", "const", ...bounds, ...sizes]

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
        const isLeftOut = item === null && !required.includes(key) && !accepts(reading.root, known, null)
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

/** The first alternative that takes the value as it is, else the first that takes it coerced. */
const readAlternative = (reading: Reading, options: ReadonlyArray<Json>, value: Json, path: string): Json => {
  const tried = options.map((option) => {
    const faults: Array<string> = []
    return { faults, decoded: read({ ...reading, faults }, option, value, path) }
  })
  const fitting = tried.filter((attempt) => attempt.faults.length === 0)
  const chosen = fitting.find((attempt) => same(attempt.decoded, value)) ?? fitting[0]
  if (chosen !== undefined) return chosen.decoded
  return fault(
    reading,
    path,
    `matches no alternative (${tried.map((attempt) => attempt.faults[0]).join(" | ")})`,
    value
  )
}

/** As it is: what only fits when it is coerced is something else. */
const accepts = (root: Json, schema: Json, value: Json): boolean => {
  const faults: Array<string> = []
  const taken = read({ root, faults, leftOut: [] }, schema, value, "")
  return faults.length === 0 && same(taken, value)
}

/** A value of another type, read as one that fits. */
const readType = (reading: Reading, types: ReadonlyArray<string>, value: Json, path: string): Json => {
  const coerced = coerce(types, value)
  return coerced === undefined ? fault(reading, path, `must be ${types.join(" or ")}`, value) : coerced
}

const checkValue = (reading: Reading, schema: JsonObject, value: Json, path: string): void => {
  const options = schema["enum"]
  if (Array.isArray(options) && !options.some((option) => same(option, value))) {
    fault(
      reading,
      path,
      `must be one of ${options.map((option) => JSON.stringify(option)).join(", ")}`,
      value
    )
  }
  if (schema["const"] !== undefined && !same(schema["const"], value)) {
    fault(reading, path, `must be ${JSON.stringify(schema["const"])}`, value)
  }
  if (typeof value === "number") checkBounds(reading, schema, value, path)
  if (typeof value === "string") checkSize(reading, schema, "Length", () => characters(value), path)
  if (Array.isArray(value)) checkSize(reading, schema, "Items", () => value.length, path)
}

/** Unicode characters, as the specification counts. A text may be a whole file: it is searched, not taken apart. */
const characters = (text: string): number => text.length - (text.match(surrogatePairs)?.length ?? 0)

const surrogatePairs = /[\ud800-\udbff][\udc00-\udfff]/g

const checkBounds = (reading: Reading, schema: JsonObject, value: number, path: string): void => {
  const { exclusiveMaximum, exclusiveMinimum, maximum, minimum, multipleOf } = schema
  if (typeof minimum === "number" && value < minimum)
    fault(reading, path, `must be at least ${minimum}`, value)
  if (typeof maximum === "number" && value > maximum)
    fault(reading, path, `must be at most ${maximum}`, value)
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) {
    fault(reading, path, `must be more than ${exclusiveMinimum}`, value)
  }
  if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) {
    fault(reading, path, `must be less than ${exclusiveMaximum}`, value)
  }
  if (typeof multipleOf === "number" && multipleOf > 0 && !Number.isInteger(value / multipleOf)) {
    fault(reading, path, `must be a multiple of ${multipleOf}`, value)
  }
}

const checkSize = (
  reading: Reading,
  schema: JsonObject,
  unit: string,
  measure: () => number,
  path: string
): void => {
  const min = schema[`min${unit}`]
  const max = schema[`max${unit}`]
  if (min === undefined && max === undefined) return
  const size = measure()
  const noun = unit === "Length" ? "characters" : "items"
  if (typeof min === "number" && size < min) fault(reading, path, `must have at least ${min} ${noun}`, size)
  if (typeof max === "number" && size > max) fault(reading, path, `must have at most ${max} ${noun}`, size)
}

const list = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

const strings = (value: Json | undefined): ReadonlyArray<string> =>
  list(value).filter((item) => typeof item === "string")

const at = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`)

/** Whether two values are the same JSON. */
export const same = (self: Json, that: Json): boolean =>
  self === that || (Predicate.isObjectOrArray(self) && JSON.stringify(self) === JSON.stringify(that))

const fault = <Value extends Json>(reading: Reading, path: string, what: string, value: Value): Value => {
  const shown = what === "is missing" ? "" : `, got ${JSON.stringify(value).slice(0, 100)}`
  reading.faults.push(`${path === "" ? "params" : path} ${what}${shown}`)
  return value
}
