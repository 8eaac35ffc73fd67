/**
 * Anthropic Messages, as Anthropic and compatible servers really send it.
 * https://docs.anthropic.com/en/docs/build-with-claude/streaming
 *
 * Blocks without a counterpart in `Message` (searches and code that run at the vendor, their results, summaries
 * of a long conversation) become an empty text block that stores the original and returns it to the vendor.
 */
import type { Assistant, StopReason } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { parseArguments } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { Protocol as ProtocolFault, ServerError, StreamTruncated } from "../../ProviderError.ts"
import * as Usage from "../../Usage.ts"
import * as Blocks from "./block.ts"
import type { Block } from "./block.ts"
import { encoder, inContainer } from "./request.ts"
import * as Counting from "./usage.ts"
import * as Wires from "./wire.ts"
import type { Index, Wire } from "./wire.ts"
import * as Json from "../internal/json.ts"
import * as Opaque from "../internal/opaque.ts"
import { type Call, isReason, type Protocol } from "../Protocol.ts"
import { startOf } from "../internal/answerStart.ts"
import type { Question } from "../internal/question.ts"
import { piece, Repeat } from "../internal/repeat.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const anthropicMessages = (provider: string): Protocol => ({
  name,
  provider,
  endpoint: "messages",
  encode: encoder(provider),
  decoder: (call, { events }) => {
    const state = initial(provider, call)
    return {
      step: ({ data }) => {
        const event = wire(data, state)
        return isReason(event) ? event : step(state, event, events)
      },
      end: (sawEnd) => end(state, sawEnd, events),
      resume: (question) => resume(state, question)
    }
  }
})

const name = "anthropic-messages"

// ───────────────────────── Wire

const wire = (padded: string, state: State): Wire | Reason => {
  const data = Wires.unpadded(padded)
  const repeated = state.repeat.match(data)
  if (repeated !== undefined) return repeated
  const event = Wires.read(data, state.call.model)
  if (isReason(event)) return event
  if (event.type === "message_start" && isOther(state, event.message)) {
    return new StreamTruncated({ detail: "Another answer began in the middle of this one" })
  }
  state.repeat.learn(data, () => Wires.holeOf(event), Wires.rereadHole)
  return event
}

/** A gateway that retries sends a second answer after the start of the first. */
const isOther = ({ messageId }: State, message: Json.JsonObject): boolean => {
  const id = Json.text(message["id"])
  return messageId !== undefined && id !== undefined && id !== messageId
}

// ───────────────────────── Wire to domain

export interface State {
  readonly provider: string
  readonly call: Call
  readonly repeat: Repeat<Wire, string>
  started: boolean
  /** The id of the current message. An answer with pauses consists of several messages. */
  messageId: string | undefined
  /** The id of the model that answered, `undefined` if the server sends none. */
  responseModel: string | undefined
  /** All blocks of the answer, at their content indices. */
  readonly blocks: Array<Block>
  /** The open blocks, by the index of the server. */
  readonly open: Map<Index, Block>
  /** The ids of the calls. */
  readonly ids: Set<string>
  /** Whether arguments came for a block that is not a call, so that a call lacks them. */
  astray: boolean
  /** The first block of the current message. */
  from: number
  pauses: number
  stop: string | undefined
  /** The container at the vendor that runs code for this answer. */
  container: string | undefined
  /** The counts as sent. A later value replaces an earlier one. */
  usage: Json.JsonObject | undefined
  /** The usage of the messages before the current one. */
  earlier: Usage.Usage | undefined
}

const initial = (provider: string, call: Call): State => ({
  provider,
  call,
  repeat: new Repeat(piece),
  started: false,
  messageId: undefined,
  responseModel: undefined,
  blocks: [],
  open: new Map(),
  ids: new Set(),
  astray: false,
  from: 0,
  pauses: 0,
  stop: undefined,
  container: undefined,
  usage: undefined,
  earlier: undefined
})

const step = (state: State, event: Wire, out: Array<ModelEvent>): boolean => {
  switch (event.type) {
    case "content_block_delta":
      stepDelta(state, event.index, event.delta, out)
      return false
    case "content_block_start":
      begin(state, event.index, event.block, out)
      return false
    case "content_block_stop": {
      const block = at(state, event.index)
      if (block !== undefined) close(state, block, out)
      return false
    }
    case "message_start":
      stepStart(state, event.message, out)
      return false
    case "message_delta":
      stepMessage(state, event.delta, event.usage)
      return false
    case "message_stop":
      return true
    case "message":
      stepWhole(state, event.message, out)
      return true
    case "other":
      return false
  }
}

const stepStart = (state: State, message: Json.JsonObject, out: Array<ModelEvent>): void => {
  state.messageId ??= Json.text(message["id"])
  state.responseModel ??= Json.text(message["model"])
  stepMessage(state, message, Json.object(message["usage"]))
  start(state, out)
}

const start = (state: State, out: Array<ModelEvent>): void => {
  if (state.started) return
  state.started = true
  out.push(startOf({ ...state, responseId: state.messageId }, name))
}

/** Reads the members of the message as a whole. */
const stepMessage = (
  state: State,
  message: Json.JsonObject | undefined,
  usage: Json.JsonObject | undefined
): void => {
  state.stop = Json.text(message?.["stop_reason"]) ?? state.stop
  state.container = Json.text(Json.object(message?.["container"])?.["id"]) ?? state.container
  if (usage !== undefined) state.usage = Counting.count(state.usage, usage)
}

const stepWhole = (state: State, message: Json.JsonObject, out: Array<ModelEvent>): void => {
  stepStart(state, message, out)
  for (const block of Json.array(message["content"])) {
    if (Json.isObject(block)) close(state, begin(state, undefined, block, out), out)
  }
}

/** The block of an index. Without an index, the last block. */
const at = ({ blocks, open }: State, index: Index): Block | undefined =>
  open.get(index === undefined ? blocks.at(-1)?.index : index)

const kinds: ReadonlyMap<Json.Json | undefined, Block["kind"]> = new Map([
  ["text", "text"],
  ["thinking", "thinking"],
  ["redacted_thinking", "redacted"],
  ["tool_use", "call"]
])

const begin = (state: State, index: Index, wire: Json.JsonObject, out: Array<ModelEvent>): Block => {
  const unended = state.open.get(index)
  if (unended !== undefined) close(state, unended, out)
  start(state, out)
  const kind = kinds.get(wire["type"]) ?? "other"
  const contentIndex = state.blocks.length
  const id = kind === "call" ? callId(state, Json.text(wire["id"])) : ""
  const block = Blocks.make({ kind, contentIndex, index, id, begun: wire })
  state.blocks.push(block)
  state.open.set(index, block)
  out.push(opening(block))
  if (kind === "text") say(block, wire["text"], out)
  else if (kind === "thinking") say(block, wire["thinking"], out)
  return block
}

const callId = (state: State, wireId: string | undefined): string => {
  const own = wireId ?? `toolu_${state.call.seed}_${state.blocks.length}`
  const id = state.ids.has(own) ? `${own}_${state.blocks.length}` : own
  state.ids.add(id)
  return id
}

const opening = ({ begun, contentIndex, id, kind }: Block): ModelEvent => {
  switch (kind) {
    case "text":
    case "other":
      return { _tag: "TextStart", contentIndex }
    case "thinking":
    case "redacted":
      return { _tag: "ThinkingStart", contentIndex }
    case "call":
      return { _tag: "ToolCallStart", contentIndex, id, name: Json.text(begun["name"]) ?? "" }
  }
}

const stepDelta = (state: State, index: Index, delta: Json.JsonObject, out: Array<ModelEvent>): void => {
  const { type } = delta
  const block = at(state, index)
  if (type === "input_json_delta") stepInput(state, block, delta["partial_json"], out)
  else if (block?.kind === "other") Blocks.grow(block, delta)
  else if (type === "text_delta") say(begun(state, "text", block, index, out), delta["text"], out)
  else if (type === "thinking_delta") say(begun(state, "thinking", block, index, out), delta["thinking"], out)
  else if (block !== undefined) Blocks.grow(block, delta)
}

/** The open block of this kind, or a new one if the server did not announce it. */
const begun = (
  state: State,
  kind: "text" | "thinking",
  block: Block | undefined,
  index: Index,
  out: Array<ModelEvent>
): Block =>
  // A new block must not replace an open call, whose further arguments would be lost.
  block?.kind === kind ? block : begin(state, block?.kind === "call" ? undefined : index, { type: kind }, out)

const say = (block: Block, delta: Json.Json | undefined, out: Array<ModelEvent>): void => {
  if (typeof delta !== "string" || delta === "") return
  const { contentIndex, kind } = block
  block.text += delta
  out.push({ _tag: kind === "text" ? "TextDelta" : "ThinkingDelta", contentIndex, delta })
}

const stepInput = (
  state: State,
  block: Block | undefined,
  json: Json.Json | undefined,
  out: Array<ModelEvent>
): void => {
  if (block === undefined || typeof json !== "string" || json === "") return
  const { contentIndex, kind } = block
  if (kind === "call" || kind === "other") block.text += json
  else state.astray = true
  if (kind === "call") out.push({ _tag: "ToolCallDelta", contentIndex, delta: json })
}

const close = (state: State, block: Block, out: Array<ModelEvent>): void => {
  const { contentIndex, index, kind } = block
  if (state.open.get(index) === block) state.open.delete(index)
  // Only the end of the answer shows whether a call is complete.
  if (kind === "call") return
  const kept = opaqueOf(state, block)
  const opaque = kept === undefined ? {} : { opaque: kept }
  if (kind === "text" || kind === "other") out.push({ _tag: "TextEnd", contentIndex, ...opaque })
  else out.push({ _tag: "ThinkingEnd", contentIndex, ...opaque, ...hiding(block) })
}

/** Newer models hide their thinking and send only its signature. */
const hiding = ({ text }: Block): { readonly redacted?: true } => (text === "" ? { redacted: true } : {})

/** The data of a block that only the vendor can read and requires back. */
const opaqueOf = (state: State, block: Block): Json.JsonObject | undefined => {
  const { provider } = state
  const wire = Blocks.wireOf(block)
  const { caller, citations, data, signature } = wire
  switch (block.kind) {
    case "text":
      return Json.array(citations).length === 0
        ? undefined
        : Opaque.make(provider, { citations: Json.array(citations) })
    case "thinking":
      return Json.text(signature) === undefined
        ? undefined
        : Opaque.make(provider, { signature: signature ?? "" })
    case "redacted":
      return Opaque.make(provider, { data: data ?? "" })
    case "call":
      // Code in the vendor's container made this call and waits for its result.
      return Json.object(caller) === undefined || Json.object(caller)?.["type"] === "direct"
        ? undefined
        : Opaque.make(provider, { caller: caller ?? {}, container: state.container ?? null })
    case "other":
      return Opaque.make(provider, { block: { ...wire, ...inputGiven(block) } })
  }
}

const inputGiven = ({ text }: Block): Json.JsonObject => {
  const input = text === "" ? undefined : Json.object(Json.parseShallow(text))
  return input === undefined ? {} : { input }
}

// ───────────────────────── The end

const end = (state: State, sawEnd: boolean, out: Array<ModelEvent>): Reason | undefined => {
  const incomplete = missing(state, sawEnd)
  if (incomplete !== undefined) return incomplete
  start(state, out)
  const cut = new Set(state.open.values())
  for (const block of cut) close(state, block, out)
  if (isPaused(state)) return undefined
  const stopReason = stopReasonOf(state)
  for (const block of callsOf(state)) {
    // The vendor stopped the model during the arguments, which may be valid JSON so far.
    if (cut.has(block) && (stopReason === "refusal" || stopReason === "contentFilter")) continue
    const opaque = opaqueOf(state, block)
    const rawArguments = argumentsOf(block)
    const { contentIndex } = block
    out.push({ _tag: "ToolCallEnd", contentIndex, rawArguments, ...(opaque === undefined ? {} : { opaque }) })
  }
  const usage = usageOf(state)
  out.push({ _tag: "Finish", stopReason, ...(usage === undefined ? {} : { usage }) })
  return undefined
}

const callsOf = ({ blocks }: State): ReadonlyArray<Block> => blocks.filter(({ kind }) => kind === "call")

/** Some servers send the complete input with the start of the block. */
const argumentsOf = (block: Block): string => {
  const { text } = block
  const input = Json.object(Blocks.wireOf(block)["input"]) ?? {}
  return text !== "" || Object.keys(input).length === 0 ? text : JSON.stringify(input)
}

/**
 * The failure of an incomplete answer, `undefined` for a complete one. A stop reason proves completeness. Some
 * servers never send one: then the last event counts, if the answer has content and the arguments of all calls
 * are valid JSON.
 */
const missing = (state: State, sawEnd: boolean): Reason | undefined => {
  const { astray, blocks, stop } = state
  const calls = callsOf(state)
  if (astray && calls.length > 0)
    return new ProtocolFault({ kind: "badShape", detail: "The arguments of a call came for another block" })
  if (stop === undefined) {
    if (sawEnd && blocks.length === 0)
      return new ProtocolFault({ kind: "empty", detail: "The answer was empty" })
    return sawEnd && calls.every((call) => parseArguments(argumentsOf(call)) !== undefined)
      ? undefined
      : new StreamTruncated({ detail: "The answer stopped before its end" })
  }
  if (stop === "error" || stop === "network_error") {
    return new ServerError({ detail: `The answer ended with ${stop}` })
  }
  return stop === "tool_use" && calls.length === 0
    ? new ProtocolFault({ kind: "noToolCalls", detail: "The answer ended for its tool calls, and has none" })
    : undefined
}

/**
 * An answer with calls has the stop reason `toolUse`, for every stop reason of the server that means a normal
 * end.
 */
const stopReasonOf = (state: State): StopReason => {
  const { stop = "" } = state
  const hasCalls = callsOf(state).length > 0
  if (pauses.has(stop)) return hasCalls ? "toolUse" : "length"
  const stopReason = stopReasons.get(stop) ?? "stop"
  return stopReason === "stop" && hasCalls ? "toolUse" : stopReason
}

const stopReasons: ReadonlyMap<string, StopReason> = new Map([
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "refusal"],
  ["content_filter", "contentFilter"],
  ["sensitive", "contentFilter"]
])

/** The usage of all messages of the answer. */
const usageOf = ({ earlier, usage }: State): Usage.Usage | undefined => {
  const own = Counting.read(usage)
  return own === undefined || earlier === undefined ? (own ?? earlier) : Usage.add(earlier, own)
}

// ───────────────────────── Pauses

/**
 * The vendor pauses after some rounds of its own tools and after a summary. A further request continues the
 * answer.
 */
const pauses: ReadonlySet<string> = new Set(["pause_turn", "compaction"])

/** Bounds the cost of a server that always pauses. */
const maxPauses = 20

const isPaused = (state: State): boolean =>
  pauses.has(state.stop ?? "") && state.pauses < maxPauses && callsOf(state).length === 0

/** The request that continues a paused answer, with all its content so far. */
const resume = (state: State, question: Question): Question | undefined => {
  if (!isPaused(state)) return undefined
  const partial: Assistant = {
    role: "assistant",
    id: "",
    content: state.blocks.slice(state.from).map((block) => contentOf(state, block)),
    stopReason: "stop",
    provider: state.provider,
    model: question.model,
    protocol: name,
    timestamp: 0
  }
  state.pauses++
  state.from = state.blocks.length
  state.messageId = undefined
  state.stop = undefined
  state.earlier = usageOf(state)
  state.usage = undefined
  const vendor = inContainer(question.vendor, state.container)
  return { ...question, messages: [...question.messages, partial], vendor }
}

const contentOf = (state: State, block: Block): Assistant["content"][number] => {
  const { kind, text } = block
  const opaque = opaqueOf(state, block)
  const kept = opaque === undefined ? {} : { opaque }
  return kind === "thinking" || kind === "redacted"
    ? { type: "thinking", text, ...hiding(block), ...kept }
    : { type: "text", text: kind === "text" ? text : "", ...kept }
}
