/**
 * Hands arrays from one fiber to another, without the scheduler between them: a waiting reader goes on in a microtask, as
 * soon as the writer waits for something. What the writer says in one go arrives in one array, and a turn of a run says a
 * dozen things in three goes. A queue wakes its reader by a scheduled task, which for a stream of single deltas costs more
 * than everything else on the way.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Channel from "effect/Channel"
import * as Exit from "effect/Exit"
import type * as Pull from "effect/Pull"
import type * as Scheduler from "effect/Scheduler"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

type Batch<A> = Arr.NonEmptyReadonlyArray<A>

export interface Handoff<in out A, in out E> {
  /** Hands over a batch. Suspends, if `capacity` elements waited before it, until they are read. */
  readonly offer: (batch: ReadonlyArray<A>) => Effect.Effect<void>
  /** Hands over a batch, however much waits. Never suspends. */
  readonly add: (batch: ReadonlyArray<A>) => Effect.Effect<void>
  /** The same, and a waiting reader goes on by a scheduled task: what many writers say meanwhile goes along. */
  readonly addLater: (batch: ReadonlyArray<A>) => Effect.Effect<void>
  /** Ends the reading side, after what was offered before. */
  readonly end: (exit: Exit.Exit<void, E>) => void
  /** The next batch: all that waits, as it waits. One reader at a time. */
  readonly pull: Pull.Pull<Batch<A>, E>
  /** From now on `offer` never suspends: the writer is about to end. */
  readonly release: () => void
  /** No one reads any more: later offers are dropped, a suspended one goes on. */
  readonly close: () => void
}

/** A handoff that lets the writer run at most `capacity` elements, and a batch, ahead of the reader. */
export const make = <A, E = never>(capacity: number): Handoff<A, E> => new Handing<A, E>(capacity)

class Handing<A, E> implements Handoff<A, E> {
  private waiting: ReadonlyArray<A> = none
  /** `waiting`, if it was made here and may grow. */
  private own: Array<A> = none
  private ended: Exit.Exit<void, E> | undefined
  private closed = false
  private bound: number
  private wakeReader: ((effect: Pull.Pull<Batch<A>, E>) => void) | undefined
  /** Of the reader's scheduler. */
  private tasks: Scheduler.SchedulerDispatcher | undefined
  private isWaking = false
  private wakesLater = false
  private wakeWriters: ReadonlyArray<() => void> = none

  constructor(capacity: number) {
    this.bound = capacity
  }

  offer(batch: ReadonlyArray<A>): Effect.Effect<void> {
    const isBehind = this.waiting.length >= this.bound
    if (!this.keep(batch)) return Effect.void
    this.wakeSoon()
    return isBehind ? this.room : Effect.void
  }

  add(batch: ReadonlyArray<A>): Effect.Effect<void> {
    if (this.keep(batch)) this.wakeSoon()
    return Effect.void
  }

  addLater(batch: ReadonlyArray<A>): Effect.Effect<void> {
    if (this.keep(batch) && this.wakeReader !== undefined && !this.wakesLater) {
      this.wakesLater = true
      this.tasks?.scheduleTask(this.goOnLater, 0)
    }
    return Effect.void
  }

  end(exit: Exit.Exit<void, E>): void {
    if (this.ended !== undefined) return
    this.ended = exit
    this.goOn()
  }

  readonly pull: Pull.Pull<Batch<A>, E> = reading(this)

  /** Tells what waits, or keeps whom to tell. */
  read(
    resume: (next: Pull.Pull<Batch<A>, E>) => void,
    scheduler: Scheduler.Scheduler
  ): Effect.Effect<void> | undefined {
    const ready = this.next()
    if (ready === undefined) {
      this.wakeReader = resume
      this.tasks ??= scheduler.makeDispatcher()
      return this.forget
    }
    this.releaseWriters()
    resume(ready)
    return undefined
  }

  readonly release = (): void => {
    this.bound = Infinity
    this.releaseWriters()
  }

  close(): void {
    this.closed = true
    this.waiting = none
    this.releaseWriters()
  }

  /** One batch waits as it came; more than that go into one array. Whether there was somebody and something to keep. */
  private keep(batch: ReadonlyArray<A>): boolean {
    if (this.closed || this.ended !== undefined || batch.length === 0) return false
    if (this.waiting.length === 0) {
      this.waiting = batch
      return true
    }
    if (this.waiting !== this.own) this.waiting = this.own = this.waiting.slice()
    for (const element of batch) this.own.push(element)
    return true
  }

  private next(): Pull.Pull<Batch<A>, E> | undefined {
    const batch = this.waiting
    if (Arr.isReadonlyArrayNonEmpty(batch)) {
      this.waiting = none
      return Effect.succeed(batch)
    }
    return this.ended === undefined ? undefined : finished(this.ended)
  }

  private wakeSoon(): void {
    if (this.wakeReader === undefined || this.isWaking) return
    this.isWaking = true
    queueMicrotask(this.goOnSoon)
  }

  private readonly goOnSoon = (): void => {
    this.isWaking = false
    this.goOn()
  }

  private readonly goOnLater = (): void => {
    this.wakesLater = false
    this.goOn()
  }

  /** Lets the reader go on, if it waits and there is something. */
  private goOn(): void {
    const resume = this.wakeReader
    const ready = resume && this.next()
    if (resume === undefined || ready === undefined) return
    this.wakeReader = undefined
    this.releaseWriters()
    resume(ready)
  }

  private readonly forget = Effect.sync(() => {
    this.wakeReader = undefined
  })

  private get room(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      // The reader may have come since this was handed out.
      if (this.waiting.length < this.bound) return resume(Effect.void)
      const wake = () => resume(Effect.void)
      this.wakeWriters = [...this.wakeWriters, wake]
      return Effect.sync(() => {
        this.wakeWriters = this.wakeWriters.filter((other) => other !== wake)
      })
    })
  }

  private releaseWriters(): void {
    const writers = this.wakeWriters
    if (writers.length === 0) return
    this.wakeWriters = none
    for (const wake of writers) wake()
  }
}

const reading = <A, E>(handing: Handing<A, E>): Pull.Pull<Batch<A>, E> =>
  Effect.callback<Batch<A>, E | Cause.Done>(function (resume) {
    return handing.read(resume, this)
  })

/** Never pushed to. */
const none: Array<never> = []

/** A stream of what an effect opens, in the stream's scope: `Stream.fromPull`, less the steps that it adds. */
export const opened = <A, E, E2, R>(
  open: (scope: Scope.Scope) => Effect.Effect<Pull.Pull<Batch<A>, E>, E2, R>
): Stream.Stream<A, E | E2, R> => Stream.fromChannel(Channel.fromTransform((_, scope) => open(scope)))

const finished = <E>(exit: Exit.Exit<void, E>): Effect.Effect<never, E | Cause.Done> =>
  Exit.isSuccess(exit) ? Cause.done() : Effect.failCause(exit.cause)
