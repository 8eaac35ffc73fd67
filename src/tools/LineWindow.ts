/**
 * Some lines out of a text that is read piece by piece. Holds no more than it will show, however long the text or one
 * of its lines is.
 */

export interface Bounds {
  /** First line wanted, from 1. */
  readonly offset: number
  /** Lines wanted. */
  readonly limit: number
  /** UTF-8 bytes of all lines together. */
  readonly maxBytes: number
  /** Characters of one line. */
  readonly maxLine: number
}

export interface LineWindow {
  readonly push: (text: string) => void
  /** Call once, after the last piece. */
  readonly end: () => void
  /** Whether what follows can only change `total` and `crlf`. */
  readonly isFull: () => boolean
  readonly lines: ReadonlyArray<string>
  /** Numbers of the lines shown that were cut, and their full lengths in characters. */
  readonly cut: ReadonlyArray<{ readonly line: number; readonly length: number }>
  /** Lines seen so far; a line end at the very end of the text begins none. */
  readonly total: () => number
  /** Lines seen so far that ended in CRLF. */
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
    // One more than is shown, so that the \r of a CRLF can be taken off.
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
    const line = kept.slice(0, Math.min(size, bounds.maxLine))
    const cost = encoder.encode(line).length + 1
    // The first line is always shown, or reading on from it would show nothing for ever.
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
