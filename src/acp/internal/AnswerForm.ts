/**
 * The schema of a question as what ACP has for it: a form with fields, or some options to choose from.
 */
import type { ElicitationPropertySchema, ElicitationSchema } from "@agentclientprotocol/sdk"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** A form, and the answer that its content is. */
export interface Form {
  readonly requestedSchema: ElicitationSchema
  readonly answerOf: (content: Readonly<Record<string, Schema.Json>>) => Schema.Json
}

/** Most options of a question without a form. */
const maxChoices = 10

/** The answers to choose from, `undefined` for a question with another answer. */
export const choices = (schema: Schema.Json): ReadonlyArray<Schema.Json> | undefined => {
  if (textIn(schema, "type") === "boolean") return [true, false]
  const all = valuesOf(schema)
  return all.length === 0 || all.length > maxChoices ? undefined : all
}

/** The form of a question. An answer for which ACP has no field is JSON in a field of text. */
export const form = (schema: Schema.Json): Form => {
  const properties = fieldsOf(schema)
  if (properties !== undefined) {
    const required = Predicate.hasProperty(schema, "required") ? schema.required : undefined
    return {
      requestedSchema: {
        type: "object",
        properties,
        ...(Array.isArray(required) ? { required: required.filter(Predicate.isString) } : {})
      },
      answerOf: (content) => ({ ...content })
    }
  }
  const field = fieldOf(schema)
  const property: ElicitationPropertySchema = field ?? { type: "string", description: "The answer, as JSON" }
  const isText = field !== undefined && textIn(schema, "type") === "string" && valuesOf(schema).length === 0
  const isWritten = property.type === "string" && !isText
  return {
    requestedSchema: { type: "object", properties: { answer: property }, required: ["answer"] },
    answerOf: ({ answer = null }) => (isWritten ? written(answer, valuesOf(schema)) : answer)
  }
}

/** The value that a text stands for: one of the values, or JSON. */
const written = (answer: Schema.Json, values: ReadonlyArray<Schema.Json>): Schema.Json => {
  const value = values.find((value) => wordOf(value) === answer)
  if (value !== undefined) return value
  return Option.getOrElse(decodeJson(answer), () => answer)
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** A value as a person reads it. */
export const wordOf = (value: Schema.Json): string =>
  typeof value === "string" ? value : JSON.stringify(value)

/** The fields of an object whose members are all simple. */
const fieldsOf = (schema: Schema.Json): Record<string, ElicitationPropertySchema> | undefined => {
  const members: unknown = Predicate.hasProperty(schema, "properties") ? schema.properties : undefined
  if (!Predicate.isObject(members)) return undefined
  const entries = Object.entries(members).map(([name, member]) => [name, plainFieldOf(member)] as const)
  if (entries.length === 0) return undefined
  const fields: Record<string, ElicitationPropertySchema> = {}
  for (const [name, field] of entries) {
    if (field === undefined) return undefined
    fields[name] = field
  }
  return fields
}

/** A field whose content is the answer as it is. */
const plainFieldOf = (schema: unknown): ElicitationPropertySchema | undefined =>
  valuesOf(schema).every(Predicate.isString) ? fieldOf(schema) : undefined

const fieldOf = (schema: unknown): ElicitationPropertySchema | undefined => {
  const values = valuesOf(schema)
  const words = ["title", "description"].flatMap((key) => {
    const text = textIn(schema, key)
    return text === undefined ? [] : [[key, text] as const]
  })
  const described: { readonly title?: string; readonly description?: string } = Object.fromEntries(words)
  if (values.length > 0) return { type: "string", enum: values.map(wordOf), ...described }
  switch (textIn(schema, "type")) {
    case "string":
      return { type: "string", ...described }
    case "number":
      return { type: "number", ...described }
    case "integer":
      return { type: "integer", ...described }
    case "boolean":
      return { type: "boolean", ...described }
    default:
      return undefined
  }
}

const valuesOf = (schema: unknown): ReadonlyArray<Schema.Json> =>
  Predicate.hasProperty(schema, "enum") && isValues(schema.enum) ? schema.enum : []

const isValues = Schema.is(Schema.Array(Schema.Json))

const textIn = (schema: unknown, name: string): string | undefined =>
  Predicate.hasProperty(schema, name) && typeof schema[name] === "string" ? schema[name] : undefined
