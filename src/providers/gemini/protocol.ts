/**
 * Gemini's streaming `generateContent`, as Google's two APIs and gateways really send it.
 * https://ai.google.dev/api/generate-content, read in November 2026.
 */
import type { StopReason } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { InvalidRequest, ServerError, StreamTruncated } from "../../ProviderError.ts"
import * as Usage from "../../Usage.ts"
import { CallIds } from "../internal/callId.ts"
import * as Failure from "../internal/failure.ts"
import { Arguments } from "./arguments.ts"
import { encoder } from "./request.ts"
import * as Counting from "../internal/counting.ts"
import * as Json from "../internal/json.ts"
import * as Opaque from "../internal/opaque.ts"
import { type Call, isReason, type Protocol } from "../Protocol.ts"
import { type Named, startOf } from "../internal/answerStart.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const googleGenerate = (provider: string): Protocol => ({
  name,
  provider,
  endpoint: "generateContent",
  encode: encoder(provider),
  decoder: (call, { events }) => {
    const state = initial(provider, call)
    return {
      step: ({ data }) => {
        const event = wire(data, state)
        if (isReason(event)) return event
        const isLast = endsWith(state, event)
        step(state, event, events)
        return isLast
      },
      isComplete: () => state.finish !== undefined || state.blocked,
      end: (sawEnd) => end(state, sawEnd, events)
    }
  }
})

const name = "google-generative"

// ───────────────────────── Wire

/** The relevant parts of a chunk: the first candidate, the reason why the prompt was blocked, and the usage. */
export interface Wire {
  readonly id: string | undefined
  readonly model: string | undefined
  readonly candidate: Json.JsonObject | undefined
  readonly parts: ReadonlyArray<Json.Json>
  readonly blocked: Json.JsonObject | undefined
  readonly usage: Json.JsonObject | undefined
}

const wire = (data: string, state: State): Wire | Reason => {
  const chunk = Json.parse(data)
  if (chunk === undefined) return Failure.badJson(data)
  if (!Json.isObject(chunk)) return Failure.badShape("Not a chunk", data)
  const failure = Failure.inBand(chunk, data, state.call.model)
  if (failure !== undefined) return failure
  const { candidates, modelVersion, promptFeedback, responseId, usageMetadata } = chunk
  const candidate = Json.firstAnswer(candidates)
  const content = candidate?.["content"]
  const parts = Json.object(content)?.["parts"]
  if (!isAbsentOr(candidates, Json.isArray)) return Failure.badShape("Not a list of candidates", data)
  if (!isAbsentOr(content, Json.isObject) || !isAbsentOr(parts, Json.isArray)) {
    return Failure.badShape("Not a content", data)
  }
  const feedback = Json.object(promptFeedback)
  return {
    id: Json.text(responseId),
    model: Json.text(modelVersion),
    candidate,
    parts: Json.array(parts),
    blocked: Json.text(feedback?.["blockReason"]) === undefined ? undefined : feedback,
    usage: Json.object(usageMetadata)
  }
}

const isAbsentOr = (json: Json.Json | undefined, is: (json: Json.Json | undefined) => boolean): boolean =>
  json === undefined || json === null || is(json)

/**
 * Whether nothing follows. Some servers send a finish reason with every chunk, so that only the end of the body
 * ends the answer. If an earlier chunk had none, the chunk with a finish reason and usage is the last one.
 */
const endsWith = ({ hadUnfinished }: State, { candidate, usage }: Wire): boolean =>
  hadUnfinished && usage !== undefined && Json.text(candidate?.["finishReason"]) !== undefined

// ───────────────────────── Wire to domain

/** A call whose arguments may be incomplete. */
interface OpenCall {
  readonly contentIndex: number
  readonly id: string
  readonly name: string
  readonly arguments: Arguments
  /** The id of the server, `undefined` if it sends none. */
  wireId: string | undefined
  signature: string | undefined
  isOpen: boolean
}

export interface State extends Named {
  readonly provider: string
  readonly call: Call
  started: boolean
  /** The content index of the next block. */
  next: number
  /** The kind of the open block at `proseIndex`, `undefined` if none is open. */
  prose: "text" | "thinking" | undefined
  proseIndex: number
  proseLength: number
  /** Whether the answer has text. */
  hasText: boolean
  /** The kind of the media in the answer, such as `image`. An answer without text names it. */
  media: string | undefined
  /** The ranges of the block that came with a signature. */
  signed: Array<Json.JsonObject>
  /** Data about the text as a whole: sources, citations, the reason of a block. */
  notes: Record<string, Json.Json>
  citations: Array<Json.Json>
  readonly calls: Array<OpenCall>
  readonly ids: CallIds
  /** Whether a chunk had no finish reason. */
  hadUnfinished: boolean
  blocked: boolean
  finish: string | undefined
  finishMessage: string | undefined
  usage: Json.JsonObject | undefined
}

const initial = (provider: string, call: Call): State => ({
  provider,
  call,
  started: false,
  responseId: undefined,
  responseModel: undefined,
  next: 0,
  prose: undefined,
  proseIndex: 0,
  proseLength: 0,
  hasText: false,
  media: undefined,
  signed: [],
  notes: {},
  citations: [],
  calls: [],
  ids: new CallIds(call.seed),
  hadUnfinished: false,
  blocked: false,
  finish: undefined,
  finishMessage: undefined,
  usage: undefined
})

const step = (
  state: State,
  { blocked, candidate, id, model, parts, usage }: Wire,
  out: Array<ModelEvent>
): void => {
  if (id !== undefined) state.responseId ??= id
  if (model !== undefined) state.responseModel ??= model
  // Some chunks have an object of this name without token counts.
  if (Json.number(usage?.["promptTokenCount"] ?? usage?.["totalTokenCount"]) !== undefined)
    state.usage = usage
  if (blocked !== undefined) {
    state.blocked = true
    state.notes["promptFeedback"] = blocked
  }
  if (candidate === undefined) return
  start(state, out)
  const finish = Json.text(candidate["finishReason"])
  if (finish === undefined) state.hadUnfinished = true
  else {
    state.finish = finish
    state.finishMessage = Json.text(candidate["finishMessage"])
  }
  note(state, candidate)
  for (const part of parts) {
    if (Json.isObject(part)) stepPart(state, part, out)
  }
}

const start = (state: State, out: Array<ModelEvent>): void => {
  if (state.started) return
  state.started = true
  out.push(startOf(state, name))
}

const note = ({ citations, finish, notes }: State, candidate: Json.JsonObject): void => {
  for (const key of ["groundingMetadata", "urlContextMetadata"]) {
    const metadata = Json.object(candidate[key])
    if (metadata !== undefined && Object.keys(metadata).length > 0) notes[key] = metadata
  }
  const metadata = Json.object(candidate["citationMetadata"])
  for (const sources of [metadata?.["citationSources"], metadata?.["citations"]]) {
    for (const source of Json.array(sources)) citations.push(source)
  }
  if (stopReasons.get(finish ?? "") === "contentFilter") {
    const { content: _, ...rest } = candidate
    notes["filter"] = rest
  }
}

/** A part has one kind. Its signature belongs to it only. */
const stepPart = (state: State, part: Json.JsonObject, out: Array<ModelEvent>): void => {
  const signature = Json.text(part["thoughtSignature"])
  const call = Json.object(part["functionCall"])
  const { text } = part
  if (call !== undefined) stepCall(state, call, signature, out)
  else if (typeof text === "string")
    say(state, part["thought"] === true ? "thinking" : "text", text, signature, out)
  else if (Object.keys(part).some((key) => key !== "thought" && key !== "thoughtSignature"))
    keep(state, part, out)
  else if (signature !== undefined) say(state, "text", "", signature, out)
}

/**
 * A part with a signature must return to the server unchanged, even if it is empty. It does not split a text.
 */
const say = (
  state: State,
  kind: "text" | "thinking",
  delta: string,
  signature: string | undefined,
  out: Array<ModelEvent>
): void => {
  if (delta === "" && signature === undefined) return
  if (kind === "text") state.hasText = true
  open(state, kind, out)
  const from = state.proseLength
  const contentIndex = state.proseIndex
  state.proseLength += delta.length
  if (delta !== "") out.push({ _tag: kind === "text" ? "TextDelta" : "ThinkingDelta", contentIndex, delta })
  if (signature !== undefined) state.signed.push({ from, to: state.proseLength, thoughtSignature: signature })
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
  const { citations, prose, proseIndex: contentIndex, signed } = state
  if (prose === undefined) return
  state.prose = undefined
  const notes = { ...state.notes, ...(citations.length === 0 ? {} : { citations }) }
  const kept = { ...(signed.length === 0 ? {} : { signed }), ...(prose === "text" ? notes : {}) }
  state.signed = []
  if (prose === "text") {
    state.notes = {}
    state.citations = []
  }
  const opaque = Object.keys(kept).length === 0 ? {} : { opaque: Opaque.make(state.provider, kept) }
  out.push({ _tag: prose === "text" ? "TextEnd" : "ThinkingEnd", contentIndex, ...opaque })
}

/**
 * Keeps a part that the model made on Google's side, such as executed code or an image, in an empty text block.
 */
const keep = (state: State, part: Json.JsonObject, out: Array<ModelEvent>): void => {
  closeProse(state, out)
  const contentIndex = state.next++
  out.push({ _tag: "TextStart", contentIndex })
  const [kind] = (Json.text(Json.object(part["inlineData"])?.["mimeType"]) ?? "").split("/")
  if (kind !== undefined && kind !== "") state.media = kind
  out.push({ _tag: "TextEnd", contentIndex, opaque: Opaque.make(state.provider, { part }) })
}

const stepCall = (
  state: State,
  wireCall: Json.JsonObject,
  signature: string | undefined,
  out: Array<ModelEvent>
): void => {
  const call = callOf(state, wireCall, out)
  if (call === undefined) return
  call.wireId ??= Json.text(wireCall["id"])
  call.signature ??= signature
  call.isOpen = wireCall["willContinue"] === true
  const members = Json.object(wireCall["args"])
  if (members !== undefined) call.arguments.assign(members)
  let delta = ""
  for (const piece of Json.array(wireCall["partialArgs"])) {
    if (Json.isObject(piece)) delta += call.arguments.add(piece)
  }
  if (!call.isOpen) delta += call.arguments.finish()
  if (delta !== "") out.push({ _tag: "ToolCallDelta", contentIndex: call.contentIndex, delta })
}

/** The call to which a part belongs. A part without a name continues the last call. */
const callOf = (state: State, wireCall: Json.JsonObject, out: Array<ModelEvent>): OpenCall | undefined => {
  const called = Json.text(wireCall["name"])
  const wireId = Json.text(wireCall["id"])
  const last = state.calls.at(-1)
  if (last?.isOpen === true && (called === undefined || (wireId !== undefined && wireId === last.wireId))) {
    return last
  }
  if (called === undefined && wireCall["args"] === undefined && wireCall["partialArgs"] === undefined)
    return undefined
  closeProse(state, out)
  const id = state.ids.next(wireId)
  const call: OpenCall = {
    contentIndex: state.next++,
    id,
    name: called ?? "",
    arguments: new Arguments(),
    wireId,
    signature: undefined,
    isOpen: false
  }
  state.calls.push(call)
  out.push({ _tag: "ToolCallStart", contentIndex: call.contentIndex, id, name: call.name })
  return call
}

// ───────────────────────── The end

const end = (state: State, _sawEnd: boolean, out: Array<ModelEvent>): Reason | undefined => {
  const incomplete = missing(state)
  if (incomplete !== undefined) return incomplete
  start(state, out)
  if (state.media !== undefined && !state.hasText) say(state, "text", `[${state.media}]`, undefined, out)
  if (Object.keys(state.notes).length + state.citations.length > 0) open(state, "text", out)
  closeProse(state, out)
  for (const call of state.calls) out.push(callEnd(state, call))
  const usage = state.usage === undefined ? {} : { usage: usageOf(state.usage) }
  out.push({ _tag: "Finish", stopReason: stopReasonOf(state), ...usage })
  return undefined
}

const callEnd = (
  state: State,
  { arguments: args, contentIndex, isOpen, signature, wireId }: OpenCall
): ModelEvent => {
  const kept = {
    ...(wireId === undefined ? {} : { id: wireId }),
    ...(signature === undefined ? {} : { thoughtSignature: signature })
  }
  return {
    _tag: "ToolCallEnd",
    contentIndex,
    // Incomplete arguments stay incomplete, so that they are not taken for complete ones.
    rawArguments: isOpen && stopReasonOf(state) === "length" ? args.shown || "{" : args.json,
    ...(Object.keys(kept).length === 0 ? {} : { opaque: Opaque.make(state.provider, kept) })
  }
}

/**
 * The failure of an incomplete answer, `undefined` for a complete one. A finish reason, or a blocked prompt,
 * proves completeness.
 */
const missing = ({ blocked, finish, finishMessage }: State): Reason | undefined => {
  if (finish === undefined) {
    return blocked ? undefined : new StreamTruncated({ detail: "The answer stopped before its end" })
  }
  if (stopReasons.has(finish)) return undefined
  const detail = `The answer ended with ${finish}${finishMessage === undefined ? "" : `: ${finishMessage}`}`
  // Google adds finish reasons for new failures, so an unknown one is a failure. Most are temporary: a
  // malformed call, or a call of an unknown function.
  return finish === "MISSING_THOUGHT_SIGNATURE" ? new InvalidRequest({ detail }) : new ServerError({ detail })
}

/** An answer with calls has the stop reason `toolUse`, which Gemini does not send. */
const stopReasonOf = ({ calls, finish }: State): StopReason => {
  const stopReason = finish === undefined ? "contentFilter" : (stopReasons.get(finish) ?? "error")
  return stopReason === "stop" && calls.length > 0 ? "toolUse" : stopReason
}

const stopReasons: ReadonlyMap<string, StopReason> = new Map([
  ["STOP", "stop"],
  // Servers that imitate Google send this.
  ["FUNCTION_CALL", "stop"],
  ["MAX_TOKENS", "length"],
  ["SAFETY", "contentFilter"],
  ["RECITATION", "contentFilter"],
  ["LANGUAGE", "contentFilter"],
  ["BLOCKLIST", "contentFilter"],
  ["PROHIBITED_CONTENT", "contentFilter"],
  ["SPII", "contentFilter"],
  ["MODEL_ARMOR", "contentFilter"],
  ["IMAGE_SAFETY", "contentFilter"],
  ["IMAGE_PROHIBITED_CONTENT", "contentFilter"],
  ["IMAGE_RECITATION", "contentFilter"]
])

/**
 * The prompt count includes cached tokens, but not those that Google's own tools add. The candidate count
 * excludes thinking.
 */
const usageOf = (wireUsage: Json.JsonObject): Usage.Usage => {
  const reasoning = Counting.tokens(wireUsage["thoughtsTokenCount"])
  const total = Counting.tokens(wireUsage["totalTokenCount"])
  return Usage.make({
    input: Counting.tokens(wireUsage["promptTokenCount"]) ?? 0,
    output: (Counting.tokens(wireUsage["candidatesTokenCount"]) ?? 0) + (reasoning ?? 0),
    cacheRead: Counting.tokens(wireUsage["cachedContentTokenCount"]) ?? 0,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total })
  })
}
