/**
 * Encodes requests for OpenAI Responses. https://platform.openai.com/docs/api-reference/responses/create, read
 * in November 2026.
 */
import { memoize } from "effect/Function"
import type * as Message from "../../Message.ts"
import type { ToolDefinition } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import { fit, type Rule } from "../internal/callId.ts"
import * as Json from "../internal/json.ts"
import type { Thinking } from "../models/rule.ts"
import * as Caching from "../internal/openAiCaching.ts"
import { type Answer, encodeOutput, encodeOwn, encodePlain, encodeUser, type Item } from "./items.ts"
import * as OpenAiSchema from "../internal/openAiSchema.ts"
import { isReason } from "../Protocol.ts"
import { merge, type Question } from "../internal/question.ts"
import { withAnyOf } from "../internal/schema.ts"

/** Encodes bodies for one provider. Encodes each message and each tool once. */
export const encoder = (provider: string): ((question: Question) => string | Reason) => {
  const encoders: Encoders = {
    user: memoize(encodeUser),
    output: memoize(encodeOutput),
    own: memoize((message: Message.Assistant) => encodeOwn(provider, message)),
    plain: memoize((message: Message.Assistant) => encodePlain(provider, message))
  }
  const toolOf = memoize((tool: ToolDefinition) => Json.encode(toTool(tool)))
  return (question) => {
    const input = encodeInput(question, encoders)
    if (isReason(input)) return input
    const { model, system, tools } = question
    const { tools: theirs, ...vendor } = question.vendor
    const own = (name: string, json: string) => (name in vendor ? "" : `${JSON.stringify(name)}:${json},`)
    const instructions = system === undefined || system === "" ? "" : own("instructions", Json.encode(system))
    const listed = [...tools.map(toolOf), ...Json.array(theirs).map(Json.encode)]
    const known = listed.length === 0 ? "" : `"tools":[${listed.join(",")}],`
    const rest = Json.encode(merge(parameters(question), vendor))
    return `{${own("model", Json.encode(model))}${instructions}${own("input", input)}${known}${rest.slice(1)}`
  }
}

// ───────────────────────── The conversation

/** Each function encodes a message once. */
interface Encoders {
  readonly user: (message: Message.User) => string | Reason
  readonly output: (message: Message.ToolResult) => string | Reason
  readonly own: (message: Message.Assistant) => Answer
  readonly plain: (message: Message.Assistant) => ReadonlyArray<Item>
}

const encodeInput = (question: Question, encoders: Encoders): string | Reason => {
  const out: Array<string> = []
  const calls = new Calls()
  for (const message of question.messages) {
    if (message.role === "assistant") {
      calls.settle(out)
      for (const item of itemsOf(message, question, encoders)) out.push(calls.add(item))
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
 * Thinking is encrypted for the model that made it. Another model answers 400 to it. Items without their
 * thinking help only if the vendor stored it.
 */
const itemsOf = (
  message: Message.Assistant,
  { model, vendor }: Question,
  { own, plain }: Encoders
): ReadonlyArray<Item> => {
  const { isReadable, items } = own(message)
  const isOwn = message.model === model || message.model === ""
  return isOwn && (isReadable || vendor["store"] === true) ? items : plain(message)
}

const rule: Rule = { pattern: /^[\w-]{1,64}$/, length: 32 }

/**
 * The calls of a conversation. Each has a unique id, although some servers repeat ids in each answer, and one
 * result.
 */
class Calls {
  private readonly used = new Set<string>()
  /** The calls of the last answer without a result, with the start of the item that answers them. */
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

  /** The vendor rejects a call without a result. */
  settle(out: Array<string>): void {
    for (const { begun } of this.open.splice(0)) out.push(`${begun}"No result was recorded."}`)
  }
}

const toTool = ({ description, name, parameters }: ToolDefinition) => ({
  type: "function",
  name,
  description,
  parameters: withAnyOf(parameters),
  // By default the vendor changes the schema so that all members are required.
  strict: false
})

// ───────────────────────── Parameters

/** The API has no stop sequences and no thinking budget. */
const parameters = (question: Question): Json.JsonObject => {
  const { options, thinking, tools } = question
  const own = Json.defined({
    stream: true,
    // Each request contains the complete conversation, so the vendor need not store it.
    store: false,
    max_output_tokens: options.maxTokens,
    temperature: options.temperature,
    top_p: options.topP,
    tool_choice: tools.length === 0 ? undefined : toChoice(options.toolChoice),
    include: mayThink(question) ? ["reasoning.encrypted_content"] : undefined,
    ...toOutput(options.output),
    ...toCaching(question)
  })
  return merge(own, thinking)
}

const toChoice = (choice: ModelOptions["toolChoice"]) =>
  typeof choice === "object" ? { type: "function", name: choice.name } : choice

/** A model that does not think answers 400 to a request for its thinking. */
const mayThink = ({ rule, thinking }: Question): boolean =>
  Object.keys(thinking).length > 0 || (rule?.thinking ?? none).kind !== "none"

const none: Thinking = { kind: "none" }

const toOutput = (output: ModelOptions["output"]): Json.JsonObject =>
  output === undefined ? {} : { text: { format: { type: "json_schema", ...OpenAiSchema.format(output) } } }

const toCaching = ({ options, rule }: Question): Json.JsonObject =>
  options.sessionId === undefined || options.cacheRetention === "none"
    ? {}
    : { prompt_cache_key: fit(options.sessionId, keyRule), ...Caching.long(options, rule) }

const keyRule: Rule = { pattern: /^[^]{1,64}$/, length: 32 }
