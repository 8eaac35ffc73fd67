/** The screen of a session: takes keys, and draws the live region below what is finished. */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as ExternalEditor from "./ExternalEditor.ts"
import * as Completion from "./Completion.ts"
import * as CommandTable from "./CommandTable.ts"
import * as Commands from "./Commands.ts"
import * as Footer from "./Footer.ts"
import { Input } from "./Input.ts"
import * as Markdown from "./Markdown.ts"
import { Painter } from "./Painter.ts"
import * as Panels from "./Panel.ts"
import type { Face, Leaving } from "./Face.ts"
import type { Session } from "./Session.ts"
import * as Terminal from "./Terminal.ts"
import { shortened } from "./Transcript.ts"
import type { AgentEvent } from "../../AgentEvent.ts"
import * as Inert from "../terminal/Inert.ts"

/** The least time between two frames. */
const frame = 33
/** The time without a key after which a panel that came by itself takes keys, in milliseconds. */
const quiet = 500

type Item = Terminal.Input | { readonly _tag: "Changed" }

export class FullScreen implements Face {
  readonly left = Deferred.makeUnsafe<Leaving>()
  private readonly terminal: Terminal.Terminal
  private readonly items: Queue.Queue<Item>
  private readonly painter: Painter
  private readonly input: Input
  private readonly attach: { session: Session | undefined } = { session: undefined }
  private finished: Array<string> = []
  private isDirty = false
  /** A line below the input until the next key. */
  private hint: ReadonlyArray<string> = []
  /** The text that the person edits in the input in place of a prompt. */
  private editing:
    | { readonly title: string; readonly before: string; readonly done: (text: string | undefined) => void }
    | undefined
  private lastKey = 0
  /** Whether the panel takes keys: there was a pause since it came. */
  private isArmed = false
  private panelSince = 0
  private shownPanel: Panels.Panel | undefined
  private lastEsc = 0
  private lastCtrlC = 0
  private lastCtrlD = 0
  isTasksHidden = false

  constructor(terminal: Terminal.Terminal, items: Queue.Queue<Item>, history: ReadonlyArray<string>) {
    this.terminal = terminal
    this.items = items
    this.painter = new Painter(terminal.write)
    this.input = new Input(history)
  }

  show(session: Session): void {
    this.attach.session = session
    this.changed()
  }

  private get session(): Session | undefined {
    return this.attach.session
  }

  // ───────────────────────── The face of the session

  readonly print = (lines: ReadonlyArray<string>): void => {
    this.finished.push(...lines)
    this.changed()
  }

  readonly events = (_events: ReadonlyArray<AgentEvent>, finished: ReadonlyArray<string>): void =>
    this.print(finished)

  readonly width = (): number => this.terminal.size().columns

  readonly changed = (): void => {
    if (this.isDirty) return
    this.isDirty = true
    Queue.offerUnsafe(this.items, { _tag: "Changed" })
  }

  readonly giveBack = (text: string): void => {
    const there = this.editing === undefined ? this.input.text : this.editing.before
    const whole = there === "" ? text : `${text}\n${there}`
    if (this.editing === undefined) this.input.set(whole)
    else this.editing = { ...this.editing, before: whole }
    this.changed()
  }

  readonly fill = (text: string): void => {
    this.input.set(text)
    this.changed()
  }

  readonly edit = (text: string, title: string, done: (text: string | undefined) => void): void => {
    this.editing = { title, before: this.input.text, done }
    this.input.set(text)
    this.changed()
  }

  readonly editor = (text: string, name: string) =>
    this.away(this.terminal.suspended(ExternalEditor.open(text, name)))

  /** Whether another program has the screen. */
  private isAway = false

  /** Leaves the screen to an effect: nothing is drawn meanwhile. */
  private away<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    this.painter.clear()
    this.isAway = true
    return Effect.ensuring(
      effect,
      Effect.sync(() => {
        this.isAway = false
        this.painter.forget()
        this.changed()
      })
    )
  }

  readonly notify = (what: "approval" | "question" | "done"): void => {
    const how = this.session?.settings.notify ?? "bell"
    if (how === "bell") this.terminal.write("\u0007")
    const words = what === "done" ? "done" : `${what}${what === "approval" ? " needed" : ""}`
    if (how === "osc9") this.terminal.write(`\u001b]9;effect-agent: ${words}\u0007`)
  }

  // ───────────────────────── The loop

  /** Takes what comes and draws, until the person leaves. */
  run() {
    const step = Effect.gen({ self: this }, function* () {
      for (const item of yield* Queue.takeAll(this.items)) {
        if (item._tag === "Key") this.key(item)
        else if (item._tag === "Paste") this.paste(item.text)
        else if (item._tag === "Resized") this.painter.resized(this.terminal.size())
      }
      this.isDirty = false
      const began = yield* Clock.currentTimeMillis
      this.draw(began)
      yield* Effect.sleep(Math.max(0, frame - ((yield* Clock.currentTimeMillis) - began)))
    })
    const ticks = Effect.gen({ self: this }, function* () {
      yield* Effect.sleep("1 second")
      if (this.session?.isWorking === true && this.session.settings.motion) this.changed()
    })
    return Effect.andThen(
      Effect.forkScoped(Effect.forever(ticks)),
      Effect.raceFirst(Effect.forever(step), Deferred.await(this.left))
    )
  }

  /** Draws for the last time: the finished lines, without the live region. */
  close(): void {
    this.painter.draw(this.finished, { lines: [""], cursor: { line: 0, column: 0 } }, this.terminal.size())
    this.painter.clear()
    this.finished = []
  }

  private title = ""

  /** Gives the terminal the name of the session as its title. */
  private entitle({ name, settings }: Session): void {
    const title = name === undefined ? "" : `effect-agent: ${Inert.line(name, 100)}`
    if (!settings.title || title === this.title) return
    this.title = title
    this.terminal.write(`\u001b]0;${title}\u0007`)
  }

  private draw(now: number): void {
    const { session } = this
    if (this.isAway) return
    const size = this.terminal.size()
    const { finished } = this
    this.finished = []
    const { cursor, lines } = this.input.render(size.columns - 2)
    if (session !== undefined) this.entitle(session)
    const editing = lines.map((line, index) => `${index === 0 ? "> " : "  "}${line}`)
    if (session === undefined) {
      this.painter.draw(finished, { lines: editing, cursor: { ...cursor, column: cursor.column + 2 } }, size)
      return
    }
    const panel = this.editing === undefined ? session.panel : undefined
    if (panel !== this.shownPanel) {
      this.shownPanel = panel
      this.panelSince = now
      this.isArmed = false
    }
    const hint = this.hint.length > 0 || panel !== undefined ? this.hint : suggestions(this.input.text)
    const below = hint.map((line) => shortened(line, size.columns))
    const footer = Footer.line(session, size.columns)
    const isSmall = size.columns < 40 || size.rows < 10
    const tasks = isSmall || this.isTasksHidden ? [] : Footer.tasks(session, size.columns)
    const above = [
      ...tasks,
      ...(this.editing === undefined ? [] : [this.editing.title]),
      ...(panel === undefined ? [] : panel.lines(session.theme, size.columns, size.rows)),
      ...Footer.waiting(session, size.columns),
      ...(panel === undefined && this.editing === undefined ? Footer.status(session, now, size.columns) : [])
    ]
    const rest = [...editing, ...below, ...(isSmall ? [] : [footer])]
    const room = Math.max(0, size.rows - 1 - above.length - rest.length)
    const running = session.transcript.live(size.columns, now)
    const tail = room === 0 ? [] : running.slice(-Math.min(room, 12))
    const all = [...tail, ...above, ...rest]
    const line = tail.length + above.length + cursor.line
    this.painter.draw(finished, { lines: all, cursor: { line, column: cursor.column + 2 } }, size)
  }

  // ───────────────────────── Keys

  private paste(text: string): void {
    this.hint = []
    const { panel } = this.session ?? {}
    if (
      panel !== undefined &&
      this.editing === undefined &&
      panel.text === undefined &&
      panel.requestId === undefined
    )
      panel.key({ id: "", data: text })
    else this.input.paste(text)
  }

  private key(key: Panels.Key): void {
    const { session } = this
    const now = Date.now()
    if (now - Math.max(this.lastKey, this.panelSince) >= quiet) this.isArmed = true
    this.lastKey = now
    this.hint = []
    if (session === undefined) return this.input.key(key.data)
    const panel = this.editing === undefined ? session.panel : undefined
    if (panel !== undefined && !isGlobal(key.id)) {
      // Text that was typed before the panel came is no answer to it.
      const isEarly = panel.requestId !== undefined && !this.isArmed
      if (!isEarly && panel.key(key)) return
      if (!isEarly && panel.text !== undefined && key.id === "enter") {
        const text = this.input.text
        if (text.trim() === "" || panel.text(text)) this.input.set("")
        return
      }
      if (isEarly && key.id === "enter") return
    }
    this.pressed(session, key, now)
  }

  private pressed(session: Session, { data, id }: Panels.Key, now: number): void {
    const isEsc = id === "escape"
    switch (id) {
      case "enter":
      case "return":
        if (data === "\n") return this.input.newLine()
        if (this.input.before.endsWith("\\")) return this.input.newLine(true)
        return this.enter(session, false)
      case "alt+enter":
        return this.enter(session, true)
      case "shift+enter":
      case "ctrl+j":
      case "ctrl+enter":
        return this.input.newLine()
      case "escape":
        return this.escape(session, now)
      case "ctrl+c":
        return this.interrupt(session, now)
      case "ctrl+d":
        if (this.input.isEmpty) return this.endOfInput(session, now)
        break
      case "up":
        if (this.input.isEmpty && session.waiting.length > 0) return void session.do(this.takeBack(session))
        break
      case "tab":
        return void session.do(this.complete(session))
      case "shift+tab":
        return void session.do(Commands.nextMode(session))
      case "ctrl+r":
        return session.show(
          Panels.search({
            prompts: session.history.prompts,
            pick: (prompt) => {
              session.hide()
              this.input.set(prompt)
            },
            cancel: () => session.hide()
          })
        )
      case "ctrl+o":
        return this.print(session.transcript.last(this.width()))
      case "ctrl+t":
        this.isTasksHidden = !this.isTasksHidden
        return
      case "ctrl+g":
        return void session.do(this.openEditor)
      case "ctrl+l":
        return this.painter.clear()
      case "ctrl+z":
        return void session.do(this.away(this.terminal.stop))
      default:
        break
    }
    if (!isEsc) this.input.key(data)
  }

  private enter(session: Session, isOther: boolean): void {
    const { editing } = this
    const text = this.input.text
    if (editing !== undefined) {
      this.editing = undefined
      this.input.set(editing.before)
      return editing.done(text)
    }
    if (text.trim() === "") return
    this.input.take()
    const isSteering = (session.settings.enter === "queue") === isOther
    session.do(Commands.enter(session, this, text, isSteering ? "steer" : "queue"))
    this.input.remember(text)
  }

  private escape(session: Session, now: number): void {
    if (this.editing !== undefined) {
      const { before } = this.editing
      this.editing = undefined
      return this.input.set(before)
    }
    if (session.isWorking) return session.stop()
    const isTwice = now - this.lastEsc <= 1_000
    this.lastEsc = isTwice ? 0 : now
    if (!isTwice) return
    if (this.input.isEmpty) session.do(Commands.enter(session, this, "/rewind", "steer"))
    else this.input.set("")
  }

  private interrupt(session: Session, now: number): void {
    if (!this.input.isEmpty) {
      this.input.remember(this.input.text)
      return this.input.set("")
    }
    if (session.isWorking) return session.stop()
    if (now - this.lastCtrlC <= 2_000) return this.leave("quit")
    this.lastCtrlC = now
    this.hint = ["Press Ctrl-C again to leave"]
  }

  private endOfInput(session: Session, now: number): void {
    if (!session.isWorking) return this.leave("quit")
    if (now - this.lastCtrlD <= 10_000) return this.leave("unfinished")
    this.lastCtrlD = now
    this.hint = ["Work goes on. Press Ctrl-D again to stop it and leave"]
  }

  leave(how: Leaving): void {
    Deferred.doneUnsafe(this.left, Effect.succeed(how))
  }

  private readonly takeBack = (session: Session) =>
    Effect.map(session.takeBack(), (text) => {
      if (text !== undefined) this.giveBack(text)
    })

  private readonly openEditor = Effect.suspend(() =>
    Effect.map(this.editor(this.input.text, "prompt.md"), (text) => {
      if (text !== undefined) this.input.set(text.replace(/\n$/, ""))
    })
  )

  private readonly complete = (session: Session) =>
    Effect.map(Completion.of(session, this.input.before), ({ candidates, prefix }) => {
      const [first, ...others] = candidates
      if (first === undefined) return
      const common = others.reduce(commonStart, first)
      if (!common.startsWith(prefix)) this.input.replace(prefix, others.length === 0 ? common : prefix)
      else if (common.length > prefix.length) this.input.insert(common.slice(prefix.length))
      if (others.length === 0) {
        if (!first.endsWith("/")) this.input.insert(" ")
        return
      }
      const names = candidates.map((candidate) => Inert.line(candidate)).slice(0, 20)
      this.hint = Markdown.wrapped(names.join("  "), this.width() - 2).slice(0, 5)
      this.changed()
    })
}

/** Keys that mean the same while a panel is shown. */
const isGlobal = (id: string): boolean => ["ctrl+d", "ctrl+l", "ctrl+z", "ctrl+t"].includes(id)

/** The commands that a text begins. */
const suggestions = (text: string): ReadonlyArray<string> => {
  if (!/^\/[a-z]*$/.test(text)) return []
  const rows = CommandTable.table.filter(({ name }) => name.startsWith(text))
  const shown = rows.slice(0, 6).map(({ args, name, what }) => `  ${`${name} ${args}`.padEnd(22)} ${what}`)
  return rows.length > shown.length
    ? [...shown, `  … ${rows.length - shown.length} more, /help lists them`]
    : shown
}

const commonStart = (one: string, other: string): string => {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  return one.slice(0, at)
}

/** Opens the screen, which is given back when the scope closes. */
export const open = Effect.fnUntraced(function* (history: ReadonlyArray<string>) {
  const items = yield* Queue.unbounded<Item>()
  const terminal = yield* Terminal.open(items)
  return new FullScreen(terminal, items, history)
})
