/**
 * A bound on the model calls, and on their tokens, that start within an interval.
 *
 * @since 0.2.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import * as Provider from "../Provider.ts"
import { ProviderError, RateLimited } from "../ProviderError.ts"
import * as Limits from "../internal/limits.ts"

/**
 * The options of a rate limit.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The most calls that start within an interval, at least 1. Default: no bound. */
  readonly requests?: number
  /**
   * The most tokens of the calls that start within an interval. Default: no bound.
   *
   * A call counts with an estimate of its request, at four characters for one token, until its answer reports the tokens of both.
   */
  readonly tokens?: number
  /** The interval, a duration. Default 1 minute. */
  readonly interval?: Duration.Input
  /**
   * Returns the key of a request. Each key has bounds of its own. Default: one key for all requests.
   */
  readonly key?: (request: Provider.ModelRequest) => string
  /**
   * The longest wait of a call, a duration, before it fails with the reason `RateLimited`. With 0 no call waits. Default 5 minutes.
   */
  readonly maxWait?: Duration.Input
}

/**
 * Bounds the model calls of a provider layer.
 *
 * **Details**
 *
 * - No interval, wherever it begins, has more starts than `requests`. Calls wait in the order in which they come, and an interruption
 *   ends a wait.
 * - A wait that the vendor names (`Retry-After`) holds back each call of its key, also of other runs.
 * - A call that would wait longer than `maxWait` fails with the reason `RateLimited`, without a `status`. Its `retryAfter` is the wait,
 *   and `Fallback` calls the next provider.
 * - Each use of the layer in an application is one limit, which all its agents share.
 *
 * **Gotchas**
 *
 * Put `Retry` around it, so that it counts each attempt: `Retry.layer()(RateLimit.layer({ requests: 60 })(provider))`. It cannot hold
 * back attempts of a `Retry` that it wraps, as `layerConfig` of a provider has one; it only counts them.
 *
 * **Example** (Failing fast)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { RateLimit } from "effect-agent/resilience"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const provider = ScriptedProvider.layer([ScriptedProvider.text("Yes."), ScriptedProvider.text("No.")])
 * const limited = RateLimit.layer({ requests: 1, interval: "1 hour", maxWait: 0 })(provider)
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   console.log((yield* agent.prompt("Do I need a coat in Oslo?")).text)
 *   const failure = yield* Effect.flip(agent.prompt("And in Rome?"))
 *   if (failure._tag !== "RunFailed" || failure.reason._tag !== "ProviderError") return
 *   console.log(failure.reason.reason._tag)
 * }).pipe(Effect.provide(limited), Effect.scoped)
 *
 * await Effect.runPromise(program)
 * // => Yes.
 * // => RateLimited
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (
  options: Options
): (<E, R>(inner: Layer.Layer<Provider.Provider, E, R>) => Layer.Layer<Provider.Provider, E, R>) =>
  Provider.decorate((inner) => Effect.sync(() => make(inner, options)))

/**
 * Bounds the model calls of a provider.
 *
 * **Details**
 *
 * It does what {@link layer} does, for a provider that is a value. Each provider that it returns has a limit of its own.
 *
 * **Example** (Decorating a provider)
 *
 * ```ts
 * import { LocalRules } from "effect-agent/providers"
 * import { RateLimit } from "effect-agent/resilience"
 *
 * const provider = RateLimit.make(LocalRules.provider, { requests: 60, tokens: 100_000, key: ({ model }) => model })
 *
 * console.log(provider.id) // => local
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (inner: Provider.Provider["Service"], options: Options): Provider.Provider["Service"] => {
  const windowOf = windows(options)
  return {
    ...inner,
    stream: (request) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const window = windowOf(options.key?.(request) ?? "", yield* Clock.currentTimeMillis)
          const tokens = options.tokens === undefined ? 0 : Limits.inputOf(request)
          const start = yield* Effect.mapError(window.start(tokens), ({ wait }) => limited(inner.id, wait))
          return observed(inner.stream(request), window, start)
        })
      )
  }
}

const limited = (provider: string, wait: number) =>
  new ProviderError({
    provider,
    reason: new RateLimited({
      detail: "the rate limit of this application is reached",
      ...(wait > 0 ? { retryAfter: Duration.millis(wait) } : {})
    })
  })

/** Makes a function that finds the calls of a key. A new key makes it forget those of idle keys. */
const windows = ({
  interval = "1 minute",
  maxWait = "5 minutes",
  requests = Infinity,
  tokens = Infinity
}: Options): ((key: string, now: number) => Window) => {
  const bounds = {
    requests,
    tokens,
    interval: Duration.toMillis(interval),
    maxWait: Duration.toMillis(maxWait)
  }
  const known = new Map<string, Window>()
  return (key, now) => {
    const found = known.get(key)
    if (found !== undefined) return found
    for (const [other, window] of known) if (window.isIdle(now)) known.delete(other)
    const made = new Window(bounds)
    known.set(key, made)
    return made
  }
}

type Answer = Stream.Stream<ModelEvent, ProviderError>

/** Streams an answer, and gives the window its tokens and the time to wait that the vendor names (`Retry-After`). */
const observed = (answer: Answer, window: Window, start: Start): Answer => {
  const hold = ({ retryAfter }: ProviderError) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      if (retryAfter !== undefined) window.hold(now + Duration.toMillis(retryAfter))
      return now
    })
  const learn = (event: ModelEvent) => {
    if (event._tag === "Attempt") return Effect.map(hold(event.error), (now) => window.count(now))
    if (event._tag === "Finish" && event.usage !== undefined) start.tokens = event.usage.total
    return Effect.void
  }
  return answer.pipe(
    Stream.mapArrayEffect((events) =>
      events.some(isNews) ? Effect.as(Effect.forEach(events, learn), events) : Effect.succeed(events)
    ),
    Stream.tapError(hold)
  )
}

const isNews = ({ _tag }: ModelEvent): boolean => _tag === "Attempt" || _tag === "Finish"

// ───────────────────────── The window

// A sliding window over the starts of model calls, which computes when the next call may start.
//
// Effect's `RateLimiter` counts in fixed windows or refills a bucket, so that an interval may have nearly twice as many starts, and a
// wait that is interrupted keeps its tokens.

/** The bounds of an interval. A duration is in milliseconds, and `Infinity` stands for no bound. */
interface Bounds {
  readonly requests: number
  readonly tokens: number
  readonly interval: number
  readonly maxWait: number
}

/** The start of one call. Its tokens are an estimate until the provider reports them. */
interface Start {
  readonly at: number
  tokens: number
}

/** The failure to start within `maxWait`. */
class TooLong {
  /** The wait in milliseconds, as far as it is known. */
  readonly wait: number

  constructor(wait: number) {
    this.wait = wait
  }
}

/** The window of one key. Waiting calls queue for a lock, so that calls start in the order in which they came. */
class Window {
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
