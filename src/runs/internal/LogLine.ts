/**
 * The lines of a stored log: the run, its events, and the positions that it has reserved.
 */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { StoredEntry } from "../LogEntry.ts"

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
