/**
 * OpenAI Chat Completions, the protocol of most servers, as OpenAI, gateways and local servers really stream
 * it. https://platform.openai.com/docs/api-reference/chat-streaming
 */
import type { StopReason } from "../../Message.ts"
import { parseArguments } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { Overloaded, Protocol as ProtocolFault, ServerError, StreamTruncated } from "../../ProviderError.ts"
import { detailIn } from "../internal/detailIn.ts"
import * as Json from "../internal/json.ts"
import { type Call, type Decoder, isReason, type Protocol } from "../Protocol.ts"
import type { CallBlock, ReplyWriter } from "../ReplyWriter.ts"
import { type Chunk, readChunk } from "./chunk.ts"
import type { Compat } from "./compat.ts"
import { Details } from "./details.ts"
import { Extras } from "./extras.ts"
import { toMedia } from "./messages.ts"
import { encoder } from "./request.ts"
import { usageOf } from "./usage.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const openAiChat = (provider: string, compat: Compat): Protocol => ({
  name: "openai-chat",
  provider,
  endpoint: "chat",
  schemas: compat.schemas,
  encode: encoder(provider, compat),
  refuses: (media) => detailIn(toMedia(compat, media)),
  sentinel: "[DONE]",
  decoder: (call, reply) => {
    const state = initial(call, reply)
    const decoder: Decoder = {
      step: ({ data }) => {
        const chunk = readChunk(data, state.model)
        if (isReason(chunk)) return chunk
        step(state, chunk)
        // The usage comes after the finish reason, so only the sentinel or the end of the body ends the answer.
        return false
      },
      isComplete: () => state.finish !== undefined,
      end: (sawEnd) => end(state, sawEnd)
    }
    return decoder
  }
})

interface State {
  readonly model: string
  readonly reply: ReplyWriter
  readonly details: Details
  readonly extras: Extras
  readonly byIndex: Map<number, CallBlock>
  /** The first call of each id of the server. */
  readonly byId: Map<string, CallBlock>
  /** The ids of the server, for calls that have one. */
  readonly wireIds: Map<CallBlock, string>
  finish: string | undefined
  usage: Json.JsonObject | undefined
  serviceTier: string | undefined
}

const initial = ({ model }: Call, reply: ReplyWriter): State => ({
  model,
  reply,
  details: new Details(reply),
  extras: new Extras(reply),
  byIndex: new Map(),
  byId: new Map(),
  wireIds: new Map(),
  finish: undefined,
  usage: undefined,
  serviceTier: undefined
})

const step = (state: State, { choice, delta, finish, id, json, model, usage }: Chunk): void => {
  const { extras, reply } = state
  extras.addChunk(json, choice)
  if (usage !== undefined) state.usage = usage
  if (finish !== undefined) state.finish = finish
  state.serviceTier = Json.text(json["service_tier"]) ?? state.serviceTier
  if (!reply.isStarted) reply.name({ responseId: id, responseModel: model })
  if (delta === undefined) return
  reply.start()
  stepThinking(state, delta)
  const { content, refusal, tool_calls: calls } = delta
  if (typeof content === "string") reply.text(content)
  else for (const part of Json.array(content)) stepPart(state, Json.object(part))
  if (typeof refusal === "string" && refusal !== "") {
    reply.isRefusal = true
    reply.text(refusal)
  }
  for (const call of Json.array(calls)) if (Json.isObject(call)) stepCall(state, call)
  extras.addDelta(delta)
}

/** Servers may send one text under several names. */
const stepThinking = ({ details, reply }: State, delta: Json.JsonObject): void => {
  const { reasoning, reasoning_content: content, reasoning_details: list, reasoning_text: thought } = delta
  const plain = Json.text(content) ?? Json.text(reasoning) ?? Json.text(thought)
  if (plain !== undefined) reply.thinking(plain)
  for (const detail of Json.array(list)) {
    if (!Json.isObject(detail)) continue
    const text = details.add(detail)
    if (plain === undefined && text !== undefined) reply.thinking(text)
  }
}

/** Mistral sends content as parts, and thinking as parts within a part. */
const stepPart = ({ extras, reply }: State, part: Json.JsonObject | undefined): void => {
  const thinking = part?.["thinking"]
  if (typeof thinking === "string") reply.thinking(thinking)
  for (const thought of Json.array(thinking)) {
    reply.thinking(Json.text(Json.object(thought)?.["text"]) ?? "")
  }
  if (part === undefined || thinking !== undefined) return
  if (typeof part["text"] === "string") reply.text(part["text"])
  else extras.addPart(part)
}

// ───────────────────────── Calls

const stepCall = (state: State, wireCall: Json.JsonObject): void => {
  const fn = Json.object(wireCall["function"])
  const called = Json.text(fn?.["name"])
  const call = findCall(state, wireCall, called) ?? openCall(state, wireCall, called)
  const extra = wireCall["extra_content"]
  if (Json.isObject(extra) && call.kept === undefined) call.keep({ extraContent: extra })
  if (called !== undefined) call.named(called)
  const given = fn?.["arguments"]
  // Some local servers send an object instead of its JSON text.
  call.write(typeof given === "string" ? given : Json.isObject(given) ? JSON.stringify(given) : "")
}

/**
 * The open call to which a piece belongs, `undefined` if the piece starts a new one. Indices may be missing,
 * start anywhere, or be 0 for all calls. Ids and names may come once, always, or never.
 */
const findCall = (
  { byId, byIndex, reply, wireIds }: State,
  wireCall: Json.JsonObject,
  called: string | undefined
): CallBlock | undefined => {
  const index = Json.number(wireCall["index"])
  const id = Json.text(wireCall["id"])
  if (index === undefined) {
    if (id !== undefined) return byId.get(id)
    return called === undefined ? reply.calls.at(-1) : undefined
  }
  const known = byIndex.get(index)
  const knownId = known && wireIds.get(known)
  const isOther = id !== undefined && knownId !== undefined && id !== knownId && called !== undefined
  return isOther ? undefined : known
}

const openCall = (state: State, wireCall: Json.JsonObject, called: string | undefined): CallBlock => {
  const { byId, byIndex, reply, wireIds } = state
  const wireId = Json.text(wireCall["id"])
  const call = reply.openCall(wireId, called)
  const index = Json.number(wireCall["index"])
  if (index !== undefined) byIndex.set(index, call)
  if (wireId !== undefined) {
    wireIds.set(call, wireId)
    if (!byId.has(wireId)) byId.set(wireId, call)
  }
  return call
}

// ───────────────────────── The end

const end = (state: State, sawEnd: boolean): Reason | undefined => {
  const incomplete = missing(state, sawEnd)
  if (incomplete !== undefined) return incomplete
  const { extras, finish = "", reply, serviceTier, usage } = state
  reply.endProse()
  const logprobs = extras.end()
  reply.finish({
    stopReason: stopReasons.get(finish) ?? "stop",
    usage: usage === undefined ? undefined : usageOf(usage),
    ...(logprobs.length === 0 ? {} : { logprobs }),
    ...(serviceTier === undefined ? {} : { serviceTier })
  })
  return undefined
}

/**
 * The failure of an incomplete answer, `undefined` for a complete one. A finish reason proves completeness.
 * Some servers never send one: then their sentinel counts, if the answer has content and the arguments of all
 * calls are valid JSON.
 */
const missing = (
  { extras, finish, reply: { calls, length } }: State,
  sawEnd: boolean
): Reason | undefined => {
  if (finish === undefined) {
    if (sawEnd && length === 0 && extras.isEmpty)
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

const stopReasons: ReadonlyMap<string, StopReason> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["content_filter", "contentFilter"],
  ["sensitive", "contentFilter"],
  ["refusal", "refusal"]
])
