/**
 * The lines of a stored log: the run, its events, and the positions that it has reserved.
 */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { StoredEntry } from "./LogEntry.ts"

const Line = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("run"),
    v: Schema.Int,
    runId: Schema.String,
    sessionId: Schema.String,
    created: Schema.Finite
  }),
  Schema.Struct({ type: Schema.Literal("event"), position: Schema.Int, event: Schema.Json }),
  Schema.Struct({ type: Schema.Literal("reserved"), upTo: Schema.Int })
])

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Line))

export const run = (runId: string, sessionId: string, created: number): string =>
  JSON.stringify({ type: "run", v: 1, runId, sessionId, created })

/** `text` is the event as JSON. */
export const event = (position: number, text: string): string =>
  `{"type":"event","position":${position},"event":${text}}`

export const reserved = (upTo: number): string => JSON.stringify({ type: "reserved", upTo })

/** A log as it was stored. */
export interface StoredLog {
  readonly created: number
  readonly entries: ReadonlyArray<StoredEntry>
  /** The highest position that may have been visible. */
  readonly last: number
}

/** Reads lines; those that a crash cut count for nothing. */
export const read = (lines: ReadonlyArray<string>): StoredLog => {
  let created = 0
  let last = 0
  const entries: Array<StoredEntry> = []
  for (const text of lines) {
    const line = Option.getOrUndefined(decode(text))
    if (line?.type === "run") created = line.created
    if (line?.type === "reserved") last = Math.max(last, line.upTo)
    if (line?.type !== "event" || line.position <= (entries.at(-1)?.position ?? 0)) continue
    const tag = Predicate.hasProperty(line.event, "_tag") ? String(line.event._tag) : ""
    entries.push(new StoredEntry(line.position, tag, line.event))
    last = Math.max(last, line.position)
  }
  return { created, entries, last }
}
