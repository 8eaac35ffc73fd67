/**
 * A request in the language of Anthropic Messages: https://docs.anthropic.com/en/api/messages
 */
import type { ModelMessage } from "../../Message.ts"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import { enforceable } from "./anthropicMessagesSchema.ts"
import * as Turns from "./anthropicMessagesTurns.ts"
import { once } from "../../Once.ts"
import * as Json from "./json.ts"
import * as Opaque from "./opaque.ts"
import { isReason } from "./Protocol.ts"
import { budgets } from "./thinkingBudgets.ts"

/** Makes bodies for one provider, each message and each tool encoded once. */
export const encoder = (provider: string): ((request: ModelRequest) => string | Reason) => {
  const turnsOf = Turns.maker(provider)
  const toolOf = once((tool: ToolDefinition) => Json.encode(toTool(tool)))
  return (request) => {
    const { system = "" } = request
    const turns = turnsOf(request)
    if (isReason(turns)) return turns
    const given = inContainer(request.options.vendor ?? {}, containerOf(provider, request.messages))
    const mark = marker(request.options, Json.encode(given))
    // Searches, code and the like that run at the vendor stand beside the tools that run here.
    const { tools: theirs, ...vendor } = toVendor(given)
    const tools = [
      ...Json.array(theirs).map(Json.encode),
      ...lastMarked(request.tools.map(toolOf), mark("tools"))
    ]
    const own = (name: string, json: string) => (name in vendor ? "" : `${JSON.stringify(name)}:${json},`)
    return [
      `{${own("model", Json.encode(request.model))}`,
      system.trim() === "" ? "" : own("system", toSystem(system, mark("system"))),
      tools.length === 0 ? "" : `"tools":[${tools.join(",")}],`,
      own("messages", toMessages(turns, mark)),
      Json.encode(parameters(request.options, turns, vendor, tools.length > 0)).slice(1)
    ].join("")
  }
}

type Vendor = NonNullable<ModelOptions["vendor"]>

/** Vendor options that name the machine in which code of this conversation runs, if there is one. */
export const inContainer = (vendor: Vendor, id: string | undefined): Vendor => {
  const { container } = vendor
  if (id === undefined || typeof container === "string") return vendor
  return { ...vendor, container: Json.isObject(container) ? { ...container, id } : id }
}

/** Where code waits for the results of the calls it made. */
const containerOf = (provider: string, messages: ReadonlyArray<ModelMessage>): string | undefined => {
  const answer = messages.findLast((message) => message.role === "assistant")
  const calls =
    answer?.role === "assistant" ? answer.content.filter((block) => block.type === "toolCall") : []
  return calls
    .map((call) => Json.text(Opaque.of(provider, call)?.["container"]))
    .find((id) => id !== undefined)
}

/** In the vendor's terms what other vendors have too: it refuses members that it does not know. */
const toVendor = ({ metadata, seed: _none, user, ...rest }: Vendor): Vendor => {
  const userId = Json.object(metadata)?.["user_id"] ?? user
  return userId === undefined ? rest : { ...rest, metadata: { user_id: userId } }
}

const toTool = ({ description, name, parameters }: ToolDefinition) => ({
  name,
  description,
  input_schema: parameters
})

// ───────────────────────── Caching

/** Where the vendor is told to keep what comes before, the more useful first. */
type Place = "lastUser" | "system" | "tools" | "userBefore"

/**
 * The last turn of the user, for the next request. The one before it, which was the last one of the request before: the
 * vendor looks for it by itself, but not farther than twenty blocks back. And what comes before the first turn.
 */
const places: ReadonlyArray<Place> = ["lastUser", "system", "tools", "userBefore"]

/** A request with more marks is refused. */
const maxMarks = 4

type Mark = (place: Place) => string | undefined

/** The marks that are left, `vendor` being JSON that may hold some. */
const marker = ({ cacheRetention }: ModelOptions, vendor: string): Mark => {
  const left =
    cacheRetention === "none" ? 0 : Math.max(0, maxMarks - (vendor.split('"cache_control":').length - 1))
  const marked = places.slice(0, left)
  const ttl = cacheRetention === "long" ? { ttl: "1h" } : {}
  const mark = `"cache_control":${JSON.stringify({ type: "ephemeral", ...ttl })}`
  return (place) => (marked.includes(place) ? mark : undefined)
}

const lastMarked = (blocks: ReadonlyArray<string>, mark: string | undefined): ReadonlyArray<string> =>
  blocks.map((json, index) => (index === blocks.length - 1 ? Turns.withMember(json, mark) : json))

const toSystem = (system: string, mark: string | undefined): string =>
  `[${Turns.withMember(Json.encode({ type: "text", text: system }), mark)}]`

const toMessages = (turns: ReadonlyArray<Turns.Turn>, mark: Mark): string => {
  const last = turns.findLastIndex(({ role }) => role === "user")
  const before = turns.findLastIndex(({ role }, index) => role === "user" && index < last)
  const rendered = turns.map((turn, index) =>
    Turns.render(turn, index === last ? mark("lastUser") : index === before ? mark("userBefore") : undefined)
  )
  return `[${rendered.join(",")}]`
}

// ───────────────────────── Parameters

/** Enough for a file of some 30 kB, and not more than the smallest model still served can say. */
const answerTokens = 8192

const parameters = (
  options: ModelOptions,
  turns: ReadonlyArray<Turns.Turn>,
  vendor: Vendor,
  hasTools: boolean
): Readonly<Record<string, unknown>> => {
  const maxTokens = Json.number(vendor["max_tokens"]) ?? options.maxTokens
  const isForced = hasTools && (typeof options.toolChoice === "object" || options.toolChoice === "required")
  const thinking =
    Json.object(vendor["thinking"]) ?? (isForced ? undefined : toThinking(options, turns, maxTokens))
  return {
    stream: true,
    max_tokens: maxTokens ?? answerTokens + thinkingTokens(thinking),
    thinking,
    ...toSampling(options, thinkingTokens(thinking) > 0),
    stop_sequences: options.stop,
    tool_choice: hasTools ? toChoice(options.toolChoice) : undefined,
    ...vendor,
    ...toOutput(options.output, vendor["output_config"])
  }
}

const toChoice = (choice: ModelOptions["toolChoice"]) =>
  choice === undefined
    ? undefined
    : typeof choice === "object"
      ? { type: "tool", name: choice.name }
      : { type: choice === "required" ? "any" : choice }

/** The least the vendor takes. */
const minBudget = 1024

/**
 * A budget, which is part of `max_tokens`. None where the vendor refuses to think: with a tool that must be called,
 * with no tokens to spare, and in a turn that began without.
 */
const toThinking = (
  { thinkingBudgets, thinkingLevel: level }: ModelOptions,
  turns: ReadonlyArray<Turns.Turn>,
  maxTokens = Infinity
): Json.JsonObject | undefined => {
  if (level === undefined || level === "off" || maxTokens <= minBudget || !Turns.mayThink(turns))
    return undefined
  const wanted = Math.min(Math.floor(thinkingBudgets?.[level] ?? budgets[level]), maxTokens - minBudget)
  return { type: "enabled", budget_tokens: Math.max(minBudget, wanted) }
}

/** What thinking may take of `max_tokens`, 0 for none. */
const thinkingTokens = (thinking: Json.JsonObject | undefined): number => {
  const isOn = thinking?.["type"] === "enabled" || thinking?.["type"] === "adaptive"
  return isOn ? (Json.number(thinking["budget_tokens"]) ?? budgets.high) : 0
}

/** One of the two, as newer models refuse both; with thinking hardly any. */
const toSampling = (
  { temperature, topP }: ModelOptions,
  thinks: boolean
): Readonly<Record<string, unknown>> => {
  if (thinks) return topP !== undefined && topP >= 0.95 ? { top_p: topP } : {}
  return temperature === undefined ? { top_p: topP } : { temperature: Math.min(1, temperature) }
}

const toOutput = (
  output: ModelOptions["output"],
  given: Json.Json | undefined
): Readonly<Record<string, unknown>> =>
  output === undefined
    ? {}
    : {
        output_config: {
          format: { type: "json_schema", schema: enforceable(output) },
          ...Json.object(given)
        }
      }
