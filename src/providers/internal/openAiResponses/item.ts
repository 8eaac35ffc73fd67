/** An item of an answer of OpenAI Responses while it grows, and the blocks to which it writes. */
import * as Json from "../json.ts"
import type { CallBlock, HostedBlock, Prose, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import * as Hosted from "./hosted.ts"
import * as Places from "./places.ts"
import type { Place, Speech, Wire } from "./wire.ts"

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

export type Item = Places.Item & Written
type Call = Extract<Item, { readonly kind: "call" }>
type Message = Extract<Item, { readonly kind: "message" }>
type Thinking = Extract<Item, { readonly kind: "thinking" }>
export type Spoken = Extract<Wire, { readonly type: "delta" | "whole" }>

export const kindOf = (type: string): Item["kind"] =>
  kinds.get(type) ?? (Hosted.isHosted(type) ? "hosted" : "other")

/** The kind of an item. A call that the vendor has run already is no call for the application. */
export const kindOfItem = (wire: Json.JsonObject): Item["kind"] =>
  Hosted.isRun(wire) ? "hosted" : kindOf(Places.typeOf(wire))

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
  const type = Places.typeOf(wire)
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
  item.type = Places.typeOf(ended)
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
