/**
 * The time that counts for a limit: it stands still while a person has a question to answer.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"

/** Measures a run or a tool call. Those around it stand still with it. */
export class Stopwatch {
  private readonly clock: Clock.Clock
  private readonly outer: Stopwatch | undefined
  private readonly startedAt: number
  /** Milliseconds that it stood still, up to the last time that it ran on. */
  private stood = 0
  /** When it stopped last. */
  private stoppedAt = 0
  /** How many questions are open. */
  private holds = 0
  /** Open while it runs; made when it first stops. */
  private running: Latch.Latch | undefined

  /** Milliseconds before this one began, and those of them that count. */
  private readonly before: number
  private readonly counted: number

  constructor(clock: Clock.Clock, outer?: Stopwatch, before = 0, counted = before) {
    this.before = before
    this.counted = counted
    this.clock = clock
    this.outer = outer
    this.startedAt = monotonicMillis(clock)
  }

  /** Milliseconds that have passed. */
  get total(): number {
    return this.before + monotonicMillis(this.clock) - this.startedAt
  }

  /** Milliseconds that count. */
  get elapsed(): number {
    const until = this.holds > 0 ? this.stoppedAt : monotonicMillis(this.clock)
    return this.counted + until - this.startedAt - this.stood
  }

  /** Ends when so many milliseconds count. */
  readonly until = (millis: number): Effect.Effect<void> =>
    Effect.andThen(
      Effect.sleep(Math.max(0, millis - this.elapsed)),
      Effect.suspend(() => {
        const again = Effect.suspend(() => this.until(millis))
        if (this.holds > 0 && this.running !== undefined) return Effect.andThen(this.running.await, again)
        return this.elapsed < millis ? again : Effect.void
      })
    )

  /** Runs work while the time stands still, for this one and those around it. */
  readonly held = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => this.stop()),
      () => work,
      () => Effect.sync(() => this.start())
    )

  private stop(): void {
    this.outer?.stop()
    if (this.holds++ > 0) return
    this.stoppedAt = monotonicMillis(this.clock)
    this.running ??= Latch.makeUnsafe(true)
    this.running.closeUnsafe()
  }

  private start(): void {
    this.outer?.start()
    if (--this.holds > 0) return
    this.stood += monotonicMillis(this.clock) - this.stoppedAt
    this.running?.openUnsafe()
  }
}

/** Milliseconds of the clock's monotonic time, which nothing sets back. */
export const monotonicMillis = (clock: Clock.Clock): number =>
  Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000
