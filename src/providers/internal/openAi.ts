/**
 * Output schemas in the form that OpenAI accepts. https://platform.openai.com/docs/guides/structured-outputs
 */
import { memoize } from "effect/Function"
import type * as Message from "../../Message.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import { isReason } from "../Protocol.ts"
import { type Rule, fit } from "./calls.ts"
import * as Json from "./json.ts"
import { membersOf, over } from "./members.ts"
import type { Rule as ModelRule } from "./models/rule.ts"
import { type Form, ofValue } from "./schemaWriter.ts"

/** The form of schemas that OpenAI takes without enforcing them: all but `oneOf`, which no form has. */
export const form: Form = { takes: () => true, refers: true }

/** The schema of an output, and whether OpenAI enforces it, computed once for each output. */
export const format = /* @__PURE__ */ memoize(({ name, schema }: NonNullable<ModelOptions["output"]>) => {
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

// ───────────────────────── Content

// Encodes the content of a message for both APIs of OpenAI: a text, or a list of parts.

export interface Part {
  readonly type: string
  readonly [field: string]: unknown
}

/** The content as JSON. OpenAI rejects an empty text as a part, and a list without parts. */
export const encodeContent = (
  provider: string,
  content: Message.User["content"],
  textType: string,
  toMedia: (block: Message.Image | Message.File) => Part | Reason
): string | Reason => {
  const [first] = content
  const isPlain = content.length === 1 && first?.type === "text" && membersOf(provider, first) === undefined
  if (isPlain) return Json.encode(first.text)
  const parts: Array<object> = []
  for (const block of content) {
    if (block.type === "text" && block.text === "") continue
    const part = block.type === "text" ? { type: textType, text: block.text } : toMedia(block)
    if (isReason(part)) return part
    parts.push(over(provider, block, part))
  }
  return Json.encode(parts.length === 0 ? "" : parts)
}

export const dataUrl = (source: { readonly data: string; readonly mediaType: string }): string =>
  `data:${source.mediaType};base64,${source.data}`

// ───────────────────────── Caching

// The fields of OpenAI's APIs for the cache of prompts.

type Options = Pick<ModelOptions, "cacheRetention" | "sessionId">

/** The fields for a session: requests with one key reach one cache. */
export const cachingFields = (options: Options, rule: ModelRule | undefined): Json.JsonObject =>
  options.sessionId === undefined || options.cacheRetention === "none"
    ? {}
    : { prompt_cache_key: fit(options.sessionId, keyRule), ...long(options, rule) }

/** The vendor rejects an empty key, and one of more characters. */
const keyRule: Rule = { pattern: /^[^]{1,64}$/, length: 32 }

/** The field that the model accepts. */
const long = ({ cacheRetention }: Options, rule: ModelRule | undefined): Json.JsonObject => {
  if (cacheRetention !== "long") return {}
  switch (rule?.longCache) {
    case "retention":
      return { prompt_cache_retention: "24h" }
    case "options":
      return { prompt_cache_options: { ttl: "12h" } }
    case undefined:
      return {}
  }
}

// ───────────────────────── The server

/** The address and the environment variables of OpenAI, which the Responses API and Chat Completions share. */
export const openAi = {
  id: "openai",
  baseUrl: "https://api.openai.com/v1",
  apiKeyName: "OPENAI_API_KEY",
  baseUrlName: "OPENAI_BASE_URL",
  headerNames: { "openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID" }
}
