/**
 * Reads AWS's binary event stream: messages of headers and a payload, each with a length and two checksums.
 * https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html
 */
import { Protocol as ProtocolFault, type Reason, StreamTruncated } from "../../ProviderError.ts"
import type { Frame } from "./frame.ts"
import * as Json from "./json.ts"

/** Bytes of the lengths of message and headers, and of their checksum. */
const prelude = 12
/** Bytes of the checksum of a message. */
const checksum = 4
/** Maximum bytes of a message, as AWS sets it. */
const maxMessage = 24 * 1024 * 1024

export class AwsEventStreamReader {
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

const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
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
