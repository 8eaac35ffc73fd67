/**
 * The retries of a model call by a schedule, and the errors for answers that failed without an error of the provider.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type { Assistant } from "../Message.ts"
import { ProviderError, ServerError, StreamTruncated } from "../ProviderError.ts"

/** An answer whose stream ended without `Finish`: nothing proves that it is complete. */
export const truncated = (provider: string): ProviderError =>
  new ProviderError({
    provider,
    reason: new StreamTruncated({ detail: "the answer ended before it was finished" })
  })

/** The error of a provider that names its failure only in the stop reason. */
export const failedBy = ({ errorMessage, provider }: Assistant): ProviderError =>
  new ProviderError({
    provider,
    reason: new ServerError({ detail: errorMessage ?? "the provider ended its answer with an error" })
  })

type Policy = Schedule.Schedule<unknown, ProviderError>
type Step = Effect.Success<ReturnType<typeof Schedule.toStep<unknown, ProviderError, never, never>>>

/**
 * Steps through a retry schedule. The delay is the longer one of the schedule's and of the one that the provider names (`Retry-After`). A
 * provider that names a delay longer than `maxRetryAfter` ends the retries.
 */
export class Retries {
  private readonly schedule: Policy
  private readonly maxRetryAfter: Duration.Duration
  /** The step function of the schedule since `reset`; `undefined` before the first error. */
  private step: Step | undefined
  /** The number of retries since `reset`. */
  attempt = 0
  /** The number of all retries of the run. */
  retries = 0

  constructor(schedule: Policy, maxRetryAfter: Duration.Input) {
    this.schedule = schedule
    this.maxRetryAfter = Duration.fromInputUnsafe(maxRetryAfter)
  }

  /** Lets the next error begin the schedule from its start. */
  readonly reset = Effect.sync(() => {
    this.step = undefined
    this.attempt = 0
  })

  /** Counts a retry and returns the delay before it; `undefined` if the error is not to be retried. */
  readonly delay = Effect.fnUntraced(function* (this: Retries, error: ProviderError) {
    const { isRetryable, retryAfter = Duration.zero } = error
    if (!isRetryable || Duration.isGreaterThan(retryAfter, this.maxRetryAfter)) return undefined
    this.step ??= yield* Schedule.toStep(this.schedule)
    const taken = yield* Effect.option(this.step(yield* Clock.currentTimeMillis, error))
    if (Option.isNone(taken)) return undefined
    this.attempt++
    this.retries++
    return Duration.max(taken.value[1], retryAfter)
  })
}
