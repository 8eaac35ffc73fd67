/**
 * Decodes the events of OpenAI Responses: https://platform.openai.com/docs/api-reference/responses-streaming,
 * read in November 2026.
 *
 * The `type` in the JSON identifies an event, and the output index its item. Some servers leave out the name of
 * the event in the stream, and some send another item id with each event.
 */
import { type Reason, ServerError } from "../../../ProviderError.ts"
import type { CallBlock, HostedBlock, Prose, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { isReason } from "../../Protocol.ts"
import { badShape, eventIn, ofErrorEvent } from "../reading.ts"
import * as Json from "../json.ts"
import * as Hosted from "./items.ts"

/**
 * The kinds of streamed text: an answer, a refusal, a summary of the thinking, the thinking, or the arguments
 * of a call.
 */
export type Speech = "text" | "refusal" | "summary" | "thinking" | "arguments"

/** A position in the output. */
export interface Place {
  /** The index of the item, `undefined` if the server leaves it out. */
  readonly index: number | undefined
  /** The id of the item, for events without an index. */
  readonly id: string | undefined
  /** The index of the part in the item. */
  readonly part: number
}

/** The relevant parts of an event. */
export type Wire =
  | { readonly type: "delta"; readonly speech: Speech; readonly place: Place; readonly text: string }
  /** The complete text, at its end. */
  | { readonly type: "whole"; readonly speech: Speech; readonly place: Place; readonly text: string }
  | { readonly type: "annotation"; readonly place: Place; readonly annotation: Json.JsonObject }
  | { readonly type: "added" | "done"; readonly place: Place; readonly item: Json.JsonObject }
  | { readonly type: "created"; readonly response: Json.JsonObject }
  /** The end of the answer: complete, or cut by a limit or a filter. */
  | { readonly type: "ended"; readonly response: Json.JsonObject }
  /** Steps of tools at the vendor, and unknown events. */
  | { readonly type: "other" }

/** Decodes an event. A `Reason` if it reports a failure or does not belong to the protocol. */
export const read = (data: string, model: string): Wire | Reason => {
  const event = eventIn(data, model, "an event")
  if (isReason(event)) return event
  return failed(event, model) ?? wireOf(event) ?? badShape("Not an event", data)
}

const wireOf = (event: Json.JsonObject): Wire | undefined => {
  const { type } = event
  // A complete answer instead of a stream.
  if (type === undefined && event["object"] === "response") return { type: "ended", response: event }
  if (typeof type !== "string") return undefined
  const speech = deltas.get(type)
  if (speech !== undefined) return spoken("delta", speech, event, event["delta"])
  const whole = wholes.get(type)
  if (whole !== undefined) return spoken("whole", whole[0], event, event[whole[1]])
  switch (type) {
    case "response.output_item.added":
      return itemOf("added", event)
    case "response.output_item.done":
      return itemOf("done", event)
    case "response.output_text.annotation.added": {
      const annotation = Json.object(event["annotation"])
      return annotation === undefined ? other : { type: "annotation", place: placeOf(event), annotation }
    }
    case "response.created":
      return { type: "created", response: Json.object(event["response"]) ?? {} }
    default:
      return ends.has(type) ? endOf(type, Json.object(event["response"])) : other
  }
}

const other: Wire = { type: "other" }

const deltas: ReadonlyMap<string, Speech> = new Map([
  ["response.output_text.delta", "text"],
  ["response.refusal.delta", "refusal"],
  ["response.reasoning_summary_text.delta", "summary"],
  ["response.reasoning_text.delta", "thinking"],
  ["response.function_call_arguments.delta", "arguments"],
  ["response.custom_tool_call_input.delta", "arguments"]
])

/** The member that contains the complete text. */
const wholes: ReadonlyMap<string, readonly [Speech, string]> = new Map([
  ["response.output_text.done", ["text", "text"]],
  ["response.refusal.done", ["refusal", "refusal"]],
  ["response.reasoning_summary_text.done", ["summary", "text"]],
  ["response.reasoning_text.done", ["thinking", "text"]],
  ["response.function_call_arguments.done", ["arguments", "arguments"]],
  ["response.custom_tool_call_input.done", ["arguments", "input"]]
])

/** Some of OpenAI's servers end every answer with `response.done`. */
const ends: ReadonlySet<string> = new Set(["response.completed", "response.incomplete", "response.done"])

const endOf = (type: string, response: Json.JsonObject = {}): Wire => ({
  type: "ended",
  response: type === "response.incomplete" ? { ...response, status: "incomplete" } : response
})

const spoken = (
  type: "delta" | "whole",
  speech: Speech,
  event: Json.JsonObject,
  text: Json.Json | undefined
): Wire | undefined => {
  if (text === undefined || text === null) return other
  return typeof text === "string" ? { type, speech, place: placeOf(event), text } : undefined
}

const itemOf = (type: "added" | "done", event: Json.JsonObject): Wire | undefined => {
  const item = Json.object(event["item"])
  return item && { type, place: placeOf(event), item }
}

const placeOf = (event: Json.JsonObject): Place => ({
  index: Json.number(event["output_index"]),
  id: Json.text(event["item_id"] ?? Json.object(event["item"])?.["id"]),
  part: Json.number(event["content_index"]) ?? Json.number(event["summary_index"]) ?? 0
})

/** The failure of a response whose status reports one. */
const failed = (event: Json.JsonObject, model: string): Reason | undefined => {
  const response = Json.object(event["response"]) ?? event
  const { error } = response
  if (Json.isObject(error)) return ofErrorEvent(JSON.stringify({ error }), model)
  const status = event["type"] === "response.failed" ? "failed" : response["status"]
  return status === "failed" || status === "cancelled"
    ? new ServerError({ detail: `The answer ended as ${status}` })
    : undefined
}

// ───────────────────────── Items

// An item of an answer of OpenAI Responses while it grows, and the blocks to which it writes.

/** A part of a message. */
export interface Part {
  readonly to: Prose
  readonly annotations: Array<Json.JsonObject>
}

type Written =
  | { readonly kind: "message"; readonly parts: Map<number, Part> }
  | {
      readonly kind: "thinking"
      readonly to: Prose
      /** The kind of the thinking, and its current part. */
      thought: { readonly speech: Speech; readonly part: number } | undefined
    }
  | {
      readonly kind: "call"
      /** `undefined` until the name of the call is known. */
      to: CallBlock | undefined
      /** The arguments before that. */
      early: string
      /** The complete arguments, sent at their end. */
      whole: string | undefined
    }
  /** A tool of the vendor. */
  | { readonly kind: "hosted"; readonly to: HostedBlock }
  /** An item that no block stands for. */
  | { readonly kind: "other"; readonly to: Prose }

export type Item = Placed & Written
type Call = Extract<Item, { readonly kind: "call" }>
type Message = Extract<Item, { readonly kind: "message" }>
type Thinking = Extract<Item, { readonly kind: "thinking" }>
export type Spoken = Extract<Wire, { readonly type: "delta" | "whole" }>

export const kindOf = (type: string): Item["kind"] =>
  kinds.get(type) ?? (Hosted.isHosted(type) ? "hosted" : "other")

/** The kind of an item. A call that the vendor has run already is no call for the application. */
export const kindOfItem = (wire: Json.JsonObject): Item["kind"] =>
  Hosted.isRun(wire) ? "hosted" : kindOf(typeOf(wire))

const kinds: ReadonlyMap<string, Item["kind"]> = new Map([
  ["message", "message"],
  ["reasoning", "thinking"],
  ["function_call", "call"],
  ["custom_tool_call", "call"],
  ["computer_call", "call"],
  ["mcp_approval_request", "call"]
])

/** The item by which the vendor asks whether it may call a tool of an MCP server. */
const approval = "mcp_approval_request"

/** A call for the screen as a call of the tool `computer`, which the application runs. */
const normal = (wire: Json.JsonObject): Json.JsonObject => {
  const { call_id, id, status, type, ...params } = wire
  if (type !== "computer_call") return wire
  return { ...Json.defined({ type, id, status, call_id }), name: "computer", arguments: params }
}

/** Begins an item. */
export const begin = (reply: ReplyWriter, { index }: Place, begun: Json.JsonObject): Item => {
  const wire = normal(begun)
  const type = typeOf(wire)
  const item: Item = { type, index, wire, isDone: false, ...written(reply, kindOfItem(wire), wire) }
  if (item.kind === "call" && Json.text(wire["name"]) !== undefined) openCall(reply, item)
  return item
}

const written = (reply: ReplyWriter, kind: Item["kind"], wire: Json.JsonObject): Written => {
  switch (kind) {
    case "message":
      reply.start()
      return { kind, parts: new Map() }
    case "thinking":
      return { kind, to: reply.openThinking(), thought: undefined }
    case "call":
      reply.start()
      return { kind, to: undefined, early: "", whole: undefined }
    case "hosted":
      return { kind, to: Hosted.open(reply, wire) }
    case "other":
      return { kind, to: reply.openText() }
  }
}

/** A dot, which no tool of an agent has in its name, keeps rules about one from covering the tool of a server. */
const nameOf = ({ type, wire: { name, server_label: server } }: Call): string =>
  [...(type === approval ? [Json.text(server) ?? "mcp"] : []), Json.text(name) ?? ""].join(".")

const openCall = (reply: ReplyWriter, item: Call): CallBlock => {
  if (item.to !== undefined) return item.to
  const { call_id, id } = item.wire
  item.to = reply.openCall(Json.text(call_id) ?? Json.text(id), nameOf(item))
  item.to.write(item.early)
  return item.to
}

// ───────────────────────── Text

/** Appends a piece of an item's text, or the rest of its complete text. */
export const say = (reply: ReplyWriter, item: Item, event: Spoken): void => {
  if (item.kind === "message") {
    const { place, speech, text } = event
    const { to } = item.parts.get(place.part) ?? openPart(reply, item, place.part, speech)
    if (event.type === "delta") to.write(text)
    else to.complete(text)
  } else if (item.kind === "thinking") think(item, event)
  else if (item.kind === "call") {
    if (item.to === undefined) reply.weigh(event.text.length)
    sayArguments(item, event)
  }
}

const openPart = (reply: ReplyWriter, { parts }: Message, index: number, speech: Speech): Part => {
  const part = { to: reply.openText(), annotations: [] }
  parts.set(index, part)
  if (speech === "refusal") reply.isRefusal = true
  return part
}

/** The separator of two parts of thinking. */
const parting = "\n\n"

const think = (item: Thinking, { place: { part }, speech, text, type }: Spoken): void => {
  const { thought, to } = item
  // Servers may send one text under both names.
  if (thought !== undefined && thought.speech !== speech) return
  const isNew = thought?.part !== part
  if (type === "whole" && !isNew) return
  item.thought = { speech, part }
  to.write(isNew && to.text !== "" ? parting + text : text)
}

const sayArguments = (item: Call, { text, type }: Spoken): void => {
  if (type === "whole") {
    item.whole = text
    item.to?.complete(text)
  } else if (item.to === undefined) item.early += text
  else item.to.write(text)
}

// ───────────────────────── The end of an item

/** Ends an item with its final content, but a call only with the end of the answer. */
export const finish = (reply: ReplyWriter, item: Item, ended: Json.JsonObject): void => {
  item.isDone = true
  item.type = typeOf(ended)
  const wire = normal(ended)
  switch (item.kind) {
    case "message":
      item.wire = wire
      return finishMessage(reply, item)
    case "thinking":
      item.wire = wire
      item.to.complete(thoughtIn(item))
      item.to.keep({ item: ended })
      return item.to.end()
    case "call":
      // A call keeps the id and the name of its start.
      item.wire = { ...wire, ...identity(item.wire) }
      if (Json.text(item.wire["name"]) !== undefined) openCall(reply, item).complete(argumentsOf(item))
      return
    case "hosted":
      item.wire = wire
      return Hosted.end(reply, item.to, wire)
    case "other":
      item.wire = wire
      item.to.keep({ item: ended })
      return item.to.end()
  }
}

const identity = ({ call_id, name }: Json.JsonObject): Json.JsonObject => ({
  ...(typeof call_id === "string" ? { call_id } : {}),
  ...(typeof name === "string" ? { name } : {})
})

/** The first text of a message keeps the members of the message, and each text those of its part. */
const finishMessage = (reply: ReplyWriter, item: Message): void => {
  let shell: Json.JsonObject = { item: Json.without(item.wire, "content") }
  for (const [index, wirePart] of Json.array(item.wire["content"]).entries()) {
    if (!Json.isObject(wirePart)) continue
    const speech = wirePart["type"] === "refusal" ? "refusal" : "text"
    const text = Json.text(wirePart[speech])
    const known = item.parts.get(index)
    if (known === undefined && text === undefined) continue
    const { annotations, to } = known ?? openPart(reply, item, index, speech)
    const final = Json.array(wirePart["annotations"]).filter(Json.isObject)
    if (final.length > 0) annotations.splice(0, annotations.length, ...final)
    to.complete(text ?? "")
    const rest = Json.without(wirePart, speech, "logprobs")
    to.keep({ ...shell, part: annotations.length === 0 ? rest : { ...rest, annotations } })
    to.end()
    shell = {}
  }
  endMessage(reply, item)
}

/** Ends the parts, and adds their sources after the last one, so that the parts of a message stay together. */
const endMessage = (reply: ReplyWriter, { parts }: Message): void => {
  for (const { to } of parts.values()) to.end()
  for (const { annotations } of parts.values())
    for (const annotation of annotations) reply.source(Hosted.sourceOf(annotation))
}

/** The thinking text: of the streamed kind, else the summary, else the content. */
const thoughtIn = ({ thought, wire: { content, summary } }: Thinking): string => {
  const joined = (parts: Json.Json | undefined) =>
    Json.array(parts)
      .flatMap((part) => Json.text(Json.object(part)?.["text"]) ?? [])
      .join(parting)
  if (thought !== undefined) return joined(thought.speech === "summary" ? summary : content)
  const summaryText = joined(summary)
  return summaryText === "" ? joined(content) : summaryText
}

/**
 * The arguments of a call. The server repeats them at the end of the call and of its item, and the last version
 * counts.
 */
const argumentsOf = (item: Call): string => finalOf(item) ?? item.whole ?? item.to?.json ?? item.early

const finalOf = ({ isDone, wire: { arguments: args, input } }: Call): string | undefined => {
  const given = isDone ? (args ?? input) : undefined
  // Some servers send an object instead of its JSON text.
  return Json.isObject(given) ? JSON.stringify(given) : Json.text(given)
}

/**
 * Whether no event contained the arguments of a call. The protocol requires them even if they are empty (`""`,
 * `"{}"`), so they were lost.
 */
export const lacksArguments = (item: Item): boolean =>
  item.kind === "call" &&
  !(item.isDone && (item.wire["arguments"] ?? item.wire["input"]) !== undefined) &&
  item.whole === undefined &&
  (item.to?.json ?? item.early) === ""

/** Ends an item for which the server sent no end. */
export const endOpen = (reply: ReplyWriter, item: Item): void => {
  if (item.kind === "message") endMessage(reply, item)
  else if (item.kind === "hosted") item.to.end({})
  else if (item.kind !== "call") item.to.end()
}

/** Ends a call at the end of the answer. */
export const endCall = (reply: ReplyWriter, item: Item): void => {
  if (item.kind !== "call") return
  const call = openCall(reply, item)
  call.isHosted = item.type === approval
  if (call.isHosted) call.keep({ item: item.wire })
  else call.keep({ item: Json.without(item.wire, "call_id", "name", "arguments", "input") })
  call.end(argumentsOf(item))
}

// ───────────────────────── Places

// Finds the item to which an event of OpenAI Responses belongs, in nearly constant time, because a server may
// send any number of items.

/** The members by which an item is found. */
export interface Placed {
  /** The type of the server. */
  type: string
  readonly kind: "message" | "thinking" | "call" | "hosted" | "other"
  /** The output index at its start, if the server sent it. */
  readonly index: number | undefined
  /** The item at its start, later at its end. */
  wire: Json.JsonObject
  isDone: boolean
}

export class Places<I extends Placed> {
  /** All items in order of arrival. */
  readonly items: Array<I> = []
  private readonly byIndex = new Map<number, I>()
  /** Items that may be open, by type, and by type and id. */
  private readonly open = new Lists<I>()
  private readonly named = new Map<string, Lists<I>>()
  private readonly calls = new Map<Json.Json, Calls<I>>()

  add(item: I): void {
    const { index, type, wire } = item
    this.items.push(item)
    if (index !== undefined) this.byIndex.set(index, item)
    this.open.add(type, item)
    const named = this.named.get(type) ?? new Lists<I>()
    this.named.set(type, named)
    if (wire["id"] !== undefined) named.add(wire["id"], item)
    this.addCall(item)
  }

  /** Must be called when a call gets its id. */
  addCall(item: I): void {
    const id = item.wire["call_id"]
    if (item.kind !== "call" || id === undefined) return
    const calls = this.calls.get(id) ?? new Calls<I>()
    this.calls.set(id, calls)
    calls.add(item)
  }

  /** The item at an index. */
  at(index: number | undefined): I | undefined {
    return index === undefined ? undefined : this.byIndex.get(index)
  }

  /** The item of the type at a place, else the one with its id, else the one of another type, else, without an index, the last open one. */
  find({ id, index }: Place, type: string): I | undefined {
    const known = this.at(index)
    if (known?.type === type) return known
    const named = id === undefined ? undefined : this.named.get(type)?.first(id)
    return named ?? known ?? (index === undefined ? this.open.last(type) : undefined)
  }

  /** The call of that id, open or ended, so that one call does not run twice. */
  callAt({ index }: Place, wireItem: Json.JsonObject): I | undefined {
    const id = wireItem["call_id"]
    const call = id === undefined ? undefined : this.calls.get(id)?.find(index)
    // The end of a call may lack its id.
    return call?.wire["call_id"] === id ? call : undefined
  }

  /**
   * The known item for each item of the complete output, each at most once. Calls match by id, other items by
   * the order of their type, because some servers send other ids and indices than in the events. Ended items
   * match first.
   */
  match(output: ReadonlyArray<Json.JsonObject>): ReadonlyArray<I | undefined> {
    const left = new Set(this.items)
    const calls = new Lists<I>()
    const alike = new Map<string, Lists<I>>()
    const sorted = [
      ...this.items.filter(({ isDone }) => isDone),
      ...this.items.filter(({ isDone }) => !isDone)
    ]
    for (const item of sorted) {
      const { kind, type, wire } = item
      if (kind === "call" && wire["call_id"] !== undefined) calls.add(wire["call_id"], item)
      const named = alike.get(type) ?? new Lists<I>()
      alike.set(type, named)
      named.add(wire["name"], item)
    }
    const rank = new Map(sorted.map((item, at) => [item, at]))
    const take = (found: ReadonlyArray<I | undefined>): I | undefined => {
      const [first, second] = found
      const isSecond = second !== undefined && (first === undefined || before(rank, second, first))
      const taken = isSecond ? second : first
      if (taken !== undefined) left.delete(taken)
      return taken
    }
    const isLeft = (item: I) => left.has(item)
    const ofCalls = output.map((wireItem) => take([calls.first(wireItem["call_id"], isLeft)]))
    return output.map((wireItem, at) => {
      const named = alike.get(typeOf(wireItem))
      // Calls of different tools never match.
      const names = wireItem["name"] === undefined ? [undefined] : [undefined, wireItem["name"]]
      return ofCalls[at] ?? take(names.map((name) => named?.first(name, isLeft)))
    })
  }
}

/** The type of an item. */
export const typeOf = (item: Json.JsonObject): string => Json.text(item["type"]) ?? ""

const before = <I>(rank: ReadonlyMap<I, number>, self: I, that: I): boolean =>
  (rank.get(self) ?? 0) < (rank.get(that) ?? 0)

/** Items by a key. Skips items that are no longer relevant, each of them once. */
class Lists<I extends Placed> {
  private readonly lists = new Map<Json.Json | undefined, { readonly items: Array<I>; head: number }>()

  add(key: Json.Json | undefined, item: I): void {
    const list = this.lists.get(key)
    if (list === undefined) this.lists.set(key, { items: [item], head: 0 })
    else list.items.push(item)
  }

  /** The first item for which `is` holds. Default: the first open one. */
  first(key: Json.Json | undefined, is: (item: I) => boolean = isOpen): I | undefined {
    const list = this.lists.get(key)
    for (; list !== undefined; list.head++) {
      const item = list.items[list.head]
      if (item === undefined || is(item)) return item
    }
    return undefined
  }

  /** The last open item. */
  last(key: Json.Json | undefined): I | undefined {
    const items = this.lists.get(key)?.items ?? []
    while (items.at(-1)?.isDone === true) items.pop()
    return items.at(-1)
  }
}

const isOpen = ({ isDone }: Placed): boolean => !isDone

/** The calls of one id. */
class Calls<I extends Placed> {
  private readonly items: Array<I> = []
  private readonly places = new Map<number | undefined, number>()
  /** Number of ended calls at the start of the list. */
  private ended = 0

  add(item: I): void {
    if (!this.places.has(item.index)) this.places.set(item.index, this.items.length)
    this.items.push(item)
  }

  /** The first call that is open or started at this index. Without an index, here or at its start, the first call. */
  find(index: number | undefined): I | undefined {
    if (index === undefined) return this.items[0]
    const withoutIndex = this.places.get(undefined)
    if (withoutIndex !== undefined && !this.places.has(index)) return this.items[withoutIndex]
    while (this.items[this.ended]?.isDone === true) this.ended++
    return this.items[Math.min(this.ended, this.places.get(index) ?? this.ended)]
  }
}
