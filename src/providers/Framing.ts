/**
 * How the bytes of an answer divide into frames.
 *
 * @since 0.2.0
 */
import { Protocol as ProtocolFault, type Reason, StreamTruncated } from "../ProviderError.ts"
import * as Json from "./internal/json.ts"

/**
 * One event of an answer.
 *
 * @since 0.2.0
 * @category models
 */
export interface Frame {
  /** The name of the event, empty if it has none. A frame named `error` reports a failure, in any protocol. */
  readonly event: string
  /** The data of the event, usually JSON. */
  readonly data: string
}

/**
 * Reads the frames of one answer.
 *
 * @since 0.2.0
 * @category models
 */
export interface Reader {
  /** Appends the frames that these bytes complete. A connection may cut the bytes anywhere. */
  readonly push: (bytes: Uint8Array, out: Array<Frame>) => void
  /** Appends the frames that the end of the body completes. */
  readonly end: (out: Array<Frame>) => void
  /** The text outside of frames, such as an error that a server printed between them. */
  readonly stray: string
  /** Why the reader cannot continue: a frame is too large, or damaged. `undefined` while it can. It then ignores further bytes. */
  readonly problem: Reason | undefined
}

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

// ───────────────────────── Server-sent events

// Parses server-sent events from bytes, incrementally:
// https://html.spec.whatwg.org/multipage/server-sent-events.html
//
// `effect/encoding/Sse` works on decoded text and takes 2-3 times as long for each event, most of it for
// features that answers of models do not use. This parser also accepts deviations of real servers:
//
// - a last event without a blank line after it
// - events separated by a single newline, recognized by JSON that ends before other JSON starts
// - a body that is one JSON text instead of an event stream: it becomes one event, at the end
// - lines that are not fields of an event (an error printed between events): kept in `stray`

/** Maximum code units of one line or event: 32 Mi, of which memory holds several. */
const maxEvent = 32 * 1024 * 1024
/** Maximum code units of lines that are not fields: enough for an error. */
const maxStray = 64 * 1024

class SseReader {
  /** The lines that are not fields of an event. */
  stray = ""
  /** Why the reader cannot continue: an event is too large. */
  problem: Reason | undefined = undefined

  private readonly utf8 = new TextDecoder("utf-8", { ignoreBOM: true })
  private begun = false
  private whole = false
  private afterCr = false
  private held: Array<string> = []
  private heldLength = 0
  private event = ""
  private data: Array<string> = []
  private dataLength = 0

  /** Appends the events that these bytes complete to `out`. The bytes may be cut anywhere. */
  push(bytes: Uint8Array, out: Array<Frame>): void {
    const text = this.begin(this.utf8.decode(bytes, { stream: true }))
    if (text !== "") this.feed(text.includes("\r") || this.afterCr ? this.normalise(text) : text, out)
  }

  /** Appends the events that the end of the body completes. */
  end(out: Array<Frame>): void {
    const last = this.utf8.decode()
    if (last !== "") this.feed(last, out)
    const rest = this.held.join("")
    this.held = []
    if (this.whole) {
      out.push({ event: "", data: rest.trim() })
      return
    }
    if (rest !== "") this.line(rest, 0, rest.length, out)
    this.dispatch(out)
  }

  /** Removes the byte order mark and distinguishes an event stream from a JSON text by its first character. */
  private begin(text: string): string {
    if (this.begun) return text
    const first = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
    const start = first.trimStart().charAt(0)
    if (start === "") {
      this.hold(first)
      return ""
    }
    this.begun = true
    this.whole = start === "{" || start === "["
    const all = this.held.join("") + first
    this.held = []
    this.heldLength = 0
    return all
  }

  /** Replaces CR and CRLF by LF. A CR ends its line immediately. An LF right after it belongs to it. */
  private normalise(text: string): string {
    const own = this.afterCr && text.startsWith("\n") ? text.slice(1) : text
    this.afterCr = text.endsWith("\r")
    return own.replace(/\r\n?/g, "\n")
  }

  private feed(text: string, out: Array<Frame>): void {
    if (this.whole) return this.hold(text)
    let start = 0
    let end = text.indexOf("\n")
    if (end !== -1 && this.held.length > 0) {
      const line = this.held.join("") + text.slice(0, end)
      this.held = []
      this.heldLength = 0
      this.line(line, 0, line.length, out)
      start = end + 1
      end = text.indexOf("\n", start)
    }
    while (end !== -1) {
      if (this.isPlain(text, start, end)) {
        out.push({ event: "", data: text.slice(start + 6, end) })
        start = end + 2
      } else {
        this.line(text, start, end, out)
        start = end + 1
      }
      end = text.indexOf("\n", start)
    }
    if (start < text.length) this.hold(start === 0 ? text : text.slice(start))
  }

  /** Whether this is the usual event: one line of data and a blank line, without pending fields. */
  private isPlain(text: string, start: number, end: number): boolean {
    return (
      text.charCodeAt(end + 1) === 0x0a &&
      end > start + 6 &&
      text.charCodeAt(start) === 0x64 &&
      text.startsWith("data: ", start) &&
      this.data.length === 0 &&
      this.event === ""
    )
  }

  /** Keeps the start of a line until its end. Joins the pieces once, so that a long line takes linear time. */
  private hold(text: string): void {
    this.heldLength += text.length
    if (this.heldLength > maxEvent) this.problem = tooLarge()
    else if (text !== "") this.held.push(text)
  }

  private line(text: string, start: number, end: number, out: Array<Frame>): void {
    if (start === end) return this.dispatch(out)
    const first = text.charCodeAt(start)
    if (first === 0x64 && text.startsWith("data:", start)) {
      this.addData(text.slice(valueStart(text, start + 5), end), out)
    } else if (first === 0x65 && text.startsWith("event:", start)) {
      this.event = text.slice(valueStart(text, start + 6), end)
    } else if (first !== 0x3a) {
      this.otherField(text.slice(start, end), out)
    }
  }

  private addData(value: string, out: Array<Frame>): void {
    if (this.data.length > 0 && endsJson(this.data.at(-1)) && beginsJson(value)) this.dispatch(out)
    this.dataLength += value.length
    if (this.dataLength > maxEvent) this.problem = tooLarge()
    else this.data.push(value)
  }

  private otherField(line: string, out: Array<Frame>): void {
    if (line === "data") this.addData("", out)
    else if (line === "event") this.event = ""
    else if (!/^(?:id|retry)(?::|$)/.test(line) && this.stray.length < maxStray)
      this.stray += `${line.slice(0, maxStray)}\n`
  }

  private dispatch(out: Array<Frame>): void {
    if (this.dataLength > 0) out.push({ event: this.event, data: oneOf(this.data) })
    this.data.length = 0
    this.dataLength = 0
    this.event = ""
  }
}

const tooLarge = (): Reason => new ProtocolFault({ kind: "tooLarge", detail: "An event is too large" })

const oneOf = (lines: ReadonlyArray<string>): string =>
  lines.length === 1 ? (lines[0] ?? "") : lines.join("\n")

// In one JSON text, no line with such an end precedes a line with such a start.
const endsJson = (line: string | undefined): boolean => /[}\]]/.test(line?.trimEnd().at(-1) ?? "")
const beginsJson = (line: string): boolean => /[{[]/.test(line.trimStart().charAt(0))

/** The start of the value after the colon, without one leading space. */
const valueStart = (text: string, colon: number): number =>
  text.charCodeAt(colon) === 0x20 ? colon + 1 : colon

// ───────────────────────── Lines of JSON

// Divides a body into lines, one JSON text each.

/** Maximum code units of one line: 32 Mi. */
const maxLine = 32 * 1024 * 1024

class LineReader {
  readonly stray = ""
  problem: Reason | undefined = undefined

  private readonly decoder = new TextDecoder()
  private held: Array<string> = []
  private length = 0

  push(bytes: Uint8Array, out: Array<Frame>): void {
    if (this.problem === undefined) this.feed(this.decoder.decode(bytes, { stream: true }), out)
  }

  end(out: Array<Frame>): void {
    if (this.problem === undefined) this.feed(`${this.decoder.decode()}\n`, out)
  }

  private feed(text: string, out: Array<Frame>): void {
    const [first = "", ...others] = text.split("\n")
    this.hold(first)
    for (const next of others) {
      const line = this.held.join("").trim()
      if (line !== "") out.push({ event: "", data: line })
      this.held = []
      this.length = 0
      this.hold(next)
    }
  }

  /** Keeps the start of a line until its end. Joins the pieces once, so that a long line takes linear time. */
  private hold(text: string): void {
    this.length += text.length
    if (this.length > maxLine)
      this.problem = new ProtocolFault({ kind: "tooLarge", detail: "An event is too large" })
    else if (text !== "") this.held.push(text)
  }
}

// ───────────────────────── AWS's event stream

// Reads AWS's binary event stream: messages of headers and a payload, each with a length and two checksums.
// https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html

/** Bytes of the lengths of message and headers, and of their checksum. */
const prelude = 12
/** Bytes of the checksum of a message. */
const checksum = 4
/** Maximum bytes of a message, as AWS sets it. */
const maxMessage = 24 * 1024 * 1024

class AwsEventStreamReader {
  readonly stray = ""
  problem: Reason | undefined = undefined

  private held: Array<Uint8Array> = []
  private length = 0
  /** Bytes that the next message has, `undefined` until its prelude is there. */
  private wanted: number | undefined = undefined

  push(bytes: Uint8Array, out: Array<Frame>): void {
    if (this.problem !== undefined || bytes.length === 0) return
    this.held.push(bytes)
    this.length += bytes.length
    if (this.length >= (this.wanted ?? prelude)) this.read(joined(this.held), out)
  }

  end(): void {
    if (this.length > 0)
      this.problem ??= new StreamTruncated({ detail: "The answer ended in the middle of an event" })
  }

  private read(bytes: Uint8Array, out: Array<Frame>): void {
    let start = 0
    this.wanted = undefined
    while (this.problem === undefined && bytes.length - start >= prelude) {
      const length = this.lengthOf(bytes.subarray(start, start + prelude))
      if (bytes.length - start < length) {
        this.wanted = length
        break
      }
      const message = bytes.subarray(start, start + length)
      if (this.problem === undefined) this.readMessage(message, out)
      start += length
    }
    const rest = bytes.slice(start)
    this.held = [rest]
    this.length = rest.length
  }

  /** The length of a message by its prelude. */
  private lengthOf(bytes: Uint8Array): number {
    const view = viewOf(bytes)
    const length = view.getUint32(0)
    const headers = view.getUint32(4)
    if (view.getUint32(8) !== crc32(bytes.subarray(0, 8)))
      this.problem = damaged("The checksum of an event is wrong")
    else if (length > maxMessage)
      this.problem = new ProtocolFault({ kind: "tooLarge", detail: "An event is too large" })
    else if (headers + prelude + checksum > length)
      this.problem = damaged("The headers of an event are too long")
    return length
  }

  private readMessage(message: Uint8Array, out: Array<Frame>): void {
    const end = message.length - checksum
    const view = viewOf(message)
    if (view.getUint32(end) !== crc32(message.subarray(0, end))) {
      this.problem = damaged("The checksum of an event is wrong")
      return
    }
    const body = prelude + view.getUint32(4)
    const headers = headersOf(message.subarray(prelude, body))
    if (headers === undefined) this.problem = damaged("The headers of an event cannot be read")
    else out.push(frameOf(headers, utf8.decode(message.subarray(body, end))))
  }
}

const utf8 = new TextDecoder()

const damaged = (detail: string): Reason => new ProtocolFault({ kind: "badShape", detail })

const frameOf = (headers: ReadonlyMap<string, string>, payload: string): Frame => {
  const kind = headers.get(":message-type")
  const type = headers.get(":exception-type") ?? headers.get(":error-code")
  if (type === undefined && kind !== "exception" && kind !== "error")
    return { event: headers.get(":event-type") ?? "", data: payload }
  const { message = payload, ...rest } = Json.object(Json.parseShallow(payload)) ?? {}
  const text = headers.get(":error-message") ?? (typeof message === "string" ? message : payload)
  return { event: "error", data: JSON.stringify({ type: type ?? kind, message: text, ...rest }) }
}

/** Bytes of the value of a header by its type, except of the two types that name their length. */
const sizes: ReadonlyArray<number | undefined> = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16]
const stringType = 7

/** The texts among the headers, `undefined` if the headers are damaged. */
const headersOf = (bytes: Uint8Array): ReadonlyMap<string, string> | undefined => {
  const view = viewOf(bytes)
  const headers = new Map<string, string>()
  let at = 0
  while (at < bytes.length) {
    const nameEnd = at + 1 + view.getUint8(at)
    if (nameEnd + 1 > bytes.length) return undefined
    const name = utf8.decode(bytes.subarray(at + 1, nameEnd))
    const type = view.getUint8(nameEnd)
    at = nameEnd + 1
    if (type >= sizes.length) return undefined
    const isLong = sizes[type] === undefined
    if (isLong && at + 2 > bytes.length) return undefined
    const size = sizes[type] ?? view.getUint16(at)
    if (isLong) at += 2
    if (at + size > bytes.length) return undefined
    if (type === stringType) headers.set(name, utf8.decode(bytes.subarray(at, at + size)))
    at += size
  }
  return headers
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)

/** @internal The bytes of pieces in one array. */
export const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const [first] = pieces
  if (pieces.length === 1 && first !== undefined) return first
  const all = new Uint8Array(pieces.reduce((size, { length }) => size + length, 0))
  let end = 0
  for (const piece of pieces) {
    all.set(piece, end)
    end += piece.length
  }
  return all
}

/** The polynomial of CRC-32 (ISO 3309), reversed. */
const polynomial = 0xedb88320

const table = Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1
  return value
})

const crc32 = (bytes: Uint8Array): number => {
  let crc = 0xffffffff
  for (const byte of bytes) crc = (crc >>> 8) ^ (table[(crc ^ byte) & 0xff] ?? 0)
  return (crc ^ 0xffffffff) >>> 0
}
