/**
 * Reduces a JSON Schema to the part that Anthropic enforces for an output, in which objects are closed.
 * https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs
 *
 * Anthropic rejects other keywords, so they stand in descriptions, as its SDK writes them. The reader of the output has to
 * check them.
 */
import { memoize } from "effect/Function"
import type { ModelOptions } from "../../../RunOptions.ts"
import type * as Json from "../json.ts"
import { ofValue } from "../schemaWriter.ts"

/** The enforceable part of an output schema, computed once for each output. */
export const enforceable = memoize(
  ({ schema }: NonNullable<ModelOptions["output"]>): Json.Json =>
    ofValue(schema, { takes, refers: true, closes: true })
)

const takes = (keyword: string, value: Json.Json): boolean => {
  if (keyword === "format") return typeof value === "string" && formats.has(value)
  if (keyword === "minItems") return value === 0 || value === 1
  return !unenforced.has(keyword)
}

const formats: ReadonlySet<string> = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid"
])

const unenforced: ReadonlySet<string> = new Set([
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "maxItems",
  "uniqueItems",
  "contains",
  "minProperties",
  "maxProperties"
])
