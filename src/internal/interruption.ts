/**
 * Stops and pauses a run from outside, and runs the code that is not the run's own.
 *
 * A stop interrupts the fibers of the run, and keeps the reason. They can be interrupted only where they wait for foreign work (a
 * provider, a tool, a hook, a context manager): what the engine does between is done whole, so that events balance. Foreign work runs
 * by `attempt` in a fiber of its own, which is interrupted when the wait for it is interrupted or its time is over. Work that ignores
 * its interruption for longer than `grace` is abandoned: it runs on unobserved, and the run continues without it.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { identity } from "effect/Function"
import * as Latch from "effect/Latch"
import type { SessionError } from "./sessionError.ts"
import type { Stopwatch } from "./stopwatch.ts"

/** Milliseconds that interrupted work has for its finalizers before it is abandoned. */
export const grace = 100

/** Foreign work in flight that is halted together. */
export class InFlight {
  /** Each halts one piece of work, and does not wait for its end. */
  readonly halts = new Set<Effect.Effect<unknown>>()
  isHalted = false

  /** Interrupts the work in flight; later work is not begun. Does not wait for its end. */
  readonly halt: Effect.Effect<void> = Effect.suspend(() => {
    if (this.isHalted) return Effect.void
    this.isHalted = true
    // Last begun, first halted: the innermost work ends before the work that waits for it.
    return Effect.forEach([...this.halts].reverse(), (halt) => halt, { discard: true })
  })
}

/** Why a run ends before its work is done. */
export type Stop =
  | { readonly cause: "cancel" | "deadline"; readonly reason?: string }
  | { readonly cause: "session"; readonly error: SessionError }

interface Reason {
  readonly reason?: string
}

const because = (reason: string | undefined): Reason => (reason === undefined ? {} : { reason })

/** A run inside of another. */
interface Inside {
  readonly toolCallId: string | undefined
  readonly ended: Latch.Latch
}

/** The switches of one run. */
export class Control {
  private readonly unpaused = Latch.makeUnsafe(true)
  /** The fibers of the run: its own, and those of its calls in the background. */
  private readonly fibers = new Set<Fiber.Fiber<unknown, unknown>>()
  /** Run in order after a stop has interrupted the fibers. */
  readonly onStop: Array<Effect.Effect<unknown>> = []
  /** Those of the runs inside of this one, with the tool call that each belongs to, and the latch that its end opens. */
  private readonly inner = new Map<Control, Inside>()
  /** Why the run was stopped; `undefined` while it was not. */
  stop: Stop | undefined
  /** Why the run is paused; `undefined` while it is not. */
  paused: Reason | undefined
  /** Why the run was resumed last. */
  resumed: Reason = {}
  /** Whether a process that had the run before published its pause, and none has published its end. */
  isShownPaused = false

  private readonly held = Latch.makeUnsafe(false)
  /** Succeeds when the run is not paused, or is stopped. */
  readonly runnable: Effect.Effect<void> = this.unpaused.await
  /** Succeeds when the run is paused. */
  readonly pausing: Effect.Effect<void> = this.held.await

  /** Runs work of the run in this fiber, which a stop interrupts. */
  readonly within = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      this.fibers.add(fiber)
      return Effect.ensuring(
        work,
        Effect.sync(() => this.fibers.delete(fiber))
      )
    })

  /** Interrupts the fibers of the run, the last begun first. The first stop counts. Does not wait for the end. */
  stopWith(stop: Stop): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.stop !== undefined) return Effect.void
      this.stop = stop
      this.unpaused.openUnsafe()
      const interrupts = [...this.fibers].reverse().map((fiber) => fork(Fiber.interrupt(fiber)))
      return Effect.forEach([...interrupts, ...this.onStop], identity, { discard: true })
    })
  }

  cancel(reason?: string): Effect.Effect<void> {
    return this.stopWith({ cause: "cancel", ...because(reason) })
  }

  /** Takes the control of a run that begins inside of a tool call: it is paused and resumed together with this one. */
  enter(control: Control, toolCallId: string | undefined): void {
    this.inner.set(control, { toolCallId, ended: Latch.makeUnsafe(false) })
    if (this.paused !== undefined) control.pause(this.paused.reason)
  }

  /** Releases the control of a run that has ended. */
  leave(control: Control): void {
    this.inner.get(control)?.ended.openUnsafe()
    this.inner.delete(control)
  }

  /** Waits for the end of the runs that belong to a tool call; `undefined` if there is none. */
  innerEnded(toolCallId: string): Effect.Effect<void> | undefined {
    const inside = [...this.inner.values()].filter((inner) => inner.toolCallId === toolCallId)
    return inside.length === 0
      ? undefined
      : Effect.forEach(inside, ({ ended }) => ended.await, { discard: true })
  }

  /** Whether this run, or one inside of it, is paused. */
  get isPaused(): boolean {
    return this.paused !== undefined || [...this.inner.keys()].some((control) => control.isPaused)
  }

  /** Holds the run at its next gate. Work in flight continues. */
  pause(reason?: string): void {
    if (this.stop !== undefined) return
    this.paused ??= because(reason)
    this.unpaused.closeUnsafe()
    this.held.openUnsafe()
    for (const control of this.inner.keys()) control.pause(reason)
  }

  resume(reason?: string): void {
    this.paused = undefined
    this.resumed = because(reason)
    this.unpaused.openUnsafe()
    this.held.closeUnsafe()
    for (const control of this.inner.keys()) control.resume(reason)
  }
}

/** Why foreign work was interrupted. Abandoned work ignored that. */
interface Cut {
  readonly _tag: "Halted" | "TimedOut"
  readonly isAbandoned: boolean
}

/** How foreign work ended: by itself, or interrupted. */
export type Attempted<A, E> = { readonly _tag: "Done"; readonly exit: Exit.Exit<A, E> } | Cut

export interface AttemptOptions {
  /** The run that waits for the work: its stop halts the work. Default: nothing but the options below ends the wait. */
  readonly control?: Control | undefined
  /** The work that is halted together with this one. Default: none. */
  readonly within?: InFlight | undefined
  /** Milliseconds until the work is interrupted. Default: `Infinity`, no limit. */
  readonly timeout?: number | undefined
  /** Waits for work inside of this one that comes to an end of its own: until then this one is not abandoned. Default: none. */
  readonly inner?: () => Effect.Effect<void> | undefined
  /** Counts the milliseconds of `timeout`. Default: all that pass count. */
  readonly stopwatch?: Stopwatch | undefined
}

/** Runs foreign work in a fiber of its own until it ends, is halted or timed out. Takes no longer than `grace` after that. */
export const attempt = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  options: AttemptOptions = {}
): Effect.Effect<Attempted<A, E>, never, R> =>
  Effect.uninterruptibleMask((restore) => {
    if (options.within?.isHalted === true || options.control?.stop !== undefined)
      return Effect.succeed({ _tag: "Halted", isAbandoned: false })
    return Effect.flatMap(Effect.forkDetach(work, { startImmediately: true }), (fiber) => {
      const exit = fiber.pollUnsafe()
      return exit === undefined ? supervised(fiber, options, restore) : Effect.succeed({ _tag: "Done", exit })
    })
  })

/** Waits for the end of a fiber, or for the end of its grace once it is interrupted. */
const supervised = Effect.fnUntraced(function* <A, E>(
  fiber: Fiber.Fiber<A, E>,
  { control, inner, stopwatch, timeout = Infinity, within }: AttemptOptions,
  restore: <B>(wait: Effect.Effect<B>) => Effect.Effect<B>
): Effect.fn.Return<Attempted<A, E>> {
  const ended = Deferred.makeUnsafe<Attempted<A, E>>()
  let cut: Cut["_tag"] | undefined
  const endedBy = (exit: Exit.Exit<A, E>): Attempted<A, E> =>
    cut === undefined ? { _tag: "Done", exit } : { _tag: cut, isAbandoned: false }
  // In a fiber of its own: work that returns a value that is no effect ends without its finalizers.
  yield* fork(Effect.flatMap(Fiber.await(fiber), (exit) => Deferred.succeed(ended, endedBy(exit))))
  const inTime = Effect.timeoutOption(Fiber.interrupt(fiber), grace)
  const patiently = Effect.suspend(() => {
    const ended = inner?.()
    return ended === undefined ? Effect.void : Effect.andThen(ended, inTime)
  })
  const interrupted = Effect.andThen(inTime, patiently)
  const interrupt = (_tag: Cut["_tag"]) =>
    Effect.suspend(() => {
      cut ??= _tag
      return Effect.andThen(interrupted, Deferred.succeed(ended, { _tag: cut, isAbandoned: true }))
    })
  const halt = fork(interrupt("Halted"))
  if (within?.isHalted === true) yield* halt
  within?.halts.add(halt)
  const timedOut = interrupt("TimedOut")
  const timer = Number.isFinite(timeout)
    ? yield* fork(stopwatch?.after(timeout, timedOut) ?? Effect.delay(timedOut, timeout))
    : undefined
  const end = Deferred.await(ended)
  const attempted = yield* control === undefined
    ? Effect.onInterrupt(restore(end), () => Fiber.interrupt(fiber))
    : Effect.catchCause(Effect.interruptible(end), () => Effect.andThen(interrupt("Halted"), end))
  within?.halts.delete(halt)
  if (timer !== undefined) yield* Fiber.interrupt(timer)
  return attempted
})

const fork = Effect.forkDetach({ startImmediately: true })
