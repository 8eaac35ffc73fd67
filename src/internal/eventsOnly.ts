/**
 * A stream of events that does not fail, for code that passes events on, such as a server.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import { InvalidContinuation } from "./continuation.ts"
import { defect, type EventError } from "./failureReason.ts"
import { InvalidInput } from "./invalidInput.ts"
import { makeRunId } from "./run.ts"
import { RunFailed } from "../Run.ts"
import { AgentBusy, AgentClosed } from "./errors.ts"
import * as Usage from "../Usage.ts"

/**
 * Ends the stream where it would fail. A failed run has events with its error already; for a run that could not begin, or whose events
 * break off, this adds `RunError` and `RunEnd`. It logs a defect. An interruption stays an interruption.
 */
export const eventsOnly = <E>(self: Stream.Stream<AgentEvent, E>): Stream.Stream<AgentEvent> =>
  Stream.suspend(() => {
    let last: AgentEvent | undefined
    return Stream.mapArray(self, (events) => {
      last = events.findLast(({ path }) => path === undefined) ?? last
      return events
    }).pipe(
      Stream.catchCause((cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Stream.fromEffect(Effect.interrupt)
        const error = Cause.squash(cause)
        const expected = error instanceof RunFailed ? error.reason : isRefusal(error) ? error : undefined
        const rest = last?._tag === "RunEnd" ? Effect.succeed([]) : ending(expected ?? defect(error), last)
        const logged = expected === undefined ? Effect.logError("A run died", cause) : Effect.void
        return Stream.fromArrayEffect(Effect.andThen(logged, rest))
      })
    )
  })

const isRefusal = Schema.is(Schema.Union([AgentBusy, AgentClosed, InvalidInput, InvalidContinuation]))

/** Makes `RunError` and `RunEnd` for a run that could not begin, or whose events break off after `last`. */
const ending = (error: EventError, last: AgentEvent | undefined): Effect.Effect<ReadonlyArray<AgentEvent>> =>
  Effect.clockWith((clock) => {
    const { runId = makeRunId(), seq = 0, turn = 0 } = last ?? {}
    const base = { runId, timestamp: clock.currentTimeMillisUnsafe() }
    const nothing = { newMessageIds: [], usage: Usage.zero, turns: turn, durationMs: 0 }
    return Effect.succeed([
      { ...base, seq: seq + 1, _tag: "RunError", error, retryable: error._tag === "AgentBusy" },
      { ...base, seq: seq + 2, _tag: "RunEnd", status: "failed", ...nothing, error }
    ])
  })
