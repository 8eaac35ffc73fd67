/**
 * The log of a run: its events at positions from 1, which watchers read with cursors of their own.
 *
 * An event is stored before a watcher sees it. Deltas are not stored, and leave the log when their message is whole: a watcher behind
 * them reads the message. Positions that a watcher may see are reserved in the store first, so that those after a crash are higher.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import { type Entry, LogEntry } from "./LogEntry.ts"
import * as LogLine from "./LogLine.ts"
import type { Append, RunLogError } from "./RunLogStore.ts"
import { RunState } from "./RunState.ts"

/** Positions that one line of the store reserves. */
const reservation = 1024
/** The most entries and bytes of a page. */
const pageEntries = 256
const pageBytes = 262_144

/** The times of a watcher. */
export interface Pace {
  /** The time without an event after which a watcher gets an empty page. */
  readonly heartbeat: Duration.Input
  /** The least time between two pages. */
  readonly flush: Duration.Input
}

export class RunLog {
  readonly state = new RunState()
  private entries: Array<Entry> = []
  private last: number
  private reserved: number
  private closed = false
  private changed = Latch.makeUnsafe()
  /** The positions of the first delta of each open message. */
  private readonly deltas = new Map<string, number>()
  private readonly store: Append

  constructor(store: Append, stored?: LogLine.StoredLog) {
    this.store = store
    this.last = stored?.last ?? 0
    this.reserved = this.last
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
    return this.entries.flatMap(({ event }) => event ?? [])
  }

  /** Stores events, then shows them to the watchers. */
  append(events: ReadonlyArray<AgentEvent>): Effect.Effect<void, RunLogError> {
    return Effect.suspend(() => {
      const added = events.map((event) => new LogEntry(++this.last, event))
      const lines = added.flatMap((entry) =>
        entry.tag === "MessageDelta" ? [] : [LogLine.event(entry.position, entry.text)]
      )
      if (this.last > this.reserved) {
        this.reserved = this.last + reservation
        lines.unshift(LogLine.reserved(this.reserved))
      }
      const show = Effect.sync(() => this.show(added))
      return lines.length === 0 ? show : Effect.andThen(this.store(lines), show)
    })
  }

  /** Shows events that could not be stored, as the last ones. */
  showUnstored(events: ReadonlyArray<AgentEvent>): void {
    this.show(events.map((event) => new LogEntry(++this.last, event)))
  }

  /** Ends the watchers that have read all. */
  close(): void {
    this.closed = true
    this.wake()
  }

  private show(added: ReadonlyArray<LogEntry>): void {
    for (const entry of added) {
      entry.release()
      this.entries.push(entry)
      this.state.add(entry.event)
      this.foldDeltas(entry)
    }
    this.wake()
  }

  private foldDeltas({ event, position }: LogEntry): void {
    if (event._tag === "MessageDelta") {
      if (!this.deltas.has(event.messageId)) this.deltas.set(event.messageId, position)
    } else if (event._tag === "MessageEnd") this.dropDeltas(event.message.id)
    else if (event._tag === "MessageRetracted") this.dropDeltas(event.messageId)
  }

  private dropDeltas(messageId: string): void {
    const first = this.deltas.get(messageId)
    if (first === undefined) return
    this.deltas.delete(messageId)
    const start = this.indexAfter(first - 1)
    const isDelta = ({ event }: Entry) => event?._tag === "MessageDelta" && event.messageId === messageId
    const rest = this.entries.splice(start).filter((entry) => !isDelta(entry))
    for (const entry of rest) this.entries.push(entry)
  }

  private wake(): void {
    const { changed } = this
    this.changed = Latch.makeUnsafe()
    changed.openUnsafe()
  }

  /** The index of the first entry behind a position. */
  private indexAfter(position: number): number {
    let low = 0
    let high = this.entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.entries[middle]?.position ?? 0) <= position) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Whether an entry stands behind a position, or may follow. */
  hasAfter(position: number): boolean {
    return !this.closed || this.indexAfter(position) < this.entries.length
  }

  /** The entries behind a position, as many as a page has. */
  pageAfter(position: number): ReadonlyArray<Entry> {
    const page: Array<Entry> = []
    let bytes = 0
    for (let index = this.indexAfter(position); index < this.entries.length; index++) {
      const entry = this.entries[index]
      if (entry === undefined || page.length === pageEntries || bytes > pageBytes) break
      page.push(entry)
      bytes += entry.bytes.length
    }
    return page
  }

  /** The entries behind a position, until the log is closed. An empty page says that none came for a while. */
  watch(after: number, { flush, heartbeat }: Pace): Stream.Stream<ReadonlyArray<Entry>> {
    const gap = Duration.toMillis(flush)
    const next = (from: number, since: number): Effect.Effect<ReadonlyArray<Entry> | undefined> =>
      Effect.clockWith((clock) => {
        // Of the same moment as the page: an append in between opens it.
        const { changed } = this
        const page = this.pageAfter(from)
        const early = since + gap - clock.currentTimeMillisUnsafe()
        const isWhole = page.length === pageEntries || this.closed
        if (page.length > 0 && early > 0 && !isWhole)
          return Effect.andThen(Effect.sleep(early), next(from, 0))
        if (page.length > 0) return Effect.succeed(page)
        if (this.closed) return Effect.undefined
        // At once, so that the watcher sees that it is connected.
        if (since === -Infinity) return Effect.succeed([])
        return Effect.flatMap(Effect.timeoutOption(changed.await, heartbeat), (woken) =>
          Option.isSome(woken) ? next(from, since) : Effect.succeed([])
        )
      })
    return Stream.paginate({ from: after, since: -Infinity }, ({ from, since }) =>
      Effect.gen(function* () {
        const page = yield* next(from, since)
        if (page === undefined) return [[], Option.none()] as const
        const now = yield* Clock.currentTimeMillis
        return [[page], Option.some({ from: page.at(-1)?.position ?? from, since: now })] as const
      })
    )
  }
}
