/** Answers of Converse as AWS documents them, in the bytes of its own codec. */
import { EventStreamCodec } from "@smithy/eventstream-codec"

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes),
  (text) => new TextEncoder().encode(text)
)

export type Event = readonly [name: string, payload: unknown]

const headersOf = (name: string): Readonly<Record<string, string>> =>
  name.endsWith("Exception")
    ? { ":message-type": "exception", ":exception-type": name }
    : { ":message-type": "event", ":event-type": name }

/** One message of an event stream. A text is its payload as it is. */
export const message = ([name, payload]: Event): Uint8Array =>
  codec.encode({
    headers: Object.fromEntries(
      Object.entries({ ...headersOf(name), ":content-type": "application/json" }).map(([header, value]) => [
        header,
        { type: "string", value }
      ])
    ),
    body: new TextEncoder().encode(typeof payload === "string" ? payload : JSON.stringify(payload))
  })

/** The body of an answer. */
export const body = (...events: ReadonlyArray<Event>): Uint8Array<ArrayBuffer> => {
  const messages = events.map(message)
  const bytes = new Uint8Array(messages.reduce((size, { length }) => size + length, 0))
  let at = 0
  for (const one of messages) {
    bytes.set(one, at)
    at += one.length
  }
  return bytes
}

/** The messages in a body, as AWS's codec reads them, up to the first damage. */
export const read = (bytes: Uint8Array): ReadonlyArray<{ readonly name: string; readonly data: string }> => {
  const found: Array<{ readonly name: string; readonly data: string }> = []
  for (let at = 0; at + 16 <= bytes.length; ) {
    const length = new DataView(bytes.buffer, bytes.byteOffset + at).getUint32(0)
    if (length < 16 || at + length > bytes.length) break
    try {
      const { body, headers } = codec.decode(bytes.slice(at, at + length))
      const name = headers[":exception-type"] ?? headers[":event-type"]
      found.push({ name: String(name?.value), data: new TextDecoder().decode(body) })
    } catch {
      break
    }
    at += length
  }
  return found
}

/** The body that has these server-sent events as its messages. */
export const framed = (events: Uint8Array): Uint8Array<ArrayBuffer> =>
  body(
    ...new TextDecoder()
      .decode(events)
      .split("\n\n")
      .filter((event) => event.trim() !== "")
      .map((event): Event => {
        const field = (name: string) =>
          event
            .split("\n")
            .flatMap((line) => (line.startsWith(`${name}: `) ? [line.slice(name.length + 2)] : []))
            .join("\n")
        return [field("event"), field("data")]
      })
  )

// ───────────────────────── Events

export const start: Event = ["messageStart", { role: "assistant", p: "abcdefghijk" }]

export const delta = (index: number, delta: unknown): Event => [
  "contentBlockDelta",
  { contentBlockIndex: index, delta, p: "abcd" }
]

export const begin = (index: number, start: unknown): Event => [
  "contentBlockStart",
  { contentBlockIndex: index, start }
]

export const stop = (index: number): Event => ["contentBlockStop", { contentBlockIndex: index }]

export const text = (index: number, ...pieces: ReadonlyArray<string>): ReadonlyArray<Event> => [
  ...pieces.map((text) => delta(index, { text })),
  stop(index)
]

export const call = (
  index: number,
  id: string,
  name: string,
  ...pieces: ReadonlyArray<string>
): ReadonlyArray<Event> => [
  begin(index, { toolUse: { toolUseId: id, name } }),
  ...pieces.map((input) => delta(index, { toolUse: { input } })),
  stop(index)
]

export const end = (stopReason: string): Event => ["messageStop", { stopReason }]

export const usage = {
  inputTokens: 12,
  outputTokens: 34,
  totalTokens: 146,
  cacheReadInputTokens: 90,
  cacheWriteInputTokens: 10
}

export const metadata: Event = ["metadata", { metrics: { latencyMs: 320 }, usage, p: "abcdef" }]
