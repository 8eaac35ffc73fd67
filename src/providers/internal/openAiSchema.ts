/**
 * Output schemas in the form that OpenAI accepts. https://platform.openai.com/docs/guides/structured-outputs
 */
import { memoize } from "effect/Function"
import type { ModelOptions } from "../../RunOptions.ts"
import * as Json from "./json.ts"
import { type Form, ofValue } from "./schemaWriter.ts"

/** The form of schemas that OpenAI takes without enforcing them: all but `oneOf`, which no form has. */
export const form: Form = { takes: () => true, refers: true }

/** The schema of an output, and whether OpenAI enforces it, computed once for each output. */
export const format = memoize(({ name, schema }: NonNullable<ModelOptions["output"]>) => {
  const taken = ofValue(schema, form)
  return { name, schema: taken, strict: isClosed(taken) }
})

/**
 * OpenAI enforces a schema only if each object names and requires all its members, and rejects other schemas in
 * strict mode.
 */
export const isClosed = (schema: Json.Json): boolean => {
  if (Json.isArray(schema)) return schema.every(isClosed)
  if (!Json.isObject(schema)) return true
  const members = Object.keys(Json.object(schema["properties"]) ?? {})
  const required = Json.array(schema["required"])
  const closed =
    !takesObjects(schema) ||
    (schema["additionalProperties"] === false && members.every((member) => required.includes(member)))
  return closed && Object.values(schema).every(isClosed)
}

/** Whether the schema accepts objects, alone or among other types. */
const takesObjects = ({ type }: Json.JsonObject): boolean =>
  type === "object" || Json.array(type).includes("object")
