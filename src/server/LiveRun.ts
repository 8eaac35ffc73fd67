/**
 * A run of this process, and its log.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import type * as Payload from "../api/Payload.ts"
import * as Ending from "./Ending.ts"
import type { Entry } from "./LogEntry.ts"
import * as LogLine from "./LogLine.ts"
import type { Pace } from "./Pace.ts"
import * as Request from "./Request.ts"
import { RunLog } from "./RunLog.ts"
import { type Append, RunLogError, type RunKey, type Service as Store } from "./RunLogStore.ts"

export type { Task } from "./Request.ts"

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
  /** Watchers whose leaving cancels the run. */
  private holders = 0

  /** `stored` is the log of a run that another process has begun. */
  constructor({ runId, sessionId }: RunKey, created: number, store: Store, stored?: LogLine.StoredLog) {
    this.runId = runId
    this.sessionId = sessionId
    this.created = created
    this.store = store
    this.log = new RunLog((lines) => this.write(lines), stored)
  }

  get info(): Payload.Run {
    return this.log.state.of(this.runId, this.sessionId, this.created)
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

  /**
   * Logs the events of a run as they come, and takes the id of the first one. Fails as the stream does, or if they cannot be stored.
   */
  follow<E>(events: Stream.Stream<AgentEvent, E>, onId: (run: LiveRun) => void) {
    return Stream.runForEachArray(events, (published) =>
      Effect.suspend(() => {
        const some = this.splice === undefined ? published : published.flatMap(this.splice)
        if (!Arr.isReadonlyArrayNonEmpty(some)) return Effect.void
        if (this.isUnbegun) {
          this.runId = some[0].runId
          onId(this)
        }
        const logged = this.isCounted
          ? Effect.andThen(this.log.append(some), this.progressed(some))
          : this.log.append(some)
        return this.begun.isOpen() ? logged : Effect.andThen(logged, this.begun.open)
      })
    )
  }

  /** Counts a start of the run, and its progress from now on. Succeeds with whether the run may begin here. */
  readonly count: Effect.Effect<boolean> = Effect.suspend(() => {
    this.isCounted = true
    return Effect.matchEffect(this.store.begun(this), {
      onFailure: ({ message }) => Effect.as(Effect.logWarning(message), false),
      onSuccess: ({ parked }) => Effect.succeed(parked === undefined)
    })
  })

  /** Notes that the run comes further with the process that has it. */
  private progressed(events: ReadonlyArray<AgentEvent>): Effect.Effect<void, RunLogError> {
    const isTurn = ({ _tag, path }: AgentEvent) => _tag === "TurnEnd" && path === undefined
    return events.some(isTurn) ? this.store.progressed(this) : Effect.void
  }

  /** Ends the log: with an end of its own if the run has shown none. A log whose end cannot be stored stays open for the next process. */
  finish(end: Ending.End): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { log } = this
      if (this.isLeft) return yield* Scope.close(this.scope, Exit.void)
      const isWhole = log.state.isOver || (yield* this.addEnd(end))
      yield* this.reported
      if (isWhole && this.isEntered) yield* Effect.ignore(this.store.end(this), { log: true })
      yield* Scope.close(this.scope, Exit.void)
    })
  }

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

  /** Adds an end to the log, and returns whether it is stored. */
  private addEnd(end: Ending.End): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function* () {
      const { log } = this
      const last = Ending.of(this, log.events, end, yield* Clock.currentTimeMillis)
      return yield* Effect.matchEffect(log.append(last), {
        onFailure: ({ message }) => {
          log.showUnstored(last)
          return Effect.as(Effect.logError(message), false)
        },
        onSuccess: () => Effect.succeed(true)
      })
    })
  }

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
    this.log.close()
    Deferred.doneUnsafe(this.done, Effect.void)
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
  watch(after: number, pace: Pace) {
    return this.log.watch(after, pace)
  }
}
