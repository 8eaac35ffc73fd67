/**
 * Time limits for the silence of a provider.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { StreamStalled } from "../../ProviderError.ts"

/**
 * Time limits of one answer, where `"Infinity"` is no limit.
 *
 * @since 0.1.0
 * @category options
 */
export interface Timeouts {
  /** The time from the request to the head of the response (default: 60 seconds). */
  readonly firstByte?: Duration.Input
  /**
   * The time between two pieces of content, while the reader waits for one (default: 120 seconds).
   *
   * Keep-alives are not content.
   */
  readonly idle?: Duration.Input
  /** The time of the whole answer (default: none). */
  readonly total?: Duration.Input
}

/** Time limits in milliseconds. `Infinity` is no limit. */
export interface Limits {
  readonly firstByte: number
  readonly idle: number
  readonly total: number
}

/** The limits in milliseconds, with the defaults. */
export const limits = (timeouts: Timeouts = {}): Limits => ({
  firstByte: Duration.toMillis(timeouts.firstByte ?? "60 seconds"),
  idle: Duration.toMillis(timeouts.idle ?? "120 seconds"),
  total: Duration.toMillis(timeouts.total ?? Duration.infinity)
})

/** The time limits of one answer, which begins when this is made. */
export class Silence {
  private readonly limits: Limits
  private readonly clock: Clock.Clock
  /** The end of the time limit of the whole answer, in milliseconds of `now`. */
  private readonly last: number
  /** The end of the time limit of the current wait, in milliseconds of `now`. `Infinity` while the reader does not wait. */
  private until = Infinity

  constructor(limits: Limits, clock: Clock.Clock) {
    this.limits = limits
    this.clock = clock
    this.last = now(clock) + limits.total
  }

  /** Waits for the head of a response. Fails with `StreamStalled` if that takes too long. */
  head<A, E, R>(head: Effect.Effect<A, E, R>): Effect.Effect<A, E | StreamStalled, R> {
    const { firstByte } = this.limits
    const left = this.last - now(this.clock)
    return Effect.timeoutOrElse(head, {
      duration: Math.min(firstByte, left),
      orElse: () => Effect.fail(this.stalled(left < firstByte ? "total" : "firstByte"))
    })
  }

  /** Starts the time limit of content, for which the reader waits from now on. */
  startContent(): void {
    this.until = now(this.clock) + this.limits.idle
  }

  /** Starts the time limit of the end of an answer that may be over: 10 seconds at most. */
  startEnd(): void {
    this.until = now(this.clock) + Math.min(this.limits.idle, afterEnd)
  }

  /** Ends the time limit that runs: the reader does not wait any longer. */
  stop(): void {
    this.until = Infinity
  }

  /** Waits until a time limit passes. One fiber must run this until the answer is over: `Effect.timeout` is two for each wait. */
  readonly passed: Effect.Effect<StreamStalled> = Effect.suspend(() => {
    const { last, until } = this
    const left = Math.min(until, last) - now(this.clock)
    if (left > 0) return Effect.andThen(Effect.sleep(Math.min(left, this.shortest)), this.passed)
    return Effect.succeed(this.stalled(last <= until ? "total" : "idle"))
  })

  /** The shortest time limit in milliseconds: a wait that begins while `passed` sleeps is not over when it wakes. */
  private get shortest(): number {
    return Math.max(10, Math.min(this.limits.idle, afterEnd))
  }

  private stalled(kind: StreamStalled["kind"]): StreamStalled {
    const after = Duration.millis(this.limits[kind])
    return new StreamStalled({ kind, after, detail: `${words[kind]} ${Duration.format(after)}` })
  }
}

/** Milliseconds of a monotonic clock. */
export const now = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

/** Maximum wait for the end of an answer that may be over, in milliseconds. */
const afterEnd = 10_000

const words: Readonly<Record<StreamStalled["kind"], string>> = {
  firstByte: "No response within",
  idle: "No content for",
  total: "The answer took more than"
}
