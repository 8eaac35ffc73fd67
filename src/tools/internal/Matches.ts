/**
 * Collects the matching lines of several files in the format of grep: `path:12: text` for a match, `path-11-
 * text` for the lines around it, and `--` between groups.
 */
import type { LineMatcher } from "./LineMatcher.ts"
import * as Paced from "../Paced.ts"

export interface Limits {
  /** Lines to include before and after each match. */
  readonly context: number
  /** Maximum matching lines. */
  readonly matches: number
  /** Maximum characters. The match that exceeds it is still included. */
  readonly size: number
}

export interface Matches {
  /** Searches the text of another file. */
  readonly search: (path: string, text: string) => Paced.Work<void>
  /** Whether the files have more matches than the limits allow. */
  readonly isFull: () => boolean
  /** Number of matching lines that are included, and of files that contain them. */
  readonly count: () => { readonly lines: number; readonly files: number }
  readonly lines: ReadonlyArray<string>
}

/** Lines between two yields, for searches that do not yield themselves. */
const stride = 500

/** Makes an empty collection. */
export const make = (matches: LineMatcher["search"], limits: Limits): Matches => {
  const written: Array<string> = []
  let [count, files, size, full] = [0, 0, 0, false]

  const write = (text: string) => {
    written.push(text)
    size += text.length + 1
  }
  const isAtLimit = () => count === limits.matches || size > limits.size

  function* search(path: string, text: string): Paced.Work<void> {
    const before: Array<string> = []
    // `last` is the number of the line that was written last.
    let [number, hits, after, last] = [0, 0, 0, 0]
    for (const line of Paced.lines(text)) {
      if (++number % stride === 0) yield
      const end = yield* matches(line)
      if (end !== -1 && isAtLimit()) full = true
      if (full && after === 0) return
      if (end !== -1 && !full) {
        const from = number - before.length
        if (limits.context > 0 && written.length > 0 && (hits === 0 || from > last + 1)) write("--")
        for (const [index, earlier] of before.entries())
          write(`${path}-${from + index}- ${excerpt(earlier, 0)}`)
        write(`${path}:${number}: ${excerpt(line, end)}`)
        if (hits++ === 0) files++
        count++
        before.length = 0
        after = limits.context
        last = number
      } else if (after > 0) {
        last = number
        write(`${path}-${number}- ${excerpt(line, 0)}`)
        after--
      } else if (limits.context > 0) {
        before.push(line)
        if (before.length > limits.context) before.shift()
      }
    }
  }

  return {
    search,
    isFull: () => full,
    count: () => ({ lines: count, files }),
    lines: written
  }
}

/** Maximum characters of one line. */
const shown = 300

/** The line, or the part of a long line around the end of the match. */
const excerpt = (line: string, end: number): string => {
  // Vendors refuse requests with a NUL.
  const part = (from: number, to: number) =>
    line
      .slice(from, to)
      .replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, "")
      .replaceAll("\0", "\u2400")
  if (line.length <= shown) return part(0, shown)
  const from = Math.max(0, Math.min(end - shown / 2, line.length - shown))
  const [before, after] = [from > 0 ? "[...] " : "", from + shown < line.length ? " [...]" : ""]
  return before + part(from, from + shown) + after
}
