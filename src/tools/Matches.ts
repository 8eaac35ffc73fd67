/**
 * Lines found by a search, over several files: written as grep does, `path:12: text`, with the lines around them as
 * `path-11- text` and `--` between places.
 */
import type { Search } from "./LineSearch.ts"
import * as Paced from "./Paced.ts"

export interface Limits {
  /** Lines shown before and after each match. */
  readonly context: number
  /** Matching lines at most. */
  readonly matches: number
  /** Characters at most; the match that goes beyond is still written. */
  readonly size: number
}

export interface Matches {
  /** Searches one more text. */
  readonly search: (path: string, text: string) => Paced.Work<void>
  /** More was there than the limits let in. */
  readonly isFull: () => boolean
  /** Matching lines that are shown, and the files they are in. */
  readonly count: () => { readonly lines: number; readonly files: number }
  readonly lines: ReadonlyArray<string>
}

/** Lines that are searched between two pauses, when the search itself needs none. */
const stride = 500

/** Nothing found yet. */
export const make = (matches: Search, limits: Limits): Matches => {
  const written: Array<string> = []
  let [count, files, size, full] = [0, 0, 0, false]

  const write = (text: string) => {
    written.push(text)
    size += text.length + 1
  }
  const isAtLimit = () => count === limits.matches || size > limits.size

  function* search(path: string, text: string): Paced.Work<void> {
    const before: Array<string> = []
    // `last` is the line that was written last.
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

/** Characters shown of one line. */
const shown = 300

/** The line, or the part of a long one around where the match ends. */
const excerpt = (line: string, end: number): string => {
  if (line.length <= shown) return line
  const from = Math.max(0, Math.min(end - shown / 2, line.length - shown))
  const [before, after] = [from > 0 ? "[...] " : "", from + shown < line.length ? " [...]" : ""]
  return before + line.slice(from, from + shown) + after
}
