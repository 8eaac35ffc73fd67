/**
 * Rings at set times, with one fiber that sleeps until the first of them, however many are set and by however many runs.
 * Nearly all time limits are taken back long before they ring, and a fiber and a timer for each would be a large part of
 * what a tool call costs.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { once } from "./once.ts"

interface Entry {
  /** In milliseconds, as `now` counts them. */
  readonly at: number
  readonly ring: () => void
}

/** All that is set by one clock. */
class Alarm {
  private readonly clock: Clock.Clock
  private readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  private readonly entries = new Set<Entry>()
  /** How many are about to set something again. */
  private users = 0
  private sleep: { readonly until: number; readonly fiber: Fiber.Fiber<void> } | undefined = undefined

  constructor(clock: Clock.Clock) {
    this.clock = clock
    this.fork = Effect.runForkWith(Context.make(Clock.Clock, clock))
  }

  /** Rings once, in so many milliseconds. Returns how to take that back. */
  set(after: number, ring: () => void): () => void {
    const entry = { at: now(this.clock) + after, ring }
    this.entries.add(entry)
    this.sleepUntil(entry.at)
    return () => {
      this.entries.delete(entry)
      this.rest()
    }
  }

  /** Sleeps on although nothing is set: more will be, soon. Returns how to say that no more will. */
  keep(): () => void {
    this.users++
    return () => {
      this.users--
      this.rest()
    }
  }

  /** Nobody is kept from ending by a timer that is for nothing. */
  private rest(): void {
    if (this.users > 0 || this.entries.size > 0) return
    this.sleep?.fiber.interruptUnsafe()
    this.sleep = undefined
  }

  private sleepUntil(at: number): void {
    if (this.sleep !== undefined && this.sleep.until <= at) return
    this.sleep?.fiber.interruptUnsafe()
    const left = Math.max(0, at - now(this.clock))
    const fiber = this.fork(Effect.andThen(Effect.sleep(left), this.wake))
    this.sleep = { until: at, fiber }
  }

  /** Rings what is due, and sleeps on. */
  private readonly wake = Effect.sync(() => {
    this.sleep = undefined
    const reached = now(this.clock)
    const due = [...this.entries].filter(({ at }) => at <= reached)
    for (const entry of due) this.entries.delete(entry)
    for (const { ring } of due) ring()
    for (const { at } of this.entries) this.sleepUntil(at)
  })
}

export type { Alarm }

/** The alarm of a clock. */
export const of = once((clock: Clock.Clock): Alarm => new Alarm(clock))

/** Milliseconds since whenever. Unlike the time of day nobody sets them back, so time limits go by these. */
export const now = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000
