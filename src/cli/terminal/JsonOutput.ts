/** Writes the events of a run to stdout as JSON, one on each line. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentEvent from "../../AgentEvent.ts"
import { textOf } from "../../Message.ts"
import { EventError } from "../../internal/failureReason.ts"
import type { Outcome } from "../agent/Outcome.ts"
import * as Inert from "./Inert.ts"
import type { Screen } from "./Screen.ts"

/** Writes an array of events at a time. */
export const make =
  ({ out }: Screen["Service"]) =>
  (events: ReadonlyArray<AgentEvent.AgentEvent>): Effect.Effect<void> =>
    Effect.flatMap(Effect.forEach(events, line), (lines) => out(lines.join("")))

const encode = Schema.encodeEffect(Schema.toCodecJson(AgentEvent.AgentEvent))

const line = (event: AgentEvent.AgentEvent): Effect.Effect<string> =>
  isPlain(event) ? Effect.succeed(Inert.json(event)) : Effect.map(Effect.orDie(encode(event)), Inert.json)

/**
 * Events are plain JSON, except for errors and durations. This check saves the encoding of thousands of deltas.
 */
const isPlain = (event: AgentEvent.AgentEvent): boolean =>
  event._tag === "MessageDelta"
    ? event.delta._tag !== "Attempt"
    : !("error" in event || "rateLimits" in event)

// ───────────────────────── The result

const encodeError = Schema.encodeEffect(Schema.toCodecJson(EventError))

interface Played {
  readonly outcome: Outcome
  readonly sessionId: string | undefined
}

/** The line with the outcome of a run. */
export const resultLine = Effect.fnUntraced(function* ({ outcome, sessionId }: Played, exitCode: number) {
  const { end, last, output } = outcome
  const error = end?.error && (yield* Effect.orDie(encodeError(end.error)))
  const { durationMs = 0, runId, turns = 0, usage } = end ?? {}
  return Inert.json({
    type: "result",
    status: outcome.status ?? "cancelled",
    exitCode,
    text: last === undefined ? "" : textOf(last),
    ...(output === undefined ? {} : { output: output.value }),
    ...(sessionId === undefined ? {} : { sessionId }),
    runId,
    turns,
    durationMs,
    usage,
    ...(usage?.cost === undefined ? {} : { cost: usage.cost }),
    ...(error === undefined ? {} : { error: Object.assign({ message: end?.error?.message }, error) })
  })
})
