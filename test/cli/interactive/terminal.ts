/**
 * A program on a real pseudo-terminal, with an emulator of xterm behind it, and the hands of a person before it.
 */
import { type IPty, spawn } from "@lydell/node-pty"
import headless from "@xterm/headless"
import { Effect, type Scope } from "effect"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Graphemes from "./graphemes.ts"

export interface Options {
  readonly cwd: string
  /** All variables. */
  readonly env: Readonly<Record<string, string>>
  /** Default: 100. */
  readonly cols?: number
  /** Default: 30. */
  readonly rows?: number
  /** What the shell writes before it starts the program. */
  readonly before?: string
  /** Whether the terminal speaks the protocol of Kitty for keys. Default: no, as xterm. */
  readonly kitty?: boolean
}

export interface Ended {
  readonly code: number
  /** The settings of the terminal before the program and after it, without its size. */
  readonly stty: { readonly before: string; readonly after: string }
  /** Where the cursor was, from 0, and whether the next text would have had a colour or another look. */
  readonly column: number
  readonly isStyled: boolean
}

export type Key = keyof typeof keys

export interface Wait {
  /** Milliseconds. Default: 10 seconds. */
  readonly timeout?: number
}

export interface Terminal {
  readonly type: (text: string) => Effect.Effect<void>
  readonly key: (...names: ReadonlyArray<Key>) => Effect.Effect<void>
  /** A bracketed paste where the program wants one, as terminals do. */
  readonly paste: (text: string) => Effect.Effect<void>
  readonly resize: (cols: number, rows: number) => Effect.Effect<void>
  /** To the program, not to the shell around it. */
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
  /** Waits until the screen shows it. */
  readonly shows: (pattern: string | RegExp, wait?: Wait) => Effect.Effect<void>
  /** Waits until the screen shows it no longer. */
  readonly hides: (pattern: string | RegExp, wait?: Wait) => Effect.Effect<void>
  /** Waits until the screen or the lines above it have it. */
  readonly writes: (pattern: string | RegExp, wait?: Wait) => Effect.Effect<void>
  /** Waits until this holds, which it looks at after each output. */
  readonly until: (what: string, holds: () => boolean, wait?: Wait) => Effect.Effect<void>
  /** Waits until the input is this text, or is it up to the caret. */
  readonly holds: (text: string, wait?: Wait) => Effect.Effect<void>
  /** The rows of the screen, without unwritten cells at their ends. */
  readonly screen: () => ReadonlyArray<string>
  /** The lines of the screen, rows that the terminal has wrapped joined again, as one text. */
  readonly view: () => string
  /** The screen in a frame, for messages. */
  readonly shown: () => string
  /** All lines from the first one on, wrapped ones joined. */
  readonly scrollback: () => ReadonlyArray<string>
  /** The text of the input up to the caret. */
  readonly input: () => string
  readonly cursor: () => { readonly x: number; readonly y: number }
  /** All that was sent to the terminal. */
  readonly bytes: () => string
  /** Waits until the program has ended. */
  readonly ended: Effect.Effect<Ended>
  readonly isRunning: () => boolean
}

const keys = {
  Enter: "\r",
  "Alt-Enter": "\u001b\r",
  "Shift-Enter": "\u001b[13;2u",
  Esc: "\u001b",
  Tab: "\t",
  "Shift-Tab": "\u001b[Z",
  Backspace: "\u007f",
  Up: "\u001b[A",
  Down: "\u001b[B",
  Right: "\u001b[C",
  Left: "\u001b[D",
  "Ctrl-C": "\u0003",
  "Ctrl-D": "\u0004",
  "Ctrl-G": "\u0007",
  "Ctrl-J": "\n",
  "Ctrl-L": "\u000c",
  "Ctrl-O": "\u000f",
  "Ctrl-R": "\u0012",
  "Ctrl-U": "\u0015",
  "Ctrl-Z": "\u001a"
}

/** What the shell writes behind the program. */
const mark = "<ended>"

/** Starts the program, in the words of its folder: it leaves there what it found, and the id of the process. */
const line = `
trap : INT QUIT
if [ -e "$0/text" ]; then cat "$0/text"; fi
stty -a > "$0/before"
/bin/sh -c 'echo $$ > "$0/pid"; exec "$@"' "$0" "$@"
code=$?
stty -a > "$0/after"
printf '${mark}'
exit $code`

/** Starts a command on a terminal, until the scope closes. */
export const open = (
  command: ReadonlyArray<string>,
  options: Options
): Effect.Effect<Terminal, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Screen(command, options)),
      (screen) => Effect.promise(() => screen.close())
    ),
    terminalOf
  )

class Screen {
  readonly folder = mkdtempSync(join(tmpdir(), "effect-agent-pty-"))
  readonly emulator: InstanceType<typeof headless.Terminal>
  readonly pty: IPty
  private readonly watchers = new Set<() => void>()
  bytes = ""
  code: number | undefined

  constructor(command: ReadonlyArray<string>, options: Options) {
    const { before, cols = 100, cwd, env, kitty = false, rows = 30 } = options
    this.emulator = new headless.Terminal({ cols, rows, scrollback: 20_000, allowProposedApi: true })
    this.emulator.unicode.register(Graphemes.provider)
    this.emulator.unicode.activeVersion = Graphemes.provider.version
    if (before !== undefined) writeFileSync(join(this.folder, "text"), before)
    this.pty = spawn("/bin/sh", ["-c", line, this.folder, ...command], {
      cols,
      rows,
      cwd,
      env: { TERM: "xterm-256color", ...env }
    })
    if (kitty) {
      this.emulator.parser.registerCsiHandler({ prefix: "?", final: "u" }, () => {
        this.pty.write("\u001b[?0u")
        return true
      })
    }
    this.emulator.onData((answer) => this.pty.write(answer))
    this.pty.onData((data) => {
      this.bytes += data
      this.emulator.write(data, () => this.changed())
    })
    this.pty.onExit(({ exitCode }) => {
      this.code = exitCode
      this.changed()
    })
  }

  changed(): void {
    for (const watcher of this.watchers) watcher()
  }

  /** Fails with the screen. */
  async until(what: string, holds: () => boolean, timeout = 10_000): Promise<void> {
    if (holds()) return
    let watch = () => {}
    let timer: NodeJS.Timeout | undefined
    const held = new Promise<void>((resolve, reject) => {
      const fail = (why: string) => reject(new Error(`${why}: ${what}\n${framed(this.rows())}`))
      watch = () => {
        if (holds()) resolve()
        // The last output may come behind the end.
        else if (this.code !== undefined)
          setTimeout(() => (holds() ? resolve() : fail(`Ended with ${this.code}`)), 200)
      }
      timer = setTimeout(() => fail(`Not after ${timeout} ms`), timeout)
    })
    this.watchers.add(watch)
    watch()
    await held.finally(() => {
      clearTimeout(timer)
      this.watchers.delete(watch)
    })
  }

  /** The rows of the screen. */
  rows(): ReadonlyArray<string> {
    const { active } = this.emulator.buffer
    return Array.from(
      { length: this.emulator.rows },
      (_, row) => active.getLine(active.baseY + row)?.translateToString(true) ?? ""
    )
  }

  /** The lines from a row on, those that the terminal has wrapped joined. */
  lines(from: number): ReadonlyArray<string> {
    const { active } = this.emulator.buffer
    const lines: Array<string> = []
    for (let row = from; row < active.length; row++) {
      const line = active.getLine(row)
      const isCut = active.getLine(row + 1)?.isWrapped === true
      const text = line?.translateToString(!isCut) ?? ""
      if (line?.isWrapped === true && lines.length > 0) lines[lines.length - 1] += text
      else lines.push(text)
    }
    return lines
  }

  /** The row of the sign of the input: the last one above the caret that begins with it. */
  private sign(): number {
    const { cursorY } = this.emulator.buffer.active
    return this.rows()
      .slice(0, cursorY + 1)
      .findLastIndex((row) => /^>(?: |$)/.test(row))
  }

  /** The input up to the caret. */
  input(): string {
    const first = this.sign()
    if (first < 0) return ""
    const { active } = this.emulator.buffer
    const { baseY, cursorX, cursorY } = active
    const last = active.getLine(baseY + cursorY)?.translateToString(false, 0, cursorX) ?? ""
    return typed([...this.rows().slice(first, cursorY), last])
  }

  /** Whether the input is this text, or is it up to the caret. */
  holds(text: string): boolean {
    if (this.input() === text) return true
    const first = this.sign()
    const rows = first < 0 ? [] : this.rows().slice(first, first + text.split("\n").length)
    return text !== "" && typed(rows) === text
  }

  pid(): number | undefined {
    const file = join(this.folder, "pid")
    const id = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0
    return id > 0 ? id : undefined
  }

  signal(name: NodeJS.Signals): void {
    const pid = this.pid()
    try {
      if (pid !== undefined && this.code === undefined) process.kill(pid, name)
    } catch {
      // It has ended.
    }
  }

  /** Lets the program end its commands first. */
  async close(): Promise<void> {
    const isOver = () => this.until("the end", () => this.code !== undefined, 2_000).catch(() => {})
    if (this.code === undefined) {
      this.signal("SIGTERM")
      await isOver()
    }
    if (this.code === undefined) {
      this.signal("SIGKILL")
      await isOver()
    }
    if (this.code === undefined) this.pty.kill("SIGKILL")
    this.emulator.dispose()
    rmSync(this.folder, { recursive: true, force: true })
  }

  async ended(timeout: number): Promise<Ended> {
    await this.until("the end of the program", () => this.code !== undefined, timeout)
    await this.until("the words of the shell", () => this.lines(0).some((text) => text.includes(mark)))
    const { active } = this.emulator.buffer
    const row = active.baseY + active.cursorY
    const column = active.getLine(row)?.translateToString(true).indexOf(mark) ?? -1
    const cell = active.getLine(row)?.getCell(Math.max(column, 0))
    const settings = (name: string) =>
      readFileSync(join(this.folder, name), "utf8").replace(/rows \d+; columns \d+;/, "")
    return {
      code: this.code ?? -1,
      stty: { before: settings("before"), after: settings("after") },
      column,
      isStyled: cell?.isAttributeDefault() === false
    }
  }
}

const framed = (rows: ReadonlyArray<string>) => {
  const last = rows.findLastIndex((row) => row !== "")
  return rows
    .slice(0, last + 1)
    .map((row) => `│${row}`)
    .join("\n")
}

/** The rows of an input without its sign, and without the indent of those below, if they have one. */
const typed = (rows: ReadonlyArray<string>) =>
  rows.map((row, index) => row.replace(index === 0 ? /^> ?/ : /^ {2}/, "")).join("\n")

const matches = (pattern: string | RegExp, text: string): boolean =>
  typeof pattern === "string" ? text.includes(pattern) : pattern.test(text)

const terminalOf = (screen: Screen): Terminal => {
  const { emulator, pty } = screen
  const type = (text: string) => Effect.sync(() => pty.write(text))
  const view = () => screen.lines(emulator.buffer.active.baseY).join("\n")
  const all = () => screen.lines(0).join("\n")
  const until = (what: string, holds: () => boolean, { timeout = 10_000 }: Wait = {}) =>
    Effect.promise(() => screen.until(what, holds, timeout))
  return {
    type,
    until,
    view,
    key: (...names) => Effect.forEach(names, (name) => type(keys[name]), { discard: true }),
    paste: (text) =>
      Effect.suspend(() => type(emulator.modes.bracketedPasteMode ? `\u001b[200~${text}\u001b[201~` : text)),
    resize: (cols, rows) =>
      Effect.sync(() => {
        emulator.resize(cols, rows)
        pty.resize(cols, rows)
        screen.changed()
      }),
    signal: (name) => Effect.sync(() => screen.signal(name)),
    shows: (pattern, wait) => until(`shows ${pattern}`, () => matches(pattern, view()), wait),
    hides: (pattern, wait) => until(`hides ${pattern}`, () => !matches(pattern, view()), wait),
    writes: (pattern, wait) => until(`writes ${pattern}`, () => matches(pattern, all()), wait),
    holds: (text, wait) => until(`input ${JSON.stringify(text)}`, () => screen.holds(text), wait),
    screen: () => screen.rows(),
    shown: () => framed(screen.rows()),
    scrollback: () => screen.lines(0),
    input: () => screen.input(),
    cursor: () => ({ x: emulator.buffer.active.cursorX, y: emulator.buffer.active.cursorY }),
    bytes: () => screen.bytes,
    ended: Effect.promise(() => screen.ended(10_000)),
    isRunning: () => screen.code === undefined
  }
}
