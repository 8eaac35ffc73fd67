/**
 * Responses of server-sent events.
 *
 * @since 0.2.0
 */
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import type { Entry } from "../runs/LogEntry.ts"

const ping = ": ping\n\n"
const encoder = new TextEncoder()

/**
 * Makes a response of server-sent events from their bytes.
 *
 * **Details**
 *
 * It has the headers that keep proxies from holding the events back.
 *
 * **Example** (One event)
 *
 * ```ts
 * import { Stream } from "effect"
 * import { EventStream } from "effect-agent/server"
 *
 * const frames = Stream.encodeText(Stream.make("data: hello\n\n"))
 * console.log(EventStream.response(frames).headers["content-type"]) // => text/event-stream
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const response = (
  bytes: Stream.Stream<Uint8Array>,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(bytes, {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no", ...headers }
  })

/**
 * The pages of a log as bytes: an empty page is the comment `: ping`.
 *
 * **Example** (An empty page)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { EventStream } from "effect-agent/server"
 *
 * const text = Stream.mkString(Stream.decodeText(EventStream.bytes(Stream.make([]))))
 * console.log((await Effect.runPromise(text)).trim()) // => : ping
 * ```
 *
 * @category converting
 * @since 0.2.0
 */
export const bytes = (pages: Stream.Stream<ReadonlyArray<Entry>>): Stream.Stream<Uint8Array> =>
  Stream.map(pages, (page) => {
    const [first, second] = page
    if (first === undefined) return encoder.encode(ping)
    return (second === undefined ? first.bytes : undefined) ?? encoder.encode(textOf(page))
  })

/** One text for a page, so that it is encoded and written once. */
const textOf = (page: ReadonlyArray<Entry>): string => {
  let text = ""
  for (const { frame } of page) text += frame
  return text
}
