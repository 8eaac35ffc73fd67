/**
 * A circuit breaker: it stops model calls to a vendor that fails again and again.
 *
 * @since 0.2.0
 */
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Breaker from "effect/persistence/CircuitBreaker"
import type * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as OrElse from "./internal/OrElse.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import { CircuitOpen, ProviderError } from "../ProviderError.ts"

/**
 * The options of a circuit breaker.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The failures in a row that open a circuit, at least 1. Default 5. */
  readonly failures?: number
  /**
   * The time for which a circuit is open before it lets a probe through: a duration, or a schedule whose delays are those of openings
   * in a row. Default 30 seconds.
   *
   * A longer wait that the vendor names (`Retry-After`) counts, up to one hour.
   */
  readonly openFor?: Duration.Input | Schedule.Schedule<unknown, number>
  /** Returns the key of a request. Each key has a circuit of its own. Default: one circuit for all requests. */
  readonly key?: (request: ModelRequest) => string
  /** Returns whether an error counts against the vendor. Default: {@link isUnhealthy}. */
  readonly when?: (error: ProviderError) => boolean
}

/**
 * Returns whether an error speaks of the health of the vendor: it had no capacity, failed, broke its protocol, or was not reached.
 *
 * **Details**
 *
 * A rate limit, a key that the vendor refuses and a request that is wrong do not. An open circuit of another breaker does not either.
 *
 * **Example** (Counting rate limits too)
 *
 * ```ts
 * import { CircuitBreaker } from "effect-agent/resilience"
 *
 * const options: CircuitBreaker.Options = {
 *   when: (error) => CircuitBreaker.isUnhealthy(error) || error.reason._tag === "RateLimited"
 * }
 *
 * console.log(options.failures ?? 5) // => 5
 * ```
 *
 * @category predicates
 * @since 0.2.0
 */
export const isUnhealthy = ({ reason }: ProviderError): boolean => unhealthy.has(reason._tag)

const unhealthy: ReadonlySet<string> = new Set([
  "Overloaded",
  "ServerError",
  "StreamTruncated",
  "StreamStalled",
  "Transport",
  "Protocol"
])

/**
 * Breaks the circuit to a provider layer that fails again and again.
 *
 * **Details**
 *
 * - Closed: calls go to the provider. After `failures` failures in a row the circuit opens. An answer that ends without `Finish` counts
 *   as failed, and a call that its reader leaves counts as nothing.
 * - Open: calls fail at once with the reason `CircuitOpen`, for which `Fallback` calls the next provider. Its `retryAfter` is the time
 *   until the next probe.
 * - Half-open, after `openFor`: one call is the probe, and others fail with `CircuitOpen`. Its answer closes the circuit, and its failure
 *   opens it again.
 * - Each change of a circuit counts in the metric `effect_agent.circuit.transitions`, by `gen_ai.provider.name`, `from` and `to`.
 * - The layer uses a `CircuitBreakerStore` of `effect/persistence` in its context, such as one that shares circuits between processes by
 *   Redis. Without one it keeps its circuits in memory.
 *
 * Inside a `Retry`, each attempt counts. Around a `Retry`, as `layerConfig` of a provider has one, each call counts once.
 *
 * **Example** (Falling back at once while a vendor is down)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, ProviderError } from "effect-agent"
 * import { CircuitBreaker, Fallback } from "effect-agent/resilience"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * // The second call would find nothing in the script: the open circuit stops it.
 * const down = ScriptedProvider.layer([ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "down" }))])
 * const spare = ScriptedProvider.layer([ScriptedProvider.text("Yes."), ScriptedProvider.text("No.")])
 * const provider = Fallback.layer([CircuitBreaker.layer({ failures: 1 })(down), spare])
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   console.log((yield* agent.prompt("Do I need a coat in Oslo?")).text)
 *   console.log((yield* agent.prompt("And in Rome?")).text)
 * }).pipe(Effect.provide(provider), Effect.scoped)
 *
 * await Effect.runPromise(program)
 * // => Yes.
 * // => No.
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer =
  (options?: Options) =>
  <E, R>(inner: Layer.Layer<Provider, E, R>): Layer.Layer<Provider, E, R> =>
    Layer.effect(
      Provider,
      Effect.flatMap(Provider, (inner) => make(inner, options))
    ).pipe(Layer.provide(inner))

/**
 * Breaks the circuit to a provider that fails again and again.
 *
 * **Details**
 *
 * It does what {@link layer} does, for a provider that is a value.
 *
 * **Example** (Decorating a provider)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { LocalRules } from "effect-agent/providers"
 * import { CircuitBreaker } from "effect-agent/resilience"
 *
 * const program = Effect.gen(function* () {
 *   const { id } = yield* CircuitBreaker.make(LocalRules.provider, { failures: 3, openFor: "1 minute" })
 *   console.log(id)
 * }).pipe(Effect.scoped)
 *
 * await Effect.runPromise(program) // => local
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (
  inner: Provider["Service"],
  options: Options = {}
): Effect.Effect<Provider["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const { failures = 5, key = () => "", openFor = "30 seconds" } = options
    const breaker = yield* withStore(
      Breaker.make({ tripPolicy: { _tag: "Consecutive", failures }, openDuration: openFor })
    )
    yield* Effect.forkScoped(
      Stream.runForEach(breaker.transitions, (transition) => report(inner.id, transition)),
      { startImmediately: true }
    )
    return {
      ...inner,
      stream: (request) => {
        const circuit = { breaker, key: `${inner.id} ${key(request)}`, provider: inner.id }
        return guarded(circuit, inner.stream(request), options.when ?? isUnhealthy)
      }
    }
  })

/** Gives a breaker the store in context, or one in memory. */
const withStore = <A>(
  make: Effect.Effect<A, never, Breaker.CircuitBreakerStore | Scope.Scope>
): Effect.Effect<A, never, Scope.Scope> =>
  Effect.flatMap(Effect.serviceOption(Breaker.CircuitBreakerStore), (store) =>
    Option.isSome(store)
      ? Effect.provideService(make, Breaker.CircuitBreakerStore, store.value)
      : Effect.provide(make, Breaker.layerStoreMemory())
  )

const transitions = Metric.counter("effect_agent.circuit.transitions", {
  description: "Changes of the state of a circuit breaker",
  incremental: true
})

const report = (provider: string, { from, to }: Breaker.Transition): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(transitions, { "gen_ai.provider.name": provider, from, to }), 1)

interface Circuit {
  readonly breaker: Breaker.CircuitBreaker
  readonly key: string
  readonly provider: string
}

/** Makes a call through a circuit, which may refuse it, and reports the outcome of the answer to the circuit. */
const guarded = (
  circuit: Circuit,
  answer: OrElse.Answer,
  when: (error: ProviderError) => boolean
): OrElse.Answer =>
  Stream.unwrap(
    Effect.gen(function* () {
      let outcome: Breaker.Outcome = Breaker.ignored
      yield* admitted(circuit, () => outcome)
      return OrElse.orElse(circuit.provider, answer, (error) => {
        if (when(error)) outcome = Breaker.failure({ retryAfter: error.retryAfter })
        return Stream.fail(error)
      }).pipe(
        Stream.mapArray((events) => {
          if (events.some(({ _tag }) => _tag === "Finish")) outcome = Breaker.success
          return events
        })
      )
    })
  )

/** Fails with `CircuitOpen` if the circuit refuses a call. The close of the scope reports the outcome to the circuit. */
const admitted = (
  { breaker, key, provider }: Circuit,
  outcome: () => Breaker.Outcome
): Effect.Effect<void, ProviderError, Scope.Scope> =>
  Effect.gen(function* () {
    const entry = yield* Deferred.make<void, Breaker.CircuitBreakerError>()
    const exit = yield* Deferred.make<Breaker.Outcome>()
    const call = Effect.andThen(Deferred.succeed(entry, undefined), Deferred.await(exit)).pipe(
      breaker.execute({ key, classify: (exit) => (Exit.isSuccess(exit) ? exit.value : Breaker.ignored) }),
      Effect.catch((error) => Deferred.fail(entry, error))
    )
    const fiber = yield* Effect.forkScoped(call, { startImmediately: true })
    yield* Effect.mapError(Deferred.await(entry), (error) => closed(provider, error))
    yield* Effect.addFinalizer(() =>
      Effect.andThen(
        Effect.suspend(() => Deferred.succeed(exit, outcome())),
        Fiber.await(fiber)
      )
    )
  })

const closed = (provider: string, { reason }: Breaker.CircuitBreakerError): ProviderError => {
  const retryAfter = reason._tag === "CircuitOpen" ? { retryAfter: reason.retryAfter } : {}
  return new ProviderError({
    provider,
    reason: new CircuitOpen({ detail: "the calls before failed, so this one was not sent", ...retryAfter })
  })
}
