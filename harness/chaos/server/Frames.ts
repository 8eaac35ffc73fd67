/**
 * The frames of a run as one watcher reads them, and what is wrong with them. It looks for the few numbers that it needs, since a JSON
 * parser would cost more than the server.
 */
import { pieceOf } from "./Wire.ts"

/** The highest latency that has a bucket of its own, in milliseconds. */
const slowest = 5000

/** Latencies of many watchers. */
export class Latencies {
  private readonly counts = new Uint32Array(slowest + 1)
  private count = 0

  add(millis: number): void {
    const at = Math.min(slowest, Math.max(0, millis))
    this.counts[at] = (this.counts[at] ?? 0) + 1
    this.count++
  }

  percentile(share: number): number {
    let left = this.count * share
    return Math.max(
      0,
      this.counts.findIndex((count) => (left -= count) <= 0)
    )
  }
}

export class Frames {
  /** The events so far. */
  count = 0
  /** Problems of the frames. */
  readonly broken: Array<string> = []
  isOver = false
  /** The beginning of a frame, in the pieces in which it came. */
  private rest: Array<string> = []
  private position = 0
  private seq = 0
  private piece = -1
  private isWhole = false
  private readonly latencies: Latencies
  private readonly whole: string

  constructor(whole: string, latencies: Latencies) {
    this.whole = whole
    this.latencies = latencies
  }

  /** Takes text as it came, headers of HTTP and sizes of chunks excluded. */
  take(text: string): void {
    // A separator may be cut in two.
    const isCut = text.startsWith("\n") && this.rest.at(-1)?.endsWith("\n") === true
    if (!isCut && !text.includes("\n\n")) {
      this.rest.push(text)
      return
    }
    const all = this.rest.length === 0 ? text : this.rest.join("") + text
    let at = 0
    for (let end = all.indexOf("\n\n"); end !== -1; end = all.indexOf("\n\n", at)) {
      this.frame(all.slice(at, end))
      at = end + 2
    }
    this.rest = at === all.length ? [] : [all.slice(at)]
  }

  /** Ends the reading. */
  end(): void {
    if (!this.isWhole) this.broken.push(`ended at ${this.position} without the message`)
    if (!this.isOver) this.broken.push(`ended at ${this.position} without RunEnd`)
  }

  private frame(frame: string): void {
    if (frame.startsWith(":")) return
    this.count++
    const position = parseInt(frame.slice(4), 10)
    const seq = numberAfter(frame, '"seq":')
    const tag = frame.slice(frame.indexOf("event: ") + 7, frame.indexOf("\ndata: "))
    if (this.isOver) this.broken.push(`${tag} at ${position} behind RunEnd`)
    // Deltas may be missing, and only from the end of their message on.
    const isNext = position === this.position + 1 && seq === this.seq + 1
    if (!isNext && !(tag === "MessageEnd" && position > this.position && seq > this.seq))
      this.broken.push(`${tag} at ${position} (${seq}) follows ${this.position} (${this.seq})`)
    this.position = position
    this.seq = seq
    if (tag === "MessageDelta") this.delta(frame)
    else if (tag === "MessageEnd") this.message(frame)
    else if (tag === "RunEnd") this.isOver = true
  }

  private delta(frame: string): void {
    if (!frame.includes('"TextDelta"')) return
    const piece = numberAfter(frame, '"delta":"')
    if (piece !== this.piece + 1) this.broken.push(`piece ${piece} follows ${this.piece}`)
    this.piece = piece
    this.latencies.add(Date.now() - numberAfter(frame, '"timestamp":'))
  }

  private message(frame: string): void {
    if (!frame.includes('"role":"assistant"')) return
    if (!frame.includes(this.whole)) this.broken.push(`the message at ${this.position} is not whole`)
    this.isWhole = true
  }
}

const numberAfter = (frame: string, key: string): number => {
  const at = frame.indexOf(key) + key.length
  return parseInt(frame.slice(at, at + 16), 10)
}

/** The whole text of an answer. */
export const wholeOf = (pieces: number, fill: number): string => {
  const letters = "x".repeat(fill)
  return Array.from({ length: pieces }, (_, at) => pieceOf(at, letters)).join("")
}
