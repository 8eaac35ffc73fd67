/**
 * How long a provider may say nothing.
 *
 * One fiber per answer watches, not one timer per delta: it sleeps until the earliest moment at which the silence could
 * be too long, and looks. Only the time for which somebody waited counts, so a slow reader is no silence, and only
 * content ends it: keep-alives do not.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { StreamStalled } from "../../ProviderError.ts"

/** The one knob for silence. `"Infinity"` is none. */
export interface Timeouts {
  /** From the request to the head of the response. Default 60 seconds. */
  readonly firstByte?: Duration.Input
  /** Between two pieces of content. Default 120 seconds. */
  readonly idle?: Duration.Input
  /** The whole answer. Default none. */
  readonly total?: Duration.Input
}

/** The same in milliseconds. */
export interface Limits {
  readonly firstByte: number
  readonly idle: number
  readonly total: number
}

export const limits = (timeouts: Timeouts = {}): Limits => ({
  firstByte: Duration.toMillis(timeouts.firstByte ?? "60 seconds"),
  idle: Duration.toMillis(timeouts.idle ?? "120 seconds"),
  total: Duration.toMillis(timeouts.total ?? Duration.infinity)
})

export class Silence {
  private readonly limits: Limits
  private readonly clock: Clock.Clock
  private readonly started: number
  private since: number | undefined = undefined
  private patience: number

  constructor(limits: Limits, clock: Clock.Clock) {
    this.limits = limits
    this.clock = clock
    this.started = clock.currentTimeMillisUnsafe()
    this.patience = limits.idle
  }

  /** Somebody waits from now on. */
  listen(): void {
    this.since ??= this.clock.currentTimeMillisUnsafe()
  }

  /** Content came. */
  hear(): void {
    this.since = undefined
  }

  /** The answer may be over: a server that neither says so nor hangs up is not waited for as long. */
  expectEnd(): void {
    this.patience = Math.min(this.limits.idle, afterEnd)
  }

  /** Waits for an effect that ends with the head of the response. */
  head<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | StreamStalled, R> {
    const { firstByte, total } = this.limits
    const left = this.started + total - this.clock.currentTimeMillisUnsafe()
    const duration = Math.max(0, Math.min(firstByte, left))
    const orElse = () => Effect.fail(this.stalled(left < firstByte ? "total" : "firstByte"))
    return duration === Infinity ? effect : Effect.timeoutOrElse(effect, { duration, orElse })
  }

  /** Ends when the silence is too long. */
  get broken(): Effect.Effect<StreamStalled> {
    const { total } = this.limits
    const look: Effect.Effect<StreamStalled> = Effect.suspend(() => {
      const now = this.clock.currentTimeMillisUnsafe()
      const untilTotal = this.started + total - now
      const untilIdle = (this.since ?? now) + this.patience - now
      if (untilTotal <= 0) return Effect.succeed(this.stalled("total"))
      if (untilIdle <= 0) return Effect.succeed(this.stalled("idle"))
      return Effect.andThen(Effect.sleep(Math.min(untilTotal, untilIdle, afterEnd)), look)
    })
    return look
  }

  private stalled(kind: StreamStalled["kind"]): StreamStalled {
    const after = Duration.millis(this.limits[kind])
    return new StreamStalled({ kind, after, detail: `${words[kind]} ${Duration.format(after)}` })
  }
}

/** Milliseconds. Also how often is looked, as patience may get shorter while the watch sleeps. */
const afterEnd = 10_000

const words: Readonly<Record<StreamStalled["kind"], string>> = {
  firstByte: "No response within",
  idle: "No content for",
  total: "The answer took more than"
}
