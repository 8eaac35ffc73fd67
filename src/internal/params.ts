/**
 * Describes the params of a tool as JSON Schema for the model, and decodes the arguments of its calls: by an Effect Schema, a
 * Standard Schema or plain JSON Schema.
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as Json from "./json.ts"
import { isObject, type JsonObject, maxFaults } from "./json.ts"
import * as JsonSchema from "../JsonSchema.ts"
import * as StandardParams from "./standardParams.ts"
import { TaggedError } from "./errors.ts"

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

/** Reads by a schema, by default one without fields. The model reads `parameters`, by default the description of the schema. */
export const reader = <Params>(
  params: ParamsSchema<Params> = noParams,
  parameters?: Schema.Json,
  coercion = true
): ParamsReader<Params> => {
  const describe = () => parameters ?? described(params)
  return { parameters: describe, decode: coercion ? orCoerced(params, describe) : decoder(params) }
}

/** Reads by plain JSON Schema: coerces scalars of the wrong kind, and leaves out nulls that stand for absent properties. */
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
    Effect.mapError(StandardParams.decode(params, input), (detail) => new InvalidParams({ detail }))

/**
 * Decodes params once more, coerced by the JSON Schema of the tool, when they do not decode as they are: a schema of text
 * gets "42" for 42. Fails as the first decoding did when the JSON Schema refuses the params or has nothing to coerce in them. Of very
 * many faults it lists the first alone.
 */
const orCoerced = <Params>(params: ParamsSchema<Params>, parameters: () => Schema.Json): Decode<Params> => {
  const [quick, decode] = [decoder(params, "first"), decoder(params)]
  return (input) =>
    Effect.catch(quick(input), (error) => {
      const coerced = JsonSchema.decode(parameters(), input)
      if (Result.isSuccess(coerced) && !JsonSchema.same(coerced.success, input))
        // Both may take long.
        return Effect.andThen(Effect.yieldNow, () => decode(coerced.success))
      const isListed = Result.isSuccess(coerced) || coerced.failure.length < maxFaults
      return isListed && Schema.isSchema(params) ? decode(input) : Effect.fail(error)
    })
}

/** The JSON Schema of what a schema takes, for a model, which calls tools with objects. */
export const described = memoize((params: ParamsSchema<any>): JsonObject => ofObject(stated(params)))

/** The JSON Schema of what a schema takes, as it says it. One that does not say it takes anything. */
export const stated = (params: Schema.Top | StandardSchemaV1<any, any>): JsonObject =>
  Schema.isSchema(params)
    ? inOne(Schema.toJsonSchemaDocument(params))
    : (StandardParams.described(params) ?? anyValue)

/** The JSON Schema of any value, in which objects have no members beside those of the schema. */
export const describedValue = (schema: ParamsSchema<any>): JsonObject =>
  Schema.isSchema(schema)
    ? inOne(Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" }))
    : (StandardParams.described(schema) ?? anyValue)

/** Every provider insists on an object. */
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

/** Puts the root in place of its reference, and definitions beside it. */
const inOne = ({ definitions, schema }: Document): JsonObject => {
  const $defs = toJson(definitions)
  const root = Json.follow({ $defs }, toJson(schema))
  if (!isObject(root)) return anyValue
  const isReferred = JSON.stringify($defs).includes(JSON.stringify({ $ref: schema["$ref"] }).slice(1, -1))
  // The definition of the root is left out, unless something within refers to it.
  const others = Object.entries($defs).filter(([, definition]) => definition !== root || isReferred)
  return others.length === 0 ? root : { ...root, $defs: Object.fromEntries(others) }
}

const anyValue: JsonObject = {}

const toJson = (value: object): JsonObject => JSON.parse(JSON.stringify(value))
