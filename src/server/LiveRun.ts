/**
 * A run of this process, and its log.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import type * as Payload from "../api/Payload.ts"
import type * as Message from "../Message.ts"
import * as Ending from "./Ending.ts"
import type { Entry } from "./LogEntry.ts"
import * as LogLine from "./LogLine.ts"
import type { Pace } from "./Pace.ts"
import { RunLog } from "./RunLog.ts"
import type { Append, RunKey, Service as Store } from "./RunLogStore.ts"

/** The beginning of a run. */
export interface Task {
  readonly prompt: Message.Input
  readonly options: Payload.Options
}

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
  private opened: Append | undefined
  /** Watchers whose leaving cancels the run. */
  private holders = 0

  constructor({ runId, sessionId }: RunKey, created: number, store: Store) {
    this.runId = runId
    this.sessionId = sessionId
    this.created = created
    this.store = store
    this.log = new RunLog((lines) => this.write(lines))
  }

  get info(): Payload.Run {
    return this.log.state.of(this.runId, this.sessionId, this.created)
  }

  /** Whether no event has come. */
  get isUnbegun(): boolean {
    return this.log.isEmpty
  }

  /** Makes the log of a run that waits for its turn. */
  readonly enter = Effect.suspend(() => this.write([]))

  private write(lines: ReadonlyArray<string>) {
    return Effect.gen({ self: this }, function* () {
      if (this.opened !== undefined) return yield* this.opened(lines)
      const append = yield* Scope.provide(this.store.open(this), this.scope)
      yield* append([LogLine.run(this.runId, this.sessionId, this.created), ...lines])
      this.opened = append
    })
  }

  /**
   * Logs the events of a run as they come, and takes the id of the first one. Fails as the stream does, or if they cannot be stored.
   */
  follow<E>(events: Stream.Stream<AgentEvent, E>, onId: (run: LiveRun) => void) {
    return Stream.runForEachArray(events, (some) =>
      Effect.suspend(() => {
        if (this.isUnbegun) {
          this.runId = some[0].runId
          onId(this)
        }
        const logged = this.log.append(some)
        return this.begun.isOpen() ? logged : Effect.andThen(logged, this.begun.open)
      })
    )
  }

  /** Ends the log: with an end of its own if the run has shown none. */
  finish(end: Ending.End): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { log } = this
      if (!log.state.isOver) {
        const last = Ending.of(this, log.events, end, yield* Clock.currentTimeMillis)
        yield* Effect.catch(log.append(last), (error) =>
          Effect.andThen(
            Effect.logError(error.message),
            Effect.sync(() => log.showUnstored(last))
          )
        )
      }
      if (this.opened !== undefined) yield* Effect.ignore(this.store.end(this), { log: true })
      yield* Scope.close(this.scope, Exit.void)
    })
  }

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
