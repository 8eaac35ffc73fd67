/**
 * Retries of model calls that fail.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import * as Provider from "../Provider.ts"
import type { ProviderError } from "../ProviderError.ts"
import { Retries } from "../internal/attempts.ts"
import * as OrElse from "./internal/OrElse.ts"

/**
 * The options of a retry.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /**
   * The number of retries and the delays between them. Default: {@link defaultSchedule}.
   *
   * The schedule decides on retryable errors alone: see `ProviderError.isRetryable`.
   */
  readonly schedule?: Schedule.Schedule<unknown, ProviderError>
  /** The longest delay that a provider may name before the call fails at once, a duration. Default 60 seconds. */
  readonly maxRetryAfter?: Duration.Input
  /**
   * Whether an answer that has begun is retried too. Default `false`.
   *
   * A `Retracted` event makes the events of the failed try void, so that no view shows them twice. Tools have not run by then.
   */
  readonly retryTurn?: boolean
}

/**
 * Two retries, after about 1 and 2 seconds.
 *
 * **Details**
 *
 * The delays vary by a fifth at random. It does not retry `StreamStalled`: the application has waited long enough.
 *
 * @category constants
 * @since 0.1.0
 */
export const defaultSchedule: Schedule.Schedule<unknown, ProviderError> = Schedule.exponential(
  "1 second"
).pipe(
  Schedule.jittered,
  Schedule.setInputType<ProviderError>(),
  Schedule.while(({ input }) => input.reason._tag !== "StreamStalled"),
  Schedule.upTo({ times: 2 })
)

/**
 * Retries the model calls of a provider layer.
 *
 * **Details**
 *
 * It retries a call that failed before the first block of its answer; with `retryTurn` later too. An answer that ends without
 * `Finish` counts as failed. If the provider names a delay that is longer than that of the schedule, that delay counts. Each retry
 * emits an `Attempt` event. The delay is interruptible. For longer outages an agent has the option `retry`: see `Agent.RetryOptions`.
 *
 * **Example** (Retrying an overloaded provider)
 *
 * ```ts
 * import { Effect, Schedule } from "effect"
 * import { Agent, ProviderError } from "effect-agent"
 * import { Retry } from "effect-agent/resilience"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const provider = ScriptedProvider.layer([
 *   ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "at capacity", retryAfter: "1 millis" })),
 *   ScriptedProvider.text("Yes.")
 * ])
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   const { report, status } = yield* agent.prompt("Do I need a coat in Oslo?")
 *   return [status, report.retries]
 * }).pipe(Effect.provide(Retry.layer({ schedule: Schedule.recurs(3) })(provider)), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 'completed', 1 ]
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options?: Options
): (<E, R>(inner: Layer.Layer<Provider.Provider, E, R>) => Layer.Layer<Provider.Provider, E, R>) =>
  Provider.decorate((inner) => Effect.succeed(make(inner, options)))

/**
 * Retries the model calls of a provider.
 *
 * **Details**
 *
 * It does what {@link layer} does, for a provider that is a value.
 *
 * **Example** (Decorating a provider)
 *
 * ```ts
 * import { Retry } from "effect-agent/resilience"
 * import { LocalRules } from "effect-agent/providers"
 *
 * const provider = Retry.make(LocalRules.provider, { maxRetryAfter: "10 seconds" })
 *
 * console.log(provider.id) // => local
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  inner: Provider.Provider["Service"],
  options?: Options
): Provider.Provider["Service"] => ({
  ...inner,
  stream: (request) => retrying({ provider: inner.id, answer: inner.stream(request) }, options ?? {})
})

/** An attempt of a model call. */
interface Try {
  /** The id of the provider. */
  readonly provider: string
  readonly answer: OrElse.Answer
}

const retrying = (once: Try, options: Options): OrElse.Answer =>
  Stream.suspend(() => {
    const { maxRetryAfter = "60 seconds", schedule = defaultSchedule } = options
    return from(once, options, new Retries(schedule, maxRetryAfter))
  })

const from = (once: Try, options: Options, retries: Retries): OrElse.Answer =>
  OrElse.orElse(once.provider, once.answer, (error, spoke) => {
    if (spoke && options.retryTurn !== true) return Stream.fail(error)
    const again = Effect.map(retries.delay(error), (delay) => {
      if (delay === undefined) return Stream.fail(error)
      const next = Effect.as(Effect.sleep(delay), from(once, options, retries))
      const { attempt } = retries
      return Stream.concat(announce({ attempt, delay, error }, spoke), Stream.unwrap(next))
    })
    return Stream.unwrap(again)
  })

/** The events before the next attempt: `Attempt`, and `Retracted` if this attempt has published anything. */
const announce = (
  attempt: Pick<Extract<ModelEvent, { readonly _tag: "Attempt" }>, "attempt" | "delay" | "error">,
  spoke: boolean
): OrElse.Answer => {
  const event: ModelEvent = { _tag: "Attempt", ...attempt }
  return Stream.fromIterable(spoke ? [event, { _tag: "Retracted" } satisfies ModelEvent] : [event])
}
