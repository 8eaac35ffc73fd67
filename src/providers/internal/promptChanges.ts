/**
 * Changes of the system prompt, the tools and the effort within a conversation, at its end: a vendor caches prompts by their
 * beginning, which stays as the earlier requests had it.
 *
 * Sources: `@anthropic-ai/sdk@1.14.0` BetaSystemMessageParam, BetaRequestToolAdditionBlock, BetaRequestToolRemovalBlock;
 * `openai@7.57.0` ResponseInputItem.AdditionalTools, ResponseConfigurationUpdateItemParam; `@aws-sdk/client-bedrock-runtime@3.1164.0`
 * ConversationRole, ToolAdditionBlock, ToolRemovalBlock; the vendors' guides
 * platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages and developers.openai.com/api/docs/guides/prompt-caching.
 */
import { memoize } from "effect/Function"
import * as Schema from "effect/Schema"
import { VendorMembers } from "../../Message.ts"
import type { ToolDefinition } from "../../Provider.ts"
import type { PromptChanges, Change, Changed, Changes, Prompt, Question } from "../Protocol.ts"
import * as Json from "./json.ts"
import { keep, keptFor } from "./writing.ts"
import type { Endpoint, PromptPart } from "./models/rule.ts"
import type { Server } from "./support.ts"

const Tool = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  parameters: Schema.Json,
  strict: Schema.optionalKey(Schema.Boolean),
  deferred: Schema.optionalKey(Schema.Boolean),
  inputExamples: Schema.optionalKey(Schema.Array(Schema.Record(Schema.String, Schema.Json))),
  allowedCallers: Schema.optionalKey(Schema.Array(Schema.Literals(["direct", "programmatic"]))),
  vendor: Schema.optionalKey(VendorMembers)
})

const isPrompt = Schema.is(
  Schema.Struct({
    system: Schema.String,
    tools: Schema.Array(Tool),
    thinking: Schema.Record(Schema.String, Schema.Json)
  })
)

/** The question with the prompt that the conversation began with, and with the changes since, where the model takes them. */
export const appended = (changes: Changes, server: Server, question: Question): Question => {
  const { endpoint, promptChanges: way, provider: id } = server.protocol
  const { messages, options, rule, vendor } = question
  // OpenAI takes no change of the effort of its "pro" mode (openrouter.ai/docs, GPT-6 Astra).
  const isPro = Json.object(vendor["reasoning"])?.["mode"] !== undefined
  const takes = (endpoint === undefined ? undefined : rule?.promptChanges?.[endpoint])?.filter(
    (part) => part !== "effort" || !isPro
  )
  if (
    endpoint === undefined ||
    way === undefined ||
    takes === undefined ||
    (way.isEverywhere !== true && server.serves.promptChanges !== true)
  ) {
    changes.report(
      "promptChanges",
      "append",
      "replace",
      "The model is not known to take changes at their place here."
    )
    return question
  }
  // The vendor holds the beginning of the conversation, and Converse takes no tools for a model that may call none.
  if (options.previousResponseId !== undefined) {
    const reason = "The request continues an answer that the vendor stored."
    changes.report("promptChanges", "append", "replace", reason)
    return question
  }
  if (way.needsTools === true && options.toolChoice === "none") return question
  const { system = "", thinking, tools } = question
  const present = { system, thinking, tools }
  const noted = notedIn(question, id, endpoint)
  const last = noted.at(-1)?.prompt
  const isAfterAnswer = messages.at(-1)?.role === "assistant"
  let { prompt: head } = noted[0] ?? { prompt: present }
  let before = head
  const at = new Map<number, Change>()
  for (const { index, prompt } of [...noted, { index: messages.length, prompt: present }]) {
    const change = changeOf({ way, takes, head }, before, prompt)
    const isSame = change !== undefined && isNothing(change)
    const isUnread =
      way.effortBetweenTurns === true && change?.effort !== undefined && isInLoop(messages, index)
    if (change === undefined || isUnread || (!isSame && index === messages.length && isAfterAnswer)) {
      head = prompt
      at.clear()
    } else if (!isSame) at.set(index, change)
    before = prompt
  }
  const isNew = last === undefined || Json.encode(last) !== Json.encode(present)
  const note = isNew ? { note: keep(id, { endpoint, ...Json.object(Json.parse(Json.encode(present))) }) } : {}
  return { ...question, ...note, changed: { head, changes: at, takes } }
}

/**
 * Whether the turn of the user before an answer has results of calls. Anthropic takes an effort before a turn of the user alone, and
 * nothing between calls and their results.
 */
const isInLoop = (messages: Question["messages"], index: number): boolean => {
  const end = messages.findIndex((message, at) => at >= index && speaks(message))
  const asked = messages.slice(0, end === -1 ? undefined : end)
  return asked.slice(asked.findLastIndex(speaks) + 1).some(({ role }) => role === "toolResult")
}

/** Whether an answer is sent as a turn: thinking may be left out. */
const speaks = (message: Question["messages"][number]): boolean =>
  message.role === "assistant" &&
  message.content.some((block) =>
    block.type === "text" ? block.text.trim() !== "" : block.type === "toolCall"
  )

/** The question as its conversation began: the changes since stand among its messages. */
export const begun = (question: Question): Question =>
  question.changed === undefined ? question : { ...question, ...question.changed.head }

const changesIn = ({ changed }: Pick<Question, "changed">): ReadonlyArray<Change> => [
  ...(changed?.changes.values() ?? [])
]

/** Whether the tools change within the conversation. */
export const changesTools = (question: Pick<Question, "changed">): boolean =>
  changesIn(question).some(({ added, removed }) => added.length + removed.length > 0)

/** The tools that came within the conversation. */
export const added = (question: Pick<Question, "changed">): ReadonlyArray<ToolDefinition> =>
  changesIn(question).flatMap((change) => change.added)

/** The prompts that the provider noted with answers of the same model, in their order. */
const notedIn = (
  { messages, model, notes }: Question,
  provider: string,
  endpoint: Endpoint
): ReadonlyArray<{ readonly index: number; readonly prompt: Prompt }> =>
  messages.flatMap((message, index) => {
    const note = notes?.get(message.id)
    if (message.role !== "assistant" || message.model !== model || !Json.isObject(note)) return []
    const isOurs = note["endpoint"] === endpoint && keptFor(provider, { opaque: note }) !== undefined
    const { prompt } = isOurs ? promptIn(note) : nothing
    return prompt === undefined ? [] : [{ index, prompt }]
  })

interface Found {
  readonly prompt: Prompt | undefined
}

const nothing: Found = { prompt: undefined }

const promptIn = memoize((note: Json.JsonObject): Found => {
  const prompt = Json.without(note, "endpoint", "provider")
  return isPrompt(prompt) ? { prompt } : nothing
})

// ───────────────────────── Changes

interface Means {
  readonly way: PromptChanges
  readonly takes: ReadonlyArray<PromptPart>
  readonly head: Prompt
}

/** The change from one prompt to the next, `undefined` if the vendor has no items for it. */
const changeOf = (means: Means, from: Prompt, to: Prompt): Change | undefined => {
  const { takes } = means
  const tools = toolsFrom(means, from.tools, to.tools)
  const effort = effortFrom(means, from.thinking, to.thinking)
  const isOfSystem = from.system !== to.system
  if (tools === undefined || effort === undefined) return undefined
  if (isOfSystem && (!takes.includes("system") || to.system.trim() === "")) return undefined
  return { ...tools, ...effort, ...(isOfSystem ? { system: newsOf(from.system, to.system) } : {}) }
}

const isNothing = ({ added, effort, removed, system }: Change): boolean =>
  added.length + removed.length === 0 && effort === undefined && system === undefined

/** The text for a system prompt: its rest behind the one before, or the whole in its place. */
const newsOf = (before: string, now: string): string => {
  const rest = now.slice(before.length)
  return before.trim() !== "" && now.startsWith(before) && rest.trim() !== "" ? rest : `${instead}${now}`
}

/** Stands before a system prompt that replaces the one before it. */
export const instead = "These instructions replace all system instructions before them:\n\n"

const jsonOf = memoize((tool: ToolDefinition) => Json.encode(tool))

const toolsFrom = (
  { head, takes, way }: Means,
  from: Prompt["tools"],
  to: Prompt["tools"]
): Pick<Change, "added" | "removed"> | undefined => {
  const before = new Map(from.map((tool) => [tool.name, tool]))
  const now = new Set(to.map(({ name }) => name))
  const isSame = (known: ReadonlyMap<string, ToolDefinition>) => (tool: ToolDefinition) => {
    const own = known.get(tool.name)
    return own !== undefined && jsonOf(own) === jsonOf(tool)
  }
  const added = to.filter((tool) => !isSame(before)(tool))
  const gone = from.filter(({ name }) => !now.has(name))
  const removed = gone.map(({ name }) => name)
  if (added.length + removed.length === 0) return { added, removed }
  // A vendor lets models search for the tools of the beginning.
  const replaced = added.flatMap(({ name }) => before.get(name) ?? [])
  if (!takes.includes("tools") || [...added, ...replaced].some(({ deferred }) => deferred === true))
    return undefined
  const isTaken = {
    define: () => true,
    add: () => removed.length + replaced.length === 0,
    name: () =>
      replaced.length === 0 && added.every(isSame(new Map(head.tools.map((tool) => [tool.name, tool]))))
  }
  return isTaken[way.tools]() ? { added, removed } : undefined
}

const effortFrom = (
  { takes, way: { effort: member } }: Means,
  from: Json.JsonObject,
  to: Json.JsonObject
): Pick<Change, "effort"> | undefined => {
  if (Json.encode(from) === Json.encode(to)) return {}
  if (member === undefined || !takes.includes("effort")) return undefined
  const effort = Json.text(Json.object(to[member])?.["effort"])
  const isAll =
    effort !== undefined && Json.encode(Json.merge(from, { [member]: { effort } })) === Json.encode(to)
  return isAll && Json.text(Json.object(from[member])?.["effort"]) !== undefined ? { effort } : undefined
}

// ───────────────────────── Their places

/** The turns that stand for changes. */
interface Forms<Turn> {
  /** The turn of the system prompt and the tools, `undefined` for a change of the effort alone. */
  readonly ofPrompt: (change: Change) => Turn | undefined
  readonly ofEffort?: (effort: string) => Turn
}

/**
 * Puts changes among the turns of a conversation with Claude: behind a turn of the user and before an answer, but an effort before the
 * turn of the user, since it counts from the next one on.
 */
export class Placement<Turn extends { readonly role: string }> {
  private waiting: ReadonlyArray<Change> = []
  private readonly turns: Array<Turn>
  private readonly changed: Changed | undefined
  private readonly forms: Forms<Turn>

  constructor(turns: Array<Turn>, changed: Changed | undefined, forms: Forms<Turn>) {
    this.turns = turns
    this.changed = changed
    this.forms = forms
  }

  /** Comes to a message. `isAnswer`: a turn of the model follows. */
  reach(index: number, isAnswer: boolean): void {
    const change = this.changed?.changes.get(index)
    if (change !== undefined) this.waiting = [...this.waiting, change]
    if (isAnswer && this.endsWithUser) this.place()
  }

  /** Comes to the end of the conversation. */
  end(index: number): void {
    this.reach(index, true)
    this.place()
  }

  private get endsWithUser(): boolean {
    return this.turns.at(-1)?.role === "user"
  }

  private place(): void {
    const { forms, turns, waiting } = this
    this.waiting = []
    const effort = waiting.findLast((change) => change.effort !== undefined)?.effort
    if (effort !== undefined && forms.ofEffort !== undefined)
      turns.splice(turns.length - (this.endsWithUser ? 1 : 0), 0, forms.ofEffort(effort))
    for (const change of waiting) {
      const turn = forms.ofPrompt(change)
      if (turn !== undefined) turns.push(turn)
    }
  }
}

// ───────────────────────── Marks for the cache

// Where a request marks its prompt for the cache of the vendor, and for how long, besides the marks of the application.

/**
 * The positions of marks, in order of their benefit.
 *
 * The last turn of the user serves the next request. The turn before it was the last one of the previous request: the vendor
 * searches for it, but only twenty blocks back. System prompt and tools come before the first turn.
 */
export const places = ["lastUser", "system", "tools", "userBefore"] as const

export type Place = (typeof places)[number]

/** Returns how long the mark at a place lasts, `undefined` for no mark. */
type Marks = (place: Place) => "short" | "long" | undefined

/** The parts of a prompt in the order in which a vendor reads them. */
const parts = ["theirTools", "tools", "system", "userBefore", "lastUser", "end"] as const

type Part = (typeof parts)[number]

/** The vendors reject a request with more marks. */
const maxMarks = 4

interface Request {
  readonly options: Question["options"]
  /** The places that the model takes. */
  readonly places: ReadonlyArray<Place>
  /** Whether the model takes long marks. */
  readonly takesLong: boolean
  /** The member of a block that is a mark. */
  readonly member: "cache_control" | "cachePoint"
  /** All JSON of the application. */
  readonly vendor: string
  /** The JSON of the application in each part, which comes at its start. */
  readonly theirs: Partial<Readonly<Record<Part, string>>>
}

/** Chooses the marks that the vendor accepts: four at most, and none that lasts an hour behind one that does not. */
export const chooseMarks = (request: Request): Marks => {
  const { member, options, places, takesLong, theirs, vendor } = request
  const left = options.cacheRetention === "none" ? 0 : Math.max(0, maxMarks - marksIn(vendor, member).length)
  const marked = places.slice(0, left)
  const isLong = options.cacheRetention === "long" && takesLong
  const lasting = parts.map((part) => marksIn(theirs[part] ?? "", member))
  return (place) => {
    if (!marked.includes(place)) return undefined
    const at = parts.indexOf(place)
    const mustBeLong = lasting.slice(at + 1).some((marks) => marks.includes("long"))
    const mayBeLong = !lasting.slice(0, at + 1).some((marks) => marks.includes("short"))
    return mustBeLong || (isLong && mayBeLong) ? "long" : "short"
  }
}

/** The marks in a JSON text. */
const marksIn = (json: string, member: string): ReadonlyArray<"short" | "long"> =>
  json
    .split(`"${member}":`)
    .slice(1)
    .filter((rest) => rest.startsWith("{"))
    .map((rest) => (/^\{[^}]*"ttl":"1h"/.test(rest) ? "long" : "short"))

/** The mark of each turn: those of the last turns of the user have one. */
export const marksOfTurns = <Mark>(
  turns: ReadonlyArray<{ readonly role: string }>,
  mark: (place: Place) => Mark | undefined
): ReadonlyArray<Mark | undefined> => {
  const last = turns.findLastIndex(({ role }) => role === "user")
  const before = turns.findLastIndex(({ role }, index) => role === "user" && index < last)
  return turns.map((_, index) =>
    index === last ? mark("lastUser") : index === before ? mark("userBefore") : undefined
  )
}
