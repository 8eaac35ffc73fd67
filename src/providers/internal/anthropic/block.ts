/**
 * A block of an answer of Anthropic Messages while it grows. Deltas change it in place, because a server may
 * send any number of them.
 */
import type * as Message from "../../../Message.ts"
import type { Reason } from "../../../ProviderError.ts"
import type { CallBlock, HostedBlock, Prose, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { wholeArguments } from "../../../reply/WholeArguments.ts"
import { isReason } from "../../Protocol.ts"
import { badShape, eventIn } from "../failure.ts"
import * as Json from "../json.ts"
import { keep } from "../members.ts"
import { type Found, ofCitation, ofResult } from "./content.ts"

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
  /** The members that deltas replaced or added. */
  readonly added: Map<string, Json.Json>
  /** The citations that deltas added. */
  readonly citations: Array<Json.Json>
  /** The text so far, or the JSON of the input. */
  text: string
}

export type Kind = Block["kind"]

/** The names of the vendor's tools that an answer has called, by the ids of the calls. */
export type Names = Map<string, string>

/** Opens a block at its start. */
export const open = (reply: ReplyWriter, names: Names, index: Index, begun: Json.JsonObject): Block => ({
  ...written(reply, names, begun),
  index,
  begun,
  added: new Map(),
  citations: [],
  text: ""
})

const written = (
  reply: ReplyWriter,
  names: Names,
  { id, name, tool_use_id, toolset_name, type }: Json.JsonObject
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
        to: reply.openCall(Json.text(id), Json.text(toolset_name) ?? Json.text(name) ?? "")
      }
  }
  const use = typeof type === "string" && type.endsWith("_tool_use") ? Json.text(id) : undefined
  if (use !== undefined) {
    names.set(use, Json.text(name) ?? "")
    return { kind: "use", to: reply.hostedTool(use, Json.text(name) ?? "") }
  }
  const [, tool] = /^(.+)_tool_result$/.exec(Json.text(type) ?? "") ?? []
  const called = Json.text(tool_use_id)
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
  if (block.kind === "call" && toolsetOf(block) === undefined) block.to.write(json)
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
  is_error === true || (Json.text(Json.object(content)?.["type"])?.endsWith("_error") ?? false)

/** Ends a call, which code in the vendor's container may have made: it then waits for the result. */
export const endCall = (block: Block, container: string | undefined): void => {
  if (block.kind !== "call") return
  const caller = Json.object(wireOf(block)["caller"])
  if (caller !== undefined && caller["type"] !== "direct")
    block.to.keep({ caller, container: container ?? null })
  const toolset = toolsetOf(block)
  const whole = argumentsOf(block)
  if (toolset !== undefined) {
    block.to.keep({ toolset })
    block.to.complete(whole)
  }
  block.to.end(whole)
}

/** The name of the set of tools, such as `computer`, to one of which a call goes. */
const toolsetOf = ({ begun }: Block): string | undefined => Json.text(begun["toolset_name"])

/** The arguments of a call. Some servers send the complete input with the start of the block. */
export const argumentsOf = (block: Block): string => {
  const { begun, text } = block
  const { input } = wireOf(block)
  const whole =
    Json.object(typeof input === "string" ? Json.parseShallow(wholeArguments(input)) : input) ?? {}
  const sent = text !== "" || Object.keys(whole).length === 0 ? text : JSON.stringify(whole)
  return toolsetOf(block) === undefined ? sent : withAction(Json.text(begun["name"]) ?? "", sent)
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

// ───────────────────────── Events

// Decodes the events of Anthropic Messages: https://docs.anthropic.com/en/docs/build-with-claude/streaming
//
// The `type` in the JSON identifies an event, not the name of the event in the stream, which some servers leave
// out.

/** The relevant parts of an event. */
export type Wire =
  | { readonly type: "message_start"; readonly message: Json.JsonObject }
  | { readonly type: "content_block_start"; readonly index: Index; readonly block: Json.JsonObject }
  | { readonly type: "content_block_delta"; readonly index: Index; readonly delta: Json.JsonObject }
  | { readonly type: "content_block_stop"; readonly index: Index }
  | {
      readonly type: "message_delta"
      readonly delta: Json.JsonObject | undefined
      readonly usage: Json.JsonObject | undefined
    }
  | { readonly type: "message_stop" }
  /** A complete answer instead of a stream. */
  | { readonly type: "message"; readonly message: Json.JsonObject }
  /** Pings and unknown events. The vendor documents that new events may appear. */
  | { readonly type: "other" }

/** The block of an event, `undefined` if the server leaves it out. */
export type Index = number | undefined

/** Decodes an event. A `Reason` if it reports a failure or does not belong to the protocol. */
export const readEvent = (data: string, model: string): Wire | Reason => {
  const event = eventIn(data, model, "an event")
  return isReason(event) ? event : (eventOf(event) ?? badShape("Not an event", data))
}

const eventOf = (event: Json.JsonObject): Wire | undefined => {
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
      return message && { type, message }
    }
    case "message_delta":
      return { type, delta: Json.object(event["delta"]), usage: Json.object(event["usage"]) }
    case "message_stop":
      return { type }
    case "message":
      return { type, message: event }
    default:
      return typeof type === "string" ? other : undefined
  }
}

const other: Wire = { type: "other" }
