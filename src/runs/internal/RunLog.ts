/**
 * The log of a run: its events at positions from 1, which watchers read with cursors of their own.
 *
 * An event is stored before a watcher sees it. Deltas and partial values are not stored, and leave the log when their message is whole: a
 * watcher behind them reads the message. Watchers of a process that ended may have seen positions behind the last line: another process
 * leaves them out.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import { type Entry, LogEntry, frameOf } from "../LogEntry.ts"
import * as LogLine from "./LogLine.ts"
import type { Pace } from "../Watchers.ts"
import type { Append, RunLogError } from "../RunLogStore.ts"
import { RunState } from "./RunState.ts"
import type { ModelEvent } from "../../ModelEvent.ts"

/** The most entries and characters of a page. A larger entry is a page, so that its watchers share its bytes. */
const pageEntries = 256
const pageSize = 262_144

/** The events behind which a run may wait for a person. */
const stills: ReadonlySet<AgentEvent["_tag"]> = new Set<AgentEvent["_tag"]>([
  "ApprovalRequested",
  "QuestionAsked",
  "RunPaused",
  "ToolExecutionEnd"
])

/** Whether the store has no line of an entry. */
const isUnstored = ({ tag }: LogEntry): boolean => tag === "MessageDelta" || tag === "PartialValue"

export class RunLog {
  readonly state = new RunState()
  /** All but the deltas and the partial values. */
  private readonly entries: Array<Entry> = []
  private readonly deltas = new Deltas()
  private readonly partials = new Deltas()
  private last: number
  /** The last position that the store knows of. */
  private known: number
  private closed = false
  /** Opened when no event follows: watchers read the rest at once. */
  private readonly ending = Latch.makeUnsafe(false)
  /** Opened by the next append. */
  private changed = Latch.makeUnsafe()
  private isAwaited = false
  /** Called with each event that may leave the run waiting for a person. */
  onStill = (): void => {}
  /** The entries that the store has refused, which no watcher has seen. */
  private refused: ReadonlyArray<LogEntry> = []
  /** The last entries, which the store has refused so far. */
  private owed: ReadonlyArray<LogEntry> = []
  private readonly store: Append

  constructor(store: Append, stored?: LogLine.StoredLog) {
    this.store = store
    this.last = this.known = stored?.last ?? 0
    for (const entry of stored?.entries ?? []) {
      this.entries.push(entry)
      if (entry.event !== undefined) this.state.add(entry.event)
    }
  }

  /** Whether no event follows. */
  get isClosed(): boolean {
    return this.closed
  }

  get isEmpty(): boolean {
    return this.last === 0
  }

  /** The events at hand. */
  get events(): ReadonlyArray<AgentEvent> {
    return this.after(0, Infinity, false).flatMap(({ event }) => event ?? [])
  }

  /** Whether the run has published its end. */
  get hasEnd(): boolean {
    const isEnd = ({ event: { _tag, path } }: LogEntry) => _tag === "RunEnd" && path === undefined
    return this.state.isOver || this.refused.some(isEnd)
  }

  /** The events at hand, and those that the store has refused. */
  get published(): ReadonlyArray<AgentEvent> {
    return [...this.events, ...this.refused.map(({ event }) => event)]
  }

  /** Stores events, then shows them to the watchers. */
  append(events: ReadonlyArray<AgentEvent>): Effect.Effect<void, RunLogError> {
    return Effect.suspend(() => {
      const entries = this.placed(events)
      const lines = this.linesOf(entries)
      return this.kept(entries, lines.length === 0 ? Effect.void : this.store(lines))
    })
  }

  /** Shows entries to the watchers once they are stored. */
  kept<E>(entries: ReadonlyArray<LogEntry>, stored: Effect.Effect<void, E>): Effect.Effect<void, E> {
    const show = Effect.sync(() => {
      const last = entries.findLast((entry) => !isUnstored(entry))
      if (last !== undefined) this.known = last.position
      this.show(entries)
    })
    const refuse = Effect.sync(() => void (this.refused = [...this.refused, ...entries]))
    return Effect.tapError(Effect.andThen(stored, show), () => refuse)
  }

  /** Shows deltas, which need no place in the store, unless there are too many behind the last line: then it returns `false`. */
  showDeltas(deltas: ReadonlyArray<AgentEvent>): boolean {
    if (this.last + deltas.length >= this.known + LogLine.reach) return false
    this.show(this.placed(deltas))
    return true
  }

  /** The lines of entries: deltas and partial values have none, but that of a place far behind the last line. */
  linesOf(entries: ReadonlyArray<LogEntry>, textOf = ({ text }: LogEntry) => text): ReadonlyArray<string> {
    const lines = entries.flatMap((entry) =>
      isUnstored(entry) ? [] : [LogLine.event(entry.position, textOf(entry))]
    )
    const isFar = lines.length === 0 && this.last + 1 >= this.known + LogLine.reach
    if (!isFar) return lines
    this.known = this.last
    return [LogLine.reserved(this.last)]
  }

  /** Gives events their positions. */
  placed(events: ReadonlyArray<AgentEvent>): ReadonlyArray<LogEntry> {
    return events.map((event) => new LogEntry(++this.last, event))
  }

  /** Shows the events that the store has refused, and the last ones. `keep` is to store them. */
  showRefused(events: ReadonlyArray<AgentEvent>): void {
    const added = [...this.refused, ...this.placed(events)]
    this.owed = [...this.owed, ...added]
    this.refused = []
    this.show(added)
  }

  /** Stores what the store has refused. The last event alone, which ends the log, if the store refuses what is before it again. */
  readonly keep: Effect.Effect<void, RunLogError> = Effect.suspend(() => {
    const { owed } = this
    if (owed.length === 0) return Effect.void
    const stored = (entries: ReadonlyArray<LogEntry>) => this.store(this.linesOf(entries))
    const all = Effect.catch(stored(owed), () => stored(owed.slice(-1)))
    return Effect.andThen(
      all,
      Effect.sync(() => void (this.owed = []))
    )
  })

  /** Ends the watchers that have read all. */
  close(): void {
    this.closed = true
    this.ending.openUnsafe()
    this.wake()
  }

  private show(added: ReadonlyArray<LogEntry>): void {
    for (const entry of added) {
      const { event } = entry
      if (event._tag === "MessageDelta") this.deltas.add(entry, event)
      else if (event._tag === "PartialValue") this.partials.add(entry, event)
      else {
        entry.release()
        this.entries.push(entry)
        this.state.add(event)
        if (stills.has(event._tag)) this.onStill()
        if (event._tag === "MessageEnd") this.drop(event.message.id)
        if (event._tag === "MessageRetracted") this.drop(event.messageId)
      }
    }
    this.wake()
  }

  /** Forgets what came of a message before it was whole, or void. */
  private drop(messageId: string): void {
    this.deltas.drop(messageId)
    this.partials.drop(messageId)
  }

  private wake(): void {
    if (!this.isAwaited) return
    const { changed } = this
    this.changed = Latch.makeUnsafe()
    this.isAwaited = false
    changed.openUnsafe()
  }

  /** Waits until an event makes a condition true, or no event follows. */
  until(isTrue: () => boolean): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.closed || isTrue()) return Effect.void
      this.isAwaited = true
      return Effect.andThen(this.changed.await, this.until(isTrue))
    })
  }

  private after(position: number, most: number, isPartial: boolean): ReadonlyArray<Entry> {
    const { deltas, entries, partials } = this
    const start = firstBehind(position, entries.length, (index) => entries[index]?.position)
    const page = inOrder(entries.slice(start, start + most), deltas.after(position, most), most)
    return isPartial ? inOrder(page, partials.after(position, most), most) : page
  }

  /** Whether an entry stands behind a position, or may follow. */
  hasAfter(position: number): boolean {
    return !this.closed || this.after(position, 1, false).length > 0
  }

  /** The entries behind a position, as many as a page has. `isPartial` is whether partial values are among them. */
  pageAfter(position: number, isPartial = false): ReadonlyArray<Entry> {
    const entries = this.after(position, pageEntries, isPartial)
    let size = 0
    const end = entries.findIndex(({ frame }, index) => (size += frame.length) > pageSize && index > 0)
    return end === -1 ? entries : entries.slice(0, end)
  }

  /** The entries behind a position, until the log is closed. An empty page says that none came for a while. */
  watch(after: number, pace: Pace, isPartial = false): Stream.Stream<ReadonlyArray<Entry>> {
    // `due` is the time of the page, in milliseconds.
    const next = (from: number, due: number): Effect.Effect<ReadonlyArray<Entry> | undefined> =>
      Effect.clockWith((clock) => {
        const early = due - clock.currentTimeMillisUnsafe()
        if (early > 0 && !this.closed)
          return Effect.andThen(Effect.timeoutOption(this.ending.await, early), next(from, 0))
        // Of the same moment as the page: an append in between opens it.
        const { changed } = this
        const page = this.pageAfter(from, isPartial)
        if (page.length > 0) return Effect.succeed(page)
        if (this.closed) return Effect.undefined
        // At once, so that the watcher sees that it is connected.
        if (due === -Infinity) return Effect.succeed([])
        this.isAwaited = true
        return Effect.flatMap(Effect.timeoutOption(changed.await, pace.heartbeat), (woken) =>
          Option.isSome(woken) ? next(from, 0) : Effect.succeed([])
        )
      })
    const pages = Stream.paginate({ from: after, due: -Infinity }, ({ due, from }) =>
      Effect.gen({ self: this }, function* () {
        const page = yield* next(from, due)
        if (page === undefined) return [[], Option.none()] as const
        const last = page.at(-1)?.position ?? from
        const isBehind = page.length > 0 && last < this.last
        const then = isBehind ? 0 : (yield* Clock.currentTimeMillis) + pace.gap
        return [[page], Option.some({ from: last, due: then })] as const
      })
    )
    return pace.counted(pages)
  }
}

// ───────────────────────── Deltas
//
// The deltas, or the partial values, of messages that are not whole yet.
//
// This is the path of a delta, written for memory and speed, since a log has thousands of them. An event and its frame take some 900
// bytes; a row of a stretch takes 30, and its frame is made of texts that were encoded once for all deltas alike.

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
const mostDeltas = 64

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
    return this.count < mostDeltas && position === this.position + this.count && seq === this.seq + this.count
  }

  add(timestamp: number, text: string): void {
    this.times.push(timestamp - this.timestamp)
    this.texts.push(text)
    this.count++
    if (this.count === mostDeltas) this.join()
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
