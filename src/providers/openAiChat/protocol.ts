/**
 * OpenAI Chat Completions, the protocol of most servers, as OpenAI, gateways and local servers really stream
 * it. https://platform.openai.com/docs/api-reference/chat-streaming
 */
import type { StopReason } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { parseArguments } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { Overloaded, Protocol as ProtocolFault, ServerError, StreamTruncated } from "../../ProviderError.ts"
import * as Usage from "../../Usage.ts"
import { CallIds } from "../internal/callId.ts"
import type { Compat } from "./compat.ts"
import * as Counting from "../internal/counting.ts"
import * as Json from "../internal/json.ts"
import * as Opaque from "../internal/opaque.ts"
import { Extras, isIn } from "./extras.ts"
import { encoder } from "./request.ts"
import { type Chunk, Chunks, type Wire } from "./wire.ts"
import { type Call, isReason, type Protocol } from "../Protocol.ts"
import { type Named, startOf } from "../internal/answerStart.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const openAiChat = (provider: string, compat: Compat): Protocol => ({
  name,
  provider,
  endpoint: "chat",
  encode: encoder(provider, compat),
  sentinel: "[DONE]",
  decoder: (call, { events }) => {
    const state = initial(provider, call)
    return {
      step: ({ data }) => {
        const wire = state.chunks.read(data)
        if (isReason(wire)) return wire
        step(state, wire, events)
        // The usage comes after the finish reason, so only the sentinel or the end of the body ends the answer.
        return false
      },
      isComplete: () => state.finish !== undefined,
      end: (sawEnd) => end(state, sawEnd, events)
    }
  }
})

const name = "openai-chat"

// ───────────────────────── Wire to domain

/** A call whose arguments may be incomplete. */
interface OpenCall {
  readonly contentIndex: number
  /** The id of the server, `undefined` if it sends none. */
  readonly wireId: string | undefined
  readonly id: string
  name: string
  json: string
  extra: Json.Json | undefined
}

export interface State extends Named {
  readonly provider: string
  readonly call: Call
  readonly chunks: Chunks
  started: boolean
  /** The content index of the next block. */
  next: number
  /** The kind of the open block at `proseIndex`, `undefined` if none is open. */
  prose: "text" | "thinking" | undefined
  proseIndex: number
  proseLength: number
  /** Whether the answer has text or a call. */
  hasContent: boolean
  /** Details of the open thinking block that OpenRouter and similar gateways require back. */
  details: Array<Map<string, Json.Json>>
  readonly calls: Array<OpenCall>
  readonly ids: CallIds
  readonly byIndex: Map<number, OpenCall>
  /** The first call of each id. */
  readonly byId: Map<string, OpenCall>
  refused: boolean
  finish: string | undefined
  usage: Json.JsonObject | undefined
  readonly extras: Extras
}

const initial = (provider: string, call: Call): State => ({
  provider,
  call,
  chunks: new Chunks(call.model),
  started: false,
  responseId: undefined,
  responseModel: undefined,
  next: 0,
  prose: undefined,
  proseIndex: 0,
  proseLength: 0,
  hasContent: false,
  details: [],
  calls: [],
  ids: new CallIds(call.seed),
  byIndex: new Map(),
  byId: new Map(),
  refused: false,
  finish: undefined,
  usage: undefined,
  extras: new Extras()
})

const step = (state: State, wire: Wire, out: Array<ModelEvent>): void => {
  if (wire.type === "chunk") stepChunk(state, wire, out)
  else if (wire.type === "arguments") {
    const call = findCall(state, wire.call, undefined) ?? openCall(state, wire.call, undefined, out)
    stepArguments(call, wire.text, out)
  } else say(state, wire.type, wire.text, out)
}

const stepChunk = (
  state: State,
  { delta, extras, finish, id, model, usage }: Chunk,
  out: Array<ModelEvent>
): void => {
  if (extras !== undefined) state.extras.addChunk(extras)
  if (id !== undefined) state.responseId ??= id
  if (model !== undefined) state.responseModel ??= model
  if (usage !== undefined) state.usage = usage
  if (finish !== undefined) state.finish = finish
  if (delta === undefined) return
  if (!state.started) start(state, out)
  stepThinking(state, delta, out)
  const { content } = delta
  if (typeof content === "string") say(state, "text", content, out)
  else if (Json.isArray(content)) for (const part of content) stepPart(state, Json.object(part), out)
  if (typeof delta["refusal"] === "string" && delta["refusal"] !== "") {
    state.refused = true
    say(state, "text", delta["refusal"], out)
  }
  for (const call of Json.array(delta["tool_calls"])) {
    if (Json.isObject(call)) stepCall(state, call, out)
  }
  if (!isIn(delta)) return
  state.extras.addDelta(delta)
  say(state, "text", Json.text(Json.object(delta["audio"])?.["transcript"]) ?? "", out)
}

const start = (state: State, out: Array<ModelEvent>): void => {
  state.started = true
  out.push(startOf(state, name))
}

/** Servers may send one text under several names. */
const stepThinking = (state: State, delta: Json.JsonObject, out: Array<ModelEvent>): void => {
  const { reasoning, reasoning_content: content, reasoning_details: details, reasoning_text: thought } = delta
  if ((content ?? reasoning ?? thought ?? details ?? null) === null) return
  const plain = Json.text(content) ?? Json.text(reasoning) ?? Json.text(thought)
  if (plain !== undefined) say(state, "thinking", plain, out)
  for (const detail of Json.array(details)) {
    if (!Json.isObject(detail)) continue
    open(state, "thinking", out)
    addDetail(state.details, detail)
    const text = Json.text(detail["text"]) ?? Json.text(detail["summary"])
    if (plain === undefined && text !== undefined) say(state, "thinking", text, out)
  }
}

/** The pieces of one detail are consecutive. A signature comes in the last piece. */
const addDetail = (details: Array<Map<string, Json.Json>>, detail: Json.JsonObject): void => {
  const last = details.at(-1)
  const isPiece = detail["type"] === "reasoning.text" || detail["type"] === "reasoning.summary"
  if (
    last === undefined ||
    !isPiece ||
    last.get("type") !== detail["type"] ||
    last.get("index") !== detail["index"]
  ) {
    details.push(new Map(Object.entries(detail)))
    return
  }
  for (const [key, value] of Object.entries(detail)) {
    const before = key === "text" || key === "summary" ? last.get(key) : undefined
    if (value === null || value === "") continue
    last.set(key, typeof before === "string" && typeof value === "string" ? before + value : value)
  }
}

/** Mistral sends content as parts, and thinking as parts within a part. */
const stepPart = (state: State, part: Json.JsonObject | undefined, out: Array<ModelEvent>): void => {
  const thinking = part?.["thinking"]
  if (typeof thinking === "string") say(state, "thinking", thinking, out)
  for (const thought of Json.array(thinking)) {
    say(state, "thinking", Json.text(Json.object(thought)?.["text"]) ?? "", out)
  }
  if (part === undefined || thinking !== undefined) return
  if (typeof part["text"] === "string") say(state, "text", part["text"], out)
  else state.extras.addPart(part)
}

const say = (state: State, kind: "text" | "thinking", delta: string, out: Array<ModelEvent>): void => {
  if (delta === "") return
  open(state, kind, out)
  state.proseLength += delta.length
  out.push({ _tag: kind === "text" ? "TextDelta" : "ThinkingDelta", contentIndex: state.proseIndex, delta })
}

const open = (state: State, kind: "text" | "thinking", out: Array<ModelEvent>): void => {
  if (state.prose === kind) return
  closeProse(state, out)
  state.prose = kind
  state.hasContent ||= kind === "text"
  state.proseIndex = state.next++
  state.proseLength = 0
  out.push({ _tag: kind === "text" ? "TextStart" : "ThinkingStart", contentIndex: state.proseIndex })
}

const closeProse = (state: State, out: Array<ModelEvent>): void => {
  const contentIndex = state.proseIndex
  if (state.prose === "text") out.push({ _tag: "TextEnd", contentIndex })
  else if (state.prose === "thinking" && state.details.length === 0)
    out.push({ _tag: "ThinkingEnd", contentIndex })
  else if (state.prose === "thinking") {
    const opaque = Opaque.make(state.provider, {
      reasoningDetails: state.details.map((detail) => Object.fromEntries(detail))
    })
    const redacted = state.proseLength === 0 ? { redacted: true } : {}
    out.push({ _tag: "ThinkingEnd", contentIndex, opaque, ...redacted })
    state.details = []
  }
  state.prose = undefined
}

const stepCall = (state: State, wireCall: Json.JsonObject, out: Array<ModelEvent>): void => {
  const fn = Json.object(wireCall["function"])
  const called = Json.text(fn?.["name"])
  const call = findCall(state, wireCall, called) ?? openCall(state, wireCall, called, out)
  call.extra ??= wireCall["extra_content"]
  if (call.name === "" && called !== undefined) {
    call.name = called
    startCall(call, out)
  }
  const given = fn?.["arguments"]
  // Some local servers send an object instead of its JSON text.
  const json = typeof given === "string" ? given : Json.isObject(given) ? JSON.stringify(given) : ""
  stepArguments(call, json, out)
}

const stepArguments = (call: OpenCall, delta: string, out: Array<ModelEvent>): void => {
  if (delta === "") return
  call.json += delta
  if (call.name !== "") out.push({ _tag: "ToolCallDelta", contentIndex: call.contentIndex, delta })
}

/**
 * The open call to which a piece belongs, `undefined` if the piece starts a new one. Indices may be missing,
 * start anywhere, or be 0 for all calls. Ids and names may come once, always, or never.
 */
const findCall = (
  state: State,
  wireCall: Json.JsonObject,
  called: string | undefined
): OpenCall | undefined => {
  const index = Json.number(wireCall["index"])
  const id = Json.text(wireCall["id"])
  if (index === undefined) {
    if (id !== undefined) return state.byId.get(id)
    return called === undefined ? state.calls.at(-1) : undefined
  }
  const known = state.byIndex.get(index)
  const isOther =
    id !== undefined && known?.wireId !== undefined && id !== known.wireId && called !== undefined
  return isOther ? undefined : known
}

const openCall = (
  state: State,
  wireCall: Json.JsonObject,
  called: string | undefined,
  out: Array<ModelEvent>
): OpenCall => {
  closeProse(state, out)
  state.hasContent = true
  const wireId = Json.text(wireCall["id"])
  const id = state.ids.next(wireId)
  const call: OpenCall = {
    contentIndex: state.next++,
    wireId,
    id,
    name: called ?? "",
    json: "",
    extra: undefined
  }
  state.calls.push(call)
  const index = Json.number(wireCall["index"])
  if (index !== undefined) state.byIndex.set(index, call)
  if (wireId !== undefined && !state.byId.has(wireId)) state.byId.set(wireId, call)
  if (called !== undefined) startCall(call, out)
  return call
}

/** Announces a call once its name is known, with the arguments so far. */
const startCall = ({ contentIndex, id, json, name }: OpenCall, out: Array<ModelEvent>): void => {
  out.push({ _tag: "ToolCallStart", contentIndex, id, name })
  if (json !== "") out.push({ _tag: "ToolCallDelta", contentIndex, delta: json })
}

// ───────────────────────── The end

const end = (state: State, sawEnd: boolean, out: Array<ModelEvent>): Reason | undefined => {
  const incomplete = missing(state, sawEnd)
  if (incomplete !== undefined) return incomplete
  if (!state.started) start(state, out)
  closeProse(state, out)
  for (const call of state.calls) {
    const { contentIndex, extra, json, name } = call
    if (name === "") startCall(call, out)
    const opaque = Json.isObject(extra)
      ? { opaque: Opaque.make(state.provider, { extraContent: extra }) }
      : {}
    out.push({ _tag: "ToolCallEnd", contentIndex, rawArguments: json, ...opaque })
  }
  const usage = state.usage === undefined ? {} : { usage: usageOf(state.usage) }
  out.push({ _tag: "Finish", stopReason: stopReasonOf(state), ...usage, ...keepExtras(state, out) })
  return undefined
}

/**
 * Keeps content without a block of its own in an additional text block. The text names the content if the
 * answer has no other.
 */
const keepExtras = (state: State, out: Array<ModelEvent>) => {
  const { extras } = state
  const unrepresented = extras.names
  if (unrepresented.length === 0) return {}
  const contentIndex = state.next++
  out.push({ _tag: "TextStart", contentIndex })
  if (!state.hasContent && extras.caption !== "")
    out.push({ _tag: "TextDelta", contentIndex, delta: extras.caption })
  out.push({ _tag: "TextEnd", contentIndex, opaque: Opaque.make(state.provider, extras.members) })
  return { unrepresented }
}

/**
 * The failure of an incomplete answer, `undefined` for a complete one. A finish reason proves completeness.
 * Some servers never send one: then their sentinel counts, if the answer has content and the arguments of all
 * calls are valid JSON.
 */
const missing = ({ calls, extras, finish, next }: State, sawEnd: boolean): Reason | undefined => {
  if (finish === undefined) {
    if (sawEnd && next === 0 && extras.names.length === 0)
      return new ProtocolFault({ kind: "empty", detail: "The answer was empty" })
    return sawEnd && calls.every((call) => parseArguments(call.json) !== undefined)
      ? undefined
      : new StreamTruncated({ detail: "The answer stopped before its end" })
  }
  if (finish === "insufficient_system_resource") return new Overloaded({ detail: finish })
  if (finish === "error" || finish === "network_error")
    return new ServerError({ detail: `The answer ended with ${finish}` })
  return toolFinishes.has(finish) && calls.length === 0
    ? new ProtocolFault({ kind: "noToolCalls", detail: "The answer ended for its tool calls, and has none" })
    : undefined
}

const toolFinishes: ReadonlySet<string> = new Set(["tool_calls", "tool_call", "function_call", "tool_use"])

/** An answer with calls has the stop reason `toolUse`, because many servers send `stop` for it. */
const stopReasonOf = ({ calls, finish, refused }: State): StopReason => {
  const stopReason = stopReasons.get(finish ?? "") ?? "stop"
  return stopReason !== "stop" ? stopReason : calls.length > 0 ? "toolUse" : refused ? "refusal" : "stop"
}

const stopReasons: ReadonlyMap<string, StopReason> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["content_filter", "contentFilter"],
  ["sensitive", "contentFilter"],
  ["refusal", "refusal"]
])

const usageOf = (wireUsage: Json.JsonObject): Usage.Usage => {
  const prompt = Json.object(wireUsage["prompt_tokens_details"])
  const completion = Json.object(wireUsage["completion_tokens_details"])
  const input = Counting.tokens(wireUsage["prompt_tokens"]) ?? 0
  const completionTokens = Counting.tokens(wireUsage["completion_tokens"]) ?? 0
  const reasoning = Counting.tokens(completion?.["reasoning_tokens"])
  const total = Counting.tokens(wireUsage["total_tokens"])
  // xAI excludes reasoning from the completion tokens, but includes it in the total.
  const output =
    reasoning !== undefined && total === input + completionTokens + reasoning
      ? completionTokens + reasoning
      : completionTokens
  const cost =
    Counting.cost(wireUsage["cost"]) ?? Counting.cost(Json.object(wireUsage["cost"])?.["total_cost"])
  return Usage.make({
    input,
    output,
    cacheRead:
      Counting.tokens(prompt?.["cached_tokens"]) ??
      Counting.tokens(wireUsage["prompt_cache_hit_tokens"]) ??
      0,
    cacheWrite: Counting.tokens(prompt?.["cache_write_tokens"]) ?? 0,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total }),
    ...(cost === undefined ? {} : { cost })
  })
}
