/** The limits and the schemas of Claude, which are the same at the Messages API and at Amazon Bedrock. */
import { memoize } from "effect/Function"
import type { ModelOptions } from "../../RunOptions.ts"
import type * as Json from "./json.ts"
import { form as openAi } from "./openAi.ts"
import { type Form, ofValue } from "./schemaWriter.ts"

/** Anthropic takes what OpenAI does, and names as in its error "Property keys should match pattern". */
export const form: Form = { ...openAi, names: /^[a-zA-Z0-9_.-]{1,64}$/ }

const MiB = 1024 * 1024

/** https://platform.claude.com/docs/en/build-with-claude/vision, read in November 2026. */
export const media = { length: 5 * MiB, pixels: 8000, crowd: 20, crowdedPixels: 2000, total: 30 * MiB }

/** The minimum budget, and the tokens that it leaves of `max_tokens` for the answer. */
export const budget = { leaves: 1024 }

// ───────────────────────── Output schemas

/**
 * The part of an output schema that Anthropic enforces, in which objects are closed, computed once for each output.
 * https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs
 *
 * Anthropic rejects other keywords, so they stand in descriptions, as its SDK writes them. The reader of the output has to check them.
 */
export const enforceable = /* @__PURE__ */ memoize(
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
