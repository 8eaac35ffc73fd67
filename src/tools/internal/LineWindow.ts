/**
 * Selects a range of lines from a text that arrives in pieces. Holds only the lines that it returns, for texts
 * and lines of any length.
 */

export interface Bounds {
  /** Number of the first line to return, from 1. */
  readonly offset: number
  /** Maximum lines to return. */
  readonly limit: number
  /** Maximum UTF-8 bytes of all lines together. */
  readonly maxBytes: number
  /** Maximum characters of one line. Longer lines are cut. */
  readonly maxLine: number
}

export interface LineWindow {
  readonly push: (text: string) => void
  /** Must be called once, after the last piece. */
  readonly end: () => void
  /** Whether further text can only change `total` and `crlf`. */
  readonly isFull: () => boolean
  readonly lines: ReadonlyArray<string>
  /** Numbers of the returned lines that were cut, and their full lengths in characters. */
  readonly cut: ReadonlyArray<{ readonly line: number; readonly length: number }>
  /** Number of lines so far. A line end at the end of the text does not start a line. */
  readonly total: () => number
  /** Number of lines so far that end in CRLF. */
  readonly crlf: () => number
}

export const make = (bounds: Bounds): LineWindow => {
  const lines: Array<string> = []
  const cut: Array<{ readonly line: number; readonly length: number }> = []
  let total = 0
  let crlf = 0
  let bytes = 0
  let full = false
  let kept = ""
  let length = 0
  let last = ""

  const isWanted = () => !full && total + 1 >= bounds.offset
  const extend = (text: string) => {
    if (text === "") return
    // Keeps one character more than it returns, so that the \r of a CRLF can be removed.
    if (isWanted() && kept.length <= bounds.maxLine) kept += text.slice(0, bounds.maxLine + 1 - kept.length)
    length += text.length
    last = text.slice(-1)
  }
  const finish = (ended: boolean) => {
    const isCrlf = ended && last === "\r"
    if (isCrlf) crlf++
    if (isWanted()) take(isCrlf ? length - 1 : length)
    total++
    kept = ""
    length = 0
    last = ""
  }
  const take = (size: number) => {
    const line = whole(kept.slice(0, Math.min(size, bounds.maxLine)))
    const cost = encoder.encode(line).length + 1
    // The first line is always returned, else a model that continues at this offset would make no progress.
    if (lines.length >= bounds.limit || (lines.length > 0 && bytes + cost > bounds.maxBytes)) {
      full = true
      return
    }
    bytes += cost
    lines.push(line)
    if (size > line.length) cut.push({ line: total + 1, length: size })
    if (lines.length === bounds.limit) full = true
  }

  return {
    push: (text) => {
      let from = 0
      for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
        extend(text.slice(from, at))
        finish(true)
        from = at + 1
      }
      extend(text.slice(from))
    },
    end: () => {
      if (length > 0) finish(false)
    },
    isFull: () => full,
    lines,
    cut,
    total: () => total,
    crlf: () => crlf
  }
}

const encoder = new TextEncoder()

/** Without the first half of a character whose second one is cut off. */
const whole = (text: string): string => (/[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text)
