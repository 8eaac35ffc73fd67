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
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../AgentEvent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Ending from "./Ending.ts"
import type { Entry } from "../LogEntry.ts"
import type { SessionError } from "../../Session.ts"
import * as LogLine from "./LogLine.ts"
import type { Pace } from "../Pace.ts"
import * as Request from "./Request.ts"
import { RunLog } from "./RunLog.ts"
import { type Append, RunLogError, type RunKey, type Service as Store } from "../RunLogStore.ts"

export type { Task } from "./Request.ts"

/** The times between tries to store an end that the store has refused. */
const pace = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("1 second")])

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
  /** Joins the events of a run that continues to the log that it has. */
  splice: ((event: AgentEvent) => ReadonlyArray<AgentEvent>) | undefined
  /** Opened when the run may have come to wait for a person. */
  readonly still = Latch.makeUnsafe(false)
  /** Whether this process has let go of the run while it waits for a person. */
  isResting = false
  /** The watchers of this process. */
  private watchers = 0
  /** Watchers whose leaving cancels the run. */
  private holders = 0
  /** Fails when the store has refused a write of the run. */
  private readonly refusal = Deferred.makeUnsafe<never, SessionError>()
  /** Completes when the run has shown its end and the store has refused it. */
  private readonly owed = Deferred.makeUnsafe<void>()
  private isComplete = false

  /** `stored` is the log of a run that another process has begun. */
  constructor({ runId, sessionId }: RunKey, created: number, store: Store, stored?: LogLine.StoredLog) {
    this.runId = runId
    this.sessionId = sessionId
    this.created = created
    this.store = store
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

  /** Makes the log of a run that has not begun, with its beginning for a process that begins it. */
  enter(task: Request.Task) {
    return this.write([], Request.encode(task))
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
      this.log.state.isOver ? Effect.void : error
    )
  }

  private write(lines: ReadonlyArray<string>, request?: Schema.Json) {
    return Effect.gen({ self: this }, function* () {
      if (this.isLeft) return yield* new RunLogError({ detail: "this process has let go of the run" })
      if (this.opened !== undefined) return yield* this.opened(lines)
      const append = yield* Scope.provide(this.store.open(this), this.scope)
      yield* append([LogLine.run(this.runId, this.sessionId, this.created, request), ...lines])
      this.opened = append
    })
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
   * Logs the events of a run as they come, and takes the id of the first one. Fails as the stream does, or if they cannot be stored.
   * `onRefused` is called before the run stops for that.
   */
  follow<E>(
    events: Stream.Stream<AgentEvent, E>,
    onId: (run: LiveRun) => void,
    onRefused: (error: RunLogError) => Effect.Effect<void>
  ) {
    const followed = Stream.runForEachArray(events, (published) =>
      Effect.suspend(() => {
        const some = this.splice === undefined ? published : published.flatMap(this.splice)
        if (!Arr.isReadonlyArrayNonEmpty(some)) return Effect.void
        if (this.isUnbegun) {
          this.runId = some[0].runId
          onId(this)
        }
        const appended = this.isCounted
          ? Effect.andThen(this.log.append(some), this.progressed(some))
          : this.log.append(some)
        const logged = Effect.catch(appended, (error) =>
          Effect.andThen(
            onRefused(error),
            Effect.suspend(() => (this.isRefused ? Effect.never : Effect.fail(error)))
          )
        )
        return this.begun.isOpen() ? logged : Effect.andThen(logged, this.begun.open)
      })
    )
    return Effect.raceFirst(followed, Deferred.await(this.refusal))
  }

  /** Counts a start of the run, and its progress from now on. Succeeds with whether the run may begin here. */
  readonly count: Effect.Effect<boolean, RunLogError> = Effect.suspend(() => {
    this.isCounted = true
    return Effect.map(this.store.begun(this), ({ parked }) => parked === undefined)
  })

  /** Notes that the run comes further with the process that has it. */
  private progressed(events: ReadonlyArray<AgentEvent>): Effect.Effect<void, RunLogError> {
    const isTurn = ({ _tag, path }: AgentEvent) => _tag === "TurnEnd" && path === undefined
    return events.some(isTurn) ? this.store.progressed(this) : Effect.void
  }

  /** Ends the log: with an end of its own if the run has shown none. Where the store refuses the end, watchers see it, and it is owed. */
  finish(end: Ending.End): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { log } = this
      if (this.isLeft) return yield* Scope.close(this.scope, Exit.void)
      const now = yield* Clock.currentTimeMillis
      const last = log.hasEnd ? [] : Ending.of(this, log.known, end, now)
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

  /** Waits for the end of a run that has shown it, unless the store refuses it. */
  readonly ended: Effect.Effect<void> = Effect.suspend(() =>
    this.log.state.isOver
      ? Effect.raceFirst(Deferred.await(this.done), Deferred.await(this.owed))
      : Effect.void
  )

  /** Waits until the run does nothing before a person acts, has ended, or has gone from this process. */
  readonly rested = Effect.suspend(() =>
    Effect.raceFirst(
      this.log.until(() => this.log.state.isWaiting && !this.isCancelled),
      Deferred.await(this.done)
    )
  )

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

  /** The pages of the log, for a watcher whose leaving cancels the run. */
  held(
    pages: Stream.Stream<ReadonlyArray<Entry>>,
    cancel: Effect.Effect<void>,
    isCancelled: () => boolean
  ): Stream.Stream<ReadonlyArray<Entry>> {
    const enter = Effect.sync(() => void this.holders++)
    const leave = Effect.suspend(() => {
      this.holders--
      const isLast = this.holders === 0 && !this.log.isClosed
      return isLast && isCancelled() ? cancel : Effect.void
    })
    return Stream.unwrap(
      Effect.as(
        Effect.acquireRelease(enter, () => leave),
        pages
      )
    )
  }

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

  /** Whether the run can wait for a person without this process. */
  get canRest(): boolean {
    return this.watchers === 0 && !this.isCancelled && !this.isLeft && this.log.state.canRest
  }

  /** Notes in the store that the run waits for a person, and that no process has it. */
  readonly rest = Effect.suspend(() =>
    Effect.tap(this.store.rest(this), () => Effect.sync(() => void (this.isResting = true)))
  )
}
