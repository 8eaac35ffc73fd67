/**
 * Events as JSON text and as frames of server-sent events.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { AgentEvent } from "../AgentEvent.ts"

const codec = Schema.toCodecJson(AgentEvent)
const encode = Schema.encodeUnknownResult(codec)
const decodeEvent = Schema.decodeUnknownResult(codec)

/** The JSON of an event. */
export const of = (event: AgentEvent): string =>
  JSON.stringify(isPlain(event) ? event : Result.getOrElse(encode(event), () => event))

/** Events are plain JSON, except for errors and durations. This check saves the encoding of thousands of deltas. */
const isPlain = (event: AgentEvent): boolean =>
  event._tag === "MessageDelta"
    ? event.delta._tag !== "Attempt"
    : !("error" in event || "rateLimits" in event)

/** The event of a JSON value; `undefined` for one that this version does not know. */
export const decode = (json: unknown): AgentEvent | undefined => Result.getOrUndefined(decodeEvent(json))

/** An event as a frame. */
export const frame = (position: number, tag: string, text: string): string =>
  `id: ${position}\nevent: ${tag}\ndata: ${text}\n\n`

/** The event of a frame. */
export const ofFrame = (text: string): AgentEvent | undefined =>
  decode(JSON.parse(text.slice(text.indexOf("\ndata: ") + 7)))
