/**
 * Rings at set times, with one fiber that sleeps until the first of them, however many are set. Nearly all time limits are
 * taken back long before they ring, and a fiber and a timer for each would be a large part of what a tool call costs.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

interface Entry {
  /** In milliseconds, as `now` counts them. */
  readonly at: number
  readonly ring: () => void
}

export class Alarm {
  private readonly clock: Clock.Clock
  private readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  private readonly entries = new Set<Entry>()
  private sleep: { readonly until: number; readonly fiber: Fiber.Fiber<void> } | undefined

  /** It goes by the clock of this context. */
  constructor(context: Context.Context<never>) {
    this.clock = Context.get(context, Clock.Clock)
    this.fork = Effect.runForkWith(context)
  }

  /** Rings once, in so many milliseconds. Returns how to take that back. */
  set(after: number, ring: () => void): () => void {
    const entry = { at: now(this.clock) + after, ring }
    this.entries.add(entry)
    this.sleepUntil(entry.at)
    return () => this.entries.delete(entry)
  }

  /** Takes back all that was set, and sleeps no longer. */
  clear(): void {
    this.entries.clear()
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

/** Milliseconds since whenever. Unlike the time of day nobody sets them back, so time limits go by these. */
export const now = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

/** That of the run around, for all that is done in it. */
export const Current = Context.Reference<Alarm | undefined>("effect-agent/Alarm", {
  defaultValue: () => undefined
})

/** Work with an alarm for all that is done in it. What is still set when it ends does not ring. */
export const within = <A, E, R>(work: (alarm: Alarm) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const alarm = new Alarm(context)
    return Effect.ensuring(
      Effect.provideService(work(alarm), Current, alarm),
      Effect.sync(() => alarm.clear())
    )
  })

/** The alarm around, or else one of one's own, of which `release` leaves nothing behind. */
export const of = (
  context: Context.Context<never>
): { readonly alarm: Alarm; readonly release: () => void } => {
  const current = Context.get(context, Current)
  if (current !== undefined) return { alarm: current, release: () => {} }
  const alarm = new Alarm(context)
  return { alarm, release: () => alarm.clear() }
}
