/**
 * The decoding of tool params by a JSON Schema.
 *
 * **When to use**
 *
 * Tools whose schema is not a `Schema` of Effect use it: those of MCP servers, of plain JSON and of a Standard Schema.
 *
 * **Details**
 *
 * It knows the keywords of tool schemas: `type`, `properties`, `required`, `additionalProperties`, `items`, `prefixItems`, `enum`,
 * `const`, `anyOf`, `oneOf`, `allOf`, `not`, local `$ref`, and the bounds of numbers, strings and arrays. It ignores other keywords.
 *
 * It does not use `effect/SchemaRepresentation`, which refuses keywords that foreign schemas have (patterns, vendor keywords), does
 * not coerce scalars, and would add a third to the size of the core.
 *
 * @since 0.1.0
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
 * Decodes a value by a JSON Schema, and coerces scalars as models need it.
 *
 * **Details**
 *
 * - A scalar of another type is coerced where no information is invented: `"42"` to 42, `"true"` to `true`, 7 to `"7"`, and JSON text
 *   to the array or the object that it holds.
 * - A property that is `null` is left out if the schema neither requires it nor accepts `null`.
 * - The failure has one line for each fault, with the path of the value.
 *
 * **Example** (Decoding params)
 *
 * ```ts
 * import { Result } from "effect"
 * import { JsonSchema } from "effect-agent"
 *
 * const schema = { type: "object", properties: { days: { type: "integer" } }, required: ["days"] }
 *
 * console.log(Result.getOrThrow(JsonSchema.decode(schema, { days: "3" }))) // => { days: 3 }
 * console.log(Result.merge(JsonSchema.decode(schema, {}))) // => [ 'days is missing' ]
 * ```
 *
 * @category decoding
 * @since 0.1.0
 */
export const decode = (schema: Json, value: Json): Result.Result<Json, ReadonlyArray<string>> => {
  const faults: Array<string> = []
  const leftOut: Array<string> = []
  const decoded = read({ root: schema, faults, leftOut }, schema, value, "")
  // A part of an `allOf` may require a property that another part left out.
  if (leftOut.length > 0 && faults.length === 0) read({ root: schema, faults, leftOut }, schema, decoded, "")
  return faults.length === 0 ? Result.succeed(decoded) : Result.fail(faults)
}

/** The state of one decoding. */
interface Reading {
  readonly root: Json
  readonly faults: Array<string>
  /** The paths of the properties that were left out. */
  readonly leftOut: Array<string>
}

const read = (reading: Reading, schema: Json, value: Json, path: string): Json => {
  const target = JsonReference.follow(reading.root, schema)
  if (target === false) return fault(reading, path, "is not allowed", value)
  if (!isObject(target)) return value

  const sort = sortOf(target)
  const { combines, restricts, types } = sort
  const coerced = fits(types, value) ? value : readType(reading, types, value, path)
  if (restricts) checkValue(reading, target, coerced, path)
  const within = isObject(coerced)
    ? readProperties(reading, sort, coerced, path)
    : Array.isArray(coerced)
      ? readItems(reading, target, coerced, path)
      : coerced
  return combines ? readCombined(reading, target, within, path) : within
}

/** The keywords of a schema, prepared for decoding. */
interface Sort {
  readonly types: ReadonlyArray<string>
  readonly properties: JsonObject
  readonly required: ReadonlyArray<string>
  /** The schema of the properties that `properties` does not name. */
  readonly others: Json
  /** Whether the schema restricts the value beyond its type. */
  readonly restricts: boolean
  /** Whether the schema has parts that are schemas. */
  readonly combines: boolean
}

/** The keywords of a schema, read once. */
const sortOf = once((schema: JsonObject): Sort => {
  const { additionalProperties: others = true, properties, required, type } = schema
  const has = (keyword: string) => schema[keyword] !== undefined
  return {
    types: typeof type === "string" ? [type] : strings(type),
    properties: isObject(properties) ? properties : {},
    required: strings(required),
    // `patternProperties` is not evaluated: it allows every property.
    others: others === false && has("patternProperties") ? true : others,
    restricts: restricting.some(has),
    combines: combiners.some(has)
  }
})

const combiners = ["allOf", "anyOf", "oneOf", "not"]
const bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]
const sizes = ["minLength", "maxLength", "minItems", "maxItems"]
const restricting = ["enum", "const", ...bounds, ...sizes]

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

/** Takes the first alternative that accepts the value unchanged, else the first that accepts it coerced. */
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

/** Whether a schema accepts a value without a coercion. */
const accepts = (root: Json, schema: Json, value: Json): boolean => {
  const faults: Array<string> = []
  const taken = read({ root, faults, leftOut: [] }, schema, value, "")
  return faults.length === 0 && same(taken, value)
}

/** Coerces a value of another type. */
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

/** The number of Unicode characters, as the specification counts them, without a copy of the text. */
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

/**
 * Returns whether two values are equal as JSON text.
 *
 * **Example** (Comparing values)
 *
 * ```ts
 * import { JsonSchema } from "effect-agent"
 *
 * console.log(JsonSchema.same({ city: "Oslo" }, { city: "Oslo" })) // => true
 * ```
 *
 * @category predicates
 * @since 0.2.0
 */
export const same = (self: Json, that: Json): boolean =>
  self === that || (Predicate.isObjectOrArray(self) && JSON.stringify(self) === JSON.stringify(that))

const fault = <Value extends Json>(reading: Reading, path: string, what: string, value: Value): Value => {
  const shown = what === "is missing" ? "" : `, got ${JSON.stringify(value).slice(0, 100)}`
  reading.faults.push(`${path === "" ? "params" : path} ${what}${shown}`)
  return value
}
