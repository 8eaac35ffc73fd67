/** Writes the events of a run to stdout as JSON, one on each line. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentEvent from "../../AgentEvent.ts"
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
