/**
 * Stops and pauses a run from outside, and runs foreign code (of providers, tools, hooks and context managers) so that it can be
 * interrupted.
 *
 * A stop interrupts the fibers of the run, and keeps the reason. They can be interrupted only where they wait for foreign work (a
 * provider, a tool, a hook, a context manager): the engine completes all that it does between, so that events balance. Foreign work runs
 * by `attempt` in a fiber of its own, which is interrupted when the wait for it is interrupted or its time is over. Work that ignores
 * its interruption for longer than `grace` is abandoned: it runs on unobserved, and the run continues without it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type { SessionError } from "./errors.ts"

/** Milliseconds that interrupted work has for its finalizers before it is abandoned. */
export const grace = 100

/** Starts work in a fiber that does not end with its parent. The work has begun when this returns. */
export const detach = Effect.forkDetach({ startImmediately: true })

/**
 * Starts work of the engine in a fiber that can be interrupted only where the work waits for foreign code: so it always publishes its end
 * events. The caller waits for that end. The work has begun when this returns.
 */
export const inOwnFiber = Effect.forkDetach({ startImmediately: true, uninterruptible: true })

/** Fibers that are interrupted together. */
export class Fibers {
  private readonly fibers = new Set<Fiber.Fiber<unknown, unknown>>()
  isInterrupted = false

  /** Runs work in the current fiber, which belongs to the set until the work ends. */
  readonly including = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      this.fibers.add(fiber)
      return Effect.ensuring(
        work,
        Effect.sync(() => this.fibers.delete(fiber))
      )
    })

  /** Interrupts all fibers of the set, the newest first. Does not wait for their ends. */
  readonly interrupt: Effect.Effect<void> = Effect.suspend(() => this.interruptBut(undefined))

  /** Interrupts all fibers of the set but the current one. */
  readonly interruptOthers: Effect.Effect<void> = Effect.withFiber((self) => this.interruptBut(self))

  private interruptBut(self: Fiber.Fiber<unknown, unknown> | undefined): Effect.Effect<void> {
    this.isInterrupted = true
    const others = [...this.fibers].reverse().filter((fiber) => fiber !== self)
    return Effect.forEach(others, (fiber) => detach(Fiber.interrupt(fiber)), { discard: true })
  }
}

/** Why a run ends before its work is done. */
export type Stop =
  | { readonly cause: "cancel" | "deadline"; readonly reason?: string }
  | { readonly cause: "session"; readonly error: SessionError }

interface Reason {
  readonly reason?: string
}

const because = (reason: string | undefined): Reason => (reason === undefined ? {} : { reason })

/** A sub-agent's run, in the control of its parent run. */
interface Inside {
  readonly toolCallId: string | undefined
  readonly ended: Latch.Latch
}

/** Stops, pauses and resumes one run. */
export class Control {
  private readonly unpaused = Latch.makeUnsafe(true)
  /** The fibers of the run: its own, and those of its calls in the background. */
  readonly fibers = new Fibers()
  /** Opens after a stop has interrupted the fibers. */
  readonly stopped = Latch.makeUnsafe(false)
  /** The controls of the sub-agents' runs, each with its tool call and the latch that opens at its end. */
  private readonly inner = new Map<Control, Inside>()
  /** Why the run was stopped; `undefined` while it was not. */
  stop: Stop | undefined
  /** Why the run is paused; `undefined` while it is not. */
  paused: Reason | undefined
  /** Why the run was resumed last. */
  resumed: Reason = {}
  /** Whether `RunPaused` was published, and `RunResumed` was not: an earlier process of the run may have done that. */
  isShownPaused = false

  /** The fiber of the current turn; `undefined` between turns. */
  private turn: Fibers | undefined
  /** Whether `cutTurn` interrupted the current turn. The run continues with the next turn. */
  isTurnCut = false

  private readonly held = Latch.makeUnsafe(false)
  /** Succeeds when the run is not paused, or is stopped. */
  readonly runnable: Effect.Effect<void> = this.unpaused.await
  /** Succeeds when the run is paused. */
  readonly pausing: Effect.Effect<void> = this.held.await

  /** Interrupts the fibers of the run. The first stop counts. Does not wait for the end. */
  stopWith(stop: Stop): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.stop !== undefined) return Effect.void
      this.stop = stop
      this.unpaused.openUnsafe()
      return Effect.andThen(this.fibers.interrupt, this.stopped.open)
    })
  }

  /** Whether the work of the turn must end, because the run was stopped or its turn was interrupted. */
  get isHalting(): boolean {
    return this.stop !== undefined || this.isTurnCut
  }

  /** Runs a turn in a fiber of its own, which `cutTurn` can interrupt. Succeeds with `undefined` for an interrupted turn. */
  takeTurn<A, E>(turn: Effect.Effect<A, E>): Effect.Effect<A | undefined, E> {
    return Effect.gen({ self: this }, function* () {
      const fibers = new Fibers()
      this.turn = fibers
      const taken = yield* inOwnFiber(this.fibers.including(fibers.including(turn)))
      const exit = yield* Fiber.await(taken)
      const isCut = this.isTurnCut && this.stop === undefined
      this.turn = undefined
      this.isTurnCut = false
      if (this.paused !== undefined) this.unpaused.closeUnsafe()
      return isCut && Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? undefined : yield* exit
    })
  }

  /** Interrupts the current turn for a message of the user, if there is a turn. Does not wait for its end. */
  readonly cutTurn: Effect.Effect<void> = Effect.suspend(() => {
    const { turn } = this
    if (turn === undefined || this.isHalting) return Effect.void
    this.isTurnCut = true
    this.unpaused.openUnsafe()
    return turn.interrupt
  })

  cancel(reason?: string): Effect.Effect<void> {
    return this.stopWith({ cause: "cancel", ...because(reason) })
  }

  /** Adds the control of a sub-agent's run that begins: it is paused and resumed together with this run. */
  enter(control: Control, toolCallId: string | undefined): void {
    this.inner.set(control, { toolCallId, ended: Latch.makeUnsafe(false) })
    if (this.paused !== undefined) control.pause(this.paused.reason)
  }

  /** Removes the control of a sub-agent's run that has ended. */
  leave(control: Control): void {
    this.inner.get(control)?.ended.openUnsafe()
    this.inner.delete(control)
  }

  /** Waits for the end of the sub-agents' runs of a tool call; `undefined` if it has none. */
  innerEnded(toolCallId: string): Effect.Effect<void> | undefined {
    const inside = [...this.inner.values()].filter((inner) => inner.toolCallId === toolCallId)
    return inside.length === 0
      ? undefined
      : Effect.forEach(inside, ({ ended }) => ended.await, { discard: true })
  }

  /** Whether this run or a sub-agent's run is paused. */
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

/** Why foreign work was interrupted. Abandoned work has ignored its interruption for longer than `grace`. */
interface Unfinished {
  readonly _tag: "Halted" | "TimedOut"
  readonly isAbandoned: boolean
}

/** Work that a stop halts, and the interruption of a turn only where it belongs to that. */
export type Halting = Pick<Control, "isHalting">

/** How foreign work ended: by itself, or interrupted. */
export type Attempted<A, E> = { readonly _tag: "Done"; readonly exit: Exit.Exit<A, E> } | Unfinished

export interface AttemptOptions {
  /** The run that waits for the work: a stop ends the wait. Default: the interruption of the caller does. */
  readonly control?: Control | undefined
  /** Interrupts the work when this effect ends, such as a sleep. Default: the work has no time limit. */
  readonly until?: Effect.Effect<unknown> | undefined
  /** Waits for the sub-agents' runs of the work, which end by themselves: until then it is not abandoned. Default: none. */
  readonly inner?: () => Effect.Effect<void> | undefined
}

/** Runs foreign work in a fiber of its own until it ends, is stopped or times out. Abandons interrupted work after `grace`. */
export const attempt = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  { control, inner, until }: AttemptOptions = {}
): Effect.Effect<Attempted<A, E>, never, R> =>
  Effect.uninterruptibleMask((restore) => {
    if (control?.stop !== undefined) return Effect.succeed({ _tag: "Halted", isAbandoned: false })
    return Effect.flatMap(detach(work), (fiber) => {
      const ended = fiber.pollUnsafe()
      if (ended !== undefined) return Effect.succeed({ _tag: "Done", exit: ended })
      const end = Fiber.await(fiber)
      const wait = until === undefined ? end : Effect.raceFirst(end, until)
      const waited = Effect.exit((control === undefined ? restore : Effect.interruptible)(wait))
      return Effect.flatMap(waited, (by): Effect.Effect<Attempted<A, E>> => {
        const exit = fiber.pollUnsafe()
        if (exit !== undefined) return Effect.succeed({ _tag: "Done", exit })
        return leave(fiber, Exit.isSuccess(by) ? "TimedOut" : "Halted", inner)
      })
    })
  })

/** Interrupts work, and waits for its end or until `grace` is over. */
const leave = (
  fiber: Fiber.Fiber<unknown, unknown>,
  _tag: Unfinished["_tag"],
  inner: () => Effect.Effect<void> | undefined = () => undefined
): Effect.Effect<Unfinished> => {
  const inTime = Effect.timeoutOption(Fiber.interrupt(fiber), grace)
  const patiently = Effect.suspend(() => {
    const ended = fiber.pollUnsafe() === undefined ? inner() : undefined
    return ended === undefined ? Effect.void : Effect.andThen(ended, inTime)
  })
  return Effect.andThen(inTime, patiently).pipe(
    Effect.map(() => ({ _tag, isAbandoned: fiber.pollUnsafe() === undefined }))
  )
}
