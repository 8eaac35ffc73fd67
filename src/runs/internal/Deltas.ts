/**
 * The deltas, or the partial values, of messages that are not whole yet.
 *
 * This is the path of a delta, written for memory and speed, since a log has thousands of them. An event and its frame take some 900
 * bytes; a row of a stretch takes 30, and its frame is made of texts that were encoded once for all deltas alike.
 */
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { frameOf, type Entry, LogEntry } from "../LogEntry.ts"

type Delta = OfTag<"MessageDelta">
type Piece = Extract<ModelEvent, { readonly _tag: "TextDelta" | "ThinkingDelta" | "ToolCallDelta" }>

const isPiece = (delta: ModelEvent): delta is Piece =>
  delta._tag === "TextDelta" || delta._tag === "ThinkingDelta" || delta._tag === "ToolCallDelta"

/** Deltas of a message that differ only in their numbers, their times and their texts. */
class Kind {
  private readonly first: Delta
  private readonly piece: Piece
  private readonly beforeSeq: string
  private readonly beforeText: string

  constructor(first: Delta, piece: Piece) {
    this.first = first
    this.piece = piece
    const { delta: _delta, seq: _seq, timestamp: _timestamp, ...event } = first
    const { delta: _text, ...delta } = piece
    this.beforeSeq = `${JSON.stringify(event).slice(0, -1)},"seq":`
    this.beforeText = `,"delta":${JSON.stringify(delta).slice(0, -1)},"delta":`
  }

  has({ runId, turn }: Delta, { _tag, contentIndex }: Piece): boolean {
    const { first, piece } = this
    const isAlike = _tag === piece._tag && contentIndex === piece.contentIndex
    return isAlike && runId === first.runId && turn === first.turn
  }

  event(seq: number, timestamp: number, text: string): Delta {
    return { ...this.first, seq, timestamp, delta: { ...this.piece, delta: text } }
  }

  json(seq: number, timestamp: number, text: string): string {
    return `${this.beforeSeq}${seq},"timestamp":${timestamp}${this.beforeText}${JSON.stringify(text)}}}`
  }
}

/** An entry that was made from a row. */
class DeltaEntry implements Entry {
  readonly tag = "MessageDelta"
  readonly position: number
  private readonly kind: Kind
  private readonly row: readonly [seq: number, timestamp: number, text: string]
  private framed: string | undefined

  constructor(position: number, kind: Kind, row: readonly [seq: number, timestamp: number, text: string]) {
    this.position = position
    this.kind = kind
    this.row = row
  }

  get event(): AgentEvent {
    return this.kind.event(...this.row)
  }

  get frame(): string {
    return (this.framed ??= frameOf(this.position, this.tag, this.kind.json(...this.row)))
  }
}

/** The rows of a stretch. */
const most = 64

/** Deltas of one kind whose positions and numbers follow each other. */
class Stretch {
  readonly kind: Kind
  private readonly position: number
  private readonly seq: number
  private readonly timestamp: number
  private count = 0
  /** Milliseconds after the first delta: small numbers take less memory. */
  private times: Array<number> = []
  /** The texts of the deltas, until there are enough to join them. */
  private texts: Array<string> = []
  private joined = ""
  private ends: Array<number> = []

  constructor(kind: Kind, position: number, { seq, timestamp }: Delta) {
    this.kind = kind
    this.position = position
    this.seq = seq
    this.timestamp = timestamp
  }

  get last(): number {
    return this.position + this.count - 1
  }

  /** Whether a delta is the next row. */
  takes(position: number, { seq }: Delta): boolean {
    return this.count < most && position === this.position + this.count && seq === this.seq + this.count
  }

  add(timestamp: number, text: string): void {
    this.times.push(timestamp - this.timestamp)
    this.texts.push(text)
    this.count++
    if (this.count === most) this.join()
  }

  private join(): void {
    let end = 0
    this.ends = this.texts.map(({ length }) => (end += length))
    this.times = this.times.slice()
    this.joined = this.texts.join("")
    this.texts = []
  }

  /** The entries behind a position. */
  after(position: number): ReadonlyArray<Entry> {
    const start = Math.max(0, position - this.position + 1)
    return this.times.slice(start).map((after, index) => {
      const row = start + index
      const text = this.texts[row] ?? this.joined.slice(this.ends[row - 1] ?? 0, this.ends[row])
      return new DeltaEntry(this.position + row, this.kind, [this.seq + row, this.timestamp + after, text])
    })
  }
}

/** A delta that is no piece of a text, or a partial value. */
class Single {
  readonly last: number
  private readonly entry: Entry

  constructor(entry: Entry) {
    this.last = entry.position
    this.entry = entry
  }

  after(): ReadonlyArray<Entry> {
    return [this.entry]
  }
}

/** The deltas of one message. */
class Rows {
  private readonly parts: Array<Stretch | Single> = []

  add(entry: LogEntry, event: Delta | OfTag<"PartialValue">): void {
    if (event._tag === "MessageDelta" && isPiece(event.delta))
      this.stretch(entry.position, event, event.delta).add(event.timestamp, event.delta.delta)
    else this.parts.push(new Single(entry))
  }

  private stretch(position: number, event: Delta, piece: Piece): Stretch {
    const last = this.parts.at(-1)
    const isAlike = last instanceof Stretch && last.kind.has(event, piece)
    if (isAlike && last.takes(position, event)) return last
    const next = new Stretch(isAlike ? last.kind : new Kind(event, piece), position, event)
    this.parts.push(next)
    return next
  }

  /** The entries behind a position, so many at most. */
  after(position: number, count: number): ReadonlyArray<Entry> {
    const { parts } = this
    const page: Array<Entry> = []
    let index = firstBehind(position, parts.length, (at) => parts[at]?.last)
    for (; index < parts.length && page.length < count; index++) {
      for (const entry of parts[index]?.after(position) ?? []) page.push(entry)
    }
    return page.length > count ? page.slice(0, count) : page
  }
}

export class Deltas {
  /** By the ids of their messages. */
  private readonly open = new Map<string, Rows>()

  add(entry: LogEntry, event: Delta | OfTag<"PartialValue">): void {
    const { messageId } = event
    const rows = this.open.get(messageId) ?? new Rows()
    this.open.set(messageId, rows)
    rows.add(entry, event)
  }

  /** Forgets the deltas of a message. */
  drop(messageId: string): void {
    this.open.delete(messageId)
  }

  /** The entries behind a position, so many at most, in order. */
  after(position: number, count: number): ReadonlyArray<Entry> {
    const [first = [], ...others] = [...this.open.values()].map((rows) => rows.after(position, count))
    return others.reduce((all, some) => inOrder(all, some, count), first)
  }
}

/** The first entries of both, in order. */
export const inOrder = (
  some: ReadonlyArray<Entry>,
  others: ReadonlyArray<Entry>,
  count: number
): ReadonlyArray<Entry> => {
  if (some.length === 0) return others
  if (others.length === 0) return some
  return [...some, ...others].toSorted((left, right) => left.position - right.position).slice(0, count)
}

/** The index of the first of so many ascending positions that is behind a position. */
export const firstBehind = (
  position: number,
  count: number,
  positionAt: (index: number) => number | undefined
): number => {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((positionAt(middle) ?? 0) <= position) low = middle + 1
    else high = middle
  }
  return low
}
