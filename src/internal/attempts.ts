/**
 * The attempts of a model call: whether, and after which delay, to try again after an error of a provider, and the errors of answers
 * that name none.
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
type Begun = Effect.Success<ReturnType<typeof Schedule.toStep<unknown, ProviderError, never, never>>>

/**
 * Retries by a schedule. A delay that the provider names counts if it is longer, and ends the retries if it is longer than
 * `maxRetryAfter`.
 */
export class Patience {
  private readonly schedule: Policy
  private readonly maxRetryAfter: Duration.Duration
  /** The schedule since its beginning. */
  private begun: Begun | undefined
  /** The number of retries since the schedule began. */
  attempt = 0
  /** The number of all retries. */
  retries = 0

  constructor(schedule: Policy, maxRetryAfter: Duration.Input) {
    this.schedule = schedule
    this.maxRetryAfter = Duration.fromInputUnsafe(maxRetryAfter)
  }

  /** Begins the schedule anew. */
  readonly reset = Effect.sync(() => {
    this.begun = undefined
    this.attempt = 0
  })

  /** Counts a retry and returns the delay before it, or `undefined` if there is none. */
  readonly delay = Effect.fnUntraced(function* (this: Patience, error: ProviderError) {
    const { isRetryable, retryAfter = Duration.zero } = error
    if (!isRetryable || Duration.isGreaterThan(retryAfter, this.maxRetryAfter)) return undefined
    this.begun ??= yield* Schedule.toStep(this.schedule)
    const step = yield* Effect.option(this.begun(yield* Clock.currentTimeMillis, error))
    // The schedule is done.
    if (Option.isNone(step)) return undefined
    this.attempt++
    this.retries++
    return Duration.max(step.value[1], retryAfter)
  })
}
