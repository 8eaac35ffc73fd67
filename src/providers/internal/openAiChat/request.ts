/**
 * Encodes requests for OpenAI Chat Completions. https://platform.openai.com/docs/api-reference/chat/create,
 * read in November 2026.
 */
import { memoize } from "effect/Function"
import type { ToolDefinition } from "../../../Provider.ts"
import type { Reason } from "../../../ProviderError.ts"
import type { ModelOptions } from "../../../RunOptions.ts"
import type { Compat } from "./compat.ts"
import * as Json from "../json.ts"
import * as Members from "../members.ts"
import * as Caching from "../openAiCaching.ts"
import * as Messages from "./messages.ts"
import * as OpenAiSchema from "../openAiSchema.ts"
import { merge, type Question } from "../question.ts"

/** Encodes bodies for one provider. Encodes each message and each tool once. */
export const encoder = (provider: string, compat: Compat): ((question: Question) => string | Reason) => {
  const messagesOf = Messages.writer(provider, compat)
  const toolOf = memoize((tool: ToolDefinition) => Members.into(provider, tool, Json.encode(toTool(tool))))
  return (question) => {
    const messages = messagesOf(question.messages)
    if (typeof messages !== "string") return messages
    const system = question.system ? Json.encode({ role: compat.systemRole, content: question.system }) : ""
    const { tools: theirs, ...vendor } = question.vendor
    const own = (name: string, json: string) => (name in vendor ? "" : `${JSON.stringify(name)}:${json},`)
    const listed = [...question.tools.map(toolOf), ...Json.array(theirs).map(Json.encode)]
    const tools = listed.length === 0 ? "" : `"tools":[${listed.join(",")}],`
    const rest = Json.encode(merge(parameters(provider, question, compat), vendor))
    return `{${own("model", Json.encode(question.model))}${own("messages", `[${Messages.join(system, messages)}]`)}${tools}${rest.slice(1)}`
  }
}

const toTool = ({ description, name, parameters, strict }: ToolDefinition) => {
  const isStrict = strict === true && OpenAiSchema.isClosed(parameters) ? { strict } : {}
  return { type: "function", function: { name, description, parameters, ...isStrict } }
}

const parameters = (provider: string, question: Question, compat: Compat): Json.JsonObject => {
  const { options, thinking, tools } = question
  const own = Json.defined({
    ...compat.body,
    stream: true,
    stream_options: compat.streamUsage ? { include_usage: true } : undefined,
    [compat.maxTokensField]: options.maxTokens,
    temperature: options.temperature,
    top_p: options.topP,
    stop: options.stop,
    seed: options.seed,
    ...toLogprobs(options.logprobs),
    service_tier: options.serviceTier,
    store: options.store,
    tool_choice: tools.length === 0 ? undefined : toChoice(options.toolChoice),
    parallel_tool_calls: tools.length === 0 ? undefined : options.parallelToolCalls,
    ...toWebSearch(provider, options.hostedTools, compat),
    ...toOutput(options.output, compat),
    ...(compat.cacheKey ? Caching.fields(options, question.rule) : {})
  })
  return merge(own, thinking)
}

const toChoice = (choice: ModelOptions["toolChoice"]) =>
  typeof choice === "object" ? { type: "function", function: { name: choice.name } } : choice

const toLogprobs = (count: ModelOptions["logprobs"]): Json.JsonObject =>
  count === undefined ? {} : { logprobs: true, ...(count === 0 ? {} : { top_logprobs: count }) }

/** OpenAI's search models and Perplexity have options, and OpenRouter a plugin. */
const toWebSearch = (
  provider: string,
  tools: ModelOptions["hostedTools"] = [],
  { webSearch }: Compat
): Json.JsonObject => {
  const search = tools.find(({ type }) => type === "webSearch")
  if (search?.type !== "webSearch") return {}
  const { allowedDomains, location, vendor } = search
  const own = vendor?.[provider] ?? {}
  if (webSearch === "plugin")
    return { plugins: [merge(Json.defined({ id: "web", include_domains: allowedDomains }), own)] }
  const place = location && { user_location: { type: "approximate", approximate: { ...location } } }
  return { web_search_options: merge({ ...place }, own) }
}

const toOutput = (output: ModelOptions["output"], compat: Compat): Json.JsonObject => {
  if (output === undefined) return {}
  if (compat.output === "json_object") return { response_format: { type: "json_object" } }
  return { response_format: { type: "json_schema", json_schema: OpenAiSchema.format(output) } }
}
