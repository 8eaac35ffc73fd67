/**
 * Work one can walk away from: it is waited for, stopped or timed out, and left behind when it ignores that.
 *
 * A run is never interrupted itself: it waits for its work here, and when it is told to stop, the work is interrupted
 * and the run goes on to its balanced end.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Tracer from "effect/Tracer"
import * as Alarm from "./Alarm.ts"

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
const grace = 100

/**
 * Waits for work, but no longer than `timeout`, and not when the signal stops. The work runs in a fiber of its own, so
 * work that never settles, or ignores its interruption, holds nobody up.
 */
export const attempt = <A, E, R>(
  signal: StopSignal,
  work: Effect.Effect<A, E, R>,
  timeout: Duration.Duration = Duration.infinity
): Effect.Effect<Ended<A, E>, never, R> =>
  signal.current !== undefined
    ? Effect.succeed({ _tag: "Stopped", abandoned: false })
    : Effect.contextWith((context: Context.Context<R>) =>
        Effect.callback<Ended<A, E>>((resume) => {
          const alarm = Alarm.of(Context.get(context, Clock.Clock))
          const tell = (ended: Ended<A, E>) => resume(Effect.succeed(ended))
          return watch(Effect.runForkWith(context)(work), signal, timeout, alarm, tell)
        })
      )

/** Tells how a fiber ended, once. Returns what to do when nobody waits any more. */
const watch = <A, E>(
  fiber: Fiber.Fiber<A, E>,
  signal: StopSignal,
  timeout: Duration.Duration,
  alarm: Alarm.Alarm,
  tell: (ended: Ended<A, E>) => void
): Effect.Effect<void> => {
  let halted: "Stopped" | "TimedOut" | undefined
  const halt = (tag: "Stopped" | "TimedOut") => {
    if (halted !== undefined || fiber.pollUnsafe() !== undefined) return
    halted = tag
    fiber.interruptUnsafe()
    if (fiber.pollUnsafe() !== undefined) return
    fiber.addObserver(alarm.set(grace, () => tell({ _tag: tag, abandoned: true })))
  }
  const forget = signal.onStop(() => halt("Stopped"))
  const unset = Duration.isFinite(timeout)
    ? alarm.set(Duration.toMillis(timeout), () => halt("TimedOut"))
    : undefined
  fiber.addObserver((exit) => {
    forget()
    unset?.()
    tell(halted === undefined ? { _tag: "Done", exit } : { _tag: halted, abandoned: false })
  })
  return Fiber.interrupt(fiber)
}

/** A span around work, for whoever traces. With no tracer and no span around it, it would be made for nobody. */
export const traced =
  (name: string, options: Pick<Tracer.SpanOptions, "attributes" | "kind"> = {}) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.contextWith((context: Context.Context<never>) =>
      Context.getOrUndefined(context, Tracer.Tracer) === undefined &&
      Context.getOrUndefined(context, Tracer.ParentSpan) === undefined
        ? work
        : Effect.withSpan(work, name, { ...options, captureStackTrace: false })
    )
