/**
 * How a tool's params are told to the model, and read from what it answers: by Effect's schemas, any Standard Schema, or
 * plain JSON Schema.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"
import * as FailureText from "./failureText.ts"
import { isObject, type JsonObject } from "./jsonCoercion.ts"
import * as JsonReference from "./jsonReference.ts"
import * as JsonSchema from "../JsonSchema.ts"
import { once } from "./once.ts"

/** The params are not what the tool takes. `detail` is for the model: one line per fault. */
export class InvalidParams extends Schema.TaggedError<InvalidParams>()("InvalidParams", {
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** Effect's schemas, or any Standard Schema (zod, valibot, arktype). */
export type ParamsSchema<Params> = Schema.Codec<Params, any, never, never> | StandardSchemaV1<any, Params>

/** How params are told to the model and read from its answer. */
export interface ParamsReader<Params> {
  readonly parameters: () => Schema.Json
  /** The same, where it needs no making. */
  readonly known?: Schema.Json
  readonly decode: (input: Schema.Json) => Effect.Effect<Params, InvalidParams>
}

/** Reads by a schema; without one the tool takes nothing. `parameters` is told in place of what the schema says. */
export const reader = <Params>(
  params: ParamsSchema<Params> | undefined,
  parameters: Schema.Json | undefined
): ParamsReader<Params> => {
  const schema = params ?? noParams
  return Schema.isSchema(schema) ? schemaReader(schema, parameters) : standardReader(schema, parameters)
}

/** Reads by plain JSON Schema: coerces scalars of the wrong kind, and leaves out nulls that stand for absent properties. */
export const fromJsonSchema = (parameters: Schema.Json): ParamsReader<Schema.Json> => ({
  parameters: () => parameters,
  known: parameters,
  decode: (input) => {
    const decoded = JsonSchema.decode(parameters, input)
    return Result.isSuccess(decoded)
      ? Effect.succeed(decoded.success)
      : Effect.fail(new InvalidParams({ detail: decoded.failure.join("\n") }))
  }
})

/** The same for a plain function, which says the type of its params beside the schema: nobody can compare the two. */
export const trusted = <Params>(parameters: Schema.Json): ParamsReader<Params> => {
  const reader: ParamsReader<any> = fromJsonSchema(parameters)
  return reader
}

const noParams: ParamsSchema<any> = Schema.Struct({})

const schemaReader = <Params>(
  params: Schema.Codec<Params, any, never, never>,
  given: Schema.Json | undefined
): ParamsReader<Params> => {
  const parameters = () => given ?? objectSchema(Schema.toJsonSchemaDocument(params))
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(params), { errors: "all" })
  const decodeCoerced = orCoerced(decode, parameters)
  const invalid = Effect.mapError((error: Schema.SchemaError) => new InvalidParams({ detail: error.message }))
  return { parameters, decode: (input) => invalid(decodeCoerced(input)) }
}

const standardReader = <Params>(
  params: StandardSchemaV1<any, Params>,
  given: Schema.Json | undefined
): ParamsReader<Params> => {
  const parameters = () => given ?? described(params)
  const decode = (input: Schema.Json) =>
    Effect.tryPromise({
      try: async () => params["~standard"].validate(input),
      catch: (thrown) => new InvalidParams({ detail: FailureText.of(thrown) })
    }).pipe(
      Effect.flatMap((result) =>
        result.issues === undefined
          ? Effect.succeed(result.value)
          : Effect.fail(new InvalidParams({ detail: result.issues.map(issueText).join("\n") }))
      )
    )
  return { parameters, decode: orCoerced(decode, parameters) }
}

type Decode<Params, E> = (input: Schema.Json) => Effect.Effect<Params, E>

/**
 * Decodes params once more, coerced by the JSON Schema of the tool, when they do not decode as they are: a schema that takes
 * "42" gets "42". Fails as the first decoding did when the JSON Schema refuses the params or has nothing to coerce in them.
 */
const orCoerced =
  <Params, E>(decode: Decode<Params, E>, parameters: () => Schema.Json): Decode<Params, E> =>
  (input) =>
    Effect.catch(decode(input), (error) => {
      const coerced = JsonSchema.decode(parameters(), input)
      return Result.isSuccess(coerced) && !JsonSchema.same(coerced.success, input)
        ? decode(coerced.success)
        : Effect.fail(error)
    })

const issueText = (issue: StandardSchemaV1.Issue): string => {
  const path = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step))
  return path.length === 0 ? issue.message : `${path.join(".")}: ${issue.message}`
}

/** The root inlined, definitions beside it, and always an object, which every provider insists on. */
const objectSchema = ({
  definitions,
  schema
}: ReturnType<typeof Schema.toJsonSchemaDocument>): Schema.Json => {
  const $defs = toJson(definitions)
  const root = JsonReference.follow({ $defs }, toJson(schema))
  if (!isObject(root) || root["type"] !== "object") return { type: "object", properties: {} }
  const isReferred = JSON.stringify($defs).includes(JSON.stringify({ $ref: schema["$ref"] }).slice(1, -1))
  // A root with a name of its own is told once, unless something within refers to it.
  const others = Object.entries($defs).filter(([, definition]) => definition !== root || isReferred)
  return others.length === 0 ? root : { ...root, $defs: Object.fromEntries(others) }
}

/**
 * What a Standard Schema takes, as JSON Schema. Any object, where it cannot say so: some schemas throw where JSON Schema has
 * no words for them, zod's of dates for one.
 */
export const described = once((params: StandardSchemaV1<any, any>): Schema.Json => {
  if (!describesItself(params)) return anyObject
  try {
    return toJson(params["~standard"].jsonSchema.input({ target: "draft-2020-12" }))
  } catch {
    return anyObject
  }
})

const anyObject: Schema.Json = { type: "object" }

const describesItself = (
  params: StandardSchemaV1<any, any>
): params is StandardSchemaV1<any, any> & StandardJSONSchemaV1<any, any> =>
  "jsonSchema" in params["~standard"]

const toJson = (value: object): JsonObject => JSON.parse(JSON.stringify(value))
