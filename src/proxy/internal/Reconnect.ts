/**
 * Sends a request again whose connection failed before the first event of its answer.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { Retries } from "../../internal/attempts.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { ProviderError } from "../../ProviderError.ts"

type Answer = Stream.Stream<ModelEvent, ProviderError>

/** Three times, after about a quarter of a second, a half, and one second. */
export const schedule: Schedule.Schedule<unknown, ProviderError> = Schedule.exponential("250 millis").pipe(
  Schedule.jittered,
  Schedule.setInputType<ProviderError>(),
  Schedule.upTo({ times: 3 })
)

/** One attempt. `hasBegun`: the server has sent an event. */
export interface Attempt {
  readonly answer: Answer
  readonly hasBegun: () => boolean
}

/** The answer of the first attempt that begins. Each further attempt emits an `Attempt` event. */
export const reconnecting = (
  attempt: () => Attempt,
  policy: Schedule.Schedule<unknown, ProviderError>
): Answer => Stream.suspend(() => from(attempt, new Retries(policy, maxRetryAfter)))

const maxRetryAfter = "60 seconds"

const from = (attempt: () => Attempt, retries: Retries): Answer =>
  Stream.suspend(() => {
    const { answer, hasBegun } = attempt()
    return Stream.catch(answer, (error) => {
      if (hasBegun() || !isOfConnection(error)) return Stream.fail(error)
      const again = Effect.map(retries.delay(error), (delay): Answer => {
        if (delay === undefined) return Stream.fail(error)
        const next = Effect.as(Effect.sleep(delay), from(attempt, retries))
        const event: ModelEvent = { _tag: "Attempt", attempt: retries.attempt, delay, error }
        return Stream.concat(Stream.succeed(event), Stream.unwrap(next))
      })
      return Stream.unwrap(again)
    })
  })

/** Whether the connection failed, or a gateway in front of the server refused it. */
const isOfConnection = ({ reason }: ProviderError): boolean =>
  reason._tag === "Transport" ||
  reason._tag === "StreamTruncated" ||
  (reason._tag === "ServerError" && (reason.status === 502 || reason.status === 503 || reason.status === 504))
