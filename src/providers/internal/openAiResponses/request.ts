/**
 * Encodes requests for OpenAI Responses. https://platform.openai.com/docs/api-reference/responses/create, read
 * in November 2026.
 */
import { memoize } from "effect/Function"
import type * as Message from "../../../Message.ts"
import type { ToolDefinition } from "../../../Provider.ts"
import type { Reason } from "../../../ProviderError.ts"
import type { HostedToolDefinition, ModelOptions } from "../../../RunOptions.ts"
import { type Api, isReason, type Change, type Question } from "../../Protocol.ts"
import { type Rule, fit, into, cachingFields } from "../writing.ts"
import * as Json from "../json.ts"
import type { Thinking } from "../models/rule.ts"
import * as OpenAiSchema from "../toolSchemas.ts"
import * as PromptChanges from "../promptChanges.ts"
import { inHeader, isDeferred, presentIf } from "../support.ts"
import {
  type Answer,
  type Item,
  encodeOutput,
  encodeOwn,
  encodePlain,
  encodeScreen,
  encodeUser,
  toScreen
} from "./items.ts"

/** Encodes bodies for one provider. Encodes each message and each tool once. */
export const encoder = (provider: string): ((question: Question) => string | Reason) => {
  const tools = toolEncoder(provider)
  const encoders: Encoders = {
    provider,
    tool: tools.tool,
    user: memoize((message: Message.User) => encodeUser(provider, message)),
    output: memoize((message: Message.ToolResult) => encodeOutput(provider, message)),
    screen: memoize(encodeScreen),
    own: memoize((message: Message.Assistant) => encodeOwn(provider, message)),
    plain: memoize((message: Message.Assistant) => encodePlain(provider, message))
  }
  return (asked) => {
    const question = PromptChanges.begun(asked)
    const searched = new Searches()
    const input = encodeInput(question, encoders, searched)
    if (isReason(input)) return input
    const { model, rule, system = "" } = question
    const { tools: _theirs, ...vendor } = question.vendor
    const own = (name: string, json: string) => (name in vendor ? "" : `${JSON.stringify(name)}:${json},`)
    const instructions =
      system === "" || rule?.system === "message" ? "" : own("instructions", Json.encode(system))
    const listed = tools.all({ ...question, tools: searched.declared(question.tools) })
    const known = listed.length === 0 ? "" : `"tools":[${listed.join(",")}],`
    const rest = Json.encode(Json.merge(parameters(question, asked.tools.length), vendor))
    return `{${own("model", Json.encode(model))}${instructions}${own("input", input)}${known}${rest.slice(1)}`
  }
}

// ───────────────────────── The conversation

/** Each function encodes a message once. */
interface Encoders {
  readonly provider: string
  readonly tool: Encoder["tool"]
  readonly user: (message: Message.User) => string | Reason
  readonly output: Output
  readonly screen: Output
  readonly own: (message: Message.Assistant) => Answer
  readonly plain: (message: Message.Assistant) => ReadonlyArray<Item>
}

/** The output in the item that answers a call, and items that follow it. */
type Output = (message: Message.ToolResult) => ReadonlyArray<string> | Reason

const encodeInput = (question: Question, encoders: Encoders, searched: Searches): string | Reason => {
  const { changed, messages, options } = question
  const { previousResponseId: stored } = options
  // The vendor has the messages up to the answer that it stored.
  const start = messages.findIndex(
    (message) => stored !== undefined && message.role === "assistant" && message.responseId === stored
  )
  const { rule, system = "" } = question
  const isInInput = system !== "" && rule?.system === "message"
  const out = isInInput ? [Json.encode({ role: "system", content: system })] : []
  const calls = new Calls(encoders)
  for (const [index, message] of messages.entries()) {
    if (index < start) continue
    if (message.role === "assistant") {
      calls.settle(out)
      out.push(...itemsOfChange(changed?.changes.get(index), encoders))
      if (index === start) for (const item of encoders.own(message).items) calls.add(searched.place(item))
      else {
        const isLast = !messages.slice(index + 1).some(({ role }) => role === "assistant")
        for (const item of itemsOf(message, question, encoders, isLast))
          out.push(calls.add(searched.place(item)))
      }
      continue
    }
    if (message.role === "toolResult") {
      const wrong = calls.answer(message, out)
      if (wrong !== undefined) return wrong
      continue
    }
    const json = encoders.user(message)
    if (isReason(json)) return json
    out.push(json)
  }
  calls.settle(out)
  out.push(...itemsOfChange(changed?.changes.get(messages.length), encoders))
  return `[${out.join(",")}]`
}

/** The items for a change of the prompt. */
const itemsOfChange = (change: Change | undefined, { tool }: Encoders): ReadonlyArray<string> => {
  if (change === undefined) return []
  const { added, effort, system } = change
  return [
    ...(system === undefined ? [] : [Json.encode({ role: "developer", content: system })]),
    ...(added.length === 0
      ? []
      : [`{"type":"additional_tools","role":"developer","tools":[${added.map(tool).join(",")}]}`]),
    ...(effort === undefined ? [] : [Json.encode({ type: "configuration_update", reasoning: { effort } })])
  ]
}

/**
 * Thinking is encrypted for the model that made it. Another model answers 400 to it. Items without their
 * thinking help only if the vendor stored it.
 */
const itemsOf = (
  message: Message.Assistant,
  { model, options, vendor }: Question,
  { own, plain }: Encoders,
  isLast: boolean
): ReadonlyArray<Item> => {
  const { isReadable, items } = own(message)
  const isOwn = message.model === model || message.model === ""
  const isStored = (vendor["store"] ?? options.store) === true
  if (isOwn && (isReadable || isStored)) return items
  // The vendor would run a call again whose approval it reads without the call.
  return isLast ? plain(message) : plain(message).filter(({ result }) => result !== approval)
}

/** The item that answers whether the vendor may call a tool of an MCP server. */
const approval = "mcp_approval_response"

const rule: Rule = { pattern: /^[\w-]{1,64}$/, length: 32 }

/**
 * The calls of a conversation. Each has a unique id, although some servers repeat ids in each answer, and one
 * result.
 */
class Calls {
  private readonly encoders: Encoders
  private readonly used = new Set<string>()
  /** The calls of the last answer without a result, with the start of the item that answers them. */
  private readonly open: Array<{
    readonly callId: string
    readonly begun: string
    readonly isScreen: boolean
    readonly isApproval: boolean
  }> = []

  constructor(encoders: Encoders) {
    this.encoders = encoders
  }

  /** The item as JSON. */
  add({ callId, caller, checks = [], json, result = "" }: Item): string {
    if (callId === undefined) return json
    if (result === approval) {
      const begun = `{"type":"${approval}","approval_request_id":${Json.encode(callId)},`
      this.open.push({ callId, begun, isScreen: false, isApproval: true })
      return json
    }
    let id = fit(callId, rule)
    for (let count = 2; this.used.has(id); count++) id = fit(`${callId} ${count}`, rule)
    this.used.add(id)
    const acknowledged = checks.length === 0 ? "" : `"acknowledged_safety_checks":${Json.encode(checks)},`
    const called = caller === undefined ? "" : `"caller":${Json.encode(caller)},`
    const begun = `{"type":"${result}","call_id":"${id}",${called}${acknowledged}"output":`
    this.open.push({ callId, begun, isScreen: result === "computer_call_output", isApproval: false })
    return `${json.slice(0, -1)},"call_id":"${id}"}`
  }

  /** Adds the result of a call. Leaves out one that has no call. */
  answer(message: Message.ToolResult, out: Array<string>): Reason | undefined {
    const index = this.open.findIndex((call) => call.callId === message.toolCallId)
    for (const { begun, isApproval, isScreen } of index === -1 ? [] : this.open.splice(index, 1)) {
      if (isApproval) {
        out.push(`${begun}${approvalOf(message)}`)
        continue
      }
      const output = isScreen ? this.encoders.screen(message) : this.encoders.output(message)
      if (isReason(output)) return output
      const [first = "", ...rest] = output
      out.push(into(this.encoders.provider, message, `${begun}${first}}`), ...rest)
    }
    return undefined
  }

  /** The vendor rejects a call without a result. */
  settle(out: Array<string>): void {
    for (const { begun, isApproval, isScreen } of this.open.splice(0))
      if (isApproval) out.push(`${begun}"approve":false}`)
      else out.push(`${begun}${isScreen ? Json.encode(toScreen(undefined)) : '"No result was recorded."'}}`)
  }
}

/** The rest of the item that approves or denies: only a call that succeeded was approved. */
const approvalOf = ({ content, isError, outcome }: Message.ToolResult): string => {
  const reason = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")
  return isError || outcome !== "success"
    ? `"approve":false,"reason":${Json.encode(reason)}}`
    : '"approve":true}'
}

// ───────────────────────── Parameters

/** The API has no stop sequences and no thinking budget. */
const parameters = (question: Question, present: number): Json.JsonObject => {
  const { model, options, thinking, tools } = question
  const hasTools = present + tools.length + (options.hostedTools ?? []).length > 0
  const include = [
    ...(mayThink(question) ? ["reasoning.encrypted_content"] : []),
    ...(options.logprobs === undefined ? [] : ["message.output_text.logprobs"]),
    ...included(options.hostedTools)
  ]
  const own = Json.defined({
    stream: true,
    // Each request contains the complete conversation, so the vendor need not store it.
    store: options.store ?? false,
    max_output_tokens: options.maxTokens,
    temperature: options.temperature,
    top_p: options.topP,
    top_logprobs: options.logprobs,
    service_tier: options.serviceTier,
    include: include.length === 0 ? undefined : include,
    previous_response_id: options.previousResponseId,
    tool_choice: hasTools ? choice(model, options) : undefined,
    parallel_tool_calls: hasTools ? options.parallelToolCalls : undefined,
    ...toOutput(options.output),
    ...cachingFields(options, question.rule)
  })
  return Json.merge(own, thinking)
}

/** A model that does not think answers 400 to a request for its thinking. */
const mayThink = ({ rule, thinking }: Question): boolean =>
  Object.keys(thinking).length > 0 || (rule?.thinking ?? none).kind !== "none"

const none: Thinking = { kind: "none" }

const toOutput = (output: ModelOptions["output"]): Json.JsonObject =>
  output === undefined ? {} : { text: { format: { type: "json_schema", ...OpenAiSchema.format(output) } } }

// ───────────────────────── The API

// The parts of a request that the Responses API takes.

const minOutput = 16

export const api: Api = {
  title: "The Responses API",
  endpoint: "responses",
  lacks: ["seed", "stop"],
  hostedTools: ["webSearch", "codeExecution", "fileSearch", "computerUse"],
  searchLacks: ["blockedDomains", "maxUses"],
  strictTools: "closed",
  parts: () => ["detail", "allowedCallers"],
  betas: inHeader("openai-beta"),
  toolSearch: true,
  form: OpenAiSchema.usually(OpenAiSchema.openAi),
  promptChanges: { tools: "add", effort: "reasoning" },
  answersBySchema: (rule, { serves }) => rule?.structuredOutput ?? serves.vendor === "openai",
  accepts: (_rule, request, changes) => {
    const { maxTokens } = changes.options
    if (maxTokens !== undefined && maxTokens < minOutput)
      changes.set("maxTokens", minOutput, "The Responses API accepts no less.")
    return request
  }
}

// ───────────────────────── Tools

// The tools of requests for OpenAI Responses: https://platform.openai.com/docs/guides/tools, read in November 2026.

/** Encodes the tools of a provider, each of them once. */
interface Encoder {
  readonly tool: (tool: ToolDefinition) => string
  /** The tools of a request: those of the agent first, then those of the vendor. */
  readonly all: (question: Question) => ReadonlyArray<string>
}

const toolEncoder = (provider: string): Encoder => {
  const toolOf = memoize((tool: ToolDefinition) => into(provider, tool, Json.encode(toTool(tool))))
  const all: Encoder["all"] = ({ model, options: { hostedTools = [] }, tools, vendor }) => {
    // The vendor defines the tool of the agent that controls the screen.
    const own = usesScreen(hostedTools) ? tools.filter(({ name }) => name !== "computer") : tools
    const theirs = hostedTools.map((tool) => Json.merge(toHosted(model, tool), tool.vendor?.[provider] ?? {}))
    const listed = Json.array(vendor["tools"])
    const search = searchDefinitions(own, listed)
    return [...own.map(toolOf), ...[...search, ...theirs, ...listed].map(Json.encode)]
  }
  return { tool: toolOf, all }
}

const usesScreen = (hosted: ReadonlyArray<HostedToolDefinition>): boolean =>
  hosted.some(({ type }) => type === "computerUse")

const toTool = ({ allowedCallers, deferred, description, name, parameters, strict }: ToolDefinition) => ({
  type: "function",
  name,
  description,
  parameters,
  // By default the vendor changes the schema so that all members are required.
  strict: strict === true && OpenAiSchema.isClosed(parameters),
  ...(deferred === true ? { defer_loading: true } : {}),
  allowed_callers: allowedCallers
})

const toHosted = (model: string, tool: HostedToolDefinition): Json.JsonObject => {
  switch (tool.type) {
    case "webSearch": {
      const { allowedDomains, location } = tool
      return Json.defined({
        type: "web_search",
        filters: allowedDomains && { allowed_domains: allowedDomains },
        user_location: location && { type: "approximate", ...location }
      })
    }
    case "codeExecution":
      return { type: "code_interpreter", container: { type: "auto" } }
    case "fileSearch":
      return Json.defined({
        type: "file_search",
        vector_store_ids: tool.stores,
        max_num_results: tool.maxResults
      })
    case "computerUse":
      if (!isPreview(model)) return { type: "computer" }
      return {
        type: "computer_use_preview",
        display_width: tool.width,
        display_height: tool.height,
        environment: "browser"
      }
  }
}

/** Whether the model knows only the first version of the tool for the screen. */
const isPreview = (model: string): boolean => model.includes("computer-use-preview")

/** The findings of the vendor's tools that an answer has only on request. */
const included = (tools: ReadonlyArray<HostedToolDefinition> = []): ReadonlyArray<string> =>
  tools.flatMap(({ type }) => findings[type] ?? [])

const findings: Partial<Record<HostedToolDefinition["type"], string>> = {
  webSearch: "web_search_call.action.sources",
  codeExecution: "code_interpreter_call.outputs",
  fileSearch: "file_search_call.results"
}

/** The tool that the model has to call. */
const choice = (
  model: string,
  { hostedTools = [], toolChoice }: Pick<ModelOptions, "hostedTools" | "toolChoice">
): Json.Json | undefined => {
  if (typeof toolChoice !== "object") return toolChoice
  const { name } = toolChoice
  return name === "computer" && usesScreen(hostedTools)
    ? { type: isPreview(model) ? "computer_use_preview" : "computer" }
    : { type: "function", name }
}

// ───────────────────────── The search for tools

// Functions that the model gets when it searches for them at OpenAI:
// https://developers.openai.com/api/docs/guides/tools-tool-search, read in November 2026.
//
// The vendor loads each function into a namespace of its name. It rejects a call of a deferred function without a namespace,
// such as one of an answer of another model.

/** The calls of the input of a request. */
class Searches {
  private readonly loaded = new Set<string>()
  private readonly bare = new Set<string>()

  /** The item, without its namespace if the input does not have the search that loaded it. */
  place(item: Item): Item {
    for (const name of item.loads ?? []) this.loaded.add(name)
    const placed = item.loaded === undefined || this.loaded.has(item.loaded.name) ? item : item.loaded.bare
    if (placed.bare !== undefined) this.bare.add(placed.bare)
    return placed
  }

  /** The tools of the request, those not deferred that the input calls without a namespace. */
  declared(tools: Question["tools"]): Question["tools"] {
    return this.bare.size === 0 ? tools : presentIf(tools, (name) => this.bare.has(name))
  }
}

/** The tool that searches, unless the application lists it among the tools of the vendor. */
const searchDefinitions = (
  tools: Question["tools"],
  theirs: ReadonlyArray<Json.Json>
): ReadonlyArray<Json.JsonObject> =>
  tools.some(isDeferred) && !theirs.some((tool) => Json.object(tool)?.["type"] === "tool_search")
    ? [{ type: "tool_search" }]
    : []
