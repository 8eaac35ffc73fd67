/**
 * The frames of Anthropic Messages: https://docs.anthropic.com/en/docs/build-with-claude/streaming, read in November 2026.
 *
 * The `type` in the JSON identifies an event, not the name of the event in the stream, which some servers leave out.
 */
import type * as Message from "../../../Message.ts"
import type { Reason } from "../../../ProviderError.ts"
import * as Usage from "../../../Usage.ts"
import type { CallBlock, HostedBlock, Prose, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { wholeArguments } from "../../../reply/WholeArguments.ts"
import { isReason } from "../../Protocol.ts"
import * as Counting from "../reading.ts"
import * as Json from "../json.ts"
import { keep } from "../writing.ts"

/** The relevant parts of an event. */
export type Event =
  | { readonly type: "message_start"; readonly message: Says }
  | { readonly type: "content_block_start"; readonly index: Index; readonly block: Json.JsonObject }
  /** `text_delta`, `thinking_delta`, `input_json_delta`, `signature_delta`, `citations_delta` and later ones. */
  | { readonly type: "content_block_delta"; readonly index: Index; readonly delta: Json.JsonObject }
  | { readonly type: "content_block_stop"; readonly index: Index }
  | { readonly type: "message_delta"; readonly message: Says }
  | { readonly type: "message_stop" }
  /** A complete answer instead of a stream. */
  | { readonly type: "message"; readonly message: Says }
  /** Pings and unknown events. The vendor documents that new events may appear. */
  | { readonly type: "other" }

/** The block of an event, `undefined` if the server leaves it out. */
export type Index = number | undefined

/** The facts on an answer: at its start, in a `message_delta`, or with the whole. */
export type Says = ReturnType<typeof says>
const says = Json.record({
  id: Json.text,
  model: Json.text,
  content: Json.array,
  stop_reason: Json.text,
  stop_details: Json.object,
  container: Json.record({ id: Json.text }),
  usage: Json.object
})

/** The members of a block at its start. The whole of a block that no block of `Message` stands for goes back to the vendor as it came. */
type Head = ReturnType<typeof headOf>
const headOf = Json.record({
  type: Json.text,
  id: Json.text,
  name: Json.text,
  /** The call of a result. */
  tool_use_id: Json.text,
  /** The set of tools, such as `computer`, to one of which a call goes. */
  toolset_name: Json.text,
  /** The model that takes over from the one that began the answer. */
  to: Json.record({ model: Json.text })
})

/** Decodes an event. A `Reason` if it reports a failure or does not belong to the protocol. */
export const readEvent = (data: string, model: string): Event | Reason => {
  const event = Counting.eventIn(data, model, "an event")
  return isReason(event) ? event : (eventOf(event) ?? Counting.badShape("Not an event", data))
}

const eventOf = (event: Json.JsonObject): Event | undefined => {
  const { type } = event
  const index = Json.number(event["index"])
  switch (type) {
    case "content_block_delta": {
      const delta = Json.object(event["delta"])
      return delta && { type, index, delta }
    }
    case "content_block_start": {
      const block = Json.object(event["content_block"])
      return block && { type, index, block }
    }
    case "content_block_stop":
      return { type, index }
    case "message_start": {
      const message = Json.object(event["message"])
      return message && { type, message: says(message) }
    }
    case "message_delta":
      return { type, message: says({ ...Json.object(event["delta"]), usage: event["usage"] ?? null }) }
    case "message_stop":
      return { type }
    case "message":
      return { type, message: says(event) }
    default:
      return typeof type === "string" ? other : undefined
  }
}

const other: Event = { type: "other" }

// ───────────────────────── Sources

// The sources of an answer: citations of its text, and hits of the vendor's searches.

/** A source without the data for the vendor, which the text or the result of the search keeps. */
type Found = Omit<Message.Source, "type" | "opaque">

const citation = Json.record({
  cited_text: Json.text,
  url: Json.text,
  title: Json.text,
  /** The address of a result of a search that the application gave, or any text. */
  source: Json.text,
  file_id: Json.text,
  document_title: Json.text
})

/** The source of a citation. Its place in the source stays with the text. */
const ofCitation = (json: Json.Json): ReadonlyArray<Found> => {
  if (!Json.isObject(json)) return []
  const { cited_text: citedText, document_title, file_id, source, title, url } = citation(json)
  const address = url ?? (source !== undefined && /^https?:\/\//i.test(source) ? source : undefined)
  const cited = citedText === undefined ? {} : { citedText }
  if (address !== undefined) return [{ ...page(address, title), ...cited }]
  const id = file_id ?? source
  return [
    {
      sourceType: "document",
      ...(id === undefined ? {} : { id }),
      ...titled(document_title ?? title),
      ...cited
    }
  ]
}

const hit = Json.record({
  type: Json.text,
  url: Json.text,
  title: Json.text,
  /** The document of a page that the vendor fetched. */
  content: Json.record({ title: Json.text })
})

/** The pages that a search found, or that the vendor fetched. */
const ofResult = (content: Json.Json | undefined): ReadonlyArray<Found> =>
  (Json.isArray(content) ? content : [content]).flatMap((json) => {
    const { content: fetched, title, type, url } = hit(json)
    const isPage = type === "web_search_result" || type === "web_fetch_result"
    return url !== undefined && isPage ? [page(url, title ?? fetched.title)] : []
  })

const page = (url: string, title: string | undefined): Found => ({ sourceType: "url", url, ...titled(title) })

const titled = (title: string | undefined): Pick<Found, "title"> => (title === undefined ? {} : { title })

// ───────────────────────── Blocks

// A block of an answer while it grows. Deltas change it in place, because a server may send any number of them.

/** The block of the answer to which a block of the server writes. */
type Written =
  | { readonly kind: "text" | "thinking" | "redacted" | "other"; readonly to: Prose }
  | { readonly kind: "call"; readonly to: CallBlock }
  /** A call, or the result of a call, of a tool that the vendor runs. */
  | { readonly kind: "use" | "result"; readonly to: HostedBlock }

export type Block = Written & {
  /** The index of the server. */
  readonly index: Index
  /** The block at its start. */
  readonly begun: Json.JsonObject
  readonly head: Head
  /** The members that deltas replaced or added. */
  readonly added: Map<string, Json.Json>
  /** The citations that deltas added. */
  readonly citations: Array<Json.Json>
  /** The text so far, or the JSON of the input. */
  text: string
}

/** The names of the vendor's tools that an answer has called, by the ids of the calls. */
export type Names = Map<string, string>

/** Opens a block at its start. */
export const open = (reply: ReplyWriter, names: Names, index: Index, begun: Json.JsonObject): Block => {
  const head = headOf(begun)
  return { ...written(reply, names, head), index, begun, head, added: new Map(), citations: [], text: "" }
}

const written = (
  reply: ReplyWriter,
  names: Names,
  { id, name = "", tool_use_id: called, toolset_name, type = "" }: Head
): Written => {
  switch (type) {
    case "text":
      return { kind: "text", to: reply.openText() }
    case "thinking":
      return { kind: "thinking", to: reply.openThinking() }
    case "redacted_thinking":
      return { kind: "redacted", to: reply.openThinking() }
    case "tool_use":
      return {
        kind: "call",
        to: reply.openCall(id, toolset_name ?? name)
      }
  }
  if (type.endsWith("_tool_use") && id !== undefined) {
    names.set(id, name)
    return { kind: "use", to: reply.hostedTool(id, name) }
  }
  const [, tool] = /^(.+)_tool_result$/.exec(type) ?? []
  return tool !== undefined && called !== undefined
    ? { kind: "result", to: reply.hostedTool(called, names.get(called) ?? tool) }
    : { kind: "other", to: reply.openText() }
}

/** Appends a piece of text or of thinking. */
export const say = (block: Block, delta: Json.Json | undefined): void => {
  if (typeof delta !== "string" || (block.kind !== "text" && block.kind !== "thinking")) return
  block.text += delta
  block.to.write(delta)
}

/** Appends a piece of the JSON of the input. Returns whether the block has an input. */
export const input = (block: Block, json: string): boolean => {
  if (block.kind === "text" || block.kind === "thinking" || block.kind === "redacted") return false
  block.text += json
  // The arguments of a tool of a set are complete with the name of the tool.
  if (block.kind === "call" && block.head.toolset_name === undefined) block.to.write(json)
  return true
}

/** Applies another delta: appends a citation, replaces a signature, appends text to text. */
export const grow = (
  { added, begun, citations }: Block,
  { type: _type, citation, signature, ...rest }: Json.JsonObject
): void => {
  if (citation !== undefined) citations.push(citation)
  if (signature !== undefined) added.set("signature", signature)
  for (const [field, value] of Object.entries(rest)) {
    const before = added.has(field) ? added.get(field) : begun[field]
    added.set(field, typeof before === "string" && typeof value === "string" ? before + value : value)
  }
}

/** Ends a block, which is not a call: only the end of the answer shows whether a call is complete. */
export const close = (reply: ReplyWriter, block: Block): void => {
  const wire = wireOf(block)
  switch (block.kind) {
    case "call":
      return
    case "use": {
      const { input, ...rest } = wire
      return block.to.end(input === undefined ? {} : { params: input }, { block: rest })
    }
    case "result": {
      const { content, ...rest } = wire
      block.to.end(
        { result: content ?? null, ...(failed(rest, content) ? { isError: true } : {}) },
        { block: rest }
      )
      return addSources(reply, ofResult(content))
    }
    default: {
      const kept = keptOf(block, wire)
      if (kept !== undefined) block.to.keep(kept)
      block.to.end()
      if (block.kind === "text") addSources(reply, Json.array(wire["citations"]).flatMap(ofCitation))
    }
  }
}

const addSources = (reply: ReplyWriter, sources: ReadonlyArray<Found>): void => {
  for (const source of sources) reply.source(source)
}

const failed = ({ is_error }: Json.JsonObject, content: Json.Json | undefined): boolean =>
  is_error === true || (headOf(content).type ?? "").endsWith("_error")

/** Ends a call, which code in the vendor's container may have made: it then waits for the result. */
export const endCall = (block: Block, container: string | undefined): void => {
  if (block.kind !== "call") return
  const caller = Json.object(wireOf(block)["caller"])
  if (caller !== undefined && caller["type"] !== "direct")
    block.to.keep({ caller, container: container ?? null })
  const { toolset_name: toolset } = block.head
  const whole = argumentsOf(block)
  if (toolset !== undefined) {
    block.to.keep({ toolset })
    block.to.complete(whole)
  }
  block.to.end(whole)
}

/** The arguments of a call. Some servers send the complete input with the start of the block. */
export const argumentsOf = (block: Block): string => {
  const { head, text } = block
  const { input } = wireOf(block)
  const whole =
    Json.object(typeof input === "string" ? Json.parseShallow(wholeArguments(input)) : input) ?? {}
  const sent = text !== "" || Object.keys(whole).length === 0 ? text : JSON.stringify(whole)
  return head.toolset_name === undefined ? sent : withAction(head.name ?? "", sent)
}

/** The arguments of a call of the set as a whole, whose `action` is the name of the tool. */
const withAction = (action: string, json: string): string => {
  const input = json === "" ? {} : Json.object(Json.parseShallow(json))
  return input === undefined ? json : JSON.stringify({ action, ...input })
}

/** The data of text or thinking that only the vendor can read and requires back. */
const keptOf = (block: Block, wire: Json.JsonObject): Json.JsonObject | undefined => {
  const { citations, data, signature } = wire
  switch (block.kind) {
    case "text":
      return Json.array(citations).length === 0 ? undefined : { citations: Json.array(citations) }
    case "thinking":
      return Json.text(signature) === undefined ? undefined : { signature: signature ?? "" }
    case "redacted":
      return { data: data ?? "" }
    default:
      return { block: wire }
  }
}

/** The block so far, as the server would send it. */
const wireOf = (block: Block): Json.JsonObject => {
  const { added, begun, citations, kind, text } = block
  const given = kind === "call" || text === "" ? undefined : Json.object(Json.parseShallow(text))
  return {
    ...begun,
    ...(citations.length === 0 ? {} : { citations: [...Json.array(begun["citations"]), ...citations] }),
    ...Object.fromEntries(added),
    ...(given === undefined || kind === "text" || kind === "thinking" ? {} : { input: given })
  }
}

/** The block in a message that goes back to the vendor before the answer is complete. */
export const contentOf = (provider: string, block: Block): Message.Assistant["content"][number] => {
  const { kind, text } = block
  const kept = keptOf(block, wireOf(block))
  const opaque = kept === undefined ? {} : { opaque: keep(provider, kept) }
  return kind === "thinking" || kind === "redacted"
    ? { type: "thinking", text, ...opaque }
    : { type: "text", text: kind === "text" ? text : "", ...opaque }
}

// ───────────────────────── Usage

// The usage of an answer of Anthropic Messages, which the server sends twice, with the counts known so far.

const countsOf = Json.record({
  output_tokens: Counting.tokens,
  output_tokens_details: Json.record({ thinking_tokens: Counting.tokens }),
  cache_read_input_tokens: Counting.tokens,
  cache_creation_input_tokens: Counting.tokens,
  cache_creation: Json.record({ ephemeral_1h_input_tokens: Counting.tokens }),
  server_tool_use: Json.object,
  cost: Counting.cost
})

/** Merges counts: a later value replaces an earlier one. */
export const countUsage = (before: Json.JsonObject | undefined, update: Json.JsonObject): Json.JsonObject => {
  // Some servers send zeros for input that they counted before.
  const isBlank = before !== undefined && inputOf(update) === 0 && inputOf(before) > 0
  const isNews = ([field, value]: readonly [string, Json.Json]) =>
    fields.has(field) && value !== null && !(isBlank && inputFields.includes(field))
  return { ...before, ...Object.fromEntries(Object.entries(update).filter(isNews)) }
}

/** Converts the counts, `undefined` if there are none. */
export const usageIn = (counted: Json.JsonObject | undefined): Usage.Usage | undefined =>
  Json.array(counted?.["iterations"]).reduce<Usage.Usage | undefined>((sum, iteration) => {
    const { type, ...counts } = Json.object(iteration) ?? {}
    const usage = apart.has(type) ? messageOf(counts) : undefined
    return usage === undefined ? sum : Usage.add(sum ?? Usage.zero, usage)
  }, messageOf(counted))

/** The requests of the vendor itself that the counts of the message leave out, though they cost as much. */
const apart: ReadonlySet<Json.Json | undefined> = new Set(["compaction", "advisor_message"])

const messageOf = (counted: Json.JsonObject | undefined): Usage.Usage | undefined => {
  if (counted === undefined || !Object.values(counted).some((value) => typeof value === "number"))
    return undefined
  const { cost, output_tokens: output = 0, ...counts } = countsOf(counted)
  const { cache_creation_input_tokens: cacheWrite = 0, cache_read_input_tokens: cacheRead = 0 } = counts
  const { ephemeral_1h_input_tokens: cacheWriteLong } = counts.cache_creation
  const { thinking_tokens: reasoning } = counts.output_tokens_details
  return Usage.make({
    input: inputOf(counted),
    output,
    cacheRead,
    cacheWrite,
    ...(cacheWriteLong === undefined ? {} : { cacheWriteLong }),
    ...Counting.hostedToolCalls(counts.server_tool_use),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(cost === undefined ? {} : { cost })
  })
}

const inputFields: ReadonlyArray<string> = [
  "input_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens"
]

/** The members that are read. A server may send any number of others. */
const fields: ReadonlySet<string> = new Set([
  ...inputFields,
  "output_tokens",
  "output_tokens_details",
  "cache_creation",
  "server_tool_use",
  "iterations",
  "cost",
  "service_tier"
])

/** The server counts tokens that are read from and written to a cache separately. */
const inputOf = (counted: Json.JsonObject): number =>
  inputFields.reduce((sum, field) => sum + (Counting.tokens(counted[field]) ?? 0), 0)
