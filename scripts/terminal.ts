// A program on a pseudo-terminal, the hands of a person before it, and its screen as an SVG with text.
import { type IPty, spawn } from "@lydell/node-pty"
import headless from "@xterm/headless"
import { setTimeout as sleep } from "node:timers/promises"

export interface Options {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly rows: number
}

const columns = 88

type Cell = NonNullable<ReturnType<NonNullable<ReturnType<headless.IBuffer["getLine"]>>["getCell"]>>

export class Terminal {
  private readonly emulator: headless.Terminal
  private readonly pty: IPty
  private readonly exit: Promise<number>

  constructor([file = "", ...args]: ReadonlyArray<string>, { cwd, env, rows }: Options) {
    this.emulator = new headless.Terminal({ cols: columns, rows, scrollback: 5_000, allowProposedApi: true })
    this.pty = spawn(file, args, { cols: columns, rows, cwd, env: { TERM: "xterm-256color", ...env } })
    this.emulator.onData((answer) => this.pty.write(answer))
    this.pty.onData((data) => this.emulator.write(data))
    this.exit = new Promise((resolve) => this.pty.onExit(({ exitCode }) => resolve(exitCode)))
  }

  /** Waits until the screen shows a text, with any line ends in it. */
  shows(text: string): Promise<void> {
    return this.until(`show ${text}`, () => this.text().replace(/\s+/g, " ").includes(text))
  }

  /** Waits until no run works. */
  rests(): Promise<void> {
    return this.until("rest", () => !this.text().includes("\nWorking "))
  }

  private async until(what: string, isSo: () => boolean): Promise<void> {
    for (let tries = 0; !isSo(); tries++) {
      if (tries === 300) throw new Error(`The screen does not ${what}:\n${this.text()}`)
      await sleep(50)
    }
  }

  /** Types keys, and gives the program time to read them. */
  async keys(...keys: ReadonlyArray<string>): Promise<void> {
    for (const key of keys) {
      this.pty.write(key)
      await sleep(150)
    }
  }

  /** Answers a panel, which takes no key at first. */
  async answers(...keys: ReadonlyArray<string>): Promise<void> {
    await sleep(700)
    await this.keys(...keys)
  }

  ended(): Promise<number> {
    return this.exit
  }

  close(): void {
    this.pty.kill("SIGKILL")
    this.emulator.dispose()
  }

  text(): string {
    return this.lines()
      .map((cells) =>
        cells
          .map(({ text }) => text)
          .join("")
          .trimEnd()
      )
      .join("\n")
      .trimEnd()
  }

  /** The screen as an SVG, from the last row that shows a text, `""` for all. */
  svg(title: string, from: string): string {
    const rows = this.lines()
    const texts = rows.map((cells) =>
      cells
        .map(({ text }) => text)
        .join("")
        .trimEnd()
    )
    const first = Math.max(from === "" ? 0 : texts.findLastIndex((text) => text.includes(from)), 0)
    const last = texts.findLastIndex((text) => text !== "")
    return svgOf(title, rows.slice(first, last + 1))
  }

  private lines(): ReadonlyArray<ReadonlyArray<Glyph>> {
    const { active } = this.emulator.buffer
    return Array.from({ length: this.emulator.rows }, (_, row) => {
      const line = active.getLine(active.baseY + row)
      return Array.from({ length: columns }, (_, column) => glyphOf(line?.getCell(column))).map(
        (glyph, column) =>
          row === active.cursorY && column === active.cursorX ? { ...glyph, look: "cursor" } : glyph
      )
    })
  }
}

interface Glyph {
  readonly text: string
  /** The classes of the SVG. */
  readonly look: string
}

const colours = ["k", "r", "g", "y", "b", "m", "c", "w"]

const glyphOf = (cell: Cell | undefined): Glyph => {
  if (cell === undefined) return { text: " ", look: "" }
  const colour = cell.isFgPalette() ? colours[cell.getFgColor() % 8] : undefined
  const looks = [
    colour,
    cell.isBold() === 0 ? undefined : "bold",
    cell.isDim() === 0 ? undefined : "dim",
    cell.isInverse() === 0 ? undefined : "inverse"
  ]
  return { text: cell.getChars() || " ", look: looks.filter((look) => look !== undefined).join(" ") }
}

const width = 7.8
const height = 18
const margin = 12

const style = `text{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d4d8dd}
.k{fill:#8a919a}.r{fill:#ff7b72}.g{fill:#6fd08c}.y{fill:#e3b341}.b{fill:#79b8ff}.m{fill:#d2a8ff}.c{fill:#56d4dd}.bold{font-weight:bold}.dim{fill-opacity:.62}`

const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** The parts of a row that have one look. Behind a sign that is no ASCII a new one begins, since its font may have another width. */
const partsOf = (cells: ReadonlyArray<Glyph>): ReadonlyArray<Glyph & { readonly at: number }> => {
  const parts: Array<Glyph & { readonly at: number }> = []
  cells.forEach(({ look, text }, at) => {
    const before = parts.at(-1)
    if (before !== undefined && before.look === look && /^[ -~]*$/.test(before.text + text))
      parts[parts.length - 1] = { ...before, text: before.text + text }
    else parts.push({ text, look, at })
  })
  return parts.flatMap((part) => {
    if (/cursor|inverse/.test(part.look)) return [part]
    const text = part.text.trim()
    return text === ""
      ? []
      : [{ ...part, text, at: part.at + part.text.length - part.text.trimStart().length }]
  })
}

const svgOf = (title: string, rows: ReadonlyArray<ReadonlyArray<Glyph>>): string => {
  const size = { width: Math.ceil(columns * width + 2 * margin), height: rows.length * height + 2 * margin }
  const texts = rows.map((cells, row) => {
    const y = margin + row * height + 13
    return partsOf(cells)
      .map(({ at, look, text }) => {
        const x = (margin + at * width).toFixed(1)
        const long = (text.length * width).toFixed(1)
        const box = `<rect x="${x}" y="${y - 13}" width="${long}" height="${height}"`
        if (look === "cursor") return `${box} fill="#d4d8dd"/>`
        const back = /inverse/.test(look) ? `${box} fill="#33404f"/>` : ""
        const attributes = `${look === "" ? "" : ` class="${look}"`}${text.length > 1 ? ` textLength="${long}"` : ""}`
        return `${back}<text x="${x}" y="${y}"${attributes}>${escaped(text)}</text>`
      })
      .join("")
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}" xml:space="preserve" role="img">`,
    `<title>${escaped(title)}</title><style>${style}</style>`,
    `<rect width="100%" height="100%" rx="8" fill="#161b22"/>`,
    ...texts.filter((text) => text !== ""),
    "</svg>\n"
  ].join("\n")
}
