/**
 * The watchers whose leaving cancels their run: that of the last one of a run does.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

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
export const reason = "the last watcher left"
