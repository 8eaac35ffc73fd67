/**
 * The differences between servers that implement the Chat Completions API.
 *
 * Applications set them; the provider derives nothing from a URL.
 */
import * as Result from "effect/Result"
import { ModelNotSupported, type Reason } from "../../../ProviderError.ts"
import type { ThinkingLevel } from "../../../RunOptions.ts"
import { InvalidInput } from "../../../internal/invalidInput.ts"
import * as NearestName from "../../../internal/nearestName.ts"
import type { Accepted, Api, Asked, Changes } from "../../Protocol.ts"
import type { Rule as IdRule } from "../writing.ts"
import * as Json from "../json.ts"
import type { Rule, Thinking } from "../models/rule.ts"
import { openAi as form, usually } from "../toolSchemas.ts"
import { inHeader } from "../support.ts"

/**
 * The differences of a server from most others that implement the Chat Completions API.
 *
 * @since 0.1.0
 * @category options
 */
export interface Compat {
  /**
   * The field for `maxTokens` (default: `"max_tokens"`).
   *
   * OpenAI's reasoning models reject `max_tokens`, most other servers accept only that.
   */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens"
  /**
   * The role of the system prompt (default: `"system"`).
   *
   * OpenAI's reasoning models require `developer`, which other servers reject.
   */
  readonly systemRole: "system" | "developer"
  /** Whether to request usage with `stream_options` (default: `true`). */
  readonly streamUsage: boolean
  /**
   * The vendor whose rules of `Models` apply (default: the id of the provider if the table has rules for it,
   * else none).
   */
  readonly vendor?: string
  /**
   * Whether the server is a gateway to other vendors, so that only limits and inputs of the model's family
   * apply from `Models` (default: `false`).
   */
  readonly gateway: boolean
  /**
   * The field for the thinking level of a model without a rule in `Models` (default: `"effort"`, and `"none"`
   * for a vendor in the table).
   *
   * `effort` is `reasoning_effort`, `reasoning` is OpenRouter's object of that name, `switch` is `thinking:
   * {type}`, `flag` is `enable_thinking`. `effort` leaves out the level `off`, because some models have no
   * value for it. `none` leaves out every level and reports it in `ModelCallEnd.adjusted`.
   */
  readonly thinking: "none" | "effort" | "reasoning" | "switch" | "flag"
  /** The values of levels whose name differs at the server (default: none). */
  readonly efforts: Partial<Record<Exclude<ThinkingLevel, "off">, string>>
  /**
   * The field that returns the thinking of assistant messages to the server (default: `"received"`).
   *
   * `received` is the field in which the thinking came, and none for thinking between tags. The name of a field returns it with each
   * message, empty for one without thinking: DeepSeek and Kimi answer 400 without it. The provider always returns
   * `reasoning_details`.
   */
  readonly replayThinking: "none" | "received" | "reasoning_content" | "reasoning"
  /**
   * Whether tags of the model, such as `<think>…</think>` at the start of a text, make thinking of what they enclose (default: `true`).
   *
   * A closing tag alone makes thinking of all text before it. The provider then takes that text back with `Retracted`.
   */
  readonly thinkTags: boolean
  /** The form that the server requires of tool call ids (default: any). */
  readonly callIds?: IdRule
  /**
   * The form of JSON Schema that tools have (default: `"jsonSchema"` for a server in `presets` or of a vendor of `Models`, else
   * `"openApi"`).
   *
   * `openApi` is the part that Gemini takes, for servers that hand schemas on to it: it has no references, `additionalProperties`,
   * `patternProperties` and `const`, which stand in descriptions. Models named Gemini or Kimi get it everywhere, and strict tools nowhere.
   */
  readonly schemas?: "jsonSchema" | "openApi"
  /** Whether tool results include the name of the tool (default: `false`). */
  readonly toolName: boolean
  /** Whether to insert an assistant message between a tool result and a user message (default: `false`). */
  readonly assistantAfterTools: boolean
  /**
   * Whether the server accepts images (default: `true`).
   *
   * If not, a conversation with an image fails with `UnsupportedContent` and is not sent.
   */
  readonly images: boolean
  /**
   * Whether the server accepts files (default: `true`).
   *
   * If not, a conversation with a file fails with `UnsupportedContent` and is not sent.
   */
  readonly files: boolean
  /** Whether to send the session id as `prompt_cache_key`, and a long cache retention (default: `false`). */
  readonly cacheKey: boolean
  /**
   * The type of the response format for an output schema (default: `"json_schema"`).
   *
   * `json_object` does not include the schema, so the prompt has to describe it.
   */
  readonly output: "json_schema" | "json_object"
  /**
   * How the server takes the hosted tool `webSearch` (default: `"none"`).
   *
   * `options` is `web_search_options`, `plugin` is OpenRouter's plugin `web`. `none` leaves the tool out and reports it in
   * `ModelCallEnd.adjusted`.
   */
  readonly webSearch: "none" | "options" | "plugin"
  /**
   * Fields of each request, such as `tool_stream` of Z.ai (default: none).
   *
   * Fields that the provider sends itself, and those of `modelOptions.vendor`, win.
   */
  readonly body: Json.JsonObject
}

/** The defaults, which most servers accept. */
export const common: Compat = {
  maxTokensField: "max_tokens",
  systemRole: "system",
  streamUsage: true,
  gateway: false,
  thinking: "effort",
  efforts: {},
  replayThinking: "received",
  thinkTags: true,
  toolName: false,
  assistantAfterTools: false,
  images: true,
  files: true,
  cacheKey: false,
  output: "json_schema",
  webSearch: "none",
  body: {}
}

/** All names, so that a misspelt one of plain JavaScript is not ignored. */
const names: { readonly [Name in keyof Compat]-?: true } = {
  maxTokensField: true,
  systemRole: true,
  streamUsage: true,
  vendor: true,
  gateway: true,
  thinking: true,
  efforts: true,
  replayThinking: true,
  thinkTags: true,
  callIds: true,
  schemas: true,
  toolName: true,
  assistantAfterTools: true,
  images: true,
  files: true,
  cacheKey: true,
  output: true,
  webSearch: true,
  body: true
}

/** The differences of a server, with the defaults. Throws `InvalidInput` for a member that is unknown. */
export const complete = (compat: Partial<Compat> = {}): Compat => {
  const unknown = Object.keys(compat).filter((name) => !Object.hasOwn(names, name))
  const faults = unknown.map((name) => {
    const nearest = NearestName.of(name, Object.keys(names))
    const advice =
      nearest === undefined ? `Members: ${Object.keys(names).join(", ")}` : `Did you mean compat.${nearest}?`
    return `compat.${name} is not an option. ${advice}`
  })
  return faults.length === 0
    ? { ...common, ...Json.given(compat) }
    : Result.getOrThrow(Result.fail(new InvalidInput({ subject: "options", faults })))
}

const levels = ["minimal", "low", "medium", "high", "xhigh", "max"] as const

/** The rule on thinking for a model without a rule in `Models`, `undefined` if the server takes no level. */
export const thinkingOf = ({ efforts, thinking }: Compat): Thinking | undefined => {
  const words = Object.fromEntries(levels.map((level) => [level, efforts[level] ?? level]))
  const always = (word: Json.JsonObject) => Object.fromEntries(levels.map((level) => [level, word]))
  switch (thinking) {
    case "none":
      return undefined
    case "effort":
      return { kind: "effort", wire: { chat: { reasoning_effort: "$" } }, levels: { off: null, ...words } }
    case "reasoning":
      return {
        kind: "effort",
        wire: { chat: { reasoning: { effort: "$" } } },
        levels: { off: { reasoning: { enabled: false } }, ...words },
        budget: { wire: { chat: { reasoning: { max_tokens: "$" } } } }
      }
    case "switch":
      return {
        kind: "switch",
        levels: { off: { thinking: { type: "disabled" } }, ...always({ thinking: { type: "enabled" } }) }
      }
    case "flag":
      return {
        kind: "switch",
        levels: { off: { enable_thinking: false }, ...always({ enable_thinking: true }) },
        budget: { wire: { chat: { enable_thinking: true, thinking_budget: "$" } } }
      }
  }
}

// ───────────────────────── The API

// The parts of a request that Chat Completions takes.

const accepts = (rule: Rule | undefined, request: Asked, changes: Changes): Accepted | Reason => {
  const { level, model, tools, vendor } = request
  if (rule === undefined) return request
  const isHere = rule.endpoints?.includes("chat") ?? true
  if (!isHere || (tools.length > 0 && rule.tools === "responses")) {
    const verb = isHere ? "takes tools" : "answers"
    const detail = `${model} ${verb} by the Responses API only: use OpenAi in place of OpenAiCompatible, openai/${model} in the program`
    return new ModelNotSupported({ model, detail })
  }
  const hasTools = tools.length + Json.array(vendor["tools"]).length > 0
  return hasTools ? { tools, level: levelWithTools(rule, level, changes) } : request
}

/** The level that the model accepts with tools. */
const levelWithTools = (
  { tools }: Rule,
  level: ThinkingLevel | undefined,
  changes: Changes
): ThinkingLevel | undefined => {
  if (tools === "chatWithEffortNone") {
    const reason =
      "On Chat Completions the model takes tools only without thinking; the Responses API takes both."
    if (level !== "off") changes.report("thinkingLevel", level, "none", reason)
    return "off"
  }
  if (tools !== "chatWithoutEffort" || level === undefined || level === "off") return level
  const reason =
    "On Chat Completions the model takes tools only without an effort; the Responses API takes both."
  changes.report("thinkingLevel", level, null, reason)
  return undefined
}

export const api: Api = {
  title: "Chat Completions",
  endpoint: "chat",
  lacks: ["previousResponseId"],
  hostedTools: [],
  searchLacks: ["blockedDomains", "maxUses"],
  strictTools: "closed",
  parts: () => ["detail"],
  betas: inHeader("openai-beta"),
  toolSearch: false,
  form: usually(form),
  // Many servers of Chat Completions refuse both in one request.
  answersBySchema: (rule, { serves: { takesSchema = false, vendor }, tools }) =>
    rule?.structuredOutput ?? (takesSchema && (tools.length === 0 || vendor === "openai")),
  accepts
}
