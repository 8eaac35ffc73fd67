/**
 * A request in the language of OpenAI Chat Completions.
 * https://platform.openai.com/docs/api-reference/chat/create, read in November 2026.
 */
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import type { Compat } from "./compat.ts"
import { once } from "../../Once.ts"
import * as Json from "./json.ts"
import * as Messages from "./openAiChatMessages.ts"
import * as OpenAiSchema from "./openAiSchema.ts"
import { withAnyOf } from "./schema.ts"

/** Makes bodies for one provider, each message and each tool encoded once. */
export const encoder = (provider: string, compat: Compat): ((request: ModelRequest) => string | Reason) => {
  const messagesOf = Messages.writer(provider, compat)
  const toolsOf = Json.listOf(once((tool: ToolDefinition) => Json.encode(toTool(tool))))
  return (request) => {
    const messages = messagesOf(request.messages)
    if (typeof messages !== "string") return messages
    const system = request.system ? Json.encode({ role: compat.systemRole, content: request.system }) : ""
    const vendor = request.options.vendor ?? {}
    const own = (name: string, json: string) => (name in vendor ? "" : `${JSON.stringify(name)}:${json},`)
    const tools = request.tools.length === 0 ? "" : own("tools", toolsOf(request.tools))
    const rest = Json.encode({ stream: true, ...parameters(request, compat), ...vendor })
    return `{${own("model", Json.encode(request.model))}${own("messages", `[${Messages.join(system, messages)}]`)}${tools}${rest.slice(1)}`
  }
}

const toTool = ({ description, name, parameters }: ToolDefinition) => ({
  type: "function",
  function: { name, description, parameters: withAnyOf(parameters) }
})

const parameters = ({ options, tools }: ModelRequest, compat: Compat): Readonly<Record<string, unknown>> => ({
  ...(compat.streamUsage ? { stream_options: { include_usage: true } } : {}),
  [compat.maxTokensField]: options.maxTokens,
  temperature: options.temperature,
  top_p: options.topP,
  stop: options.stop,
  ...(tools.length === 0 ? {} : { tool_choice: toChoice(options.toolChoice) }),
  ...toThinking(options, compat),
  ...toOutput(options.output, compat),
  ...toCaching(options, compat)
})

const toChoice = (choice: ModelOptions["toolChoice"]) =>
  typeof choice === "object" ? { type: "function", function: { name: choice.name } } : choice

const toThinking = (options: ModelOptions, compat: Compat): Readonly<Record<string, unknown>> => {
  const level = options.thinkingLevel
  if (level === undefined || compat.thinking === "none") return {}
  const budget = options.thinkingBudgets?.[level]
  const effort = level === "off" ? undefined : (compat.efforts[level] ?? level)
  switch (compat.thinking) {
    case "effort":
      return { reasoning_effort: effort }
    case "reasoning":
      if (effort === undefined) return { reasoning: { enabled: false } }
      return { reasoning: budget === undefined ? { effort } : { max_tokens: budget } }
    case "switch":
      return { thinking: { type: effort === undefined ? "disabled" : "enabled" } }
    case "flag":
      return { enable_thinking: effort !== undefined, thinking_budget: budget }
  }
}

const toOutput = (output: ModelOptions["output"], compat: Compat): Readonly<Record<string, unknown>> => {
  if (output === undefined) return {}
  if (compat.output === "json_object") return { response_format: { type: "json_object" } }
  return { response_format: { type: "json_schema", json_schema: OpenAiSchema.format(output) } }
}

const toCaching = (
  { cacheRetention, sessionId }: ModelOptions,
  compat: Compat
): Readonly<Record<string, unknown>> =>
  !compat.cacheKey || sessionId === undefined || cacheRetention === "none"
    ? {}
    : { prompt_cache_key: sessionId, ...(cacheRetention === "long" ? { prompt_cache_retention: "24h" } : {}) }
