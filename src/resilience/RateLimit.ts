/**
 * A bound on the model calls, and on their tokens, that start within an interval.
 *
 * @since 0.2.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Limits from "../internal/limits.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import type { ModelRequest } from "../Provider.ts"
import * as Provider from "../Provider.ts"
import { ProviderError, RateLimited } from "../ProviderError.ts"
import { type Start, Window } from "./internal/Window.ts"

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
  readonly key?: (request: ModelRequest) => string
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
