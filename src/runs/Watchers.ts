/**
 * The watchers of runs: their pace, and those whose leaving cancels their run.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

/** The number of watchers from which on pages are rarer: a write costs more than the events in it. */
const many = 250

/** The times of the watchers of a server. */
export class Pace {
  /** The time without an event after which a watcher gets an empty page. */
  readonly heartbeat: Duration.Input
  private readonly flush: number
  private watchers = 0

  constructor({ flush, heartbeat }: { readonly flush: Duration.Input; readonly heartbeat: Duration.Input }) {
    this.heartbeat = heartbeat
    this.flush = Duration.toMillis(flush)
  }

  /** The least milliseconds between two pages of a watcher: those of `flush`, and in proportion more for many watchers. */
  get gap(): number {
    return this.flush * Math.max(1, this.watchers / many)
  }

  /** Counts a watcher for as long as it reads. */
  counted<A>(pages: Stream.Stream<A>): Stream.Stream<A> {
    const enter = Effect.sync(() => void this.watchers++)
    const leave = Effect.sync(() => void this.watchers--)
    return Stream.unwrap(
      Effect.as(
        Effect.acquireRelease(enter, () => leave),
        pages
      )
    )
  }
}

// ───────────────────────── Watchers whose leaving cancels their run
//
// That of the last one of a run does.

/** A watcher whose leaving may cancel its run. */
interface Holder {
  /** Whether it does; a function decides when the watcher leaves. */
  readonly cancelOnLeave: true | (() => boolean)
  /** Whether nothing is left to cancel. */
  readonly isOver: () => boolean
  readonly cancel: Effect.Effect<unknown, unknown>
}

/** The watchers of one host or client. */
export class Holders {
  /** The number of watchers of each run, by its id. */
  private readonly counts = new Map<string, number>()

  /** The stream of a watcher. */
  held<A, E>(
    runId: string,
    watched: Stream.Stream<A, E>,
    { cancel, cancelOnLeave, isOver }: Holder
  ): Stream.Stream<A, E> {
    const enter = Effect.sync(() => void this.counts.set(runId, (this.counts.get(runId) ?? 0) + 1))
    const leave = Effect.suspend(() => {
      const others = (this.counts.get(runId) ?? 1) - 1
      if (others > 0) this.counts.set(runId, others)
      else this.counts.delete(runId)
      const isMeant = others === 0 && !isOver() && (cancelOnLeave === true || cancelOnLeave())
      return isMeant ? Effect.ignore(cancel) : Effect.void
    })
    return Stream.unwrap(
      Effect.as(
        Effect.acquireRelease(enter, () => leave),
        watched
      )
    )
  }
}

/** The reason of a cancel by the last watcher. */
export const lastLeft = "the last watcher left"
