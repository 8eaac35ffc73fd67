/**
 * Parses server-sent events from bytes, incrementally:
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 *
 * `effect/encoding/Sse` works on decoded text and takes 2-3 times as long for each event, most of it for
 * features that answers of models do not use. This parser also accepts deviations of real servers:
 *
 * - a last event without a blank line after it
 * - events separated by a single newline, recognized by JSON that ends before other JSON starts
 * - a body that is one JSON text instead of an event stream: it becomes one event, at the end
 * - lines that are not fields of an event (an error printed between events): kept in `stray`
 */
import { Protocol as ProtocolFault, type Reason } from "../../ProviderError.ts"
import type { Frame } from "./frame.ts"

/** Maximum code units of one line or event: 32 Mi, of which memory holds several. */
const maxEvent = 32 * 1024 * 1024
/** Maximum code units of lines that are not fields: enough for an error. */
const maxStray = 64 * 1024

export class SseReader {
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
