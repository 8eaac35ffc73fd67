/**
 * Asks again when a provider failed before it said anything.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "./ModelEvent.ts"
import * as Provider from "./Provider.ts"
import type { ProviderError } from "./ProviderError.ts"
import * as Silence from "./internal/silence.ts"

export interface Options {
  /**
   * How often to try again, and how long to wait. Only what `isRetryable` says may help is tried again at all. Default:
   * three tries in all, exponential from one second with jitter, and not after a stall.
   */
  readonly schedule?: Schedule.Schedule<unknown, ProviderError>
  /** A provider that asks for more patience than this is not asked again. Default 60 seconds. */
  readonly maxRetryAfter?: Duration.Input
  /**
   * Also ask again when an answer broke off after it had said something. What was said is taken back by a `Retracted`
   * event, so that no view shows it twice; tools have not run by then. Default `false`.
   */
  readonly retryTurn?: boolean
}

/** Three tries in all, 1 s and 2 s apart, give or take a fifth. A stall has waited long enough. */
export const defaultSchedule: Schedule.Schedule<unknown, ProviderError> = Schedule.exponential(
  "1 second"
).pipe(
  Schedule.jittered,
  Schedule.setInputType<ProviderError>(),
  Schedule.while(({ input }) => input.reason._tag !== "StreamStalled"),
  Schedule.upTo({ times: 2 })
)

/**
 * Retries a provider by a schedule, as long as nothing of the answer was said: an answer that broke off is not started
 * anew behind the reader's back, unless `retryTurn` says so. A stream that ends without `Finish` broke off. A provider's own `retryAfter` wins over a shorter delay. Each retry is an `Attempt`
 * event; the wait is interruptible.
 */
export const layer = (
  options?: Options
): (<E, R>(inner: Layer.Layer<Provider.Provider, E, R>) => Layer.Layer<Provider.Provider, E, R>) =>
  Provider.decorate((inner) => Effect.succeed(make(inner, options)))

/** The same around a provider at hand. */
export const make = (
  inner: Provider.Provider["Service"],
  options?: Options
): Provider.Provider["Service"] => ({
  id: inner.id,
  stream: (request) => retrying({ provider: inner.id, answer: inner.stream(request) }, options ?? {})
})

/** Decides whether a failure is worth another try, and after how long. */
type Patience = (error: ProviderError) => Effect.Effect<Duration.Duration | undefined>

/** One try, and the provider it is made in the name of. */
interface Try {
  readonly provider: string
  readonly answer: Silence.Answer
}

const retrying = (once: Try, options: Options): Silence.Answer =>
  Stream.unwrap(Effect.map(patience(options), (wait) => from(once, options, wait, 1)))

const from = (once: Try, options: Options, wait: Patience, attempt: number): Silence.Answer =>
  Silence.orElse(once.provider, once.answer, (error, spoke) => {
    if (spoke && options.retryTurn !== true) return Stream.fail(error)
    const again = Effect.map(wait(error), (delay) => {
      if (delay === undefined) return Stream.fail(error)
      const next = Effect.as(Effect.sleep(delay), from(once, options, wait, attempt + 1))
      return Stream.concat(announce({ attempt, delay, error }, spoke), Stream.unwrap(next))
    })
    return Stream.unwrap(again)
  })

const patience = ({ maxRetryAfter, schedule }: Options): Effect.Effect<Patience> =>
  Effect.map(Schedule.toStep(schedule ?? defaultSchedule), (step) => {
    const longest = Duration.fromInputUnsafe(maxRetryAfter ?? "60 seconds")
    return (error) => {
      const { retryAfter } = error
      if (!error.isRetryable) return Effect.undefined
      if (retryAfter !== undefined && Duration.isGreaterThan(retryAfter, longest)) return Effect.undefined
      return Effect.clockWith((clock) => step(clock.currentTimeMillisUnsafe(), error)).pipe(
        Effect.map(([, delay]) => (retryAfter === undefined ? delay : Duration.max(delay, retryAfter))),
        // A schedule that is done has no more patience.
        Effect.catch(() => Effect.undefined)
      )
    }
  })

/** Tells of the next attempt, and takes back what was said, if anything was. */
const announce = (
  attempt: Pick<Extract<ModelEvent, { readonly _tag: "Attempt" }>, "attempt" | "delay" | "error">,
  spoke: boolean
): Silence.Answer => {
  const event: ModelEvent = { _tag: "Attempt", ...attempt }
  return Stream.fromIterable(spoke ? [event, { _tag: "Retracted" } satisfies ModelEvent] : [event])
}
