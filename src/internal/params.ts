/**
 * Describes the params of a tool as JSON Schema for the model, and decodes the arguments of its calls: by an Effect Schema, a
 * Standard Schema or plain JSON Schema.
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"
import { isObject, type JsonObject } from "./json.ts"
import * as JsonSchema from "./jsonSchema.ts"
import { TaggedError } from "./errors.ts"
import * as FailureText from "./failureText.ts"

/**
 * The arguments of a call do not match the params of its tool.
 *
 * **When to use**
 *
 * The `decode` of a tool that you write by hand fails with it. The registry turns it into `ToolRegistry.InvalidArguments`, and
 * the model reads its `detail` as the result of the call.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidParams extends TaggedError<InvalidParams>()("InvalidParams", {
  /** Faults for the model, one line each. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * A schema of the params of a tool: an Effect Schema without services, or any Standard Schema such as one of zod, valibot or
 * arktype.
 *
 * @since 0.1.0
 * @category models
 */
export type ParamsSchema<Params> = Schema.Codec<Params, any, never, never> | StandardSchemaV1<any, Params>

/** Describes and decodes the params of one tool. */
export interface ParamsReader<Params> {
  readonly parameters: () => Schema.Json
  readonly decode: Decode<Params>
}

type Decode<Params> = (input: Schema.Json) => Effect.Effect<Params, InvalidParams>

/** Makes the reader for a schema. Default: no fields. `parameters` is the JSON Schema for the model. Default: that of the schema. */
export const reader = <Params>(
  params: ParamsSchema<Params> = noParams,
  parameters?: Schema.Json,
  coercion = true
): ParamsReader<Params> => {
  const describe = () => parameters ?? described(params)
  return { parameters: describe, decode: coercion ? orCoerced(params, describe) : decoder(params) }
}

/** Makes the reader for a plain JSON Schema. With `coercion` it coerces scalars of another type, and drops `null` for absent properties. */
export const fromJsonSchema = (parameters: Schema.Json, coercion = true): ParamsReader<Schema.Json> => ({
  parameters: () => parameters,
  decode: (input) =>
    Effect.mapError(
      Effect.fromResult(JsonSchema.decode(parameters, input, { coercion })),
      (faults) => new InvalidParams({ detail: faults.join("\n") })
    )
})

const noParams: ParamsSchema<any> = Schema.Struct({})

const decoder = <Params>(params: ParamsSchema<Params>, errors: "first" | "all" = "all"): Decode<Params> => {
  if (!Schema.isSchema(params)) return standardDecoder(params)
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(params), { errors })
  return (input) => Effect.mapError(decode(input), ({ message }) => new InvalidParams({ detail: message }))
}

const standardDecoder =
  <Params>(params: StandardSchemaV1<any, Params>): Decode<Params> =>
  (input) =>
    Effect.mapError(decodeStandard(params, input), (detail) => new InvalidParams({ detail }))

/**
 * Decodes params. If that fails, coerces them by the JSON Schema of the tool and decodes again: a schema of text then gets "42" for 42. If
 * there is nothing to coerce, fails with the first failure. If there are very many faults, the failure lists only the first.
 */
const orCoerced = <Params>(params: ParamsSchema<Params>, parameters: () => Schema.Json): Decode<Params> => {
  const [quick, decode] = [decoder(params, "first"), decoder(params)]
  return (input) =>
    Effect.catch(quick(input), (error) => {
      const coerced = JsonSchema.decode(parameters(), input)
      if (Result.isSuccess(coerced) && !JsonSchema.same(coerced.success, input))
        // Large params may take long twice: other fibers get a turn in between.
        return Effect.andThen(Effect.yieldNow, () => decode(coerced.success))
      const isListed = Result.isSuccess(coerced) || coerced.failure.length < JsonSchema.maxFaults
      return isListed && Schema.isSchema(params) ? decode(input) : Effect.fail(error)
    })
}

/** The JSON Schema of the input of a schema, as an object, since models call tools with objects. */
export const described = memoize((params: ParamsSchema<any>): JsonObject => ofObject(stated(params)))

/** The JSON Schema of the input of a schema. A Standard Schema without one accepts any value. */
export const stated = (params: Schema.Top | StandardSchemaV1<any, any>): JsonObject =>
  Schema.isSchema(params)
    ? inOne(Schema.toJsonSchemaDocument(params))
    : (standardDescribed(params) ?? anyValue)

/** The JSON Schema of an output, in which objects have no further members. */
export const describedValue = (schema: ParamsSchema<any>): JsonObject =>
  Schema.isSchema(schema)
    ? inOne(Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" }))
    : (standardDescribed(schema) ?? anyValue)

/** Adds `type: "object"` to a schema without a type, since each provider requires an object. */
const ofObject = (schema: JsonObject): JsonObject => {
  if ("type" in schema) return schema
  const { anyOf, oneOf, allOf, $ref } = schema
  const parts = [anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? list : []))
  const saysNothing = parts.every((part) => isObject(part) && Object.keys(part).join() === "type")
  return saysNothing && $ref === undefined
    ? { type: "object", properties: {} }
    : { type: "object", ...schema }
}

type Document = ReturnType<typeof Schema.toJsonSchemaDocument>

/** Makes one JSON Schema of a document: the root in place of its reference, with the definitions in `$defs`. */
const inOne = ({ definitions, schema }: Document): JsonObject => {
  const $defs = toJson(definitions)
  const root = JsonSchema.follow({ $defs }, toJson(schema))
  if (!isObject(root)) return anyValue
  const isReferred = JSON.stringify($defs).includes(JSON.stringify({ $ref: schema["$ref"] }).slice(1, -1))
  // The definition of the root stays only if another definition refers to it.
  const others = Object.entries($defs).filter(([, definition]) => definition !== root || isReferred)
  return others.length === 0 ? root : { ...root, $defs: Object.fromEntries(others) }
}

const anyValue: JsonObject = {}

const toJson = (value: object): JsonObject => JSON.parse(JSON.stringify(value))

// ───────────────────────── Standard Schema

// A schema of zod, valibot or arktype may have types that JSON does not have, such as dates and sets. The JSON Schema describes the JSON in
// their place, or any value. If the schema refuses that JSON, the decoder makes the date or the set from it and tries again.

/** Returns whether params are a Standard Schema. */
export const isStandard = (params: unknown): params is StandardSchemaV1<any, any> =>
  Predicate.hasProperty(params, "~standard")

/** The JSON Schema of the input of a Standard Schema; `undefined` if the schema cannot describe it. */
export const standardDescribed = (params: StandardSchemaV1<any, any>): JsonObject | undefined =>
  description(params).schema

/** Decodes by a Standard Schema. If that fails, replaces JSON in place of dates, sets and their like by these values, and decodes again. */
const decodeStandard = <Params>(
  params: StandardSchemaV1<any, Params>,
  input: Schema.Json
): Effect.Effect<Params, string> =>
  Effect.catch(validated(params, input), (detail) => {
    const { marked } = description(params)
    return marked === undefined ? Effect.fail(detail) : validated(params, revived(marked, input))
  })

const validated = <Params>(
  params: StandardSchemaV1<any, Params>,
  input: unknown
): Effect.Effect<Params, string> =>
  Effect.tryPromise({
    try: async () => params["~standard"].validate(input),
    catch: (thrown) => FailureText.of(thrown)
  }).pipe(
    Effect.flatMap((result) =>
      result.issues === undefined
        ? Effect.succeed(result.value)
        : Effect.fail(result.issues.map(issueText).join("\n"))
    )
  )

const issueText = ({ message, path = [] }: StandardSchemaV1.Issue): string => {
  const steps = path.map((step) => String(typeof step === "object" ? step.key : step))
  return steps.length === 0 ? message : `${steps.join(".")}: ${message}`
}

// ───────────────────────── The description of a Standard Schema

interface StandardDescription {
  readonly schema: JsonObject
  /** The schema with marks at the types that JSON does not have. Absent if it has no such types. */
  readonly marked?: JsonObject
}

/** The JSON Schema of a schema. Libraries throw for types without one: a second call makes them describe such types as any value. */
const description = memoize((params: StandardSchemaV1<any, any>): Partial<StandardDescription> => {
  if (!describesItself(params)) return {}
  const ask = (libraryOptions?: Record<string, unknown>) =>
    attempt(() => toJson(params["~standard"].jsonSchema.input({ target: "draft-2020-12", libraryOptions })))
  const schema = ask()
  if (schema !== undefined) return { schema }
  const marked = ask(lenient)
  return marked === undefined ? {} : { schema: withoutMarks(marked), marked }
})

const describesItself = (
  params: StandardSchemaV1<any, any>
): params is StandardSchemaV1<any, any> & StandardJSONSchemaV1<any, any> =>
  "jsonSchema" in params["~standard"]

const attempt = <A>(make: () => A): A | undefined => {
  try {
    return make()
  } catch {
    return undefined
  }
}

const mark = "x-effect-agent"

const withoutMarks = (marked: JsonObject): JsonObject =>
  JSON.parse(JSON.stringify(marked), (key, value) => (key === mark ? undefined : value))

/** The JSON in place of the types of zod that JSON does not have. Other such types are any value. */
const stands: ReadonlyMap<unknown, JsonObject> = new Map([
  ["date", { type: "string", format: "date-time", [mark]: "date" }],
  ["bigint", { type: "integer", [mark]: "bigint" }],
  ["set", { type: "array", items: {}, [mark]: "set" }],
  ["map", { type: "object", [mark]: "map" }]
])

interface Overridden {
  readonly zodSchema?: { readonly _zod?: { readonly def?: { readonly type?: unknown } } }
  readonly jsonSchema: object
}

/** The options by which zod, valibot and arktype describe a type without JSON Schema as any value. */
const lenient = {
  unrepresentable: "any",
  errorMode: "ignore",
  fallback: ({ base }: { readonly base?: object }) => base ?? {},
  override: ({ jsonSchema, zodSchema }: Overridden): void => {
    Object.assign(jsonSchema, stands.get(zodSchema?._zod?.def?.type))
  }
}

// ───────────────────────── Values that JSON has not

/** Replaces the JSON at the marks of a schema by the dates, sets and other values that it stands for. */
const revived = (schema: Schema.Json | undefined, value: Schema.Json): unknown => {
  if (!isObject(schema)) return value
  const { [mark]: kind, additionalProperties, allOf, anyOf, items, oneOf, properties } = schema
  if (typeof kind === "string") return attempt(() => made(kind, value)) ?? value
  for (const branch of [anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? list : []))) {
    const changed = revived(branch, value)
    if (changed !== value) return changed
  }
  if (Array.isArray(value)) return mapped(value, (item) => revived(items, item))
  if (!isObject(value)) return value
  const known = isObject(properties) ? properties : {}
  const entries = Object.entries(value)
  const changed = entries.map(([name, item]) =>
    revived(Object.hasOwn(known, name) ? known[name] : additionalProperties, item)
  )
  return changed.every((item, index) => item === entries[index]?.[1])
    ? value
    : Object.fromEntries(entries.map(([name], index) => [name, changed[index]]))
}

/** The list with changed items, or itself if none changes. */
const mapped = (list: ReadonlyArray<Schema.Json>, change: (item: Schema.Json) => unknown) => {
  const changed = list.map(change)
  return changed.every((item, index) => item === list[index]) ? list : changed
}

/** Makes a date, set, map or bigint from JSON; `undefined` for JSON of another type. Throws for text that is no bigint. */
const made = (kind: string, value: Schema.Json): unknown => {
  if (kind === "date") return typeof value === "string" ? new Date(value) : undefined
  if (kind === "bigint")
    return typeof value === "number" || typeof value === "string" ? BigInt(value) : undefined
  if (kind === "set") return Array.isArray(value) ? new Set(value) : undefined
  if (Array.isArray(value)) return new Map(value)
  return isObject(value) ? new Map(Object.entries(value)) : undefined
}
