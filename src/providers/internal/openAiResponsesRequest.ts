/**
 * A request in the language of OpenAI Responses.
 * https://platform.openai.com/docs/api-reference/responses/create, read in November 2026.
 */
import type * as Message from "../../Message.ts"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import { fit, type Rule } from "./callId.ts"
import { once } from "../../Once.ts"
import * as Json from "./json.ts"
import {
  type Answer,
  encodeOutput,
  encodeOwn,
  encodePlain,
  encodeUser,
  type Item
} from "./openAiResponsesItems.ts"
import * as OpenAiSchema from "./openAiSchema.ts"
import { isReason } from "./Protocol.ts"
import { withAnyOf } from "./schema.ts"

/** Makes bodies for one provider, each message and each list of tools encoded once. */
export const encoder = (provider: string): ((request: ModelRequest) => string | Reason) => {
  const encoders: Encoders = {
    user: once(encodeUser),
    output: once(encodeOutput),
    own: once((message: Message.Assistant) => encodeOwn(provider, message)),
    plain: once((message: Message.Assistant) => encodePlain(provider, message))
  }
  const toolsOf = Json.listOf(once((tool: ToolDefinition) => Json.encode(toTool(tool))))
  return (request) => {
    const input = encodeInput(request, encoders)
    if (isReason(input)) return input
    const { model, options, system, tools } = request
    const vendor = options.vendor ?? {}
    const own = (name: string, json: string) => (name in vendor ? "" : `${JSON.stringify(name)}:${json},`)
    const said = system === undefined || system === "" ? "" : own("instructions", Json.encode(system))
    const known = tools.length === 0 ? "" : own("tools", toolsOf(tools))
    const rest = Json.encode(withVendor(parameters(request), vendor))
    return `{${own("model", Json.encode(model))}${said}${own("input", input)}${known}${rest.slice(1)}`
  }
}

// ───────────────────────── The conversation

/** Each message is encoded once. */
interface Encoders {
  readonly user: (message: Message.User) => string | Reason
  readonly output: (message: Message.ToolResult) => string | Reason
  readonly own: (message: Message.Assistant) => Answer
  readonly plain: (message: Message.Assistant) => ReadonlyArray<Item>
}

const encodeInput = (request: ModelRequest, encoders: Encoders): string | Reason => {
  const out: Array<string> = []
  const calls = new Calls()
  for (const message of request.messages) {
    if (message.role === "assistant") {
      calls.settle(out)
      for (const item of itemsOf(message, request, encoders)) out.push(calls.add(item))
      continue
    }
    const json = message.role === "user" ? encoders.user(message) : encoders.output(message)
    if (isReason(json)) return json
    if (message.role === "user") out.push(json)
    else calls.answer(message.toolCallId, json, out)
  }
  calls.settle(out)
  return `[${out.join(",")}]`
}

/**
 * What a model thought is sealed, for itself: another one answers 400 to it. Where it cannot be read, it helps only if the
 * vendor was asked to keep it.
 */
const itemsOf = (
  message: Message.Assistant,
  { model, options }: ModelRequest,
  { own, plain }: Encoders
): ReadonlyArray<Item> => {
  const { isReadable, items } = own(message)
  const isOwn = message.model === model || message.model === ""
  return isOwn && (isReadable || options.vendor?.["store"] === true) ? items : plain(message)
}

const rule: Rule = { pattern: /^[\w-]{1,64}$/, length: 32 }

/** The calls of a conversation. Each has an id of its own, though some servers count anew in each answer, and one result. */
class Calls {
  private readonly used = new Set<string>()
  /** Those of the last answer that have no result yet, with the beginning of the item that answers them. */
  private readonly open: Array<{ readonly callId: string; readonly begun: string }> = []

  /** The item as JSON. */
  add({ callId, json, result = "" }: Item): string {
    if (callId === undefined) return json
    let id = fit(callId, rule)
    for (let count = 2; this.used.has(id); count++) id = fit(`${callId} ${count}`, rule)
    this.used.add(id)
    this.open.push({ callId, begun: `{"type":"${result}","call_id":"${id}","output":` })
    return `${json.slice(0, -1)},"call_id":"${id}"}`
  }

  answer(callId: string, output: string, out: Array<string>): void {
    const index = this.open.findIndex((call) => call.callId === callId)
    for (const { begun } of index === -1 ? [] : this.open.splice(index, 1)) out.push(`${begun}${output}}`)
  }

  /** A call without a result is refused. */
  settle(out: Array<string>): void {
    for (const { begun } of this.open.splice(0)) out.push(`${begun}"No result was recorded."}`)
  }
}

const toTool = ({ description, name, parameters }: ToolDefinition) => ({
  type: "function",
  name,
  description,
  parameters: withAnyOf(parameters),
  // Without it the vendor makes a schema of its own of this one, in which everything is required.
  strict: false
})

// ───────────────────────── Parameters

type Parameters = Readonly<Record<string, unknown>>

/** There is none for `stop`, and none for a budget of thinking: this language has no words for them. */
const parameters = ({ model, options, tools }: ModelRequest): Parameters => ({
  stream: true,
  // What the vendor keeps is not ours to rely on: the whole conversation goes along each time.
  store: false,
  // Less is refused.
  max_output_tokens: options.maxTokens === undefined ? undefined : Math.max(16, options.maxTokens),
  temperature: options.temperature,
  top_p: options.topP,
  ...(tools.length === 0 ? {} : { tool_choice: toChoice(options.toolChoice) }),
  ...toThinking(model, options.thinkingLevel),
  ...toOutput(options.output),
  ...toCaching(options)
})

const toChoice = (choice: ModelOptions["toolChoice"]) =>
  typeof choice === "object" ? { type: "function", name: choice.name } : choice

const toThinking = (model: string, level: ModelOptions["thinkingLevel"]): Parameters => {
  const isAsked = level !== undefined && level !== "off"
  return {
    ...(isAsked || thinks.test(model) ? { include: ["reasoning.encrypted_content"] } : {}),
    ...(isAsked ? { reasoning: { effort: level, summary: "auto" } } : {})
  }
}

/** OpenAI's models that think unasked. The others answer 400 when asked for what they thought. */
const thinks = /(?:^|[/.])(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*-chat)/

const toOutput = (output: ModelOptions["output"]): Parameters =>
  output === undefined ? {} : { text: { format: { type: "json_schema", ...OpenAiSchema.format(output) } } }

const toCaching = ({ cacheRetention, sessionId }: ModelOptions): Parameters =>
  sessionId === undefined || cacheRetention === "none"
    ? {}
    : {
        prompt_cache_key: fit(sessionId, keyRule),
        ...(cacheRetention === "long" ? { prompt_cache_retention: "24h" } : {})
      }

const keyRule: Rule = { pattern: /^[^]{1,64}$/, length: 32 }

/** Two of the parameters hold more than one: `text: {verbosity}` leaves the format as it is. */
const withVendor = (own: Parameters, vendor: Json.JsonObject): Parameters => {
  const both = (name: "reasoning" | "text") => {
    const ours = own[name]
    const theirs = vendor[name]
    return typeof ours === "object" && Json.isObject(theirs) ? { [name]: { ...ours, ...theirs } } : {}
  }
  return { ...own, ...vendor, ...both("reasoning"), ...both("text") }
}
