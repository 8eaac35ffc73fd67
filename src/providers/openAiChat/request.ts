/**
 * Encodes requests for OpenAI Chat Completions. https://platform.openai.com/docs/api-reference/chat/create,
 * read in November 2026.
 */
import { memoize } from "effect/Function"
import type { ToolDefinition } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import type { Compat } from "./compat.ts"
import * as Json from "../internal/json.ts"
import * as Caching from "../internal/openAiCaching.ts"
import * as Messages from "./messages.ts"
import * as OpenAiSchema from "../internal/openAiSchema.ts"
import { merge, type Question } from "../internal/question.ts"
import { withAnyOf } from "../internal/schema.ts"

/** Encodes bodies for one provider. Encodes each message and each tool once. */
export const encoder = (provider: string, compat: Compat): ((question: Question) => string | Reason) => {
  const messagesOf = Messages.writer(provider, compat)
  const toolOf = memoize((tool: ToolDefinition) => Json.encode(toTool(tool)))
  return (question) => {
    const messages = messagesOf(question.messages)
    if (typeof messages !== "string") return messages
    const system = question.system ? Json.encode({ role: compat.systemRole, content: question.system }) : ""
    const { tools: theirs, ...vendor } = question.vendor
    const own = (name: string, json: string) => (name in vendor ? "" : `${JSON.stringify(name)}:${json},`)
    const listed = [...question.tools.map(toolOf), ...Json.array(theirs).map(Json.encode)]
    const tools = listed.length === 0 ? "" : `"tools":[${listed.join(",")}],`
    const rest = Json.encode(merge(parameters(question, compat), vendor))
    return `{${own("model", Json.encode(question.model))}${own("messages", `[${Messages.join(system, messages)}]`)}${tools}${rest.slice(1)}`
  }
}

const toTool = ({ description, name, parameters }: ToolDefinition) => ({
  type: "function",
  function: { name, description, parameters: withAnyOf(parameters) }
})

const parameters = (question: Question, compat: Compat): Json.JsonObject => {
  const { options, thinking, tools } = question
  const own = Json.defined({
    stream: true,
    stream_options: compat.streamUsage ? { include_usage: true } : undefined,
    [compat.maxTokensField]: options.maxTokens,
    temperature: options.temperature,
    top_p: options.topP,
    stop: options.stop,
    tool_choice: tools.length === 0 ? undefined : toChoice(options.toolChoice),
    ...toOutput(options.output, compat),
    ...toCaching(question, compat)
  })
  return merge(own, thinking)
}

const toChoice = (choice: ModelOptions["toolChoice"]) =>
  typeof choice === "object" ? { type: "function", function: { name: choice.name } } : choice

const toOutput = (output: ModelOptions["output"], compat: Compat): Json.JsonObject => {
  if (output === undefined) return {}
  if (compat.output === "json_object") return { response_format: { type: "json_object" } }
  return { response_format: { type: "json_schema", json_schema: OpenAiSchema.format(output) } }
}

const toCaching = ({ options, rule }: Question, compat: Compat): Json.JsonObject =>
  !compat.cacheKey || options.sessionId === undefined || options.cacheRetention === "none"
    ? {}
    : { prompt_cache_key: options.sessionId, ...Caching.long(options, rule) }
