/**
 * A sliding window over the starts of model calls, which computes when the next call may start.
 *
 * Effect's `RateLimiter` counts in fixed windows or refills a bucket, so that an interval may have nearly twice as many starts, and a
 * wait that is interrupted keeps its tokens.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"

/** The bounds of an interval. A duration is in milliseconds, and `Infinity` stands for no bound. */
export interface Bounds {
  readonly requests: number
  readonly tokens: number
  readonly interval: number
  readonly maxWait: number
}

/** The start of one call. Its tokens are an estimate until the provider reports them. */
export interface Start {
  readonly at: number
  tokens: number
}

/** The failure to start within `maxWait`. */
export class TooLong {
  /** The wait in milliseconds, as far as it is known. */
  readonly wait: number

  constructor(wait: number) {
    this.wait = wait
  }
}

/** The window of one key. Waiting calls queue for a lock, so that calls start in the order in which they came. */
export class Window {
  private readonly bounds: Bounds
  private readonly lock = Semaphore.makeUnsafe(1)
  private starts: Array<Start> = []
  private heldUntil = 0
  private waiting = 0

  constructor(bounds: Bounds) {
    this.bounds = bounds
  }

  /** Waits until a call of this many tokens may start, and counts it. An interrupted call does not count. */
  start(tokens: number): Effect.Effect<Start, TooLong> {
    const { maxWait } = this.bounds
    return Effect.suspend(() => {
      if (maxWait === 0) return this.startNow(tokens)
      this.waiting++
      const turn = Effect.flatMap(Clock.currentTimeMillis, (now) =>
        this.lock.withPermits(1)(this.startBy(tokens, now + maxWait))
      )
      const bounded =
        maxWait === Infinity
          ? turn
          : Effect.timeoutOrElse(turn, { duration: maxWait, orElse: () => this.fail(tokens) })
      return Effect.ensuring(
        bounded,
        Effect.sync(() => this.waiting--)
      )
    })
  }

  /** Counts a start that did not wait, such as that of an attempt of the provider's own. */
  count(now: number): void {
    this.starts.push({ at: now, tokens: 0 })
  }

  /** Lets no call start before a time that the vendor named. */
  hold(until: number): void {
    this.heldUntil = Math.max(this.heldUntil, until)
  }

  /** Whether the window is empty and no call waits, so that it can be dropped. */
  isIdle(now: number): boolean {
    return this.waiting === 0 && this.heldUntil <= now && this.recent(now).length === 0
  }

  private startNow(tokens: number): Effect.Effect<Start, TooLong> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      this.waitAt(now, tokens) > 0 ? this.fail(tokens) : Effect.succeed(this.begin(now, tokens))
    )
  }

  private startBy(tokens: number, deadline: number): Effect.Effect<Start, TooLong> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const wait = this.waitAt(now, tokens)
      if (wait <= 0) return Effect.succeed(this.begin(now, tokens))
      if (now + wait > deadline) return Effect.fail(new TooLong(wait))
      return Effect.andThen(Effect.sleep(wait), this.startBy(tokens, deadline))
    })
  }

  private fail(tokens: number): Effect.Effect<never, TooLong> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.fail(new TooLong(this.waitAt(now, tokens)))
    )
  }

  private begin(at: number, tokens: number): Start {
    const start = { at, tokens }
    this.starts.push(start)
    return start
  }

  /** Drops the starts that are older than the interval, and returns the others. */
  private recent(now: number): ReadonlyArray<Start> {
    const first = this.starts.findIndex(({ at }) => at + this.bounds.interval > now)
    this.starts = first === -1 ? [] : this.starts.slice(first)
    return this.starts
  }

  /** The time until a call may start, in milliseconds. A call that exceeds the bound alone waits for an empty interval. */
  private waitAt(now: number, tokens: number): number {
    const { interval, requests, tokens: maxTokens } = this.bounds
    const starts = this.recent(now)
    let left = starts.reduce((sum, start) => sum + start.tokens, tokens)
    let wait = this.heldUntil - now
    for (const [index, start] of starts.entries()) {
      if (starts.length - index < requests && left <= maxTokens) break
      wait = Math.max(wait, start.at + interval - now)
      left -= start.tokens
    }
    return wait
  }
}
