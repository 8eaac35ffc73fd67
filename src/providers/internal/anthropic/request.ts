/** Encodes requests for Anthropic Messages: https://docs.anthropic.com/en/api/messages */
import { memoize } from "effect/Function"
import type { ModelMessage } from "../../../Message.ts"
import type { ToolDefinition } from "../../../Provider.ts"
import type { Reason } from "../../../ProviderError.ts"
import * as Hosted from "./api.ts"
import { enforceable, isClosed } from "../toolSchemas.ts"
import { maker, mayThink, render, type Turn, withMember } from "./content.ts"
import * as CacheMarks from "../promptChanges.ts"
import * as Json from "../json.ts"
import { all, into, keptFor } from "../writing.ts"
import { isReason, type Question } from "../../Protocol.ts"
import { isDeferred } from "../support.ts"

/** How a server differs from Anthropic's own address. */
export interface Dialect {
  /** The version of the API in the body, of a server whose address has the model (default: none). */
  readonly version?: string | undefined
  /** Whether thinking without a signature goes back, to a server that only speaks the protocol (default: `false`, as the vendor refuses it). */
  readonly keepsUnsigned?: boolean | undefined
}

/** Encodes bodies for one provider. Encodes each message and each tool once. */
export const encoder = (
  provider: string,
  { keepsUnsigned = false, version }: Dialect = {}
): ((question: Question) => string | Reason) => {
  const turnsOf = maker(provider, keepsUnsigned)
  const toolsFor = memoizeByVersion((tool, program) =>
    into(provider, tool, Json.encode(toTool(tool, program)))
  )
  return (asked) => {
    const question = CacheMarks.begun(asked)
    const { system = "" } = question
    const given = inContainer(question.vendor, containerOf(provider, question.messages))
    // The vendor's tools are added to those of the agent.
    const { tools: listed, ...vendor } = toVendor(given)
    const theirs = [...Json.array(listed), ...Hosted.hostedDefinitions(provider, question)]
    const offered = Hosted.declared(question)
    const toolOf = toolsFor(programOf(theirs))
    const turns = turnsOf(question, Hosted.namesOf(offered, theirs), toolOf)
    if (isReason(turns)) return turns
    const mark = marker(question, { ...given, tools: theirs }, provider)
    const search = Hosted.searchDefinitions(offered, theirs).map(Json.encode)
    const present = offered.filter((tool) => !isDeferred(tool)).map(toolOf)
    const tools = [
      ...theirs.map(Json.encode),
      ...lastMarked([...search, ...present], mark("tools")),
      // The vendor rejects a mark on them, because they are not at the start of the prompt.
      ...offered.filter(isDeferred).map(toolOf)
    ]
    const own = (name: string, json: string) => (name in vendor ? "" : `${JSON.stringify(name)}:${json},`)
    return [
      version === undefined
        ? `{${own("model", Json.encode(question.model))}`
        : `{${own("anthropic_version", Json.encode(version))}`,
      system.trim() === "" ? "" : own("system", toSystem(system, mark("system"))),
      tools.length === 0 ? "" : `"tools":[${tools.join(",")}],`,
      own("messages", toMessages(turns, mark)),
      Json.encode(
        Json.merge(parameters(question, turns, tools.length + asked.tools.length > 0), vendor)
      ).slice(1)
    ].join("")
  }
}

type Vendor = Json.JsonObject

/** Adds the id of the container that runs code of this conversation to the vendor options. */
export const inContainer = (vendor: Vendor, id: string | undefined): Vendor => {
  const { container } = vendor
  if (id === undefined || typeof container === "string") return vendor
  return { ...vendor, container: Json.isObject(container) ? { ...container, id } : id }
}

/** The container whose code waits for the results of the last calls. */
const containerOf = (provider: string, messages: ReadonlyArray<ModelMessage>): string | undefined => {
  const answer = messages.findLast((message) => message.role === "assistant")
  const calls =
    answer?.role === "assistant" ? answer.content.filter((block) => block.type === "toolCall") : []
  return calls.map((call) => Json.text(keptFor(provider, call)?.["container"])).find((id) => id !== undefined)
}

/** Renames options of other vendors. Anthropic rejects unknown members. */
const toVendor = ({ metadata, seed: _none, user, ...rest }: Vendor): Vendor => {
  const userId = Json.object(metadata)?.["user_id"] ?? user
  return userId === undefined ? rest : { ...rest, metadata: { user_id: userId } }
}

/** The version of the tool of the vendor whose programs call the tools of the agent. */
const programOf = (theirs: ReadonlyArray<Json.Json>): string => {
  const types = theirs.flatMap((tool) => Json.text(Json.object(tool)?.["type"]) ?? [])
  return types.find((type) => type.startsWith("code_execution_")) ?? "code_execution_20260120"
}

/** Encodes each tool once for each version of the tool that runs programs, which the requests of an agent seldom change. */
const memoizeByVersion = (
  encode: (tool: ToolDefinition, program: string) => string
): ((program: string) => (tool: ToolDefinition) => string) => {
  const known = new Map<string, (tool: ToolDefinition) => string>()
  return (program) => {
    const toolOf = known.get(program) ?? memoize((tool) => encode(tool, program))
    known.set(program, toolOf)
    return toolOf
  }
}

const toTool = (
  { allowedCallers, deferred, description, inputExamples, name, parameters, strict }: ToolDefinition,
  program: string
) => ({
  name,
  description,
  ...(strict === true && isClosed(parameters)
    ? { input_schema: enforceable({ name, schema: parameters }), strict }
    : { input_schema: parameters }),
  ...(deferred === true ? { defer_loading: true } : {}),
  input_examples: inputExamples,
  allowed_callers: allowedCallers?.map((caller) => (caller === "programmatic" ? program : caller))
})

// ───────────────────────── Caching

type Mark = (place: CacheMarks.Place) => string | undefined

const marker = (question: Question, vendor: Vendor, provider: string): Mark => {
  const { messages: own, options, tools: declared } = question
  const { cache_control: last, messages, system, tools } = vendor
  const later = CacheMarks.added(question)
  const [ofMessages, ofTools] = [all(provider, [...own, ...later]), all(provider, declared)]
  const marks = CacheMarks.chooseMarks({
    options,
    // The vendor itself marks the last block for a mark of the whole body.
    places: CacheMarks.places.filter((place) => place !== "lastUser" || !Json.isObject(last)),
    takesLong: true,
    member: "cache_control",
    vendor: Json.encode(vendor) + ofMessages + ofTools,
    theirs: {
      theirTools: Json.encode(tools ?? null),
      system: Json.encode(system ?? null),
      tools: ofTools,
      userBefore: ofMessages,
      lastUser: Json.encode(messages ?? null) + ofMessages,
      end: Json.encode({ cache_control: last })
    }
  })
  return (place) => {
    const lasts = marks(place)
    const ttl = lasts === "long" ? { ttl: "1h" } : {}
    return lasts === undefined
      ? undefined
      : `"cache_control":${JSON.stringify({ type: "ephemeral", ...ttl })}`
  }
}

const lastMarked = (blocks: ReadonlyArray<string>, mark: string | undefined): ReadonlyArray<string> =>
  blocks.map((json, index) =>
    index === blocks.length - 1 && !json.includes(`"cache_control":`) ? withMember(json, mark) : json
  )

const toSystem = (system: string, mark: string | undefined): string =>
  `[${withMember(Json.encode({ type: "text", text: system }), mark)}]`

const toMessages = (turns: ReadonlyArray<Turn>, mark: Mark): string => {
  const marks = CacheMarks.marksOfTurns(turns, mark)
  return `[${turns.map((turn, index) => render(turn, marks[index])).join(",")}]`
}

// ───────────────────────── Parameters

/** The default of `max_tokens`, which the API requires, for a model of unknown maximum. */
const answerTokens = 32_000

const parameters = (
  { options, rule, thinking }: Question,
  turns: ReadonlyArray<Turn>,
  hasTools: boolean
): Json.JsonObject => {
  const own = Json.defined({
    stream: true,
    max_tokens: options.maxTokens ?? rule?.maxOutput ?? answerTokens,
    temperature: options.temperature,
    top_p: options.topP,
    stop_sequences: options.stop,
    service_tier: options.serviceTier,
    tool_choice: hasTools ? toChoice(options) : undefined,
    ...toOutput(options.output)
  })
  return isRefused(thinking, turns) ? own : Json.merge(own, thinking)
}

const toChoice = ({ parallelToolCalls, toolChoice }: Question["options"]): Json.Json | undefined => {
  if (toolChoice === "none") return { type: "none" }
  const single = parallelToolCalls === false ? { disable_parallel_tool_use: true } : {}
  if (typeof toolChoice === "object") return { type: "tool", name: toolChoice.name, ...single }
  if (toolChoice === undefined && parallelToolCalls !== false) return undefined
  return { type: toolChoice === "required" ? "any" : "auto", ...single }
}

/** The vendor rejects a thinking budget in a turn that started without thinking. */
const isRefused = ({ thinking }: Json.JsonObject, turns: ReadonlyArray<Turn>): boolean =>
  Json.object(thinking)?.["type"] === "enabled" && !mayThink(turns)

const toOutput = (output: Question["options"]["output"]): Json.JsonObject =>
  output === undefined
    ? {}
    : { output_config: { format: { type: "json_schema", schema: enforceable(output) } } }
