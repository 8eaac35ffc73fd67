/**
 * The turns of a conversation for Converse: user and assistant alternate, starting with the user. Tool results belong to the
 * user, and come first in the turn after the calls.
 */
import { memoize } from "effect/Function"
import type { Assistant, ModelMessage } from "../../../Message.ts"
import type { Reason } from "../../../ProviderError.ts"
import { FittedIds } from "../callId.ts"
import * as Json from "../json.ts"
import { Placement } from "../promptChanges.ts"
import type { Change, Question } from "../question.ts"
import { isReason } from "../../Protocol.ts"
import type { Block, Way } from "./content.ts"
import * as Content from "./content.ts"
import * as Family from "./family.ts"

export interface Turn {
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
export const maker = (
  provider: string
): ((question: Question, hasTools: boolean) => ReadonlyArray<Turn> | Reason) => {
  const encoders = new Map<string, (message: ModelMessage) => ReadonlyArray<Block> | Reason>()
  const encoderOf = (way: Way) => {
    const key = `${way.hasRichResults} ${way.isFlat}`
    const encoder = encoders.get(key) ?? memoize((message) => Content.encodeMessage(way, message))
    encoders.set(key, encoder)
    return encoder
  }
  return ({ changed, messages, model }, hasTools) => {
    const { hasRichResults, ids } = Family.of(model)
    const blocksOf = encoderOf({ provider, hasRichResults, isFlat: !hasTools })
    const names = new Names(ids)
    const turns: Array<Turn> = []
    const placement = new Placement(turns, changed, { ofPrompt: toPromptTurn })
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
export const render = ({ blocks, results, role }: Turn, mark: string | undefined): string => {
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
export const mayThink = (all: ReadonlyArray<Turn>): boolean => {
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
      json: json.replace(Content.hole, names.of(block)),
      takesMark: kind !== "document" && kind !== "thinking"
    }
    if (kind === "result") turn.results.push(piece)
    else turn.blocks.push(piece)
  }
}

/** The ids of the calls and the names of the documents of a conversation, each once. */
class Names {
  private readonly ids: FittedIds
  private readonly documents = new Map<string, number>()

  constructor(rule: ConstructorParameters<typeof FittedIds>[0]) {
    this.ids = new FittedIds(rule)
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
