/**
 * The lines of a stored log: the run, its events, and the positions that it has reserved.
 */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { StoredEntry, textOfEvent } from "../LogEntry.ts"
import * as Result from "effect/Result"
import type { AgentEvent } from "../../AgentEvent.ts"
import { isArray, isObject, type JsonObject } from "../../internal/json.ts"
import * as Message from "../../Message.ts"
import type { Record } from "../../Session.ts"
import * as Data from "../../sessions/CustomData.ts"
import * as SessionEntry from "../../sessions/SessionEntry.ts"
import type { Logged } from "../../sessions/SessionStore.ts"

const Line = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("run"),
    v: Schema.Int,
    runId: Schema.String,
    sessionId: Schema.String,
    created: Schema.Finite,
    request: Schema.optionalKey(Schema.Json)
  }),
  Schema.Struct({ type: Schema.Literal("continued"), at: Schema.Finite, countedMs: Schema.Finite }),
  Schema.Struct({
    type: Schema.Literal("requested"),
    what: Schema.Literals(["pause", "resume", "cancel"]),
    reason: Schema.optionalKey(Schema.String)
  }),
  Schema.Struct({ type: Schema.Literal("event"), position: Schema.Int, event: Schema.Json }),
  Schema.Struct({ type: Schema.Literal("reserved"), upTo: Schema.Int })
])

const decodeLine = Schema.decodeUnknownOption(Line)
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Line))

/** The JSON of a line; `undefined` for one that a crash cut. */
export const parse = (text: string): Schema.Json | undefined => Option.getOrUndefined(readJson(text))
const readJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** `request` is the beginning of the run, for another process that begins it. */
export const run = (runId: string, sessionId: string, created: number, request?: Schema.Json): string =>
  JSON.stringify({ type: "run", v: 1, runId, sessionId, created, request })

/** A process continues the run at a time. So many milliseconds of it count for its limit. */
export const continued = (at: number, countedMs: number): string =>
  JSON.stringify({ type: "continued", at, countedMs })

/** A request about the run that was acknowledged. */
export interface Requested {
  readonly what: "pause" | "resume" | "cancel"
  readonly reason?: string
}

export const requested = ({ reason, what }: Requested): string =>
  JSON.stringify({ type: "requested", what, reason })

/** `text` is the event as JSON. */
export const event = (position: number, text: string): string =>
  `{"type":"event","position":${position},"event":${text}}`

export const reserved = (upTo: number): string => JSON.stringify({ type: "reserved", upTo })

/** Positions behind the last line of a log that watchers may have seen, and that no other process gives to other events. */
export const reach = 2 ** 20

/** A line with another event, another beginning of its run, or another reason of a request. The other lines have no text. */
export const withData = (text: string, change: (data: Schema.Json) => Schema.Json): string => {
  const line = Option.getOrUndefined(decode(text))
  if (line?.type === "event") return event(line.position, JSON.stringify(change(line.event)))
  if (line?.type === "requested" && line.reason !== undefined) {
    const reason = change(line.reason)
    return requested({ what: line.what, ...(typeof reason === "string" ? { reason } : {}) })
  }
  if (line?.type !== "run" || line.request === undefined) return text
  return run(line.runId, line.sessionId, line.created, change(line.request))
}

/** A log as it was stored. */
export interface StoredLog {
  readonly created: number
  readonly entries: ReadonlyArray<StoredEntry>
  /** The highest position that may have been visible. */
  readonly last: number
  /** The beginning of the run, as it was encoded; `undefined` without one. */
  readonly request?: Schema.Json
  /** The last time at which a process continued the run. */
  readonly continued?: { readonly at: number; readonly countedMs: number }
  /** The last request, unless an event shows that the run has followed it. A cancel is the last one. */
  readonly requested?: Requested
}

/** Whether an event shows that the run has followed a request. A pause that a hook demands comes behind the resume. */
const isFollowed = ({ what }: Requested, tag: string): boolean =>
  (what === "pause" && tag === "RunPaused") ||
  (what === "resume" && (tag === "RunPaused" || tag === "RunResumed"))

/** Reads lines; those that a crash cut count for nothing. `more`: the lines that follow, as JSON. */
export const read = (lines: ReadonlyArray<string>, more: ReadonlyArray<unknown> = []): StoredLog => {
  let created = 0
  let last = 0
  let request: Schema.Json | undefined
  let continued: StoredLog["continued"]
  let requested: Requested | undefined
  const entries: Array<StoredEntry> = []
  for (const json of [...lines.map(parse), ...more]) {
    const line = Option.getOrUndefined(decodeLine(json))
    if (line?.type === "run") ({ created, request } = line)
    if (line?.type === "continued") continued = line
    if (line?.type === "requested" && requested?.what !== "cancel") requested = line
    if (line?.type === "reserved") last = Math.max(last, line.upTo)
    if (line?.type !== "event" || line.position <= (entries.at(-1)?.position ?? 0)) continue
    const tag = Predicate.hasProperty(line.event, "_tag") ? line.event._tag : undefined
    last = Math.max(last, line.position)
    // An event that no version has written counts for nothing, as one that a crash cut.
    if (typeof tag !== "string") continue
    if (requested !== undefined && isFollowed(requested, tag)) requested = undefined
    entries.push(new StoredEntry(line.position, tag, line.event))
  }
  return {
    created,
    entries,
    last,
    ...(request === undefined ? {} : { request }),
    ...(continued === undefined ? {} : { continued }),
    ...(requested === undefined ? {} : { requested })
  }
}

// ───────────────────────── Packing
//
// The events of a run as its session keeps them: without the texts that an entry of the session has.
//
// The line of an event comes behind the entry that it leaves the text to, so that a file that a crash cut has no line without its text:
// the next process adds the event of an entry that has no line. Only the start of a run comes before the entries of its prompts.

type Calls = ReadonlyMap<string, Schema.Json | undefined>

const callsOf = (message: Message.Message): Calls | undefined =>
  message.role === "assistant"
    ? new Map(Message.toolCalls(message).map(({ id, params }) => [id, params]))
    : undefined

const ofMessage = (id: string): string => `message ${id}`
const ofEnd = ({ runId, toolCallId }: { readonly runId: string; readonly toolCallId: string }): string =>
  `end ${runId} ${toolCallId}`

/** Writes the events of a run. */
export class Packer {
  /** The texts that the session has, or gets with the events, and that no event has left out yet. */
  private readonly entered = new Set<string>()
  /** The calls of the last answers, by their runs. */
  private readonly calls = new Map<string, Calls>()

  /** Notes that the session has records, or gets them in the same write as their events. */
  note(records: ReadonlyArray<Record>): void {
    for (const record of records) {
      if (record._tag !== "Event") continue
      const { event } = record
      if (event._tag === "MessageEnd") this.entered.add(ofMessage(event.message.id))
      if (event._tag === "ToolExecutionEnd") this.entered.add(ofEnd(event))
    }
  }

  /** The JSON of an event, without the texts that the session has. */
  pack(event: AgentEvent): string {
    const packed = this.packed(event)
    return packed === undefined ? textOfEvent(event) : JSON.stringify(packed)
  }

  private packed(event: AgentEvent): object | undefined {
    switch (event._tag) {
      case "RunStart": {
        const { prompts, ...others } = event
        const ids = prompts.map(({ id }) => id)
        return ids.every((id) => this.entered.has(ofMessage(id))) ? { ...others, promptIds: ids } : undefined
      }
      case "MessageEnd": {
        const { message, ...others } = event
        const calls = callsOf(message)
        if (calls !== undefined) this.calls.set(event.runId, calls)
        return this.entered.delete(ofMessage(message.id)) ? { ...others, messageId: message.id } : undefined
      }
      case "ToolsDetected": {
        const { toolCalls, ...others } = event
        const ids = toolCalls.map(({ id }) => id)
        return toolCalls.every((call) => this.isCalled(event.runId, call.id, call.params))
          ? { ...others, toolCallIds: ids }
          : undefined
      }
      case "ToolExecutionStart":
      case "ToolInvoked":
      case "ApprovalRequested": {
        const { params, ...others } = event
        return this.isCalled(event.runId, event.toolCallId, params) ? others : undefined
      }
      case "ToolExecutionEnd": {
        const { result: _, ...others } = event
        return this.entered.delete(ofEnd(event)) ? others : undefined
      }
      default:
        return undefined
    }
  }

  private isCalled(runId: string, toolCallId: string, params: Schema.Json | undefined): boolean {
    const calls = this.calls.get(runId)
    if (calls?.has(toolCallId) !== true) return false
    const called = calls.get(toolCallId)
    return called === params || JSON.stringify(called) === JSON.stringify(params)
  }
}

const readTool = Schema.decodeUnknownOption(Data.Tool)
const readChild = Schema.decodeUnknownOption(Data.Child)

/** A text of an entry, and the place of the entry among the lines. */
interface Placed {
  readonly at: number
  readonly value: Schema.Json | Message.Message
}

/** Puts the texts of the entries of a session back into the lines between them. */
class Unpacker {
  private readonly texts = new Map<string, Array<Placed>>()
  /** The last answers, by their runs. */
  private readonly answers = new Map<string, ReadonlyArray<Message.ToolCall>>()

  addEntry(entry: SessionEntry.SessionEntry, at: number): void {
    if (entry.type === "message") return this.add(ofMessage(entry.message.id), { at, value: entry.message })
    if (entry.type !== "custom") return
    if (entry.kind === "tool") {
      const tool = Option.getOrUndefined(readTool(entry.data))
      if (tool?.phase === "end") this.add(ofEnd(tool), { at, value: tool.output })
    }
    const child = entry.kind === "child" ? Option.getOrUndefined(readChild(entry.data)) : undefined
    const inner = child === undefined ? undefined : SessionEntry.fromJson(child.entry)
    if (inner !== undefined && Result.isSuccess(inner)) this.addEntry(inner.success, at)
  }

  private add(key: string, placed: Placed): void {
    const others = this.texts.get(key)
    if (others === undefined) this.texts.set(key, [placed])
    else others.push(placed)
  }

  /** The text of the last entry before a line. */
  private find(key: string, at: number): Placed["value"] | undefined {
    return this.texts.get(key)?.findLast((placed) => placed.at < at)?.value
  }

  /** The event of a line; `undefined` for one whose entry a crash cut. */
  event(event: JsonObject, at: number): object | undefined {
    const runId = String(event["runId"])
    const calls = this.answers.get(runId) ?? []
    switch (event["_tag"]) {
      case "RunStart": {
        const { promptIds, ...others } = event
        if (!isArray(promptIds)) return event
        const prompts = promptIds.flatMap((id) => this.find(ofMessage(String(id)), Infinity) ?? [])
        return prompts.length === promptIds.length ? { ...others, prompts } : undefined
      }
      case "MessageEnd": {
        const { messageId, ...others } = event
        const ended = others["message"] ?? this.find(ofMessage(String(messageId)), at)
        if (isMessage(ended) && ended.role === "assistant") this.answers.set(runId, Message.toolCalls(ended))
        return ended === undefined ? undefined : { ...others, message: ended }
      }
      case "ToolsDetected": {
        const { toolCallIds, ...others } = event
        return isArray(toolCallIds)
          ? { ...others, toolCalls: calls.filter(({ id }) => toolCallIds.includes(id)) }
          : event
      }
      case "ToolExecutionStart":
      case "ToolInvoked":
      case "ApprovalRequested": {
        if (event["params"] !== undefined) return event
        return { ...event, params: calls.find(({ id }) => id === event["toolCallId"])?.params }
      }
      case "ToolExecutionEnd": {
        if (event["result"] !== undefined) return event
        const result = this.find(ofEnd({ runId, toolCallId: String(event["toolCallId"]) }), at)
        return result === undefined ? undefined : { ...event, result }
      }
      default:
        return event
    }
  }
}

const isMessage = Schema.is(Message.Message)

const isStart = (line: Schema.Json | undefined): boolean => {
  const event = isObject(line) ? line["event"] : undefined
  return isObject(event) && event["_tag"] === "RunStart" && event["path"] === undefined
}

/**
 * The lines of a log, with the events as the run published them. The events of a log begin with its last start: a crash has cut the write
 * of one before it, and the run has begun again.
 */
export const unpacked = (
  items: ReadonlyArray<Logged | SessionEntry.SessionEntry>
): ReadonlyArray<unknown> => {
  const unpacker = new Unpacker()
  items.forEach((item, at) => ("_tag" in item ? undefined : unpacker.addEntry(item, at)))
  const lines = items.map((item) => ("_tag" in item ? parse(item.text) : undefined))
  const start = lines.findLastIndex(isStart)
  let isCut = false
  return lines.flatMap((line, at): ReadonlyArray<unknown> => {
    if (!isObject(line) || !isObject(line["event"])) return line === undefined ? [] : [line]
    const event = isCut || at < start ? undefined : unpacker.event(line["event"], at)
    isCut ||= at === start && event === undefined
    return event === undefined ? [] : [{ ...line, event }]
  })
}
