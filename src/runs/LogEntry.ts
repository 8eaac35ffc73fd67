/**
 * An entry of the log of a run: an event at a position. Its frame is made once, when a watcher reads it first.
 */
import { AgentEvent } from "../AgentEvent.ts"
import * as Stream from "effect/Stream"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/**
 * An entry of the log of a run.
 *
 * @category models
 * @since 0.2.0
 */
export interface Entry {
  /** The position of the event in the log, from 1. */
  readonly position: number
  /** The tag of the event. */
  readonly tag: string
  /** The event; `undefined` for one of a later version. */
  readonly event: AgentEvent | undefined
  /** The event as a frame of server-sent events. */
  readonly frame: string
  /** The bytes of the frame, if all watchers share them. Default: each encodes its own. */
  readonly bytes?: Uint8Array
}

const encoder = new TextEncoder()

/** An entry whose event is at hand. */
export class LogEntry implements Entry {
  readonly position: number
  readonly tag: string
  readonly event: AgentEvent
  private json: string | undefined
  private framed: string | undefined
  private encoded: Uint8Array | undefined

  constructor(position: number, event: AgentEvent) {
    this.position = position
    this.tag = event._tag
    this.event = event
  }

  get text(): string {
    return (this.json ??= textOfEvent(this.event))
  }

  get frame(): string {
    return (this.framed ??= frameOf(this.position, this.tag, this.text))
  }

  get bytes(): Uint8Array {
    return (this.encoded ??= encoder.encode(this.frame))
  }

  /** Forgets the text of an entry that is stored. */
  release(): void {
    this.json = undefined
  }
}

/** An entry that was read from a store. */
export class StoredEntry implements Entry {
  readonly position: number
  readonly tag: string
  private readonly json: unknown

  constructor(position: number, tag: string, json: unknown) {
    this.position = position
    this.tag = tag
    this.json = json
  }

  get event(): AgentEvent | undefined {
    return eventOf(this.json)
  }

  get frame(): string {
    return frameOf(this.position, this.tag, JSON.stringify(this.json))
  }
}

/** The events of a page, with their positions, without those that this version does not know. */
export const eventsOf = (page: ReadonlyArray<Entry>) =>
  Stream.fromIterable(
    page.flatMap(({ event, position }) => (event === undefined ? [] : [{ position, event }]))
  )

// ───────────────────────── Events as JSON text and as frames of server-sent events

const codec = Schema.toCodecJson(AgentEvent)
const encode = Schema.encodeUnknownResult(codec)
const decodeEvent = Schema.decodeUnknownResult(codec)

/** The JSON of an event. */
export const textOfEvent = (event: AgentEvent): string =>
  JSON.stringify(isPlain(event) ? event : Result.getOrElse(encode(event), () => event))

/** Events are plain JSON, except for errors and durations. This check saves the encoding of thousands of deltas. */
const isPlain = (event: AgentEvent): boolean =>
  event._tag === "MessageDelta"
    ? event.delta._tag !== "Attempt"
    : !("error" in event || "rateLimits" in event)

/** The event of a JSON value; `undefined` for one that this version does not know. */
export const eventOf = (json: unknown): AgentEvent | undefined => Result.getOrUndefined(decodeEvent(json))

/** An event as a frame. */
export const frameOf = (position: number, tag: string, text: string): string =>
  `id: ${position}\nevent: ${tag}\ndata: ${text}\n\n`

/** The event of a frame. */
export const eventOfFrame = (text: string): AgentEvent | undefined =>
  eventOf(JSON.parse(text.slice(text.indexOf("\ndata: ") + 7)))
