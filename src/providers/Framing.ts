/**
 * How the bytes of an answer divide into frames.
 *
 * @since 0.2.0
 */
import { AwsEventStreamReader, LineReader, type Reader, SseReader } from "./internal/framing.ts"

export type { Frame, Reader } from "./internal/framing.ts"

/**
 * How the bytes of answers divide into frames.
 *
 * @since 0.2.0
 * @category models
 */
export interface Framing {
  /** The `accept` header of requests. */
  readonly accept: string
  /** Makes the reader of one answer. */
  readonly reader: () => Reader
}

/**
 * Server-sent events, which most vendors send.
 *
 * **Details**
 *
 * The reader also takes the deviations of real servers: a last event without a blank line after it, events that a single
 * newline separates, and a body that is one JSON text.
 *
 * @since 0.2.0
 * @category constants
 */
export const sse: Framing = { accept: "text/event-stream", reader: () => new SseReader() }

/**
 * One JSON text on each line.
 *
 * @since 0.2.0
 * @category constants
 */
export const ndjson: Framing = { accept: "application/x-ndjson", reader: () => new LineReader() }

/**
 * AWS's binary event stream, which Amazon Bedrock sends.
 *
 * **Details**
 *
 * The `:event-type` of a message is the name of its frame. An exception becomes a frame named `error`, with the type and the
 * message as JSON. The reader checks both checksums of each message.
 *
 * @since 0.2.0
 * @category constants
 */
export const awsEventStream: Framing = {
  accept: "application/vnd.amazon.eventstream",
  reader: () => new AwsEventStreamReader()
}
