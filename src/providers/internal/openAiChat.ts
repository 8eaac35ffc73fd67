/**
 * OpenAI Chat Completions, the language of most servers. Streams as OpenAI and two dozen compatible servers really send
 * them: https://platform.openai.com/docs/api-reference/chat-streaming, read in November 2026.
 */
import type { StopReason } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { parseArguments } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { Overloaded, Protocol as ProtocolFault, ServerError, StreamTruncated } from "../../ProviderError.ts"
import * as Usage from "../../Usage.ts"
import { CallIds } from "./callId.ts"
import type { Compat } from "./compat.ts"
import * as Failure from "./failure.ts"
import * as Json from "./json.ts"
import * as Opaque from "./opaque.ts"
import { encoder } from "./openAiChatRequest.ts"
import { type Call, firstAnswer, isReason, type Protocol, startOf } from "./Protocol.ts"
import { type Hole, type Kind, piece, Repeat } from "./repeat.ts"

/** The protocol for one provider, whose id marks what only it can read again. */
export const openAiChat = (provider: string, compat: Compat): Protocol<Wire, State> => ({
  name,
  encode: encoder(provider, compat),
  sentinel: "[DONE]",
  initial: (call) => initial(provider, call),
  wire,
  step: (state, event, out) => {
    step(state, event, out)
    // The usage comes after the finish reason: only the sentinel and the end of the body are the last of it.
    return false
  },
  isComplete: (state) => state.finish !== undefined,
  end
})

const name = "openai-chat"

// ───────────────────────── Wire

/** What is of use in a chunk: the first choice, and the usage. */
export interface Wire {
  readonly id: string | undefined
  readonly delta: Json.JsonObject | undefined
  readonly finish: string | undefined
  readonly usage: Json.JsonObject | undefined
}

const wire = (data: string, state: State): Wire | Reason => {
  const repeated = state.pieces.match(data)
  if (repeated !== undefined) return repeated
  const read = state.deltas.match(data) ?? readChunk(data, state)
  if (!isReason(read)) state.pieces.learn(data, () => pieceOf(read), rereadPiece)
  return read
}

const readChunk = (data: string, { call, deltas, started }: State): Wire | Reason => {
  const chunk = Json.parse(data)
  if (chunk === undefined) return Failure.badJson(data)
  if (!Json.isObject(chunk)) return Failure.badShape("Not a chunk", data)
  const failure = Failure.inBand(chunk, data, call.model)
  if (failure !== undefined) return failure
  const choice = firstAnswer(chunk["choices"])
  const delta = deltaOf(choice)
  if (delta !== undefined && !isReadable(delta)) return Failure.badShape("Not a delta", data)
  const read: Wire = {
    // Told with the first event of the answer.
    id: started ? undefined : Json.text(chunk["id"]),
    delta,
    finish: Json.text(choice?.["finish_reason"]),
    usage: usageIn(chunk, choice)
  }
  deltas.learn(data, () => frameOf(read), rereadDelta)
  return read
}

/** Groq and Moonshot have places of their own for it. */
const usageIn = (
  { usage, x_groq: groq }: Json.JsonObject,
  choice: Json.JsonObject | undefined
): Json.JsonObject | undefined => {
  const elsewhere = groq === undefined ? undefined : Json.object(groq)?.["usage"]
  return Json.object(usage ?? elsewhere ?? choice?.["usage"])
}

/** A whole answer in place of a stream has a message where a chunk has a delta; some servers send both. */
const deltaOf = (choice: Json.JsonObject | undefined): Json.JsonObject | undefined =>
  Json.object(choice?.["delta"]) ?? Json.object(choice?.["message"])

/** What holds all that differs between a chunk and the next one, mostly. */
const frameOf = (wire: Wire): Hole<Wire, Json.JsonObject> | undefined =>
  wire.delta && { member: "delta", value: wire.delta, fill: (delta) => ({ ...wire, delta }) }

const rereadDelta = (event: Json.Json | undefined): Json.JsonObject | undefined =>
  deltaOf(firstAnswer(Json.object(event)?.["choices"]))

/** The string that mostly is all that differs. */
const pieceOf = (wire: Wire): Hole<Wire, string> | undefined => {
  const { delta } = wire
  if (delta === undefined) return undefined
  for (const member of ["content", "reasoning_content", "reasoning"]) {
    const value = Json.text(delta[member])
    if (value !== undefined) {
      return { member, value, fill: (text) => ({ ...wire, delta: { ...delta, [member]: text } }) }
    }
  }
  const call = onlyCall(delta)
  const fn = Json.object(call?.["function"])
  const value = Json.text(fn?.["arguments"])
  if (value === undefined) return undefined
  const fill = (text: string) => ({
    ...wire,
    delta: { ...delta, tool_calls: [{ ...call, function: { ...fn, arguments: text } }] }
  })
  return { member: "arguments", value, fill }
}

const rereadPiece = (event: Json.Json | undefined): string | undefined => {
  const delta = rereadDelta(event)
  const call = delta === undefined ? undefined : onlyCall(delta)
  return (
    Json.text(delta?.["content"]) ??
    Json.text(delta?.["reasoning_content"]) ??
    Json.text(delta?.["reasoning"]) ??
    Json.text(Json.object(call?.["function"])?.["arguments"])
  )
}

const onlyCall = (delta: Json.JsonObject): Json.JsonObject | undefined => {
  const calls = Json.array(delta["tool_calls"])
  return calls.length === 1 ? Json.object(calls[0]) : undefined
}

const readable: Kind<Json.JsonObject> = {
  fits: (json): json is Json.JsonObject => Json.isObject(json) && isReadable(json),
  probe: { another: "" }
}

/** Whether nothing would be lost. */
const isReadable = ({ content, tool_calls: calls }: Json.JsonObject): boolean =>
  (content === undefined || content === null || typeof content === "string" || Json.isArray(content)) &&
  (calls === undefined || calls === null || Json.isArray(calls))

// ───────────────────────── Wire to domain

/** A call whose arguments are still coming. */
interface OpenCall {
  readonly contentIndex: number
  /** As the wire has it; absent if it has none. */
  readonly wireId: string | undefined
  readonly id: string
  name: string
  json: string
  extra: Json.Json | undefined
}

export interface State {
  readonly provider: string
  readonly call: Call
  started: boolean
  responseId: string | undefined
  /** The number of the next block. */
  next: number
  /** The block of text or thinking that is open, at `proseIndex`. */
  prose: "text" | "thinking" | undefined
  proseIndex: number
  proseLength: number
  /** What OpenRouter and its like want back, of the thinking that is open. */
  details: Array<Json.JsonObject>
  readonly calls: Array<OpenCall>
  readonly ids: CallIds
  readonly byIndex: Map<number, OpenCall>
  refused: boolean
  finish: string | undefined
  usage: Json.JsonObject | undefined
  readonly pieces: Repeat<Wire, string>
  readonly deltas: Repeat<Wire, Json.JsonObject>
}

const initial = (provider: string, call: Call): State => ({
  provider,
  call,
  started: false,
  responseId: undefined,
  next: 0,
  prose: undefined,
  proseIndex: 0,
  proseLength: 0,
  details: [],
  calls: [],
  ids: new CallIds(call.seed),
  byIndex: new Map(),
  refused: false,
  finish: undefined,
  usage: undefined,
  pieces: new Repeat(piece),
  deltas: new Repeat(readable)
})

const step = (state: State, { delta, finish, id, usage }: Wire, out: Array<ModelEvent>): void => {
  if (id !== undefined) state.responseId ??= id
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
}

const start = (state: State, out: Array<ModelEvent>): void => {
  state.started = true
  out.push(startOf(state, name, state.responseId))
}

/** The same thought may come under several names. */
const stepThinking = (state: State, delta: Json.JsonObject, out: Array<ModelEvent>): void => {
  const { reasoning, reasoning_content: content, reasoning_details: details, reasoning_text: said } = delta
  if ((content ?? reasoning ?? said ?? details ?? null) === null) return
  const plain = Json.text(content) ?? Json.text(reasoning) ?? Json.text(said)
  if (plain !== undefined) say(state, "thinking", plain, out)
  for (const detail of Json.array(details)) {
    if (!Json.isObject(detail)) continue
    open(state, "thinking", out)
    addDetail(state.details, detail)
    const text = Json.text(detail["text"]) ?? Json.text(detail["summary"])
    if (plain === undefined && text !== undefined) say(state, "thinking", text, out)
  }
}

/** Pieces of one detail follow each other; a signature comes as the last of them. */
const addDetail = (details: Array<Json.JsonObject>, detail: Json.JsonObject): void => {
  const last = details.at(-1)
  const isPiece = detail["type"] === "reasoning.text" || detail["type"] === "reasoning.summary"
  if (
    last === undefined ||
    !isPiece ||
    last["type"] !== detail["type"] ||
    last["index"] !== detail["index"]
  ) {
    details.push(detail)
    return
  }
  const said = Object.entries(detail).filter(([, value]) => value !== null && value !== "")
  const joined = (key: string) =>
    typeof last[key] === "string" && typeof detail[key] === "string" ? { [key]: last[key] + detail[key] } : {}
  details[details.length - 1] = {
    ...last,
    ...Object.fromEntries(said),
    ...joined("text"),
    ...joined("summary")
  }
}

/** Mistral: content as parts, thinking as parts in a part. */
const stepPart = (state: State, part: Json.JsonObject | undefined, out: Array<ModelEvent>): void => {
  const thinking = part?.["thinking"]
  if (typeof thinking === "string") say(state, "thinking", thinking, out)
  for (const thought of Json.array(thinking)) {
    say(state, "thinking", Json.text(Json.object(thought)?.["text"]) ?? "", out)
  }
  if (thinking === undefined) say(state, "text", Json.text(part?.["text"]) ?? "", out)
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
    const opaque = Opaque.make(state.provider, { reasoningDetails: state.details })
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
  // Some local servers send the value where its text belongs.
  const json = typeof given === "string" ? given : Json.isObject(given) ? JSON.stringify(given) : ""
  if (json === "") return
  call.json += json
  if (call.name !== "") out.push({ _tag: "ToolCallDelta", contentIndex: call.contentIndex, delta: json })
}

/**
 * The open call that a piece belongs to, if it does not begin a new one. Indices may be missing, start anywhere, or be 0
 * for all; ids and names may be there once, always, or never.
 */
const findCall = (
  state: State,
  wireCall: Json.JsonObject,
  called: string | undefined
): OpenCall | undefined => {
  const index = Json.number(wireCall["index"])
  const id = Json.text(wireCall["id"])
  if (index === undefined) {
    if (id !== undefined) return state.calls.find((call) => call.wireId === id)
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
  if (called !== undefined) startCall(call, out)
  return call
}

/** Says that there is a call, once its name is known, with what came before it. */
const startCall = ({ contentIndex, id, json, name }: OpenCall, out: Array<ModelEvent>): void => {
  out.push({ _tag: "ToolCallStart", contentIndex, id, name })
  if (json !== "") out.push({ _tag: "ToolCallDelta", contentIndex, delta: json })
}

// ───────────────────────── The end

const end = (state: State, told: boolean, out: Array<ModelEvent>): Reason | undefined => {
  const incomplete = missing(state, told)
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
  out.push({ _tag: "Finish", stopReason: stopReasonOf(state), ...usage })
  return undefined
}

/**
 * What the answer lacks to be complete. The proof is a finish reason. Some servers never send one: their sentinel counts,
 * if something was said and the arguments of all calls can be read.
 */
const missing = ({ calls, finish, next }: State, told: boolean): Reason | undefined => {
  if (finish === undefined) {
    if (told && next === 0) return new ProtocolFault({ kind: "empty", detail: "The answer was empty" })
    return told && calls.every((call) => parseArguments(call.json) !== undefined)
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

/** Calls make it `toolUse`, whatever the word: many servers say "stop". */
const stopReasonOf = ({ calls, finish, refused }: State): StopReason => {
  const stopReason = stopReasons[finish ?? ""] ?? "stop"
  return stopReason !== "stop" ? stopReason : calls.length > 0 ? "toolUse" : refused ? "refusal" : "stop"
}

const stopReasons: Readonly<Record<string, StopReason>> = {
  length: "length",
  max_tokens: "length",
  model_length: "length",
  model_context_window_exceeded: "length",
  content_filter: "contentFilter",
  sensitive: "contentFilter",
  refusal: "refusal"
}

const usageOf = (wireUsage: Json.JsonObject): Usage.Usage => {
  const prompt = Json.object(wireUsage["prompt_tokens_details"])
  const completion = Json.object(wireUsage["completion_tokens_details"])
  const input = Json.number(wireUsage["prompt_tokens"]) ?? 0
  const said = Json.number(wireUsage["completion_tokens"]) ?? 0
  const reasoning = Json.number(completion?.["reasoning_tokens"])
  const total = Json.number(wireUsage["total_tokens"])
  // xAI leaves the reasoning out of the completion, but not out of the total.
  const output = reasoning !== undefined && total === input + said + reasoning ? said + reasoning : said
  const cost = Json.number(wireUsage["cost"]) ?? Json.number(Json.object(wireUsage["cost"])?.["total_cost"])
  return Usage.make({
    input,
    output,
    cacheRead:
      Json.number(prompt?.["cached_tokens"]) ?? Json.number(wireUsage["prompt_cache_hit_tokens"]) ?? 0,
    cacheWrite: Json.number(prompt?.["cache_write_tokens"]) ?? 0,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total }),
    ...(cost === undefined ? {} : { cost })
  })
}
