/**
 * A run of this process, and its log.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../AgentEvent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Ending from "./Ending.ts"
import { isTaken, type Place } from "./Hold.ts"
import type { LogEntry } from "../LogEntry.ts"
import type { Record, SessionError } from "../../Session.ts"
import type { Logged } from "../../sessions/SessionStore.ts"
import * as LogLine from "./LogLine.ts"
import type { Message } from "../../Message.ts"
import type { Pace } from "../Watchers.ts"
import * as Request from "./Request.ts"
import { RunLog } from "./RunLog.ts"
import { type Append, notRedacted, RunLogError, type RunKey, type Service as Store } from "../RunLogStore.ts"

export type { Task } from "./Request.ts"

/** The times between tries to store an end that the store has refused. */
const pace = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("1 second")])

/** Entries of one event, and the record of it. */
interface Group {
  readonly entries: ReadonlyArray<LogEntry>
  readonly record?: Record
}

/** The longest time for which events are held. */
const longest = "20 millis"

/** Events from which nothing follows before others are stored behind them. */
const heldTags: ReadonlySet<AgentEvent["_tag"]> = new Set<AgentEvent["_tag"]>([
  "TurnStart",
  "TurnEnd",
  "ModelCallStart",
  "ModelCallEnd",
  "MessageStart",
  "ToolsDetected",
  "ToolExecutionStart",
  "ToolExecutionProgress",
  "ContextTransformed",
  "QueueUpdate"
])

const hasEndBehind: ReadonlySet<Message["role"]> = new Set<Message["role"]>(["assistant", "toolResult"])

/**
 * Whether an event may be held. A run begins with its prompts; a result is stored with the end of its call, and an answer with its first
 * call, or with the end of the run.
 */
const isHeld = (event: AgentEvent): boolean => {
  if (event._tag === "RunStart") return event.prompts.length > 0
  if (event._tag === "MessageEnd") return hasEndBehind.has(event.message.role)
  return heldTags.has(event._tag)
}

/** The failure of a log whose session could not be written. */
const refusedBy = (error: SessionError): RunLogError =>
  new RunLogError({ detail: error.message, reason: isTaken(error) ? "taken" : "storage" })

export class LiveRun implements RunKey {
  runId: string
  readonly sessionId: string
  readonly created: number
  readonly log: RunLog
  /** Opened when the run has its first event, or could not begin. */
  readonly begun = Latch.makeUnsafe(false)
  /** Completes when the log is whole. */
  readonly done = Deferred.makeUnsafe<void>()
  private readonly store: Store
  private readonly scope = Scope.makeUnsafe()
  /** Whether this process has let go of the run, which continues elsewhere or later. */
  isLeft = false
  /** Whether a cancel of the run has come: it is about to end. */
  isCancelled = false
  /** The place of the run in a trace, as the header `traceparent` has it. Default: none. */
  trace: string | undefined
  /** Whether the store counts the starts of the run. */
  isCounted = false
  private opened: Append | undefined
  private readonly place: Place
  /** The events that no watcher has seen: they are stored with the next one that must be, or after a moment. */
  private unstored: Array<Group> = []
  /** Open while there are some. */
  private readonly holds = Latch.makeUnsafe(false)
  /** Whether they are being stored. */
  private isStoring = false
  private readonly turn = Semaphore.makeUnsafe(1)
  /** Writes events without the texts that the session has. */
  private readonly packer = new LogLine.Packer()
  /** Whether the agent writes its events to the session of the run. */
  isRecorded = false
  private onId: (run: LiveRun) => void = () => {}
  private onRefused: (error: RunLogError) => Effect.Effect<void> = () => Effect.void
  /** Joins the events of a run that continues to the log that it has. */
  splice: ((event: AgentEvent) => ReadonlyArray<AgentEvent>) | undefined
  /** Run when events are stored while the run waits for a person, or is paused. */
  onWaiting: Effect.Effect<void> = Effect.void
  /** Opened when the run may have come to wait for a person. */
  readonly still = Latch.makeUnsafe(false)
  /** Whether this process has let go of the run while it waits for a person. */
  isResting = false
  /** The watchers of this process. */
  private watchers = 0
  /** Fails when the store has refused a write of the run. */
  private readonly refusal = Deferred.makeUnsafe<never, SessionError>()
  /** Completes when the run has shown its end and the store has refused it. */
  private readonly owed = Deferred.makeUnsafe<void>()
  private isComplete = false

  /** `stored` is the log of a run that another process has begun. */
  constructor(
    { runId, sessionId }: RunKey,
    created: number,
    store: Store,
    place: Place,
    stored?: LogLine.StoredLog
  ) {
    this.runId = runId
    this.sessionId = sessionId
    this.created = created
    this.store = store
    this.place = place
    this.log = new RunLog((lines) => this.write(lines), stored)
    this.log.onStill = () => this.still.openUnsafe()
  }

  get info(): Payload.Run {
    return this.log.state.of(this.runId, this.sessionId, this.created)
  }

  /** The run, and the one whose open turn it began with. */
  get known() {
    return { info: this.info, resumes: this.log.state.resumes }
  }

  /** Whether no event has come. */
  get isUnbegun(): boolean {
    return this.log.isEmpty
  }

  /** Whether the store has its log. */
  get isEntered(): boolean {
    return this.opened !== undefined
  }

  /** Makes the log of a run that has not begun, with its beginning for a process that begins it. Default: this process begins it now. */
  enter(task?: Request.Task) {
    return this.write([], task === undefined ? undefined : Request.encode(task))
  }

  /** Opens the log of a run that another process has begun or queued. */
  readonly reopen = Effect.suspend(() =>
    Effect.map(Scope.provide(this.store.open(this), this.scope), (append) => void (this.opened = append))
  )

  /** Notes in the log that this process continues the run. */
  mark(at: number, countedMs: number) {
    return this.write([LogLine.continued(at, countedMs)])
  }

  /** Keeps a request that the run follows: the next process does so if this one ends before it has. */
  request(requested: LogLine.Requested): Effect.Effect<void, RunLogError> {
    return Effect.catch(this.write([LogLine.requested(requested)]), (error) =>
      this.log.state.isOver && !this.isRefused ? Effect.void : error
    )
  }

  private write(lines: ReadonlyArray<string>, request?: Schema.Json): Effect.Effect<void, RunLogError> {
    const written = Effect.suspend(() =>
      this.store.inSessions === true
        ? Effect.flatMap(
            this.attempt(() => this.loggedOf(lines)),
            (logged) =>
              Arr.isReadonlyArrayNonEmpty(logged)
                ? Effect.mapError(this.place.write(logged), refusedBy)
                : Effect.void
          )
        : (this.opened?.(lines) ?? Effect.void)
    )
    return Effect.andThen(this.entered(request), written)
  }

  /** Makes the log of the run in the store, unless it is there. */
  private entered(request?: Schema.Json): Effect.Effect<void, RunLogError> {
    return Effect.gen({ self: this }, function* () {
      if (this.isLeft) return yield* new RunLogError({ detail: "this process has let go of the run" })
      if (this.opened !== undefined) return
      const beginning = LogLine.run(this.runId, this.sessionId, this.created, request)
      const append = yield* Scope.provide(this.store.open(this, beginning), this.scope)
      if (this.store.inSessions !== true) yield* append([beginning])
      this.opened = append
    })
  }

  /** The lines of the session. Throws where the function does that redacts them. */
  private loggedOf(lines: ReadonlyArray<string>): ReadonlyArray<Logged> {
    const { redact } = this.store
    return lines.map((text) => ({
      _tag: "Logged",
      runId: this.runId,
      text: redact === undefined ? text : LogLine.withData(text, redact)
    }))
  }

  private attempt<A>(compute: () => A): Effect.Effect<A, RunLogError> {
    return Effect.try({ try: compute, catch: () => notRedacted })
  }

  /** Whether the run has shown its end, which the store has refused so far. */
  get isOwed(): boolean {
    return Deferred.isDoneUnsafe(this.owed) && !this.isComplete
  }

  /** Whether the store has refused a write of the run, which is about to fail. */
  get isRefused(): boolean {
    return Deferred.isDoneUnsafe(this.refusal)
  }

  /** Ends the run: the store has refused a write of it. */
  refuse(error: SessionError): void {
    Deferred.doneUnsafe(this.refusal, Effect.fail(error))
  }

  /**
   * Follows the events of the run to its end, and takes the id of the first one. Fails as the stream does, or if they cannot be stored.
   * `onRefused` is called before the run stops for that. An agent that does not write to the session has its events in the stream alone.
   */
  follow<E>(
    events: Stream.Stream<AgentEvent, E>,
    onId: (run: LiveRun) => void,
    onRefused: (error: RunLogError) => Effect.Effect<void>
  ) {
    this.onId = onId
    this.onRefused = onRefused
    const logged = (published: Arr.NonEmptyReadonlyArray<AgentEvent>) =>
      Effect.catch(this.logged([], published), (error) =>
        this.isRefused ? Effect.never : Effect.fail(error)
      )
    const followed = Stream.runForEachArray(events, (published) =>
      this.isRecorded ? Effect.void : logged(published)
    )
    const flushed = Effect.andThen(
      this.holds.await,
      Effect.andThen(Effect.sleep(longest), Effect.ignore(this.flush))
    )
    return Effect.raceFirst(Effect.raceFirst(followed, Effect.forever(flushed)), Deferred.await(this.refusal))
  }

  /** Logs events of the run, together with the records of them. */
  keep(records: ReadonlyArray<Record>, events: Arr.NonEmptyReadonlyArray<AgentEvent>) {
    this.isRecorded = true
    return this.logged(records, events)
  }

  /** Shows deltas to the watchers, unless it returns `false`. */
  show(deltas: ReadonlyArray<AgentEvent>): boolean {
    // Behind events that no watcher has seen, it would hide them.
    if (this.unstored.length > 0 || this.isStoring) return false
    return this.log.showDeltas(this.splice === undefined ? deltas : deltas.flatMap(this.splice))
  }

  /** Notes that the next write has records of sub-agents. */
  note(records: ReadonlyArray<Record>): void {
    this.packer.note(records)
  }

  /** Logs events, with the next one that watchers must not see before it is stored. */
  private logged(
    records: ReadonlyArray<Record>,
    published: Arr.NonEmptyReadonlyArray<AgentEvent>
  ): Effect.Effect<void, SessionError> {
    return Effect.suspend(() => {
      // The run is about to stop: its end is that of the refusal.
      if (this.isRefused) return Deferred.await(this.refusal)
      if (this.isUnbegun) {
        this.runId = published[0].runId
        this.onId(this)
      }
      this.unstored.push(...this.groupsOf(records, published))
      if (!published.every(isHeld)) return this.flush
      this.holds.openUnsafe()
      return Effect.void
    })
  }

  /** The entries of events, each with the record of it, behind the records of no event. */
  private groupsOf(
    records: ReadonlyArray<Record>,
    published: ReadonlyArray<AgentEvent>
  ): ReadonlyArray<Group> {
    const { splice = (event: AgentEvent) => [event] } = this
    const byEvent = new Map<AgentEvent, Record>()
    const others: Array<Group> = []
    for (const record of records) {
      if (record._tag === "Event" && published.includes(record.event)) byEvent.set(record.event, record)
      else others.push({ entries: [], record })
    }
    const groups = published.map((event) => {
      const record = byEvent.get(event)
      return { entries: this.log.placed(splice(event)), ...(record === undefined ? {} : { record }) }
    })
    return [...others, ...groups]
  }

  /** Stores the events that are held, then shows them to the watchers. */
  readonly flush: Effect.Effect<void, SessionError> = Effect.suspend(() => {
    const groups = this.unstored
    this.unstored = []
    this.holds.closeUnsafe()
    if (groups.length === 0) return Effect.void
    this.isStoring = true
    const entries = groups.flatMap(({ entries }) => entries)
    const stored = this.log
      .kept(entries, this.stored(groups))
      .pipe(
        Effect.andThen(this.progressed(entries)),
        Effect.andThen(Effect.suspend(() => (this.log.state.isWaiting ? this.onWaiting : Effect.void)))
      )
    const refused = Effect.catch(stored, (error) =>
      error._tag === "SessionError"
        ? error
        : Effect.andThen(this.onRefused(error), Ending.refused(this.sessionId, error))
    )
    const flushed = Effect.ensuring(
      refused,
      Effect.sync(() => void (this.isStoring = false))
    )
    return this.begun.isOpen() ? flushed : Effect.andThen(flushed, this.begun.open)
  }).pipe(this.turn.withPermit, Effect.uninterruptible)

  /** Stores entries of the log, each behind the record of its event. */
  private stored(groups: ReadonlyArray<Group>): Effect.Effect<void, SessionError | RunLogError> {
    const { packer, place, store } = this
    const records = groups.flatMap(({ record }) => record ?? [])
    if (store.inSessions !== true) {
      const recorded = Arr.isReadonlyArrayNonEmpty(records) ? place.record(records) : Effect.void
      const lines = this.log.linesOf(groups.flatMap(({ entries }) => entries))
      return Effect.andThen(recorded, lines.length === 0 ? Effect.void : this.write(lines))
    }
    const textOf =
      store.redact === undefined ? ({ event }: LogEntry) => packer.pack(event) : ({ text }: LogEntry) => text
    const steps = this.attempt(() => {
      packer.note(records)
      return groups.flatMap(({ entries, record }): ReadonlyArray<Logged | Record> => {
        const lines = this.loggedOf(this.log.linesOf(entries, textOf))
        return record === undefined ? lines : [record, ...lines]
      })
    })
    const written = Effect.flatMap(steps, (steps) =>
      Arr.isReadonlyArrayNonEmpty(steps) ? place.keep(steps) : Effect.void
    )
    return Effect.andThen(this.entered(), written)
  }

  /** Counts a start of the run, and its progress from now on. Succeeds with whether the run may begin here. */
  readonly count: Effect.Effect<boolean, RunLogError> = Effect.suspend(() => {
    this.isCounted = true
    return Effect.map(this.store.begun(this), ({ parked }) => parked === undefined)
  })

  /** Notes that the run comes further with the process that has it. */
  private progressed(entries: ReadonlyArray<LogEntry>): Effect.Effect<void, RunLogError> {
    const isTurn = ({ event: { _tag, path } }: LogEntry) => _tag === "TurnEnd" && path === undefined
    return this.isCounted && entries.some(isTurn) ? this.store.progressed(this) : Effect.void
  }

  /** Ends the log: with an end of its own if the run has shown none. Where the store refuses the end, watchers see it, and it is owed. */
  finish(end: Ending.End): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { log } = this
      if (this.isLeft) return yield* Scope.close(this.scope, Exit.void)
      yield* Effect.ignore(this.flush)
      const now = yield* Clock.currentTimeMillis
      const last = log.hasEnd ? [] : Ending.of(this, log.published, end, now)
      // A store that has refused a write may hold the next one for long: watchers see the end first.
      if (this.isRefused) log.showRefused(last)
      else yield* Effect.catch(log.append(last), (error) => this.unkept(error))
      log.showRefused([])
      yield* this.reported
      if (!this.isRefused) yield* Effect.catch(this.settle, (error) => this.unkept(error))
      if (this.isRefused) Deferred.doneUnsafe(this.owed, Effect.void)
    })
  }

  private unkept(error: RunLogError): Effect.Effect<void> {
    this.refuse(Ending.refused(this.sessionId, error))
    return Effect.logError(error.message)
  }

  /** Stores that the log is complete, and before that what the store has refused. */
  readonly settle: Effect.Effect<void, RunLogError> = Effect.suspend(() => {
    if (this.isComplete) return Effect.void
    const ended = Effect.suspend(() => (this.isEntered ? this.store.end(this) : Effect.void))
    const done = Effect.sync(() => void (this.isComplete = true))
    return Effect.andThen(
      Effect.andThen(this.log.keep, ended),
      Effect.andThen(done, Scope.close(this.scope, Exit.void))
    )
  })

  /** Stores what is owed once the store takes it, unless this process lets go of the run, or another one has it. */
  readonly settled: Effect.Effect<void> = Effect.suspend(() =>
    Effect.retry(this.settle, {
      schedule: pace,
      while: ({ reason }) => reason === "storage" && !this.isLeft
    })
  ).pipe(Effect.ignore({ log: true }))

  /** Warns of a failure. */
  private readonly reported = Effect.suspend(() => {
    const { error, runId, sessionId, status } = this.info
    if (status !== "failed" || error === undefined) return Effect.void
    const { reason, vendorStatus } =
      error._tag === "ProviderError"
        ? { reason: error.reason._tag, vendorStatus: error.reason.status }
        : { reason: error._tag, vendorStatus: undefined }
    const vendor = vendorStatus === undefined ? {} : { vendorStatus }
    return Effect.annotateLogs(Effect.logWarning(`The run failed: ${error.message}`), {
      runId,
      sessionId,
      reason,
      ...vendor
    })
  })

  /** Waits until the run has ended, or has shown an end that the store refuses, or this process has let go of it. */
  readonly gone: Effect.Effect<void> = Effect.raceFirst(Deferred.await(this.done), Deferred.await(this.owed))

  /** Waits for the end of a run that has shown it, unless the store refuses it. */
  readonly ended: Effect.Effect<void> = Effect.suspend(() =>
    this.log.state.isOver ? this.gone : Effect.void
  )

  /** Waits until the run does nothing before a person acts, has ended, or has gone from this process. */
  readonly rested = Effect.suspend(() =>
    Effect.raceFirst(
      this.log.until(() => this.log.state.isWaiting && !this.isCancelled),
      Deferred.await(this.done)
    )
  )

  /** Acquires what this process has while it has the run. */
  during<A, E, R>(effect: Effect.Effect<A, E, R>) {
    return Scope.provide(effect, this.scope)
  }

  /** Cancels the run by an effect. */
  cancelledBy(cancel: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.isCancelled = true
      return cancel
    })
  }

  /** Lets go of the run: its log takes no more from this process, and its watchers end. */
  leave(): void {
    this.isLeft = true
    this.log.close()
    Deferred.doneUnsafe(this.done, Effect.void)
    this.begun.openUnsafe()
  }

  /** Lets go of the run, and of its log. */
  readonly letGo = Effect.suspend(() => {
    this.leave()
    return Scope.close(this.scope, Exit.void)
  })

  /** Ends the watchers that have read all. */
  readonly close = Effect.suspend(() => {
    Deferred.doneUnsafe(this.done, Effect.void)
    return this.closeLog
  })

  /** Ends the watchers of a run that has shown its end. */
  readonly closeLog = Effect.suspend(() => {
    this.log.close()
    return this.begun.open
  })

  /** The pages of the log behind a position. */
  watch(after: number, pace: Pace, isPartial: boolean) {
    const enter = Effect.sync(() => void this.watchers++)
    const leave = Effect.sync(() => {
      this.watchers--
      this.log.onStill()
    })
    const pages = this.log.watch(after, pace, isPartial)
    return Stream.unwrap(
      Effect.as(
        Effect.acquireRelease(enter, () => leave),
        pages
      )
    )
  }

  /** Whether the run can wait for a person without this process. Its agent continues from what it has written to the session. */
  get canRest(): boolean {
    const { isCancelled, isLeft, isRecorded, log, watchers } = this
    return isRecorded && watchers === 0 && !isCancelled && !isLeft && log.state.canRest
  }

  /** Notes in the store that the run waits for a person, and that no process has it. */
  readonly rest = Effect.suspend(() =>
    Effect.tap(this.store.rest(this), () => Effect.sync(() => void (this.isResting = true)))
  )
}
