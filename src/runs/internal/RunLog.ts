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
import type { AgentEvent } from "../../AgentEvent.ts"
import { Deltas, firstBehind, inOrder } from "./Deltas.ts"
import { type Entry, LogEntry } from "../LogEntry.ts"
import * as LogLine from "./LogLine.ts"
import type { Pace } from "../Watchers.ts"
import type { Append, RunLogError } from "../RunLogStore.ts"
import { RunState } from "./RunState.ts"

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
