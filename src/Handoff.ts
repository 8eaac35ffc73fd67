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
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

type Batch<A> = Arr.NonEmptyReadonlyArray<A>

export interface Handoff<in out A, in out E> {
  /** Hands over a batch. Suspends while `capacity` elements wait to be read. */
  readonly offer: (batch: ReadonlyArray<A>) => Effect.Effect<void>
  /** Ends the reading side, after what was offered before. */
  readonly end: (exit: Exit.Exit<void, E>) => void
  /** The next batch: all that waits, as it waits. One reader at a time. */
  readonly pull: Pull.Pull<Batch<A>, E>
  /** From now on `offer` never suspends: the writer is about to end. */
  readonly release: () => void
  /** No one reads any more: later offers are dropped, a suspended one goes on. */
  readonly close: () => void
}

/** A handoff that lets the writer run at most `capacity` elements ahead of the reader. */
export const make = <A, E = never>(capacity: number): Handoff<A, E> => {
  let waiting: ReadonlyArray<A> = []
  /** `waiting`, if it was made here and may grow. */
  let own: Array<A> = []
  let ended: Exit.Exit<void, E> | undefined
  let closed = false
  let bound = capacity
  let wakeReader: ((effect: Pull.Pull<Batch<A>, E>) => void) | undefined
  let isWaking = false
  let wakeWriters: Array<() => void> = []

  /** One batch waits as it came; more than that go into one array. */
  const add = (batch: Batch<A>) => {
    if (waiting.length === 0) waiting = batch
    else if (waiting === own) for (const element of batch) own.push(element)
    else waiting = own = waiting.concat(batch)
  }
  const releaseWriters = () => {
    const writers = wakeWriters
    wakeWriters = []
    for (const wake of writers) wake()
  }
  const room = Effect.callback<void>((resume) => {
    // The reader may have come since this was handed out.
    if (waiting.length < bound) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    wakeWriters.push(wake)
    return Effect.sync(() => {
      wakeWriters = wakeWriters.filter((other) => other !== wake)
    })
  })
  const forget = Effect.sync(() => {
    wakeReader = undefined
  })
  /** Lets the reader go on, if it waits and there is something. */
  const goOn = () => {
    isWaking = false
    const resume = wakeReader
    const ready = resume && next()
    if (resume === undefined || ready === undefined) return
    wakeReader = undefined
    releaseWriters()
    resume(ready)
  }
  const next = (): Pull.Pull<Batch<A>, E> | undefined => {
    const batch = waiting
    if (Arr.isReadonlyArrayNonEmpty(batch)) {
      waiting = []
      return Effect.succeed(batch)
    }
    return ended === undefined ? undefined : finished(ended)
  }

  return {
    offer: (batch) => {
      if (closed || ended !== undefined || !Arr.isReadonlyArrayNonEmpty(batch)) return Effect.void
      add(batch)
      if (wakeReader !== undefined && !isWaking) {
        isWaking = true
        queueMicrotask(goOn)
      }
      return waiting.length < bound ? Effect.void : room
    },
    end: (exit) => {
      if (ended !== undefined) return
      ended = exit
      goOn()
    },
    pull: Effect.callback<Batch<A>, E | Cause.Done>((resume) => {
      const ready = next()
      if (ready === undefined) {
        wakeReader = resume
        return forget
      }
      releaseWriters()
      resume(ready)
    }),
    release: () => {
      bound = Infinity
      releaseWriters()
    },
    close: () => {
      closed = true
      waiting = []
      releaseWriters()
    }
  }
}

/**
 * A stream of what an effect opens, in the stream's scope: `Stream.unwrap` of `Stream.fromPull`, less the step that it adds
 * to every pull.
 */
export const opened = <A, E, E2, R>(
  open: Effect.Effect<Pull.Pull<Batch<A>, E>, E2, R>
): Stream.Stream<A, E | E2, Exclude<R, Scope.Scope>> =>
  Stream.fromChannel(Channel.fromTransform((_, scope) => Scope.provide(open, scope)))

const finished = <E>(exit: Exit.Exit<void, E>): Effect.Effect<never, E | Cause.Done> =>
  Exit.isSuccess(exit) ? Cause.done() : Effect.failCause(exit.cause)
