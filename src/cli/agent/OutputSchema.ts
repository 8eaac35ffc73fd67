/** The JSON Schema of `--output-schema`. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"
import * as JsonSchema from "../../internal/jsonSchema.ts"
import { UsageError } from "../ExitCode.ts"

export type OutputSchema = StandardSchemaV1<unknown, Schema.Json> & StandardJSONSchemaV1<unknown, Schema.Json>

/** Reads the schema, which is an object of JSON or the path of a file with one. Fails with `UsageError` if it is neither. */
export const read = Effect.fnUntraced(function* (
  given: string
): Effect.fn.Return<OutputSchema, UsageError, FileSystem.FileSystem> {
  const refused = (fault: string) => new UsageError({ detail: `--output-schema: ${fault}` })
  const isInline = given.trimStart().startsWith("{")
  const text = isInline
    ? given
    : yield* Effect.mapError(
        FileSystem.FileSystem.use((files) => files.readFileString(given)),
        ({ reason, message }) => refused(reason._tag === "NotFound" ? `there is no file ${given}` : message)
      )
  const schema = decode(text)
  if (Result.isFailure(schema))
    return yield* refused(`${isInline ? "it" : given} is no JSON Schema: ${schema.failure}`)
  return standard(schema.success)
})

const decode = (text: string): Result.Result<Record<string, Schema.Json>, string> =>
  Result.mapError(decodeObject(text), ({ message }) => message.replaceAll(/\s+/g, " "))

const decodeObject = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))
)

const standard = (schema: Record<string, Schema.Json>): OutputSchema => {
  const validate = (value: unknown): StandardSchemaV1.Result<Schema.Json> => {
    const json = Schema.decodeUnknownResult(Schema.Json)(value)
    const decoded = Result.isSuccess(json)
      ? JsonSchema.decode(schema, json.success)
      : Result.fail([json.failure.message])
    return Result.isSuccess(decoded)
      ? { value: decoded.success }
      : { issues: decoded.failure.map((message) => ({ message })) }
  }
  const described = () => schema
  return {
    "~standard": {
      version: 1,
      vendor: "effect-agent",
      validate,
      jsonSchema: { input: described, output: described }
    }
  }
}
