/**
 * Work one can walk away from: it is waited for, stopped or timed out, and left behind when it ignores that.
 *
 * A run is never interrupted itself: it waits for its work here, and when it is told to stop, the work is interrupted
 * and the run goes on to its balanced end.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Tracer from "effect/Tracer"
import * as Alarm from "./alarm.ts"
import * as Begin from "./begin.ts"

/** Why a run has to end. */
export interface Stop {
  readonly cause: "cancel" | "deadline"
  readonly reason?: string
}

/** Something that is stopped once, and tells whoever asked. */
export class StopSignal {
  /** Few at a time, and the last to come is mostly the first to go. */
  private listeners: Array<() => void> = []
  private stopped: Stop | undefined
  private leave = ignore

  get current(): Stop | undefined {
    return this.stopped
  }

  /** The first stop counts. Who asked last is told first: the innermost work halts before what waits on it. */
  stop(stop: Stop): void {
    if (this.stopped !== undefined) return
    this.stopped = stop
    const listeners = this.listeners.reverse()
    this.listeners = []
    for (const listener of listeners) listener()
  }

  /** Calls back when stopped, at once if it is. Returns how to forget it. */
  onStop(listener: () => void): () => void {
    if (this.stopped !== undefined) {
      listener()
      return ignore
    }
    this.listeners.push(listener)
    return () => {
      const index = this.listeners.lastIndexOf(listener)
      if (index !== -1) this.listeners.splice(index, 1)
    }
  }

  /** A signal that stops with this one, and may be stopped before. This one knows it until it is released. */
  child(): StopSignal {
    const child = new StopSignal()
    child.leave = this.onStop(() => this.stopped && child.stop(this.stopped))
    return child
  }

  /** Is told no more by the signal it is a child of. */
  release(): void {
    this.leave()
  }
}

const ignore = (): void => {}

/** How work ended. Abandoned work ignored its interruption and goes on unobserved. */
export type Ended<A, E> =
  | { readonly _tag: "Done"; readonly exit: Exit.Exit<A, E> }
  | { readonly _tag: "Stopped" | "TimedOut"; readonly abandoned: boolean }

/** Milliseconds that interrupted work may take for its finalizers before the run goes on without it. */
export const grace = 100

/**
 * Waits for work, but no longer than `timeout` milliseconds, and no longer than `patience` milliseconds after the signal
 * stops. The work goes on beside the fiber that waits, so that work that never settles, or ignores its interruption, holds
 * nothing up. By default there is no timeout and no patience.
 */
export const attempt = <A, E, R>(
  signal: StopSignal,
  work: Effect.Effect<A, E, R>,
  timeout = Infinity,
  patience = 0
): Effect.Effect<Ended<A, E>, never, R> =>
  signal.current !== undefined && patience === 0
    ? Effect.succeed({ _tag: "Stopped", abandoned: false })
    : Effect.contextWith((services: Context.Context<R>) =>
        Effect.callback<Ended<A, E>>((resume) => {
          const alarm = Alarm.of(Context.get(services, Clock.Clock))
          const leave = watch(Begin.inFiber(services, work), { signal, timeout, patience, alarm }, (ended) =>
            resume(Effect.succeed(ended))
          )
          return Effect.callback<void>((left) => leave(() => left(Effect.void)))
        })
      )

/** What work is waited for with. */
export interface Bounds {
  readonly signal: StopSignal
  /** In milliseconds; `Infinity` for none. */
  readonly timeout: number
  /** How many milliseconds work may go on after the signal has stopped, before it is interrupted. Default 0. */
  readonly patience?: number
  readonly alarm: Alarm.Alarm
}

/**
 * The same for whoever has no fiber to wait in: tells once how the work ended. Gives what to do when nobody waits any more,
 * which tells when the work has stopped.
 */
export const watch = <A, E>(
  begin: Begin.Begin<A, E>,
  { alarm, patience = 0, signal, timeout }: Bounds,
  tell: (ended: Ended<A, E>) => void
): ((left: () => void) => void) => {
  if (signal.current !== undefined && patience === 0) {
    tell({ _tag: "Stopped", abandoned: false })
    return (left) => left()
  }
  let isOver = false
  let isTold = false
  let halted: "Stopped" | "TimedOut" | undefined
  let forget = ignore
  let unset = ignore
  let leave = ignore
  const end = (ended: Ended<A, E>) => {
    if (isTold) return
    isTold = true
    tell(ended)
  }
  const stop = begin((exit) => {
    isOver = true
    forget()
    unset()
    end(halted === undefined ? { _tag: "Done", exit } : { _tag: halted, abandoned: false })
    leave()
  })
  if (isOver) return (left) => left()
  const halt = (tag: "Stopped" | "TimedOut") => {
    if (halted !== undefined || isOver) return
    halted = tag
    unset()
    unset = ignore
    stop()
    if (!isOver) unset = alarm.set(grace, () => end({ _tag: tag, abandoned: true }))
  }
  if (Number.isFinite(timeout)) unset = alarm.set(timeout, () => halt("TimedOut"))
  forget = signal.onStop(() => {
    if (patience === 0) return halt("Stopped")
    if (halted !== undefined) return
    unset()
    unset = alarm.set(patience, () => halt("Stopped"))
  })
  return (left) => {
    if (isOver) return left()
    leave = left
    stop()
  }
}

/** A span around work, for whoever traces. With no tracer and no span around it, it would be made for nobody. */
export const traced =
  (name: string, options: Pick<Tracer.SpanOptions, "attributes" | "kind"> = {}) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.contextWith((context: Context.Context<never>) =>
      Begin.isTraced(context) ? Effect.withSpan(work, name, { ...options, captureStackTrace: false }) : work
    )
