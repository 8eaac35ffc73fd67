/**
 * The gate of a worker: the most runs that work at a time. A run that waits for a person, or is paused, leaves its place to another one, and
 * waits for a place before it works again.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Agent } from "../Agent.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import type { LiveRun } from "./internal/LiveRun.ts"

/** The places of the runs that work at a time. */
export interface Places {
  /** Takes a place for a run, unless it has one. Whether the run has a place. */
  readonly reserve: (runId: string) => boolean
  /** Gives the place of a run to the next one. */
  readonly leave: (runId: string) => void
  /** Waits for a place, unless the run has one. */
  readonly enter: (runId: string) => Effect.Effect<void>
}

interface Waiter {
  readonly latch: Latch.Latch
  users: number
}

export class Gate implements Places {
  private free: number
  /** The runs that have a place. */
  private readonly placed = new Set<string>()
  /** The runs that wait for one, in the order of arrival. */
  private readonly queue = new Map<string, Waiter>()

  constructor(size: number) {
    this.free = size
  }

  get isFull(): boolean {
    return this.free === 0
  }

  readonly reserve = (runId: string): boolean => {
    if (this.placed.has(runId)) return true
    if (this.isFull) return false
    this.free--
    this.placed.add(runId)
    return true
  }

  readonly leave = (runId: string): void => {
    if (!this.placed.delete(runId)) return
    this.free++
    for (const [next, { latch }] of this.queue) {
      if (!this.reserve(next)) return
      this.queue.delete(next)
      latch.openUnsafe()
    }
  }

  readonly enter = (runId: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (this.reserve(runId)) return Effect.void
      const waiter = this.queue.get(runId) ?? { latch: Latch.makeUnsafe(), users: 0 }
      this.queue.set(runId, waiter)
      waiter.users++
      const left = Effect.sync(() => {
        waiter.users--
        if (waiter.users === 0 && this.queue.get(runId) === waiter) this.queue.delete(runId)
      })
      return Effect.onInterrupt(waiter.latch.await, () => left)
    })

  /** Runs an effect that drives a run, once the run has a place. */
  readonly pass = <A, E, R>(runId: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.ensuring(
      Effect.andThen(this.enter(runId), effect),
      Effect.sync(() => this.leave(runId))
    )
}

/**
 * Gives the place of a run that waits for a person to another one. From then on the run waits for a place before it works: until its first
 * wait, no subscriber slows its deltas down.
 */
export const leaving = (
  places: Places,
  run: LiveRun,
  agent: () => Agent | undefined
): Effect.Effect<void> => {
  const { state } = run.log
  const listen = ({ _tag }: AgentEvent) => {
    if (_tag === "MessageDelta" || _tag === "PartialValue") return Effect.void
    const isAtWork = !state.isWaiting && !state.isOver
    return isAtWork ? places.enter(run.runId) : Effect.sync(() => places.leave(run.runId))
  }
  let isHeard = false
  return Effect.suspend(() => {
    places.leave(run.runId)
    const of = agent()
    if (isHeard || of === undefined) return Effect.void
    isHeard = true
    return run.during(of.subscribe(listen, { name: "places", timeout: Infinity }))
  })
}
