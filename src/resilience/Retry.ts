/**
 * Asks again when a provider failed before it said anything.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import * as Provider from "../Provider.ts"
import type { ProviderError } from "../ProviderError.ts"

export interface Options {
  /**
   * When to try again, and how long to wait. Default: three tries in all, exponential from one second with jitter, only
   * what `isRetryable` says may help and is no stall.
   */
  readonly schedule?: Schedule.Schedule<unknown, ProviderError>
  /** A provider that asks for more patience than this is not asked again. Default 60 seconds. */
  readonly maxRetryAfter?: Duration.Input
}

/** Three tries in all, 1 s and 2 s apart, give or take a fifth. A stall has waited long enough. */
export const defaultSchedule: Schedule.Schedule<unknown, ProviderError> = Schedule.exponential(
  "1 second"
).pipe(
  Schedule.jittered,
  Schedule.setInputType<ProviderError>(),
  Schedule.while(({ input }) => input.isRetryable && input.reason._tag !== "StreamStalled"),
  Schedule.upTo({ times: 2 })
)

/**
 * Retries a provider by a schedule, as long as nothing of the answer was said: an answer that broke off is not started
 * anew behind the reader's back. A provider's own `retryAfter` wins over a shorter delay. Each retry is an `Attempt`
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
  stream: (request) => retrying(inner.stream(request), options ?? {})
})

type Answer = Stream.Stream<ModelEvent, ProviderError>

/** Decides whether a failure is worth another try, and after how long. */
type Patience = (error: ProviderError) => Effect.Effect<Duration.Duration | undefined>

const retrying = (once: Answer, options: Options): Answer =>
  Stream.unwrap(
    Effect.map(patience(options), (wait) => {
      const from = (attempt: number): Answer =>
        unlessSilent(once, (error) =>
          Stream.unwrap(
            Effect.map(wait(error), (delay) =>
              delay === undefined
                ? Stream.fail(error)
                : after(delay, { attempt, error }, () => from(attempt + 1))
            )
          )
        )
      return from(1)
    })
  )

const patience = ({ maxRetryAfter, schedule }: Options): Effect.Effect<Patience> =>
  Effect.map(Schedule.toStep(schedule ?? defaultSchedule), (step) => {
    const longest = Duration.fromInputUnsafe(maxRetryAfter ?? "60 seconds")
    return (error) => {
      const { retryAfter } = error
      if (retryAfter !== undefined && Duration.isGreaterThan(retryAfter, longest)) return Effect.undefined
      return Effect.clockWith((clock) => step(clock.currentTimeMillisUnsafe(), error)).pipe(
        Effect.map(([, delay]) => (retryAfter === undefined ? delay : Duration.max(delay, retryAfter))),
        // A schedule that is done has no more patience.
        Effect.catch(() => Effect.undefined)
      )
    }
  })

const after = (
  delay: Duration.Duration,
  attempt: { readonly attempt: number; readonly error: ProviderError },
  next: () => Answer
): Answer =>
  Stream.concat(
    Stream.succeed<ModelEvent>({ _tag: "Attempt", ...attempt, delay }),
    Stream.unwrap(Effect.as(Effect.sleep(delay), Stream.suspend(next)))
  )

/** The answer, or `otherwise` if it failed in silence. Who answers is held back until there is something to say. */
const unlessSilent = (answer: Answer, otherwise: (error: ProviderError) => Answer): Answer =>
  Stream.suspend(() => {
    let spoke = false
    return answer.pipe(
      Stream.mapAccumArray(
        (): ReadonlyArray<ModelEvent> => [],
        (held, events) => {
          if (spoke) return [held, events] as const
          const all = held.concat(events)
          spoke = all.some((event) => event._tag !== "Start" && event._tag !== "Attempt")
          return spoke ? ([[], all] as const) : ([all, []] as const)
        },
        { onHalt: (held) => held }
      ),
      Stream.catch((error) => (spoke ? Stream.fail(error) : otherwise(error)))
    )
  })
