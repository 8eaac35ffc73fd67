/** Line mode: a session in lines alone, for screen readers, dumb terminals and pipes. Each line says what it is. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { createInterface } from "node:readline"
import type { AgentEvent } from "../../AgentEvent.ts"
import * as Message from "../../Message.ts"
import * as ExitCode from "../ExitCode.ts"
import * as TaskList from "../agent/TaskList.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Output from "../terminal/Output.ts"
import * as Commands from "./Commands.ts"
import * as ExternalEditor from "./ExternalEditor.ts"
import type * as Panels from "./Panel.ts"
import type { Face, Leaving } from "./Face.ts"
import type { Session } from "./Session.ts"
import { exitCodeOf, outputOf } from "./Transcript.ts"

type Item =
  | { readonly _tag: "Line"; readonly line: string }
  | { readonly _tag: "End" }
  | { readonly _tag: "Interrupt" }
  | { readonly _tag: "Changed" }

export class LineMode implements Face {
  readonly left = Deferred.makeUnsafe<Leaving>()
  private readonly items: Queue.Queue<Item>
  private session: Session | undefined
  /** The panel whose lines were written. */
  private asked: Panels.Panel | undefined
  private editing: ((text: string | undefined) => void) | undefined
  private isOver = false
  private lastInterrupt = 0
  private lines: ReadonlyArray<string> = []
  private given = ""

  constructor(items: Queue.Queue<Item>) {
    this.items = items
  }

  show(session: Session): void {
    this.session = session
  }

  readonly width = (): number => 10_000

  readonly print = (lines: ReadonlyArray<string>): void => {
    if (lines.length > 0) process.stdout.write(lines.map((line) => `${line.trimEnd()}\n`).join(""))
  }

  /** The part of an answer that has no whole paragraph yet. */
  private answer = ""

  readonly events = (events: ReadonlyArray<AgentEvent>): void => {
    for (const event of events) this.print(this.linesOf(event))
  }

  private linesOf(event: AgentEvent): ReadonlyArray<string> {
    if (event.path !== undefined) return linesOf(event)
    if (event._tag === "MessageDelta") {
      const { delta } = event
      if (delta._tag === "TextStart") return this.paragraphs("\n\n", true)
      return delta._tag === "TextDelta" ? this.paragraphs(delta.delta, false) : []
    }
    if (event._tag !== "MessageEnd" || event.message.role !== "assistant") return linesOf(event)
    const { answer, written } = this
    this.answer = ""
    this.written = ""
    // The end may come without the last deltas.
    const text = event.message.content.findLast((block) => block.type === "text")?.text ?? ""
    if (answer === "" && written === "") return linesOf(event)
    const rest = text.startsWith(written) ? text.slice(written.length) : text
    return rest.trim() === "" ? [] : labelled("agent", rest.trim(), "")
  }

  /** The whole paragraphs that a delta completes; all that is there where a block begins. */
  private paragraphs(delta: string, isNew: boolean): ReadonlyArray<string> {
    this.answer += delta
    const end = this.answer.lastIndexOf("\n\n")
    const whole = end < 0 ? "" : this.answer.slice(0, end)
    if (end > 0) {
      this.answer = this.answer.slice(end)
      this.written += whole
    }
    if (isNew) {
      this.answer = ""
      this.written = ""
    }
    return whole.trim() === "" ? [] : labelled("agent", whole.trim(), "")
  }

  /** The part of the block that was written. */
  private written = ""

  readonly changed = (): void => void Queue.offerUnsafe(this.items, { _tag: "Changed" })

  readonly giveBack = (text: string): void => this.print([`note: not sent: ${Inert.line(text)}`])

  readonly fill = (text: string): void => {
    this.given = text
    this.print([`note: type the prompt again, or an empty line for: ${Inert.line(text)}`])
  }

  readonly edit = (_text: string, title: string, done: (text: string | undefined) => void): void => {
    this.editing = done
    this.print([`${title}:`])
  }

  readonly editor = (text: string, name: string) => ExternalEditor.open(text, name)

  readonly notify = (): void => {}

  leave(how: Leaving): void {
    Deferred.doneUnsafe(this.left, Effect.succeed(how))
  }

  close(): void {}

  run() {
    const step = Effect.gen({ self: this }, function* () {
      for (const item of yield* Queue.takeAll(this.items)) yield* this.one(item)
      const { session } = this
      if (session === undefined) return
      const { panel } = session
      if (panel !== this.asked) {
        this.asked = panel
        if (panel !== undefined) this.print(panel.plain())
      }
      // The next line of a pipe waits until what is before it has its answer.
      if (!process.stdin.isTTY && !session.isWorking && this.pending === 0 && panel === undefined)
        yield* this.next
    })
    return Effect.raceFirst(Effect.forever(step), Deferred.await(this.left))
  }

  /** The commands and prompts that have not done their part. */
  private pending = 0

  private readonly next = Effect.suspend(() => {
    const [line, ...others] = this.lines
    if (line === undefined) {
      if (this.isOver) this.leave("quit")
      return Effect.void
    }
    this.lines = others
    return this.entered(line)
  })

  private one(item: Item): Effect.Effect<void> {
    switch (item._tag) {
      case "Changed":
        return Effect.void
      case "End":
        this.isOver = true
        if (process.stdin.isTTY) this.leave(this.session?.run === undefined ? "quit" : "unfinished")
        return Effect.void
      case "Interrupt":
        return Effect.sync(() => this.interrupt())
      case "Line":
        if (process.stdin.isTTY || this.session?.panel !== undefined) return this.entered(item.line)
        this.lines = [...this.lines, item.line]
        return Effect.void
    }
  }

  private entered(line: string): Effect.Effect<void> {
    return Effect.sync(() => {
      const { editing, session } = this
      if (session === undefined) return
      if (editing !== undefined) {
        this.editing = undefined
        return editing(line)
      }
      if (session.panel !== undefined) return session.panel.line(line)
      const text = line.trim() === "" ? this.given : line
      this.given = ""
      if (text.trim() === "") return
      this.pending++
      session.do(
        Effect.ensuring(
          Commands.enter(session, this, text, "steer"),
          Effect.sync(() => {
            this.pending--
            this.changed()
          })
        )
      )
    })
  }

  private interrupt(): void {
    const { session } = this
    if (session?.isWorking === true) return session.stop()
    const now = Date.now()
    if (now - this.lastInterrupt <= 2_000) return this.leave("quit")
    this.lastInterrupt = now
    this.print(["note: Press Ctrl-C again to leave"])
  }
}

/** The lines of a text, each with its label. */
const labelled = (label: string, text: string, indent: string): ReadonlyArray<string> =>
  Inert.text(text.trimEnd())
    .split("\n")
    .map((line) => `${indent}${label}: ${line}`)

/** The lines of an event. */
const linesOf = (event: AgentEvent): ReadonlyArray<string> => {
  const indent = "  ".repeat(event.path?.length ?? 0)
  switch (event._tag) {
    case "MessageEnd": {
      const { message } = event
      if (message.role === "user") return labelled("you", Message.textOf(message), indent)
      if (message.role !== "assistant") return []
      return message.content.flatMap((block) => {
        if (block.type === "text" && block.text.trim() !== "") return labelled("agent", block.text, indent)
        return block.type === "thinking" && block.text.trim() !== ""
          ? labelled("thinking", block.text, indent)
          : []
      })
    }
    case "ToolExecutionStart":
      return labelled("tool", Output.titleOf(event.toolName, event.params), indent)
    case "ToolExecutionEnd":
      return [
        `${indent}result: ${resultOf(event)}`,
        ...[...endOf(event), ...tasksOf(event)].map((line) => indent + line)
      ]
    case "HookError":
      return labelled("error", `hook ${event.hookName ?? event.hook}: ${event.error}`, indent)
    case "Compaction":
      return event.status === "start"
        ? []
        : labelled(
            "note",
            event.error?.message ??
              `Compacted: ${event.tokensBefore ?? "?"} to ${event.tokensAfter ?? "?"} tokens.`,
            indent
          )
    case "ModelCallRetry":
      return [`${indent}note: Trying again in ${Math.ceil(event.delayMs / 1000)} s`]
    default:
      return []
  }
}

/** The list that a call of `tasks` has made. */
const tasksOf = (event: Ended): ReadonlyArray<string> =>
  TaskList.step(TaskList.empty, event).map(({ status, text }) => `tasks: ${status} ${Inert.line(text)}`)

/** The last lines of the output of a command. */
const maxOutput = 5

const endOf = ({ result, toolName }: Ended): ReadonlyArray<string> => {
  if (toolName !== "shell") return []
  const text = outputOf(textOf(result))
  const lines = text === "" ? [] : text.split("\n")
  const more = lines.length - maxOutput
  const shown = lines.slice(-maxOutput).map((line) => `output: ${Inert.line(line, 400)}`)
  return more > 0 ? [`output: ${more} lines before these`, ...shown] : shown
}

type Ended = Extract<AgentEvent, { readonly _tag: "ToolExecutionEnd" }>

const textOf = ({ content }: Ended["result"]): string =>
  content
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join("\n")
    .trim()

const resultOf = ({ durationMs, isError, result }: Ended): string => {
  const text = textOf(result)
  const code = exitCodeOf(text)
  const lines = text === "" ? 0 : text.split("\n").length
  const words =
    code !== undefined
      ? `exit code ${code}`
      : isError || lines === 1
        ? Inert.line(text.split("\n")[0] ?? "", 200)
        : `${lines} lines`
  return `${words}, ${(durationMs / 1000).toFixed(1)} s`
}

/** Opens line mode, which says why. */
export const open = Effect.fnUntraced(function* (reason: string) {
  const items = yield* Queue.unbounded<Item>()
  process.stdout.write(`Line mode (${reason}).\n`)
  const reader = createInterface({ input: process.stdin, terminal: false })
  reader.on("line", (line) => void Queue.offerUnsafe(items, { _tag: "Line", line }))
  reader.once("close", () => void Queue.offerUnsafe(items, { _tag: "End" }))
  const { interrupts } = yield* ExitCode.Signals
  const interrupted = Effect.andThen(Queue.take(yield* interrupts), Queue.offer(items, { _tag: "Interrupt" }))
  yield* Effect.forkScoped(Effect.forever(interrupted))
  yield* Effect.addFinalizer(() => Effect.sync(() => reader.close()))
  return new LineMode(items)
})
