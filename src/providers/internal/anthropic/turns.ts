/**
 * The turns of a conversation for Anthropic Messages: user and assistant alternate, starting with the user.
 * Tool results belong to the user. They come first in the turn after the calls, all of them.
 */
import { memoize } from "effect/Function"
import type { ModelMessage } from "../../../Message.ts"
import type { ToolDefinition } from "../../../Provider.ts"
import type { Reason } from "../../../ProviderError.ts"
import type { Block } from "./content.ts"
import * as Content from "./content.ts"
import { FittedIds, type Rule } from "../callId.ts"
import * as Json from "../json.ts"
import { Placement } from "../promptChanges.ts"
import { isReason } from "../../Protocol.ts"
import type { Change, Question } from "../question.ts"
import * as ToolSearch from "./toolSearch.ts"

export interface Turn {
  readonly role: "user" | "assistant" | "system"
  /** Tool results as JSON. */
  readonly results: Array<string>
  /** The other blocks, which come after the results. */
  readonly blocks: Array<string>
  readonly beginsWithThinking: boolean
  /** Members of the turn besides its content, as JSON. */
  readonly members?: string
}

/**
 * Makes turns for one provider, with the names of all tools if the model searches for some of them. Encodes each message once.
 */
export const maker = (
  provider: string,
  keepsUnsigned: boolean
): ((
  question: Pick<Question, "messages" | "model" | "changed">,
  searched: ReadonlySet<string> | undefined,
  toolOf: (tool: ToolDefinition) => string
) => ReadonlyArray<Turn> | Reason) => {
  const blocksOf = memoize((message: ModelMessage) => Content.encodeMessage(provider, message, keepsUnsigned))
  return ({ changed, messages, model }, searched, toolOf) => {
    const turns: Array<Turn> = []
    const ids = new FittedIds(rule)
    const sets = new Map<string, string>()
    const placement = new Placement(turns, changed, {
      ofPrompt: (change) => toPromptTurn(change, toolOf),
      ofEffort: toEffortTurn
    })
    for (const [index, message] of messages.entries()) {
      const isAnswer = message.role === "assistant"
      const blocks = blocksOf(isAnswer && message === messages.at(-1) ? Content.trimmed(message) : message)
      if (isReason(blocks)) return blocks
      const readable = isAnswer && message.model !== model ? blocks.filter(isForAnyModel) : blocks
      const sent = withSearches(readable, searched)
      placement.reach(index, isAnswer && sent.length > 0)
      if (sent.length > 0) add(turns, isAnswer ? "assistant" : "user", sent, ids, sets)
    }
    placement.end(messages.length)
    return turns[0]?.role === "assistant" ? [earlier, ...turns] : turns
  }
}

/** The turn as JSON. `mark` is a member to add to its last block, unless the application marked it. */
export const render = ({ blocks, members = "", results, role }: Turn, mark: string | undefined): string => {
  const content = [...results, ...blocks]
  const last = content.at(-1)
  if (last?.includes(`"cache_control":`) === false) content[content.length - 1] = withMember(last, mark)
  return `{"role":"${role}","content":[${content.join(",")}]${members}}`
}

/** The turn for a change of the system prompt or of tools, `undefined` for another change. */
const toPromptTurn = (
  { added, removed, system }: Change,
  toolOf: (tool: ToolDefinition) => string
): Turn | undefined => {
  const blocks = [
    ...(system === undefined ? [] : [Json.encode({ type: "text", text: system })]),
    ...removed.map((name) => Json.encode({ type: "tool_removal", tool: { type: "tool_reference", name } })),
    ...added.map(
      (tool) => `{"type":"tool_addition","tool":{"type":"tool_definition","definition":${toolOf(tool)}}}`
    )
  ]
  return blocks.length === 0 ? undefined : { ...silent, blocks }
}

const toEffortTurn = (effort: string): Turn => ({
  ...silent,
  members: `,"output_config":${Json.encode({ effort })}`
})

const silent: Turn = { role: "system", results: [], blocks: [], beginsWithThinking: false }

/** Adds a member to an object in JSON. */
export const withMember = (json: string, member: string | undefined): string =>
  member === undefined ? json : `${json.slice(0, -1)},${member}}`

/**
 * Whether the model may think now. The vendor counts a sequence of tool calls as one turn, which must start
 * with thinking. A turn that another model started does not.
 */
export const mayThink = (all: ReadonlyArray<Turn>): boolean => {
  const turns = all.filter(({ role }) => role !== "system")
  const asked = turns.findLastIndex(({ results, role }) => role === "user" && results.length === 0)
  return turns[asked + 1]?.beginsWithThinking ?? true
}

/** A signature is valid only for the model that made it. */
const isForAnyModel = ({ kind }: Block): boolean => kind !== "thinking"

/** Leaves out searches in a request without the tool that searches, and thinking that is then at the end. */
const withSearches = (
  blocks: ReadonlyArray<Block>,
  searched: ReadonlySet<string> | undefined
): ReadonlyArray<Block> => {
  if (!blocks.some(({ kind }) => kind === "search")) return blocks
  if (searched === undefined) {
    const rest = blocks.filter(({ kind }) => kind !== "search")
    return rest.slice(0, rest.findLastIndex(({ kind }) => kind !== "thinking") + 1)
  }
  return blocks.map((block) =>
    block.found?.every((name) => searched.has(name)) === false
      ? { ...block, json: ToolSearch.without(block.json, searched) }
      : block
  )
}

const earlier: Turn = {
  role: "user",
  results: [],
  blocks: [JSON.stringify({ type: "text", text: "(Earlier messages are left out.)" })],
  beginsWithThinking: false
}

const add = (
  turns: Array<Turn>,
  role: "user" | "assistant",
  sent: ReadonlyArray<Block>,
  ids: FittedIds,
  sets: Map<string, string>
): void => {
  const last = turns.at(-1)
  const turn =
    last?.role === role
      ? last
      : { role, results: [], blocks: [], beginsWithThinking: sent[0]?.kind === "thinking" }
  if (turn !== last) turns.push(turn)
  for (const { id, json, kind, toolset } of sent) {
    if (toolset !== undefined) sets.set(id, toolset)
    if (kind === "result") {
      const set = sets.get(id)
      const named = withMember(json, set === undefined ? undefined : `"toolset_name":${JSON.stringify(set)}`)
      turn.results.push(withMember(named, `"tool_use_id":"${ids.of(id)}"`))
    } else turn.blocks.push(kind === "call" ? withMember(json, `"id":"${ids.add(id)}"`) : json)
  }
}

const rule: Rule = { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 32 }
