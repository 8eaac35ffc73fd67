/**
 * What OpenAI asks of a JSON Schema.
 * https://platform.openai.com/docs/guides/structured-outputs
 */
import * as Json from "./json.ts"

/** OpenAI enforces a schema only if each object in it names all its members and requires them, and refuses it otherwise. */
export const isClosed = (schema: Json.Json): boolean => {
  if (Json.isArray(schema)) return schema.every(isClosed)
  if (!Json.isObject(schema)) return true
  const members = Object.keys(Json.object(schema["properties"]) ?? {})
  const required = Json.array(schema["required"])
  const closed =
    schema["type"] !== "object" ||
    (schema["additionalProperties"] === false && members.every((member) => required.includes(member)))
  return closed && Object.values(schema).every(isClosed)
}
