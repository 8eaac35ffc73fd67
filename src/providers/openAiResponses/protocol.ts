/**
 * OpenAI Responses, as OpenAI and compatible servers really send it.
 * https://platform.openai.com/docs/api-reference/responses, read in November 2026.
 *
 * An answer is a list of items. Items without a counterpart in `Message` (searches and code that run at the
 * vendor, the vendor's own tools) become an empty text block that stores the original and returns it to the
 * vendor.
 */
import type { ModelEvent } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { StreamTruncated } from "../../ProviderError.ts"
import * as Json from "../internal/json.ts"
import * as Opaque from "../internal/opaque.ts"
import * as End from "./end.ts"
import * as Places from "./places.ts"
import { encoder } from "./request.ts"
import * as Wires from "./wire.ts"
import type { Place, Speech, Wire } from "./wire.ts"
import { type Call, isReason, type Protocol } from "../Protocol.ts"
import { type Named, startOf } from "../internal/answerStart.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const openAiResponses = (provider: string): Protocol => ({
  name,
  provider,
  endpoint: "responses",
  encode: encoder(provider),
  decoder: (call, { events }) => {
    const state = initial(provider, call)
    return {
      step: ({ data }) => {
        const event = wire(data, state)
        return isReason(event) ? event : step(state, event, events)
      },
      end: (sawEnd) => end(state, sawEnd, events)
    }
  }
})

const name = "openai-responses"

// ───────────────────────── Wire

const wire = (data: string, state: State): Wire | Reason => {
  const event = Wires.read(data, state.call.model)
  return !isReason(event) && event.type === "created" && isOther(state, event.response)
    ? new StreamTruncated({ detail: "Another answer began in the middle of this one" })
    : event
}

/** A gateway that retries sends a second answer after the start of the first. */
const isOther = ({ places, responseId }: State, response: Json.JsonObject): boolean =>
  places.items.length > 0 && responseId !== undefined && response["id"] !== responseId

// ───────────────────────── Wire to domain

/** A block while it grows. */
interface Block {
  readonly contentIndex: number
  /** The text so far. */
  text: string
}

/** A part of a message. */
interface Part extends Block {
  readonly annotations: Array<Json.JsonObject>
}

interface Item extends Places.Item {
  /** The block of the item. The parts of a message have their own blocks. */
  readonly block: Block
  /** The open parts of a message. */
  readonly parts: Map<number, Part>
  /** The kind of the thinking, and its current part. */
  thought: { readonly speech: Speech; readonly part: number } | undefined
  /** The id of a call, unique in the answer. `undefined` until its name is known. */
  id: string | undefined
  /** The complete arguments of a call, sent at their end. */
  whole: string | undefined
}

export interface State extends Named {
  readonly provider: string
  readonly call: Call
  started: boolean
  /** The content index of the next block. */
  next: number
  readonly places: Places.Places<Item>
  /** The ids of the calls. */
  readonly ids: Set<string>
  refused: boolean
  /** The last event, which proves that nothing is missing. */
  response: Json.JsonObject | undefined
}

const initial = (provider: string, call: Call): State => ({
  provider,
  call,
  started: false,
  responseId: undefined,
  responseModel: undefined,
  next: 0,
  places: new Places.Places(),
  ids: new Set(),
  refused: false,
  response: undefined
})

const step = (state: State, event: Wire, out: Array<ModelEvent>): boolean => {
  switch (event.type) {
    case "delta":
    case "whole":
      stepSpeech(state, event, out)
      return false
    case "added":
      stepAdded(state, event.place, event.item, out)
      return false
    case "done":
      stepDone(state, event.place, event.item, out)
      return false
    case "annotation":
      state.places
        .find(event.place, "message")
        ?.parts.get(event.place.part)
        ?.annotations.push(event.annotation)
      return false
    case "created":
      start(state, event.response, out)
      return false
    case "ended":
      start(state, event.response, out)
      settle(state, Json.array(event.response["output"]), out)
      state.response = event.response
      return true
    case "other":
      return false
  }
}

const start = (state: State, response: Json.JsonObject, out: Array<ModelEvent>): void => {
  if (state.started) return
  state.started = true
  state.responseId = Json.text(response["id"])
  state.responseModel = Json.text(response["model"])
  out.push(startOf(state, name))
}

/** Adds the items that earlier events left out or did not end. */
const settle = (state: State, output: ReadonlyArray<Json.Json>, out: Array<ModelEvent>): void => {
  const wireItems = output.filter(Json.isObject)
  const known = state.places.match(wireItems)
  for (const [index, wireItem] of wireItems.entries()) {
    finish(state, known[index] ?? begin(state, nowhere, wireItem, out), wireItem, out)
  }
}

const nowhere: Place = { index: undefined, id: undefined, part: 0 }

// ───────────────────────── Items

const kinds: ReadonlyMap<string, Item["kind"]> = new Map([
  ["message", "message"],
  ["reasoning", "thinking"],
  ["function_call", "call"],
  ["custom_tool_call", "call"]
])

const kindOf = (type: string): Item["kind"] => kinds.get(type) ?? "other"

const stepAdded = (state: State, place: Place, wireItem: Json.JsonObject, out: Array<ModelEvent>): void => {
  const known = state.places.at(place.index)
  if (known !== undefined && isSame(known, wireItem)) return
  if (state.places.callAt(place, wireItem)?.isDone !== true) begin(state, place, wireItem, out)
}

const isSame = ({ type, wire: known }: Item, wireItem: Json.JsonObject): boolean =>
  type === Places.typeOf(wireItem) &&
  (known["call_id"] === undefined || known["call_id"] === wireItem["call_id"])

const stepDone = (state: State, place: Place, wireItem: Json.JsonObject, out: Array<ModelEvent>): void => {
  const known = state.places.find(place, Places.typeOf(wireItem))
  const isIt = known?.kind === kindOf(Places.typeOf(wireItem))
  const item = isIt ? known : state.places.callAt(place, wireItem)
  finish(state, item ?? begin(state, place, wireItem, out), wireItem, out)
}

const begin = (state: State, place: Place, wireItem: Json.JsonObject, out: Array<ModelEvent>): Item => {
  start(state, {}, out)
  const type = Places.typeOf(wireItem)
  const kind = kindOf(type)
  const item: Item = {
    type,
    kind,
    index: place.index,
    wire: wireItem,
    isDone: false,
    block: { contentIndex: kind === "message" ? -1 : state.next++, text: "" },
    parts: new Map(),
    thought: undefined,
    id: undefined,
    whole: undefined
  }
  const { contentIndex } = item.block
  if (kind === "thinking") out.push({ _tag: "ThinkingStart", contentIndex })
  else if (kind === "other") out.push({ _tag: "TextStart", contentIndex })
  else if (kind === "call") startCall(state, item, Json.text(wireItem["name"]), out)
  state.places.add(item)
  return item
}

/** Announces a call once its name is known, with the arguments so far. */
const startCall = (state: State, item: Item, called: string | undefined, out: Array<ModelEvent>): void => {
  if (item.id !== undefined || called === undefined) return
  const { call_id: callId, id: itemId } = item.wire
  const { contentIndex, text } = item.block
  const own = Json.text(callId) ?? Json.text(itemId) ?? `call_${state.call.seed}_${contentIndex}`
  item.id = state.ids.has(own) ? `${own}_${contentIndex}` : own
  state.ids.add(item.id)
  out.push({ _tag: "ToolCallStart", contentIndex, id: item.id, name: called })
  if (text !== "") out.push({ _tag: "ToolCallDelta", contentIndex, delta: text })
}

/** Ends an item with its final content. The end of a call comes with the end of the answer. */
const finish = (state: State, item: Item, wireItem: Json.JsonObject, out: Array<ModelEvent>): void => {
  if (item.isDone) return
  item.isDone = true
  item.type = Places.typeOf(wireItem)
  // A call keeps the id and the name of its start.
  const { call_id: callId } = item.wire
  item.wire = item.kind === "call" ? { ...wireItem, ...identity(item.wire) } : wireItem
  if (item.wire["call_id"] !== callId) state.places.addCall(item)
  const { block, kind } = item
  if (kind === "message") finishMessage(state, item, out)
  else if (kind === "call") {
    startCall(state, item, Json.text(item.wire["name"]), out)
    if (item.id !== undefined) complete("ToolCallDelta", block, argumentsOf(item), out)
  } else {
    if (kind === "thinking") complete("ThinkingDelta", block, thoughtIn(item), out)
    const redacted = kind === "thinking" && block.text === "" ? { redacted: true } : {}
    const opaque = Opaque.make(state.provider, { item: wireItem })
    const _tag = kind === "thinking" ? "ThinkingEnd" : "TextEnd"
    out.push({ _tag, contentIndex: block.contentIndex, opaque, ...redacted })
  }
}

const identity = ({ call_id: callId, name: called }: Json.JsonObject): Json.JsonObject => ({
  ...(typeof callId === "string" ? { call_id: callId } : {}),
  ...(typeof called === "string" ? { name: called } : {})
})

/** The first text of a message stores the members of the message, and each text those of its part. */
const finishMessage = (state: State, item: Item, out: Array<ModelEvent>): void => {
  let shell: Json.JsonObject = { item: Json.without(item.wire, "content") }
  for (const [index, wirePart] of Json.array(item.wire["content"]).entries()) {
    if (!Json.isObject(wirePart)) continue
    const speech = wirePart["type"] === "refusal" ? "refusal" : "text"
    const text = Json.text(wirePart[speech])
    const part =
      item.parts.get(index) ?? (text === undefined ? undefined : openPart(state, item, index, speech, out))
    if (part === undefined) continue
    complete("TextDelta", part, text, out)
    const opaque = Opaque.make(state.provider, { ...shell, part: partOf(wirePart, speech, part.annotations) })
    out.push({ _tag: "TextEnd", contentIndex: part.contentIndex, opaque })
    item.parts.delete(index)
    shell = {}
  }
  endParts(item, out)
}

/** The members of a part besides its text. */
const partOf = (
  wirePart: Json.JsonObject,
  speech: Speech,
  annotations: ReadonlyArray<Json.JsonObject>
): Json.JsonObject => {
  const rest = Json.without(wirePart, speech, "logprobs")
  return annotations.length > 0 && Json.array(rest["annotations"]).length === 0
    ? { ...rest, annotations }
    : rest
}

const openPart = (state: State, item: Item, index: number, speech: Speech, out: Array<ModelEvent>): Part => {
  const part: Part = { contentIndex: state.next++, text: "", annotations: [] }
  item.parts.set(index, part)
  if (speech === "refusal") state.refused = true
  out.push({ _tag: "TextStart", contentIndex: part.contentIndex })
  return part
}

const endParts = ({ parts }: Item, out: Array<ModelEvent>): void => {
  for (const { contentIndex } of parts.values()) out.push({ _tag: "TextEnd", contentIndex })
  parts.clear()
}

/** The thinking text: of the streamed kind, else the summary, else the content. */
const thoughtIn = ({ thought, wire: { content, summary } }: Item): string | undefined => {
  const joined = (parts: Json.Json | undefined) =>
    Json.array(parts)
      .flatMap((part) => Json.text(Json.object(part)?.["text"]) ?? [])
      .join(parting)
  if (thought !== undefined) return joined(thought.speech === "summary" ? summary : content)
  const summaryText = joined(summary)
  return summaryText === "" ? joined(content) : summaryText
}

/** The separator of two parts of thinking. */
const parting = "\n\n"

/**
 * The arguments of a call. The server repeats them at the end of the call and of its item, and the last version
 * counts.
 */
const argumentsOf = ({ block, isDone, wire: { arguments: args, input }, whole }: Item): string => {
  const given = isDone ? (args ?? input) : undefined
  // Some servers send an object instead of its JSON text.
  const json = Json.isObject(given) ? JSON.stringify(given) : Json.text(given)
  return json ?? whole ?? block.text
}

// ───────────────────────── Speech

const speakers: Readonly<Record<Speech, string>> = {
  text: "message",
  refusal: "message",
  summary: "reasoning",
  thinking: "reasoning",
  arguments: "function_call"
}

type Spoken = Extract<Wire, { readonly type: "delta" | "whole" }>

/** Reads a piece of an item's text, or its complete text. */
const stepSpeech = (state: State, event: Spoken, out: Array<ModelEvent>): void => {
  const { place, speech, text } = event
  if (text === "") return
  const item =
    state.places.find(place, speakers[speech]) ?? begin(state, place, { type: speakers[speech] }, out)
  if (item.isDone || item.kind !== kindOf(speakers[speech])) return
  if (item.kind === "message") {
    const part = item.parts.get(place.part) ?? openPart(state, item, place.part, speech, out)
    if (event.type === "delta") say("TextDelta", part, text, out)
    else complete("TextDelta", part, text, out)
  } else if (item.kind === "thinking") think(item, event, out)
  else stepArguments(item, event, out)
}

const think = (item: Item, { place: { part }, speech, text, type }: Spoken, out: Array<ModelEvent>): void => {
  const { block, thought } = item
  // Servers may send one text under both names.
  if (thought !== undefined && thought.speech !== speech) return
  const isNew = thought?.part !== part
  if (type === "whole" && !isNew) return
  item.thought = { speech, part }
  say("ThinkingDelta", block, isNew && block.text !== "" ? parting + text : text, out)
}

const stepArguments = (item: Item, { text, type }: Spoken, out: Array<ModelEvent>): void => {
  if (type === "whole") item.whole = text
  if (item.id === undefined) item.block.text += type === "delta" ? text : ""
  else if (type === "delta") say("ToolCallDelta", item.block, text, out)
  else complete("ToolCallDelta", item.block, text, out)
}

type Delta = "TextDelta" | "ThinkingDelta" | "ToolCallDelta"

const say = (_tag: Delta, block: Block, delta: string, out: Array<ModelEvent>): void => {
  block.text += delta
  out.push({ _tag, contentIndex: block.contentIndex, delta })
}

/** Appends the rest of a text if its start equals the deltas. */
const complete = (_tag: Delta, block: Block, whole: string | undefined, out: Array<ModelEvent>): void => {
  const { text } = block
  if (whole === undefined || whole.length <= text.length || !whole.startsWith(text)) return
  say(_tag, block, whole.slice(text.length), out)
}

// ───────────────────────── The end

const end = (state: State, _sawEnd: boolean, out: Array<ModelEvent>): Reason | undefined => {
  const { response } = state
  const { items } = state.places
  if (response === undefined) return new StreamTruncated({ detail: "The answer stopped before its end" })
  const calls = items.filter(({ kind }) => kind === "call")
  const stopReason = End.stopReason(response, calls.length > 0, state.refused)
  if (stopReason === "toolUse" && calls.some(lacksArguments)) {
    return new StreamTruncated({ detail: "A call came without arguments, not even empty ones" })
  }
  for (const item of items) if (!item.isDone) endItem(item, out)
  for (const call of calls) endCall(state, call, out)
  const usage = Json.object(response["usage"])
  out.push({
    _tag: "Finish",
    stopReason,
    ...(usage === undefined ? {} : { usage: End.usage(usage) })
  })
  return undefined
}

/**
 * Whether no event contained the arguments of a call. The protocol requires them even if they are empty (`""`,
 * `"{}"`), so they were lost.
 */
const lacksArguments = ({ block, isDone, whole, wire: { arguments: args, input } }: Item): boolean =>
  !(isDone && (args ?? input) !== undefined) && whole === undefined && block.text === ""

/** Ends an item for which the server sent no end. */
const endItem = (item: Item, out: Array<ModelEvent>): void => {
  const { contentIndex } = item.block
  if (item.kind === "message") endParts(item, out)
  else if (item.kind === "thinking") out.push({ _tag: "ThinkingEnd", contentIndex })
  else if (item.kind === "other") out.push({ _tag: "TextEnd", contentIndex })
}

const endCall = (state: State, item: Item, out: Array<ModelEvent>): void => {
  startCall(state, item, "", out)
  const opaque = Opaque.make(state.provider, {
    item: Json.without(item.wire, "call_id", "name", "arguments", "input")
  })
  out.push({
    _tag: "ToolCallEnd",
    contentIndex: item.block.contentIndex,
    rawArguments: argumentsOf(item),
    opaque
  })
}
