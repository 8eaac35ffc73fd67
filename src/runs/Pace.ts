/**
 * The times of the watchers of a server.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

/** The number of watchers from which on pages are rarer: a write costs more than the events in it. */
const many = 250

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
