/**
 * Draws the session on the main screen. Lines that are finished are written once, and stay above; the live region below them is drawn again
 * where it changed. Lines above are never written to again, also after a resize, so that the terminal alone scrolls and selects them.
 */
import { truncateToWidth, visibleWidth } from "@earendil-works/pi-tui"

/** The live region. */
export interface Live {
  /** Its lines, of which the terminal shows the last ones that fit. */
  readonly lines: ReadonlyArray<string>
  /** The place of the cursor. */
  readonly cursor: { readonly line: number; readonly column: number }
}

interface Size {
  readonly columns: number
  readonly rows: number
}

const begin = "\u001b[?2026h"
const end = "\u001b[?2026l"
const toEnd = "\u001b[K"
const below = "\u001b[0J"

export class Painter {
  private drawn: ReadonlyArray<string> = []
  private cursor = { line: 0, column: 0 }
  private readonly write: (text: string) => void

  constructor(write: (text: string) => void) {
    this.write = write
  }

  /** Writes finished lines above the live region, and draws what changed of it. */
  draw(finished: ReadonlyArray<string>, live: Live, { columns, rows }: Size): void {
    const hidden = Math.max(0, live.lines.length - Math.max(1, rows - 1))
    const lines = live.lines.slice(hidden).map((line) => fitting(line, columns))
    const cursor = { line: Math.max(0, live.cursor.line - hidden), column: live.cursor.column }
    const body =
      finished.length > 0 ? this.whole(finished.map(closed), lines, columns) : this.changes(lines, columns)
    const place = { from: this.cursor.line, to: cursor.line, column: Math.min(cursor.column, columns - 1) }
    const isStill = body === "" && place.from === place.to && place.column === this.cursor.column
    this.drawn = lines
    this.cursor = { line: cursor.line, column: place.column }
    if (isStill) return
    this.write(`${begin}${body}${moved(place.from, place.to)}\u001b[${place.column + 1}G${end}`)
  }

  /** Takes the live region away; the cursor stands where it began. */
  clear(): void {
    this.write(`${moved(this.cursor.line, 0)}\r${below}`)
    this.drawn = []
    this.cursor = { line: 0, column: 0 }
  }

  /** Takes away what a narrower terminal has made of the live region: a line that no longer fits takes several rows of it. */
  resized({ columns }: Size): void {
    const rowsOf = (line: string) => Math.max(1, Math.ceil(visibleWidth(line) / columns))
    const above = this.drawn.slice(0, this.cursor.line).reduce((sum, line) => sum + rowsOf(line), 0)
    this.cursor = { line: above + Math.floor(this.cursor.column / columns), column: 0 }
    this.clear()
  }

  /** Forgets the live region, for a screen that another program has used. */
  forget(): void {
    this.drawn = []
    this.cursor = { line: 0, column: 0 }
  }

  private whole(finished: ReadonlyArray<string>, lines: ReadonlyArray<string>, columns: number): string {
    const text = [...finished, ...lines].map((line) => ended(line, columns)).join("\r\n")
    // A tab writes nothing over what it passes, and is wider than it counts.
    const body = `${moved(this.cursor.line, 0)}\r${below}${text}`
    this.cursor = { line: lines.length - 1, column: -1 }
    return body
  }

  private changes(lines: ReadonlyArray<string>, columns: number): string {
    const { drawn } = this
    let at = this.cursor.line
    let body = ""
    const goTo = (line: number) => {
      const last = Math.max(0, drawn.length - 1)
      body += `${moved(at, Math.min(line, Math.max(last, at)))}\r`
      const from = Math.max(at, Math.min(line, Math.max(last, at)))
      if (line > from) body += "\n".repeat(line - from)
      at = line
    }
    for (const [index, line] of lines.entries()) {
      if (drawn[index] === line) continue
      goTo(index)
      body += ended(line, columns)
    }
    if (drawn.length > lines.length) {
      goTo(lines.length)
      body += below
    }
    this.cursor = { line: at, column: body === "" ? this.cursor.column : -1 }
    return body
  }
}

const moved = (from: number, to: number): string =>
  from === to ? "" : from > to ? `\u001b[${from - to}A` : `\u001b[${to - from}B`

/** Erases the rest of a row. A line that fills its row has none: there the terminal would erase its last character. */
const ended = (line: string, columns: number): string => {
  const width = visibleWidth(line)
  return width > 0 && width % columns === 0 ? line : `${line}${toEnd}`
}

const closed = (line: string): string => (line.includes("\u001b") ? `${line}\u001b[0m` : line)

const fitting = (line: string, columns: number): string =>
  closed(visibleWidth(line) > columns ? truncateToWidth(line, columns, "…") : line)
