/**
 * Encodes requests for Converse: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 */
import { memoize } from "effect/Function"
import type { Assistant, ModelMessage } from "../../../Message.ts"
import type { ToolDefinition } from "../../../Provider.ts"
import type { Reason } from "../../../ProviderError.ts"
import { isReason, type Change, type Question } from "../../Protocol.ts"
import { enforceable } from "../toolSchemas.ts"
import * as Json from "../json.ts"
import * as Members from "../writing.ts"
import { vendorAtBedrock } from "../models/rule.ts"
import * as CacheMarks from "../promptChanges.ts"
import { merge } from "../json.ts"
import { familyOf, hosted, isStrict, takesStrict } from "./api.ts"
import { type Block, encodeMessage, hole, type Way, withMembers } from "./content.ts"

/** Encodes the bodies of one provider. */
interface Encoder {
  readonly converse: (question: Question) => string | Reason
  readonly countTokens: (question: Question) => string | Reason
}

/** Makes an encoder. It encodes each message and each tool once. */
export const encoder = (provider: string): Encoder => {
  const turnsOf = maker(provider)
  const toolsOf = toolEncoder(provider)
  const parts = (asked: Question, mark: Mark): Parts | Reason => {
    const question = CacheMarks.begun(asked)
    const { tools: theirs, toolConfig, ...vendor } = question.vendor
    const config = Json.object(toolConfig) ?? {}
    const { tools: listed, ...choice } = config
    const named = [...Json.array(listed), ...Json.array(theirs)].map(Json.encode)
    const isOff = question.options.toolChoice === "none"
    const tools = isOff ? [] : [...toolsOf(question), ...hostedTools(provider, question), ...named]
    const turns = turnsOf(question, tools.length > 0)
    if (isReason(turns)) return turns
    const fields = merge(parameters(question, turns, tools.length > 0), withBeta(question, vendor))
    const { system = "" } = question
    const members = [
      own(vendor, "messages", () => toMessages(turns, mark)),
      own(vendor, "system", () => (system.trim() === "" ? undefined : toSystem(system, mark("system")))),
      tools.length === 0
        ? undefined
        : member(
            "toolConfig",
            toConfig([...tools, ...cached(mark("tools"))], merge(toChoice(question), choice))
          )
    ]
    return { members: members.filter((json) => json !== undefined), fields }
  }
  return {
    converse: (question) => {
      const made = parts(question, marker(provider, question))
      return isReason(made) ? made : toBody(made)
    },
    countTokens: (question) => {
      const made = parts(question, () => undefined)
      if (isReason(made)) return made
      const { additionalModelRequestFields } = made.fields
      const fields = Json.defined({ additionalModelRequestFields })
      return `{"input":{"converse":${toBody({ ...made, fields })}}}`
    }
  }
}

/** The members of the body with the beta of the vendor of Claude for changes of tools. */
const withBeta = (question: Question, vendor: Json.JsonObject): Json.JsonObject => {
  if (!CacheMarks.changesTools(question)) return vendor
  const own = Json.object(vendor["additionalModelRequestFields"])?.["anthropic_beta"]
  const betas = [...Json.array(own), "mid-conversation-tool-changes-2026-07-01"]
  return merge(vendor, { additionalModelRequestFields: { anthropic_beta: betas } })
}

interface Parts {
  /** Members of the body as JSON. */
  readonly members: ReadonlyArray<string>
  readonly fields: Json.JsonObject
}

const toBody = ({ fields, members }: Parts): string =>
  `{${[...members, Json.encode(fields).slice(1, -1)].filter((json) => json !== "").join(",")}}`

const member = (name: string, json: string): string => `${JSON.stringify(name)}:${json}`

/** A member of the body, unless the application sets it. */
const own = (vendor: Json.JsonObject, name: string, json: () => string | undefined): string | undefined => {
  const made = name in vendor ? undefined : json()
  return made === undefined ? undefined : member(name, made)
}

// ───────────────────────── Tools

const toolEncoder = (provider: string): ((question: Question) => ReadonlyArray<string>) => {
  const usual = memoize((tool: ToolDefinition) => toTool(tool, tool.parameters))
  const strict = memoize((tool: ToolDefinition) => toTool(tool, enforced(tool), true))
  return ({ model, tools }) =>
    tools.flatMap((tool) => {
      const encoded = isStrict(tool) && takesStrict(model) ? strict(tool) : usual(tool)
      return withMembers(provider, tool, encoded)
    })
}

const enforced = ({ name, parameters }: ToolDefinition): Json.Json =>
  enforceable({ name, schema: parameters })

const toTool = ({ description, name }: ToolDefinition, schema: Json.Json, strict?: true): string =>
  Json.encode({
    toolSpec: {
      name,
      ...(description.trim() === "" ? {} : { description }),
      inputSchema: { json: schema },
      ...(strict === undefined ? {} : { strict })
    }
  })

const hostedTools = (provider: string, { options }: Question): ReadonlyArray<string> =>
  (options.hostedTools ?? []).flatMap(({ type, vendor }) => {
    const name = hosted.get(type)
    return name === undefined ? [] : [Json.encode({ systemTool: { name, ...vendor?.[provider] } })]
  })

const toConfig = (tools: ReadonlyArray<string>, choice: Json.JsonObject): string => {
  const rest = Json.encode(choice).slice(1, -1)
  return `{"tools":[${tools.join(",")}]${rest === "" ? "" : `,${rest}`}}`
}

const toChoice = ({ model, options: { parallelToolCalls, toolChoice } }: Question): Json.JsonObject => {
  if (toolChoice === undefined || toolChoice === "auto" || toolChoice === "none") return {}
  // The choice is then in the fields of Claude.
  if (parallelToolCalls === false && familyOf(model).isClaude) return {}
  return {
    toolChoice: typeof toolChoice === "object" ? { tool: { name: toolChoice.name } } : { any: {} }
  }
}

/** The choice of Claude's own API, which alone can rule out several calls in one answer. */
const claudeChoice = ({ model, options: { parallelToolCalls, toolChoice } }: Question): Json.JsonObject => {
  if (parallelToolCalls !== false || !familyOf(model).isClaude) return {}
  const choice =
    typeof toolChoice === "object"
      ? { type: "tool", name: toolChoice.name }
      : { type: toolChoice === "required" ? "any" : "auto" }
  const fields = { tool_choice: { ...choice, disable_parallel_tool_use: true } }
  return { additionalModelRequestFields: fields }
}

// ───────────────────────── Caching

type Mark = (place: CacheMarks.Place) => string | undefined

/** The marks that the family of the model takes, besides those of the application. */
const marker = (provider: string, question: Question): Mark => {
  const { model, options, vendor } = question
  const { marks } = familyOf(model)
  const [ofMessages, ofTools] = [
    Members.all(provider, question.messages),
    Members.all(provider, question.tools)
  ]
  const { messages, system, toolConfig, tools } = vendor
  const chosen = CacheMarks.chooseMarks({
    options,
    places: CacheMarks.places.filter((place) => (place === "tools" ? marks.tools : marks.prompt)),
    takesLong: marks.long,
    member: "cachePoint",
    vendor: Json.encode(vendor) + ofMessages + ofTools,
    theirs: {
      theirTools: Json.encode([toolConfig ?? null, tools ?? null]),
      system: Json.encode(system ?? null),
      tools: ofTools,
      userBefore: ofMessages,
      lastUser: Json.encode(messages ?? null) + ofMessages
    }
  })
  return (place) => {
    const lasts = chosen(place)
    const ttl = lasts === "long" ? { ttl: "1h" } : {}
    return lasts === undefined ? undefined : JSON.stringify({ cachePoint: { type: "default", ...ttl } })
  }
}

const cached = (mark: string | undefined): ReadonlyArray<string> => (mark === undefined ? [] : [mark])

const toSystem = (system: string, mark: string | undefined): string =>
  `[${[Json.encode({ text: system }), ...cached(mark)].join(",")}]`

const toMessages = (turns: ReadonlyArray<Turn>, mark: Mark): string => {
  const marks = CacheMarks.marksOfTurns(turns, mark)
  return `[${turns.map((turn, index) => render(turn, marks[index])).join(",")}]`
}

// ───────────────────────── Parameters

const parameters = (question: Question, turns: ReadonlyArray<Turn>, hasTools: boolean): Json.JsonObject => {
  const { model, options, rule, thinking } = question
  const { maxTokens, output, serviceTier, stop = [], temperature, topP } = options
  const inferenceConfig = Json.defined({
    // Claude requires a limit, for which Bedrock sets a small one.
    maxTokens: maxTokens ?? (vendorAtBedrock(model) === "anthropic" ? rule?.maxOutput : undefined),
    temperature,
    topP,
    stopSequences: stop.length === 0 ? undefined : stop
  })
  const members = Json.defined({
    inferenceConfig: Object.keys(inferenceConfig).length === 0 ? undefined : inferenceConfig,
    serviceTier: serviceTier === undefined ? undefined : { type: serviceTier },
    // Why Claude refuses is no member of Converse itself. The server leaves a path out that the answer does not have.
    additionalModelResponseFieldPaths:
      vendorAtBedrock(model) === "anthropic" ? ["/delta/stop_details"] : undefined,
    outputConfig: output === undefined ? undefined : toOutput(output)
  })
  const chosen = hasTools ? merge(members, claudeChoice(question)) : members
  return isRefused(thinking, turns) ? chosen : merge(chosen, thinking)
}

const toOutput = (output: NonNullable<Question["options"]["output"]>): Json.JsonObject => {
  const jsonSchema = {
    schema: JSON.stringify(enforceable(output)),
    name: Members.nameFor(output.name, 64)
  }
  return { textFormat: { type: "json_schema", structure: { jsonSchema } } }
}

/** Claude rejects a thinking budget in a turn that started without thinking. */
const isRefused = (thinking: Json.JsonObject, turns: ReadonlyArray<Turn>): boolean => {
  const fields = Json.object(thinking["additionalModelRequestFields"])
  return Json.object(fields?.["thinking"])?.["type"] === "enabled" && !mayThink(turns)
}

// ───────────────────────── Turns

// The turns of a conversation for Converse: user and assistant alternate, starting with the user. Tool results belong to the
// user, and come first in the turn after the calls.

interface Turn {
  readonly role: "user" | "assistant" | "system"
  readonly results: Array<Piece>
  /** The other blocks, which come after the results. */
  readonly blocks: Array<Piece>
  readonly beginsWithThinking: boolean
}

interface Piece {
  readonly json: string
  /** Whether a cache mark may follow. Bedrock cannot convert one after a document, and rejects one after thinking. */
  readonly takesMark: boolean
}

/** Makes turns for one provider. Encodes each message once for each way in which models take messages. */
const maker = (
  provider: string
): ((question: Question, hasTools: boolean) => ReadonlyArray<Turn> | Reason) => {
  const encoders = new Map<string, (message: ModelMessage) => ReadonlyArray<Block> | Reason>()
  const encoderOf = (way: Way) => {
    const key = `${way.hasRichResults} ${way.isFlat}`
    const encoder = encoders.get(key) ?? memoize((message) => encodeMessage(way, message))
    encoders.set(key, encoder)
    return encoder
  }
  return ({ changed, messages, model }, hasTools) => {
    const { hasRichResults, ids } = familyOf(model)
    const blocksOf = encoderOf({ provider, hasRichResults, isFlat: !hasTools })
    const names = new Names(ids)
    const turns: Array<Turn> = []
    const placement = new CacheMarks.Placement(turns, changed, { ofPrompt: toPromptTurn })
    for (const [index, message] of messages.entries()) {
      const isAnswer = message.role === "assistant"
      const blocks = blocksOf(isAnswer && message === messages.at(-1) ? trimmed(message) : message)
      if (isReason(blocks)) return blocks
      const isForeign = isAnswer && message.model !== model
      const sent = isForeign ? blocks.filter(({ kind }) => !bound.has(kind)) : blocks
      placement.reach(index, isAnswer && sent.length > 0)
      if (sent.length > 0) add(turns, isAnswer ? "assistant" : "user", sent, names)
    }
    placement.end(messages.length)
    return turns[0]?.role === "assistant" ? [earlier, ...turns] : turns
  }
}

/** Blocks that only the model takes that made them: signed thinking, and the tools that the vendor runs for it. */
const bound: ReadonlySet<Block["kind"]> = new Set(["thinking", "hosted"])

/** The turn as JSON, with a cache mark after its last block that takes one, unless the application set one at its end. */
const render = ({ blocks, results, role }: Turn, mark: string | undefined): string => {
  const pieces = [...results, ...blocks]
  const content = pieces.map(({ json }) => json)
  const isMarked = content.at(-1)?.startsWith(`{"cachePoint":`) === true
  const last = mark === undefined || isMarked ? -1 : pieces.findLastIndex(({ takesMark }) => takesMark)
  if (mark !== undefined && last !== -1) content.splice(last + 1, 0, mark)
  return `{"role":"${role}","content":[${content.join(",")}]}`
}

/**
 * Whether Claude may think now with a budget. The vendor counts a sequence of tool calls as one turn, which must start with
 * thinking.
 */
const mayThink = (all: ReadonlyArray<Turn>): boolean => {
  const turns = all.filter(({ role }) => role !== "system")
  const asked = turns.findLastIndex(({ results, role }) => role === "user" && results.length === 0)
  return turns[asked + 1]?.beginsWithThinking ?? true
}

/** The answer without white space at its end. The vendor rejects it at the end of the last message. */
const trimmed = (message: Assistant): Assistant => {
  const last = message.content.at(-1)
  return last?.type === "text" && last.text !== last.text.trimEnd()
    ? { ...message, content: [...message.content.slice(0, -1), { ...last, text: last.text.trimEnd() }] }
    : message
}

const earlier: Turn = {
  role: "user",
  results: [],
  blocks: [{ json: JSON.stringify({ text: "(Earlier messages are left out.)" }), takesMark: true }],
  beginsWithThinking: false
}

/** The turn for a change. The vendor takes a tool by the name of one that it knows. */
const toPromptTurn = ({ added, removed, system }: Change): Turn => ({
  role: "system",
  results: [],
  blocks: [
    ...(system === undefined ? [] : [{ text: system }]),
    ...removed.map((name) => ({ toolRemoval: { tool: { name } } })),
    ...added.map(({ name }) => ({ toolAddition: { tool: { name } } }))
  ].map((block) => ({ json: Json.encode(block), takesMark: false })),
  beginsWithThinking: false
})

const add = (
  turns: Array<Turn>,
  role: "user" | "assistant",
  sent: ReadonlyArray<Block>,
  names: Names
): void => {
  const last = turns.at(-1)
  const turn =
    last?.role === role
      ? last
      : { role, results: [], blocks: [], beginsWithThinking: sent[0]?.kind === "thinking" }
  if (turn !== last) turns.push(turn)
  for (const block of sent) {
    const { json, kind } = block
    const piece = {
      json: json.replace(hole, names.of(block)),
      takesMark: kind !== "document" && kind !== "thinking"
    }
    if (kind === "result") turn.results.push(piece)
    else turn.blocks.push(piece)
  }
}

/** The ids of the calls and the names of the documents of a conversation, each once. */
class Names {
  private readonly ids: Members.FittedIds
  private readonly documents = new Map<string, number>()

  constructor(rule: ConstructorParameters<typeof Members.FittedIds>[0]) {
    this.ids = new Members.FittedIds(rule)
  }

  of({ key, kind }: Block): string {
    if (kind === "call") return this.ids.add(key)
    if (kind === "result") return this.ids.of(key)
    return kind === "document" ? this.document(key) : ""
  }

  private document(name: string): string {
    for (let own = name; ; own = `${name} ${this.count(name)}`) {
      if (this.documents.has(own)) continue
      this.documents.set(own, 1)
      return own
    }
  }

  private count(name: string): number {
    const count = (this.documents.get(name) ?? 1) + 1
    this.documents.set(name, count)
    return count
  }
}
