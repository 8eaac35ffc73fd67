/**
 * Describes and decodes params by a Standard Schema, such as one of zod, valibot or arktype.
 *
 * A schema may hold types that JSON has not, such as dates and sets. They are described as the JSON that stands for them, or as any
 * value, and made of it when the schema refuses the JSON itself.
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"
import * as FailureText from "./failureText.ts"
import { isObject, type JsonObject } from "./json.ts"

export const is = (params: unknown): params is StandardSchemaV1<any, any> =>
  Predicate.hasProperty(params, "~standard")

/** The JSON Schema of what a schema takes, `undefined` if it does not say it. */
export const described = (params: StandardSchemaV1<any, any>): JsonObject | undefined =>
  description(params).schema

/** Decodes, and decodes what stands in JSON for another value once more as that value. */
export const decode = <Params>(
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

// ───────────────────────── The description

interface Description {
  readonly schema: JsonObject
  /** The schema with marks at the types that JSON has not. Absent if there are none. */
  readonly marked?: JsonObject
}

/** Libraries throw for a type without JSON Schema. They are then asked once more, to leave that type alone open. */
const description = memoize((params: StandardSchemaV1<any, any>): Partial<Description> => {
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

const toJson = (value: object): JsonObject => JSON.parse(JSON.stringify(value))

const mark = "x-effect-agent"

const withoutMarks = (marked: JsonObject): JsonObject =>
  JSON.parse(JSON.stringify(marked), (key, value) => (key === mark ? undefined : value))

/** The JSON that stands for the types of zod. Others are any value. */
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

/** The value with what stands for others in their place. */
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

/** A value of a kind, `undefined` for JSON that does not stand for one. Throws where it looks as if it did. */
const made = (kind: string, value: Schema.Json): unknown => {
  if (kind === "date") return typeof value === "string" ? new Date(value) : undefined
  if (kind === "bigint")
    return typeof value === "number" || typeof value === "string" ? BigInt(value) : undefined
  if (kind === "set") return Array.isArray(value) ? new Set(value) : undefined
  if (Array.isArray(value)) return new Map(value)
  return isObject(value) ? new Map(Object.entries(value)) : undefined
}
