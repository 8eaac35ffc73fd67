/**
 * The deltas of messages that are not whole yet.
 *
 * This is the path of a delta, written for memory and speed, since a log has thousands of them. An event and its frame take some 900
 * bytes; a row of columns takes 80, and its frame is made of texts that were encoded once for all rows alike.
 */
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import * as EventText from "./EventText.ts"
import { type Entry, LogEntry } from "./LogEntry.ts"

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
    return (this.framed ??= EventText.frame(this.position, this.tag, this.kind.json(...this.row)))
  }
}

/** The deltas of one message, in columns. */
class Rows {
  private readonly positions: Array<number> = []
  private readonly seqs: Array<number> = []
  /** Milliseconds since the first one: small numbers take less memory. */
  private readonly times: Array<number> = []
  private readonly texts: Array<string> = []
  /** The kind of a delta with a text; any other delta as it is. */
  private readonly kinds: Array<Kind | LogEntry> = []
  private readonly began: number

  constructor({ timestamp }: Delta) {
    this.began = timestamp
  }

  add(entry: LogEntry, event: Delta): void {
    const { delta, seq, timestamp } = event
    this.positions.push(entry.position)
    this.seqs.push(seq)
    this.times.push(timestamp - this.began)
    this.texts.push(isPiece(delta) ? delta.delta : "")
    this.kinds.push(isPiece(delta) ? this.kindOf(event, delta) : entry)
  }

  private kindOf(event: Delta, piece: Piece): Kind {
    const last = this.kinds.at(-1)
    return last instanceof Kind && last.has(event, piece) ? last : new Kind(event, piece)
  }

  /** The entries behind a position, so many at most. */
  after(position: number, most: number): ReadonlyArray<Entry> {
    const start = firstBehind(position, this.positions.length, (row) => this.positions[row])
    return this.kinds.slice(start, start + most).map((kind, index) => this.entry(start + index, kind))
  }

  private entry(row: number, kind: Kind | LogEntry): Entry {
    if (kind instanceof LogEntry) return kind
    const { began, positions, seqs, texts, times } = this
    const { [row]: position = 0 } = positions
    const { [row]: seq = 0 } = seqs
    const { [row]: text = "" } = texts
    const timestamp = began + (times[row] ?? 0)
    return new DeltaEntry(position, kind, [seq, timestamp, text])
  }
}

export class Deltas {
  /** By the ids of their messages. */
  private readonly open = new Map<string, Rows>()

  add(entry: LogEntry, event: Delta): void {
    const { messageId } = event
    const rows = this.open.get(messageId) ?? new Rows(event)
    this.open.set(messageId, rows)
    rows.add(entry, event)
  }

  /** Forgets the deltas of a message. */
  drop(messageId: string): void {
    this.open.delete(messageId)
  }

  /** The entries behind a position, so many at most, in order. */
  after(position: number, most: number): ReadonlyArray<Entry> {
    const [first = [], ...others] = [...this.open.values()].map((rows) => rows.after(position, most))
    return others.reduce((all, some) => inOrder(all, some, most), first)
  }
}

/** The first entries of both, in order. */
export const inOrder = (
  some: ReadonlyArray<Entry>,
  others: ReadonlyArray<Entry>,
  most: number
): ReadonlyArray<Entry> => {
  if (some.length === 0) return others
  if (others.length === 0) return some
  return [...some, ...others].toSorted((left, right) => left.position - right.position).slice(0, most)
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
