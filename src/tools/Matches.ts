/**
 * Lines found by a search, over several files: written as grep does, `path:12: text`, with the lines around them as
 * `path-11- text` and `--` between places.
 */
import type { Search } from "./LineSearch.ts"

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
  readonly search: (path: string, text: string) => void
  /** More was there than the limits let in. */
  readonly isFull: () => boolean
  /** Matching lines that are shown, and the files they are in. */
  readonly count: () => { readonly lines: number; readonly files: number }
  readonly lines: ReadonlyArray<string>
}

/** Nothing found yet. */
export const make = (matches: Search, limits: Limits): Matches => {
  const written: Array<string> = []
  let [count, files, size, full] = [0, 0, 0, false]

  const add = (line: string) => {
    written.push(line)
    size += line.length + 1
  }
  const write = (path: string, lines: ReadonlyArray<string>, hits: ReadonlyArray<Hit>) => {
    // The first line that is not written yet.
    let next = 0
    for (const [order, { end, index }] of hits.entries()) {
      if (size > limits.size) {
        full = true
        return
      }
      const from = Math.max(next, index - limits.context)
      const to = Math.min(index + limits.context, (hits[order + 1]?.index ?? lines.length) - 1)
      if (limits.context > 0 && written.length > 0 && (order === 0 || from > next)) add("--")
      for (let at = from; at <= to; at++) {
        add(
          `${path}${at === index ? ":" : "-"}${at + 1}${at === index ? ":" : "-"} ${excerpt(lines[at], at === index ? end : 0)}`
        )
      }
      next = to + 1
      count++
    }
  }

  return {
    search: (path, text) => {
      const lines = text.split(/\r?\n/)
      if (lines.at(-1) === "") lines.pop()
      const hits = hitsIn(lines, matches, limits.matches - count + 1)
      if (hits.length === 0) return
      if (count + hits.length > limits.matches) full = true
      const before = count
      write(path, lines, hits.slice(0, limits.matches - count))
      if (count > before) files++
    },
    isFull: () => full,
    count: () => ({ lines: count, files }),
    lines: written
  }
}

interface Hit {
  readonly index: number
  /** Where in the line the match ends. */
  readonly end: number
}

const hitsIn = (lines: ReadonlyArray<string>, matches: Search, limit: number): ReadonlyArray<Hit> => {
  const hits: Array<Hit> = []
  for (const [index, line] of lines.entries()) {
    const end = matches(line)
    if (end === -1) continue
    hits.push({ index, end })
    if (hits.length === limit) break
  }
  return hits
}

/** Characters shown of one line. */
const shown = 300

/** The line, or the part of a long one around where the match ends. */
const excerpt = (line = "", end: number): string => {
  if (line.length <= shown) return line
  const from = Math.max(0, Math.min(end - shown / 2, line.length - shown))
  const [before, after] = [from > 0 ? "[...] " : "", from + shown < line.length ? " [...]" : ""]
  return before + line.slice(from, from + shown) + after
}
