/** Encodes messages as blocks of Anthropic Messages: https://docs.anthropic.com/en/api/messages */
import { memoize } from "effect/Function"
import * as Result from "effect/Result"
import * as Base64 from "effect/encoding/Base64"
import type * as Message from "../../../Message.ts"
import type { ModelMessage } from "../../../Message.ts"
import type { ToolDefinition } from "../../../Provider.ts"
import { type Reason, UnsupportedContent } from "../../../ProviderError.ts"
import { isReason, type Change, type Question } from "../../Protocol.ts"
import {
  FittedIds,
  nameFor,
  paramsIn,
  type Rule,
  readDataUrl,
  into,
  keptFor,
  membersOf,
  over
} from "../writing.ts"
import * as Json from "../json.ts"
import { Placement } from "../promptChanges.ts"
import * as ToolSearch from "./api.ts"

/** A block as JSON, without the id of a call, which depends on the rest of the conversation. */
interface Block {
  readonly kind: "plain" | "thinking" | "call" | "result" | "search"
  readonly json: string
  /** The id of a call, or of the call to which a result belongs, else empty. */
  readonly id: string
  /** The set of tools to one of which a call goes. Its result names the set too. */
  readonly toolset?: string
  /** The tools that a search of the vendor found. */
  readonly found?: ReadonlyArray<string>
}

/** The blocks of a message, none if there is nothing to send. */
const encodeMessage = (
  provider: string,
  message: Message.ModelMessage,
  keepsUnsigned: boolean
): ReadonlyArray<Block> | Reason => {
  switch (message.role) {
    case "user":
      return encodeUser(provider, message)
    case "assistant":
      return lastWith(provider, message, encodeAssistant(provider, message, keepsUnsigned))
    case "toolResult":
      return encodeResult(provider, message)
  }
}

/** The answer without white space at its end. The vendor rejects it at the end of the last message. */
const trimmed = (message: Message.Assistant): Message.Assistant => {
  const { content } = message
  const at = content.findLastIndex(({ type }) => type !== "source" && type !== "media")
  const last = content[at]
  return last?.type === "text" && last.text !== last.text.trimEnd()
    ? { ...message, content: content.with(at, { ...last, text: last.text.trimEnd() }) }
    : message
}

interface WireBlock {
  readonly type: string
  readonly [field: string]: unknown
}

const plain = (block: object): Block => ({ kind: "plain", json: Json.encode(block), id: "" })

/** A block of the vendor as it came. */
const theirs = (block: Json.JsonObject): Block =>
  ToolSearch.isPart(block)
    ? { kind: "search", json: Json.encode(block), id: "", found: ToolSearch.found(block) }
    : plain(block)

/** The blocks of a message, the last of them with the members of the message: those of the vendor have no others. */
const lastWith = (
  provider: string,
  message: Message.ModelMessage,
  blocks: ReadonlyArray<Block>
): ReadonlyArray<Block> =>
  blocks.map((block, index) => (index === blocks.length - 1 ? within(provider, message, block) : block))

/** A block with the members of what it stands for. */
const within = (provider: string, from: Pick<Message.Text, "vendor">, block: Block): Block =>
  membersOf(provider, from) === undefined ? block : { ...block, json: into(provider, from, block.json) }

const isBlank = (text: string): boolean => text.trim() === ""

const encodeUser = (provider: string, message: Message.User): ReadonlyArray<Block> | Reason => {
  const blocks: Array<Block> = []
  for (const part of message.content) {
    if (part.type === "text" && isBlank(part.text)) continue
    const block = part.type === "text" ? { type: "text", text: part.text } : toMedia(part)
    if (isReason(block)) return block
    blocks.push(within(provider, part, plain(block)))
  }
  // The vendor requires a text that is not empty, and content in each message.
  if (blocks.length === 0) blocks.push(plain({ type: "text", text: "(empty message)" }))
  return lastWith(provider, message, blocks)
}

export const toMedia = (part: Message.Image | Message.File): WireBlock | Reason => {
  if (part.type === "image") return toImage(part)
  const { citations, source } = part
  const document = (source: object): WireBlock => ({ type: "document", source, citations })
  if ("fileId" in source) return document({ type: "file", file_id: source.fileId })
  if ("url" in source) return document({ type: "url", url: source.url })
  const { data, mediaType } = source
  if (mediaType.startsWith("image/")) return toImage({ type: "image", source: { data, mediaType } })
  if (mediaType === "application/pdf") {
    return document({ type: "base64", media_type: mediaType, data })
  }
  const text = /^text\/|[/+]json$/.test(mediaType) ? Base64.decodeString(data) : undefined
  return text !== undefined && Result.isSuccess(text)
    ? document({ type: "text", media_type: "text/plain", data: text.success })
    : new UnsupportedContent({ detail: `Anthropic does not take files of type ${mediaType}` })
}

const imageTypes: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"])

const toImage = ({ source }: Message.Image): WireBlock | Reason => {
  const inline = "url" in source ? readDataUrl(source.url) : source
  if (inline === undefined) return { type: "image", source: { type: "url", ...source } }
  const mediaType = inline.mediaType === "image/jpg" ? "image/jpeg" : inline.mediaType
  return imageTypes.has(mediaType)
    ? { type: "image", source: { type: "base64", media_type: mediaType, data: inline.data } }
    : new UnsupportedContent({ detail: `Anthropic does not take images of type ${mediaType}` })
}

/** The vendor rejects thinking at the end of a message, where it has no effect. */
const encodeAssistant = (
  provider: string,
  message: Message.Assistant,
  keepsUnsigned: boolean
): ReadonlyArray<Block> => {
  const blocks = message.content.flatMap((block, index) =>
    encodeBlock(provider, message, block, index, keepsUnsigned).map((encoded) =>
      block.type === "source" ? encoded : within(provider, block, encoded)
    )
  )
  return blocks.slice(0, blocks.findLastIndex(({ kind }) => kind !== "thinking") + 1)
}

const encodeBlock = (
  provider: string,
  message: Message.Assistant,
  block: Message.Assistant["content"][number],
  index: number,
  keepsUnsigned: boolean
): ReadonlyArray<Block> => {
  switch (block.type) {
    case "text":
      return encodeText(provider, message, block, index)
    case "thinking":
      return encodeThinking(provider, block, keepsUnsigned)
    case "toolCall":
      return [encodeCall(provider, block)]
    case "hostedTool":
      return encodeHosted(provider, message, block, index)
    // The text that cites a source, or the result of the search that found it, holds what the vendor wants back.
    case "source":
    case "media":
      return []
  }
}

const encodeText = (
  provider: string,
  message: Message.Assistant,
  text: Message.Text,
  index: number
): ReadonlyArray<Block> => {
  const own = keptFor(provider, text)
  const block = Json.object(own?.["block"])
  if (block !== undefined) return isUnanswered(provider, message, block, index) ? [] : [theirs(block)]
  const citations = own?.["citations"]
  return isBlank(text.text) ? [] : [plain({ type: "text", text: text.text, citations })]
}

/** A call or a result of a tool that this vendor ran. */
const encodeHosted = (
  provider: string,
  message: Message.Assistant,
  tool: Message.HostedTool,
  index: number
): ReadonlyArray<Block> => {
  const block = Json.object(keptFor(provider, tool)?.["block"])
  if (block === undefined || isUnanswered(provider, message, block, index)) return []
  const { params: input, result: content } = tool
  return [theirs({ ...block, ...Json.defined({ input, content }) })]
}

/**
 * Whether an answer was cut between the use of a vendor's tool and its result. The vendor rejects the use
 * without the result.
 */
const isUnanswered = (
  provider: string,
  { content, stopReason }: Message.Assistant,
  { id, type }: Json.JsonObject,
  index: number
): boolean =>
  stopReason !== "stop" &&
  stopReason !== "toolUse" &&
  (type === "server_tool_use" || type === "mcp_tool_use") &&
  !content
    .slice(index)
    .some((later) => Json.object(keptFor(provider, later)?.["block"])?.["tool_use_id"] === id)

/** The vendor accepts only thinking with a signature, and redacted thinking. */
const encodeThinking = (
  provider: string,
  thinking: Message.Thinking,
  keepsUnsigned: boolean
): ReadonlyArray<Block> => {
  const { data, signature } = keptFor(provider, thinking) ?? {}
  const block =
    signature !== undefined && (keepsUnsigned || signature !== "")
      ? { type: "thinking", thinking: thinking.text, signature }
      : data !== undefined
        ? { type: "redacted_thinking", data }
        : undefined
  return block === undefined ? [] : [{ kind: "thinking", json: Json.encode(block), id: "" }]
}

const encodeCall = (provider: string, call: Message.ToolCall): Block => {
  const name = nameFor(call.name, 128)
  const input = paramsIn(call.rawArguments)
  const { caller, toolset } = keptFor(provider, call) ?? {}
  const { action, ...rest } = input
  if (typeof toolset === "string" && typeof action === "string") {
    const member = { type: "tool_use", name: action, toolset_name: toolset, input: rest, caller }
    return { kind: "call", json: Json.encode(member), id: call.id, toolset }
  }
  return {
    kind: "call",
    json: Json.encode({ type: "tool_use", name, input, caller }),
    id: call.id
  }
}

/** An error result must not be empty and cannot contain images, which come after all results of the turn. */
const encodeResult = (provider: string, message: Message.ToolResult): ReadonlyArray<Block> | Reason => {
  const { content, isError, toolCallId: id } = message
  const all: Array<object> = []
  for (const part of content) {
    if (part.type === "text" && isBlank(part.text)) continue
    const block = part.type === "text" ? { type: "text", text: part.text } : toImage(part)
    if (isReason(block)) return block
    all.push(over(provider, part, block))
  }
  const result = (fields: object): Block =>
    within(provider, message, {
      kind: "result",
      json: Json.encode({ type: "tool_result", ...fields }),
      id
    })
  if (!isError) return [result(all.length === 0 ? {} : { content: all })]
  const texts = all.filter(isText)
  const images = all.filter((block) => !isText(block))
  return [
    result({
      content: texts.length === 0 ? [{ type: "text", text: "(no message)" }] : texts,
      is_error: true
    }),
    ...(images.length === 0 ? [] : [plain(attached), ...images.map(plain)])
  ]
}

const isText = (block: object): boolean => "text" in block

const attached = { type: "text", text: "Attached image(s) from tool result:" }

// ───────────────────────── Turns

// The turns of a conversation for Anthropic Messages: user and assistant alternate, starting with the user.
// Tool results belong to the user. They come first in the turn after the calls, all of them.

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
  const blocksOf = memoize((message: ModelMessage) => encodeMessage(provider, message, keepsUnsigned))
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
      const blocks = blocksOf(isAnswer && message === messages.at(-1) ? trimmed(message) : message)
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
