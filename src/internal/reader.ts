/**
 * The reader of the events of one run: the stream of a caller, or the handle of a run that was started.
 *
 * `Handoff` is the path of a delta, written for speed: a waiting reader continues in a microtask, as soon as the writer waits
 * for something, so that all that the writer adds in one step arrives in one array. A `Queue` wakes its reader by a
 * scheduled task; measured on single deltas, that takes 5.2 microseconds a delta, and this takes 4.0.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Channel from "effect/Channel"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Pull from "effect/Pull"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import type { RunFailed } from "../Run.ts"

type Batch<A> = Arr.NonEmptyReadonlyArray<A>
type Resume<A, E> = (next: Pull.Pull<Batch<A>, E>) => void

/** The one reader of a run's stream. */
export interface Reader {
  readonly add: (events: ReadonlyArray<AgentEvent>) => void
  /** Waits while the reader is too far behind. */
  readonly room: Effect.Effect<void>
  /** Ends the stream after all events. */
  readonly end: (exit: Exit.Exit<void, RunFailed>) => void
}

/** Never pushed to. */
const none: Array<never> = []

/** A buffer between one writer side and one reader. `capacity`: how many elements may wait before the writer does. */
export class Handoff<in out A, in out E = never> {
  private capacity: number
  private waiting: ReadonlyArray<A> = none
  /** `waiting`, if this handoff made it and may push to it. */
  private own: Array<A> = none
  private ended: Exit.Exit<void, E> | undefined
  private reader: Resume<A, E> | undefined
  private isWaking = false
  /** Open while there is room. */
  private readonly hasRoom = Latch.makeUnsafe(true)

  constructor(capacity: number) {
    this.capacity = capacity
  }

  /** Adds a batch, however much waits. */
  add(batch: ReadonlyArray<A>): void {
    if (batch.length === 0) return
    this.keep(batch)
    this.announce()
  }

  /** Waits while more than `capacity` elements wait for the reader. */
  get room(): Effect.Effect<void> {
    return this.hasRoom.isOpen() ? Effect.void : this.hasRoom.await
  }

  /** Ends the reading side, after all that was added before. Nothing is added later. */
  end(exit: Exit.Exit<void, E>): void {
    this.ended = exit
    this.announce()
  }

  /** All that waits, once there is something. For one reader at a time. */
  readonly pull: Pull.Pull<Batch<A>, E> = Effect.callback<Batch<A>, E | Cause.Done>((resume) => {
    this.reader = resume
    this.handOver()
    return this.forget
  })

  private readonly forget = Effect.sync(() => {
    this.reader = undefined
  })

  /** Keeps the first batch as it is; copies it when a second one comes. */
  private keep(batch: ReadonlyArray<A>): void {
    if (this.waiting.length === 0) this.waiting = batch
    else {
      if (this.waiting !== this.own) this.waiting = this.own = this.waiting.slice()
      for (const element of batch) this.own.push(element)
    }
    if (this.waiting.length > this.capacity) this.hasRoom.closeUnsafe()
  }

  /** Continues a waiting reader after the current step, once for all that is added in it. */
  private announce(): void {
    if (this.reader === undefined || this.isWaking) return
    this.isWaking = true
    queueMicrotask(this.handOver)
  }

  /** Resumes the reader, if it waits and there is something for it. */
  private readonly handOver = (): void => {
    this.isWaking = false
    const resume = this.reader
    const next = resume && this.next()
    if (resume === undefined || next === undefined) return
    this.reader = undefined
    this.hasRoom.openUnsafe()
    resume(next)
  }

  private next(): Pull.Pull<Batch<A>, E> | undefined {
    const batch = this.waiting
    if (Arr.isReadonlyArrayNonEmpty(batch)) {
      this.waiting = none
      return Effect.succeed(batch)
    }
    return this.ended === undefined ? undefined : finished(this.ended)
  }
}

/** The end of a stream, as a pull. */
const finished = <E>(exit: Exit.Exit<void, E>): Effect.Effect<never, E | Cause.Done> =>
  Exit.isSuccess(exit) ? Cause.done() : Effect.failCause(exit.cause)

/** A stream of what an effect opens, in the stream's scope: `Stream.fromPull` with fewer steps for each batch. */
export const opened = <A, E, E2, R>(
  open: (scope: Scope.Scope) => Effect.Effect<Pull.Pull<Batch<A>, E>, E2, R>
): Stream.Stream<A, E | E2, R> => Stream.fromChannel(Channel.fromTransform((_, scope) => open(scope)))

/** Keeps all events of a run, for readers that begin with the first. */
export class Recording implements Reader {
  private readonly kept: Array<AgentEvent> = []
  private ended: Exit.Exit<void, RunFailed> | undefined
  /** Opens with the next events; made by a reader that waits for them. */
  private more: Latch.Latch | undefined
  readonly room = Effect.void

  add(events: ReadonlyArray<AgentEvent>): void {
    for (const event of events) this.kept.push(event)
    this.wake()
  }

  end(exit: Exit.Exit<void, RunFailed>): void {
    this.ended = exit
    this.wake()
  }

  private wake(): void {
    const { more } = this
    this.more = undefined
    more?.openUnsafe()
  }

  /** All events: those that are kept, and then each that comes. */
  get events(): Stream.Stream<AgentEvent, RunFailed> {
    return opened(() =>
      Effect.sync(() => {
        let read = 0
        const pull: Pull.Pull<Batch<AgentEvent>, RunFailed> = Effect.suspend(() => {
          const next = this.kept.slice(read)
          read = this.kept.length
          if (Arr.isReadonlyArrayNonEmpty(next)) return Effect.succeed(next)
          if (this.ended !== undefined) return finished(this.ended)
          this.more ??= Latch.makeUnsafe(false)
          return Effect.andThen(this.more.await, pull)
        })
        return pull
      })
    )
  }
}

/** The readers of a stream, each with a queue of its own from the moment on when it begins to read. No run waits for them. */
export class Readers<in out A> {
  readonly queues = new Set<Queue.Queue<A, Cause.Done>>()
  isEnded = false

  /** A stream of the values from now on, behind those of `first`, which are all of it after the end. Default: none. */
  stream(
    make: Effect.Effect<Queue.Queue<A, Cause.Done>>,
    first: () => ReadonlyArray<A> = () => []
  ): Stream.Stream<A> {
    const close = (queue: Queue.Queue<A, Cause.Done>) => {
      this.queues.delete(queue)
      return Queue.shutdown(queue)
    }
    const open = Effect.map(make, (queue) => {
      for (const value of first()) Queue.offerUnsafe(queue, value)
      this.queues.add(queue)
      return queue
    })
    return Stream.suspend(() =>
      this.isEnded
        ? Stream.fromIterable(first())
        : Stream.unwrap(Effect.map(Effect.acquireRelease(open, close), Stream.fromQueue))
    )
  }

  /** Ends the streams. */
  end(): void {
    this.isEnded = true
    for (const queue of this.queues) Queue.endUnsafe(queue)
  }
}
