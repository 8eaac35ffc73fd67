/**
 * A stream of events that does not fail, for code that passes events on, such as a server.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import { AgentBusy, AgentClosed } from "./agentError.ts"
import { InvalidContinuation } from "./continuation.ts"
import { defect, type EventError } from "./failureReason.ts"
import { InvalidInput } from "./invalidInput.ts"
import { makeRunId } from "./run.ts"
import { RunFailed } from "../RunFailed.ts"
import * as Usage from "../Usage.ts"

/**
 * Ends the stream where it would fail. The events of a failed run have its error; one that could not begin gets `RunError`
 * and `RunEnd`. A defect is logged. Interruption stays interruption.
 */
export const eventsOnly = <E>(self: Stream.Stream<AgentEvent, E>): Stream.Stream<AgentEvent> =>
  Stream.suspend(() => {
    let last: AgentEvent | undefined
    return Stream.mapArray(self, (events) => {
      last = events.at(-1)
      return events
    }).pipe(
      Stream.catchCause((cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Stream.fromEffect(Effect.interrupt)
        const { failure, isExpected } = failureOf(cause)
        const rest = last?._tag === "RunEnd" ? Effect.succeed([]) : refusal(failure)
        const logged = isExpected ? Effect.void : Effect.logError("A run died", cause)
        return Stream.fromArrayEffect(Effect.andThen(logged, rest))
      })
    )
  })

const failureOf = (
  cause: Cause.Cause<unknown>
): { readonly failure: EventError; readonly isExpected: boolean } => {
  const error = Cause.squash(cause)
  if (error instanceof RunFailed) return { failure: error.reason, isExpected: true }
  const isRefusal =
    error instanceof AgentBusy ||
    error instanceof AgentClosed ||
    error instanceof InvalidInput ||
    error instanceof InvalidContinuation
  if (isRefusal) return { failure: error, isExpected: true }
  return { failure: defect(error), isExpected: false }
}

/** How the events of a run end that could not begin. */
const refusal = (error: EventError): Effect.Effect<ReadonlyArray<AgentEvent>> =>
  Effect.clockWith((clock) => {
    const base = { runId: makeRunId(), timestamp: clock.currentTimeMillisUnsafe() }
    const nothing = { newMessageIds: [], usage: Usage.zero, turns: 0, durationMs: 0 }
    return Effect.succeed([
      { ...base, seq: 1, _tag: "RunError", error, retryable: error._tag === "AgentBusy" },
      { ...base, seq: 2, _tag: "RunEnd", status: "failed", ...nothing, error }
    ])
  })
