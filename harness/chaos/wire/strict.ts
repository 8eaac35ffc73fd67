/**
 * A plain second reading of an answer, of the whole body at once and by the letter: which calls it holds from beginning
 * to end, if it says that it is complete. What no such reading finds must not run.
 */
import * as Json from "../../../src/providers/internal/json.ts"

/** What a call would be run with, as JSON. */
export interface Call {
  readonly name: string
  readonly params: string
  /** Where an answer gives several accounts of one call. */
  readonly id?: string
}

type Account = ReadonlyArray<Call>

/** The calls of a complete answer, as often as it gives an account of them; none of one that is not complete. */
export type Read = (events: ReadonlyArray<Json.JsonObject>, told: boolean) => ReadonlyArray<Account>

/** Reads a body. */
export const read = (body: Uint8Array, language: Read): ReadonlyArray<Account> => {
  const data = dataIn(new TextDecoder().decode(body))
  if (data === undefined) return []
  const end = data.findIndex((one) => one.trim() === "[DONE]")
  // Only one of the languages ends so; where another does not, what follows is read like what came before.
  const told = language === openAiChat && end !== -1
  const events: Array<Json.JsonObject> = []
  for (const one of told ? data.slice(0, end) : data) {
    // Servers send no more than this to keep a connection alive.
    if (one.startsWith(":") || ["[DONE]", "null", '""'].includes(one.trim())) continue
    const json = Json.parse(one)
    for (const event of Json.isArray(json) ? json : [json]) {
      // What cannot be read, or is a failure, ends the answer: unless it had ended before.
      if (!Json.isObject(event) || isFailure(event)) return isOver(events) ? language(events, told) : []
      events.push(event)
    }
  }
  return language(events, told)
}

const isFailure = ({ error, object, type }: Json.JsonObject): boolean =>
  (error !== undefined && error !== null && error !== "" && error !== false) ||
  object === "error" ||
  type === "error"

/** Whether the last word has been said, so that nothing after it counts. */
const isOver = (events: ReadonlyArray<Json.JsonObject>): boolean =>
  events.some(({ type }) => typeof type === "string" && lastWords.has(type)) || lastChunk(events) !== -1

const lastWords: ReadonlySet<string> = new Set([
  "message_stop",
  "response.completed",
  "response.incomplete",
  "response.done"
])

/** The data of the events; none at all if one of them is an error by its name. */
const dataIn = (text: string): ReadonlyArray<string> | undefined => {
  if (/^\s*[{[]/.test(text)) return [text.trim()]
  const found: Array<string> = []
  let data: Array<string> = []
  let name = ""
  const dispatch = () => {
    if (data.join("") !== "") {
      if (name === "error") return false
      found.push(data.join("\n"))
    }
    data = []
    name = ""
    return true
  }
  for (const line of [...text.split(/\r\n?|\n/), ""]) {
    const [, field = "", value = ""] = /^([^:]*):? ?([^]*)$/.exec(line) ?? []
    // Servers that part events by one newline: nowhere else does JSON end and begin so.
    const isNext = field === "data" && /[}\]]\s*$/.test(data.at(-1) ?? "") && /^\s*[{[]/.test(value)
    if ((line === "" || isNext) && !dispatch()) return isOver(found.flatMap(objects)) ? found : undefined
    if (field === "data") data.push(value)
    else if (field === "event") name = value
  }
  return found
}

const objects = (text: string): ReadonlyArray<Json.JsonObject> => {
  const json = Json.parse(text)
  return Json.isObject(json) ? [json] : []
}

/** A call, if its arguments are JSON. No text at all are no arguments. */
export const call = (name: Json.Json | undefined, json: string): ReadonlyArray<Call> => {
  const params = json.trim() === "" ? {} : (Json.parse(json) ?? repeated(json))
  return typeof name !== "string" || params === undefined ? [] : [{ name, params: JSON.stringify(params) }]
}

/** The object that a text says several times, or behind empty ones. */
const repeated = (json: string): Json.Json | undefined => {
  const said = json.replace(/^(?:\s*\{\s*\})+(?=\s*\{[^]*[^\s{}])/, "").trim()
  const ends = [...said.matchAll(/\}/g)].map(({ index }) => index + 1)
  const once = ends.map((end) => said.slice(0, end)).find((part) => Json.parse(part) !== undefined)
  if (once === undefined) return undefined
  return said.split(once).every((rest) => rest.trim() === "") ? Json.parse(once) : undefined
}

/** The calls of an answer of Converse, whose events have names. An exception ends it, and events of other names are new ones. */
export const bedrock = (
  events: ReadonlyArray<{ readonly name: string; readonly data: string }>
): ReadonlyArray<Account> => {
  const calls = new Map<Json.Json, Growing>()
  for (const { data, name } of events) {
    if (!/^(?:message(?:Start|Stop)|contentBlock(?:Start|Delta|Stop)|metadata)$|Exception$/.test(name))
      continue
    const json = Json.object(Json.parse(data))
    if (json === undefined) return []
    if (name === "messageStop") {
      const stop = Json.text(json["stopReason"])
      if (stop === undefined || unfinished.has(stop)) return []
      return [[...calls.values()].flatMap(({ json, name }) => call(name, json))]
    }
    const index = json["contentBlockIndex"] ?? 0
    const begun = Json.object(Json.object(json["start"])?.["toolUse"])
    if (name === "contentBlockStart" && begun !== undefined)
      calls.set(index, { id: undefined, name: Json.text(begun["name"]) ?? "", json: "" })
    const input = Json.object(Json.object(json["delta"])?.["toolUse"])?.["input"]
    const open = calls.get(index)
    if (name === "contentBlockDelta" && open !== undefined && typeof input === "string") open.json += input
    if (name.endsWith("Exception")) return []
  }
  return []
}

// ───────────────────────── The four languages of server-sent events

interface Growing {
  readonly id: string | undefined
  name: string | undefined
  json: string
}

export const openAiChat: Read = (events, told) => {
  const calls: Array<Growing> = []
  const byIndex = new Map<Json.Json, Growing>()
  let finish: string | undefined
  for (const { choices } of events) {
    const choice = Json.array(choices).flatMap(isFirst)[0]
    finish = Json.text(choice?.["finish_reason"]) ?? finish
    const delta = Json.object(choice?.["delta"]) ?? Json.object(choice?.["message"])
    for (const piece of Json.array(delta?.["tool_calls"])) {
      if (!Json.isObject(piece)) continue
      const { function: fn, index } = piece
      const [id, name] = [Json.text(piece["id"]), Json.text(Json.object(fn)?.["name"])]
      const last = calls.at(-1)
      // A call that began without an index goes on in pieces with one.
      const unplaced =
        id === undefined && name === undefined && last !== undefined && ![...byIndex.values()].includes(last)
          ? last
          : undefined
      const known =
        typeof index === "number"
          ? (byIndex.get(index) ?? unplaced)
          : id !== undefined
            ? calls.find((one) => one.id === id)
            : name === undefined
              ? last
              : undefined
      const isOther = id !== undefined && known?.id !== undefined && id !== known.id && name !== undefined
      const open = known === undefined || isOther ? { id, name, json: "" } : known
      if (open !== known) calls.push(open)
      if (typeof index === "number" && open !== unplaced) byIndex.set(index, open)
      open.name ??= name
      const given = Json.object(fn)?.["arguments"]
      open.json += typeof given === "string" ? given : Json.isObject(given) ? JSON.stringify(given) : ""
    }
  }
  if (finish === undefined ? !told : unfinished.has(finish)) return []
  return [calls.flatMap(({ json, name }) => call(name, json))]
}

const isFirst = (choice: Json.Json): ReadonlyArray<Json.JsonObject> =>
  Json.isObject(choice) && (choice["index"] ?? 0) === 0 ? [choice] : []

/** Calls of an answer that ended so may lack their end, or are not to be run. */
const unfinished: ReadonlySet<string> = new Set([
  "length",
  "max_tokens",
  "model_length",
  "model_context_window_exceeded",
  "error",
  "network_error",
  "insufficient_system_resource",
  "MAX_TOKENS"
])

export const anthropic: Read = (events) => {
  const calls: Array<Growing> = []
  const open = new Map<Json.Json | undefined, Growing | undefined>()
  let stop: string | undefined
  let last: Json.Json | undefined
  for (const { content_block: began, delta, index: own, message, type } of events) {
    // Some servers leave the number out: then it is about the block that began last.
    const index = type === "content_block_start" ? own : (own ?? last)
    if (type === "content_block_start") {
      last = index
      const block = Json.object(began)
      const input = Json.object(block?.["input"]) ?? {}
      const growing =
        block?.["type"] === "tool_use"
          ? {
              id: undefined,
              name: Json.text(block["name"]),
              json: Object.keys(input).length === 0 ? "" : JSON.stringify(input)
            }
          : undefined
      if (growing !== undefined) calls.push(growing)
      open.set(index, growing)
    }
    const { partial_json: json, type: kind } = Json.object(delta) ?? {}
    const growing = open.get(index)
    if (type === "content_block_delta" && kind === "input_json_delta" && typeof json === "string" && growing)
      growing.json += json
    if (type === "content_block_stop") open.delete(index)
    if (type === "message_delta") stop = Json.text(Json.object(delta)?.["stop_reason"]) ?? stop
    if (type === "message_start") stop = Json.text(Json.object(message)?.["stop_reason"]) ?? stop
    if (type === "message_stop") break
  }
  if (stop === undefined ? !isOver(events) : unfinished.has(stop)) return []
  return [calls.flatMap(({ json, name }) => call(name, json))]
}

/** All is said up to three times: piece by piece, at the end of each item, and with the last event. */
export const openAiResponses: Read = (events) => {
  const last = events.find(({ type }) => typeof type === "string" && lastWords.has(type))
  if (last === undefined || last["type"] === "response.incomplete") return []
  const before = events.slice(0, events.indexOf(last))
  return [
    Json.array(Json.object(last["response"])?.["output"]).flatMap(callIn),
    ended(before),
    ended(before.toReversed()),
    said(before, "response.function_call_arguments.delta", "delta"),
    said(before, "response.function_call_arguments.done", "arguments")
  ]
}

/** By the ends of the items; what is said again counts. */
const ended = (events: ReadonlyArray<Json.JsonObject>): Account => {
  const items = new Map<string, ReadonlyArray<Call>>()
  for (const { item, output_index: index, type } of events) {
    const place = JSON.stringify([index, Json.object(item)?.["call_id"]])
    if (type === "response.output_item.done") items.set(place, callIn(item))
  }
  return [...items.values()].flat()
}

/** By what was said of their arguments. */
const said = (
  events: ReadonlyArray<Json.JsonObject>,
  told: string,
  member: "delta" | "arguments"
): Account => {
  const items = new Map<Json.Json | undefined, Growing & { readonly item: Json.Json | undefined }>()
  let begun: Json.Json | undefined
  for (const event of events) {
    const { item, output_index: own, type } = event
    // Some servers leave the number out: then it is about the item that began last.
    const index = type === "response.output_item.added" ? own : (own ?? begun)
    if (type === "response.output_item.added" && !items.has(index)) {
      begun = index
      items.set(index, { id: undefined, name: Json.text(Json.object(item)?.["name"]), json: "", item })
    }
    const growing = items.get(index)
    const text = event[member]
    if (type === told && growing !== undefined && typeof text === "string")
      growing.json = member === "delta" ? growing.json + text : text
  }
  return [...items.values()].flatMap(({ item, json, name }) => identified(item, call(name, json)))
}

const callIn = (item: Json.Json | undefined): ReadonlyArray<Call> => {
  const { arguments: json, name, type } = Json.object(item) ?? {}
  return type === "function_call" && typeof json === "string" ? identified(item, call(name, json)) : []
}

const identified = (item: Json.Json | undefined, calls: Account): Account =>
  calls.map((one) => ({ ...one, id: JSON.stringify(Json.object(item)?.["call_id"] ?? "") }))

const candidateIn = ({ candidates }: Json.JsonObject): Json.JsonObject | undefined =>
  Json.array(candidates).flatMap(isFirst)[0]

/** Where Google's answer is over: a finish reason with the usage, where an earlier chunk had none. */
const lastChunk = (events: ReadonlyArray<Json.JsonObject>): number => {
  const finishes = events.map((event) => Json.text(candidateIn(event)?.["finishReason"]))
  const wentOn = events.findIndex(
    (event, at) => candidateIn(event) !== undefined && finishes[at] === undefined
  )
  return events.findIndex(
    ({ usageMetadata }, at) =>
      wentOn !== -1 && at > wentOn && finishes[at] !== undefined && Json.isObject(usageMetadata)
  )
}

export const google: Read = (all) => {
  const last = lastChunk(all)
  const events = last === -1 ? all : all.slice(0, last + 1)
  const candidates = events.map(candidateIn)
  const finish = candidates.flatMap((candidate) => Json.text(candidate?.["finishReason"]) ?? []).at(-1)
  if (finish === undefined || unfinished.has(finish)) return []
  const parts = candidates.flatMap((candidate) => Json.array(Json.object(candidate?.["content"])?.["parts"]))
  const calls = parts.flatMap((part) => {
    const called = Json.object(Json.object(part)?.["functionCall"])
    return called === undefined ? [] : call(called["name"], JSON.stringify(Json.object(called["args"]) ?? {}))
  })
  return [calls]
}

// ───────────────────────── Comparing

/**
 * The calls that no account has, or not as often; or that call a tool more often than the accounts together tell of: of
 * several accounts each may be the damaged one, or leave a call out.
 */
export const beyond = (calls: ReadonlyArray<Call>, accounts: ReadonlyArray<Account>): ReadonlyArray<Call> => {
  const known = (is: (call: Call) => boolean) => accounts.map((account) => account.filter(is))
  const strange = excess(calls, keyOf, (key) =>
    Math.max(0, ...known((other) => keyOf(other) === key).map(({ length }) => length))
  )
  if (strange.length > 0) return strange
  return excess(
    calls,
    ({ name }) => name,
    (name) => distinct(known((other) => other.name === name))
  )
}

const keyOf = ({ name, params }: Call): string => `${name} ${params}`

/** How many calls the accounts tell of, each of them counted once. */
const distinct = (accounts: ReadonlyArray<Account>): number =>
  new Set(accounts.flatMap((account) => account.map(({ id }, at) => id ?? at))).size

const excess = (
  calls: ReadonlyArray<Call>,
  keyOf: (call: Call) => string,
  allowed: (key: string) => number
): ReadonlyArray<Call> => {
  const left = new Map<string, number>()
  return calls.filter((one) => {
    const key = keyOf(one)
    const remaining = left.get(key) ?? allowed(key)
    left.set(key, remaining - 1)
    return remaining <= 0
  })
}
