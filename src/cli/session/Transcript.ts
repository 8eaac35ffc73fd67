/**
 * What a session shows of its runs: a fold of their events to lines that are finished, which go up for good, and lines that still change.
 */
import { visibleWidth } from "@earendil-works/pi-tui"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "../../AgentEvent.ts"
import * as PromptChanges from "../files/PromptChanges.ts"
import * as RunView from "../../view/RunView.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Output from "../terminal/Output.ts"
import * as Preview from "../terminal/Preview.ts"
import * as Markdown from "./Markdown.ts"
import type { Theme } from "./Theme.ts"

/** The lines of a command's output that are shown, and those of a diff. */
const maxOutput = 5
const maxDiff = 12
/** The rows of an answer's last line that are shown while it grows. */
const maxTail = 4
/** The most lines that show a call whole. */
const maxWhole = 2_000

/** The part of an answer that has gone up. */
interface Written {
  readonly text: string
  readonly markdown: Markdown.State
}

/** A call or a thought, whole. */
interface Whole {
  readonly title: string
  readonly parts: ReadonlyArray<string>
}

export class Transcript {
  view = RunView.make({ rows: 120, output: 100_000, text: 1_000_000 })
  /** The last call or thought, for Ctrl-O. */
  private whole: Whole | undefined
  private readonly done = new Set<string>()
  private readonly written = new Map<string, Written>()
  /** The message that has come whole last. The end of a block may come without its last deltas. */
  private ended = ""
  /** The diffs of calls, and the calls that a person has changed. */
  private readonly diffs = new Map<string, string>()
  private readonly edited = new Set<string>()
  /** The times at which calls began to work: before, they wait for a person. */
  private readonly invoked = new Map<string, number>()
  private readonly theme: Theme

  constructor(theme: Theme) {
    this.theme = theme
  }

  /** Folds events, and returns the lines that they finish. */
  add(events: ReadonlyArray<AgentEvent>, width: number): ReadonlyArray<string> {
    const lines: Array<string> = []
    for (const event of events) {
      this.view = RunView.fold(this.view, event)
      if (event._tag === "MessageEnd") this.ended = event.message.id
      if (event._tag === "ToolInvoked") {
        this.invoked.set(event.toolCallId, event.timestamp)
        if (event.modified && event.approved) this.edited.add(event.toolCallId)
      }
      if (event._tag === "ToolExecutionEnd") {
        const diff = Option.getOrUndefined(decodeDiff(event.result.details))
        if (diff !== undefined) this.diffs.set(event.toolCallId, diff.diff)
      }
      if (event._tag !== "MessageDelta" && event._tag !== "ToolExecutionProgress")
        lines.push(...this.advance(width))
    }
    lines.push(...this.advance(width))
    return lines
  }

  private advance(width: number): ReadonlyArray<string> {
    const lines: Array<string> = []
    for (const row of this.view.rows) {
      if (this.done.has(row.id)) continue
      const isOpen = row.state === "running" || row.state === "waiting"
      if (row.kind === "answer" && levelOf(row) === 0) {
        const isOver = !isOpen && (row.state !== "done" || row.messageId === this.ended)
        lines.push(...this.answer(row, width, isOver))
        if (!isOver) continue
      }
      if (isOpen) continue
      this.done.add(row.id)
      if (row.kind !== "answer" || levelOf(row) > 0) lines.push(...this.finished(row, width))
    }
    if (this.done.size > 2_000) {
      const held = new Set(this.view.rows.map(({ id }) => id))
      for (const id of this.done) if (!held.has(id)) this.done.delete(id)
    }
    return lines
  }

  /** The lines of an answer that are whole now. */
  private answer(row: RunView.Block, width: number, isOver: boolean): ReadonlyArray<string> {
    const before = this.written.get(row.id)
    const dim = (text: string) => this.theme.style("dim", text)
    if (row.state === "retracted")
      return before === undefined ? [] : [dim("The answer broke off and starts again.")]
    // A hook may replace an answer after its deltas.
    const isReplaced = before !== undefined && !row.text.startsWith(before.text)
    const { markdown, text } = isReplaced || before === undefined ? unwritten : before
    const rest = row.text.slice(text.length)
    const end = isOver ? rest.length : rest.lastIndexOf("\n") + 1
    if (end === 0)
      return isOver
        ? Markdown.end(markdown, this.theme)
        : this.settle(row.id, { text, markdown }, rest, width)
    let state = markdown
    const lines: Array<string> = isReplaced ? [dim("The answer was replaced:")] : []
    const sources = rest.slice(0, end).replace(/\n$/, "").split("\n")
    for (const source of sources) {
      const [next, out] = Markdown.next(state, source, this.theme, width)
      state = next
      lines.push(...out)
    }
    if (isOver) {
      this.written.delete(row.id)
      return [...lines, ...Markdown.end(state, this.theme)]
    }
    this.written.set(row.id, { text: row.text.slice(0, text.length + end), markdown: state })
    return lines
  }

  /** The rows of a long line that no longer change, before it is whole. */
  private settle(
    id: string,
    { markdown, text }: Written,
    rest: string,
    width: number
  ): ReadonlyArray<string> {
    const { length, rows } = Markdown.settled(markdown, rest, width)
    if (rows.length > 0)
      this.written.set(id, {
        text: text + rest.slice(0, length),
        markdown: { ...markdown, isInside: true }
      })
    return rows
  }

  private finished(row: RunView.Block, width: number): ReadonlyArray<string> {
    const { theme } = this
    const dim = (text: string) => theme.style("dim", text)
    const indent = indentOf(row)
    switch (row.kind) {
      case "user":
        // A hook of the program names files that went back for the model.
        return row.text.startsWith(PromptChanges.report)
          ? Inert.text(row.text).split("\n").map(dim)
          : promptLines(row.text, theme, width)
      case "answer":
        return Inert.text(row.text)
          .split("\n")
          .flatMap((line) => Markdown.wrapped(line, width - indent.length))
          .map((line) => dim(indent + line).trimEnd())
      case "thinking":
        if (row.text === "") return []
        this.whole = { title: "Thinking", parts: [row.text] }
        return [dim(`${indent}Thinking … ${secondsOf(row)}`)]
      case "tool":
      case "agent":
        return this.call(row, width)
      case "question":
        return row.state === "done" ? Markdown.wrapped(dim(indent + questionOf(row)), width) : []
      case "output":
        return [Inert.text(row.text)]
      case "compaction":
        return [dim(compactionOf(row))]
      case "handoff":
      case "note":
        // The session has its own words for a stop.
        if (row.kind === "note" && /^(?:Cancelled|Stored|\d+ older messages)\b/.test(row.text)) return []
        return [dim(`${indent}${Inert.line(row.kind === "handoff" ? `${row.title} continues` : row.text)}`)]
      case "hook":
        return [
          theme.style("red", `${indent}${theme.signs.failed} hook ${Inert.line(`${row.title}: ${row.text}`)}`)
        ]
      default:
        return []
    }
  }

  private call(row: RunView.Block, width: number): ReadonlyArray<string> {
    const { style, signs } = this.theme
    const indent = indentOf(row)
    const isGood = row.state === "done"
    const { name, params, title } = callOf(row)
    this.whole = { title, parts: [Inert.text(prettyOf(params, row.text)), row.result] }
    const { toolCallId = "" } = row
    const from = this.invoked.get(toolCallId) ?? row.to ?? row.from
    this.invoked.delete(toolCallId)
    const parts = [
      ...(this.edited.delete(toolCallId) ? ["edited by you"] : []),
      resultOf(row, name),
      timeOf({ from, to: row.to ?? from })
    ].filter((part) => part !== "")
    const sign = isGood ? style("green", signs.ended) : style("red", signs.failed)
    const room = Math.max(20, width - visibleWidth(`${indent}${signs.failed} ${parts.join(" · ")}   `))
    const head = `${indent}${sign} ${[shortened(title, room), ...parts].join(" · ")}`
    return [head, ...this.below(row, name, params).map((line) => `${indent}    ${line}`.trimEnd())]
  }

  /** The end of a command's output, or the changes of a file. */
  private below(row: RunView.Block, name: string, params: unknown): ReadonlyArray<string> {
    const { toolCallId = "" } = row
    if (name === "shell" && (row.state === "done" || row.state === "failed"))
      return tailOf(outputOf(row.result), this.theme)
    const diff = this.diffs.get(toolCallId)
    this.diffs.delete(toolCallId)
    if (row.state !== "done" || (name !== "edit" && name !== "write")) return []
    const content = Option.getOrUndefined(decodeContent(params))?.content
    const text =
      diff ??
      content
        ?.replace(/\n$/, "")
        .split("\n")
        .map((line) => `+${line}`)
        .join("\n")
    if (text === undefined) return []
    const lines = diffLines(text, this.theme)
    const more = lines.length - maxDiff
    return more > 0 ? [...lines.slice(0, maxDiff), moreOf(more, this.theme)] : lines
  }

  /** The lines that still change: the answer, thoughts and calls that run. */
  live(width: number, now: number): ReadonlyArray<string> {
    const { theme } = this
    return this.view.rows.flatMap((row) => {
      if (row.state !== "running") return []
      const indent = indentOf(row)
      if (row.kind === "answer" && levelOf(row) === 0) {
        const { markdown, text } = this.written.get(row.id) ?? unwritten
        const rest = row.text.slice(text.length)
        return rest === "" ? [] : Markdown.unfinished(markdown, rest, theme, width).slice(-maxTail)
      }
      const seconds = Math.max(0, Math.floor((now - row.from) / 1000))
      if (row.kind === "thinking") return [theme.style("dim", `${indent}Thinking … ${seconds} s`)]
      if (row.kind !== "tool" && row.kind !== "agent") return []
      const { name, title } = callOf(row)
      const head = `${indent}${theme.signs.runs} ${shortened(title, width - indent.length - 12)} (${seconds} s)`
      const output = name === "shell" && row.result !== "" ? tailOf(outputOf(row.result), theme) : []
      return [head, ...output.map((line) => `${indent}    ${line}`.trimEnd())]
    })
  }

  /** The last call or thought whole. */
  last(width: number): ReadonlyArray<string> {
    if (this.whole === undefined) return ["Nothing to show."]
    const { parts, title } = this.whole
    const lines = parts.flatMap((part) => Inert.text(part).trimEnd().split("\n"))
    const shown = lines.slice(0, maxWhole)
    const rest = lines.length - shown.length
    return [
      this.theme.style("bold", shortened(title, width)),
      ...shown,
      ...(rest > 0 ? [`… ${rest} more lines`] : [])
    ]
  }
}

const unwritten: Written = { text: "", markdown: Markdown.initial }

// ───────────────────────── Rows

const levelOf = ({ depth }: RunView.Row): number => Math.max(0, (depth - 1) >> 1)

const indentOf = (row: RunView.Row): string => "  ".repeat(levelOf(row))

/** A question and its answer; of a plan, which stands above, the decision alone. */
const questionOf = ({ result, title }: RunView.Block): string => {
  const answer = Inert.line(answerOf(result))
  return result.startsWith('{"decision":') ? `Plan: ${answer}` : `${Inert.line(title)} · ${answer}`
}

/** An answer in words: a text, or the only text of an object. */
const answerOf = (json: string): string => {
  const value = Option.getOrUndefined(parse(json))
  if (typeof value === "string") return value
  const texts = Object.values(Option.getOrElse(decodeTexts(value), () => ({})))
  return texts.length === 0 ? json : texts.join(": ")
}

const decodeTexts = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.String))

const parse = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const decodeDiff = Schema.decodeUnknownOption(Schema.Struct({ diff: Schema.String }))
const decodeContent = Schema.decodeUnknownOption(Schema.Struct({ content: Schema.String }))

/** The tools whose arguments a list or a panel has shown. */
const shownElsewhere: ReadonlySet<string> = new Set(["tasks", "ask_user", "propose_plan"])

/** The tool of a row, and its call in a line. */
const callOf = ({ text, title }: RunView.Block) => {
  const [name = ""] = title.split(" ")
  const params = Option.getOrUndefined(parse(text))
  return {
    name,
    params,
    title:
      params === undefined || shownElsewhere.has(name)
        ? Inert.line(name)
        : Output.titleOf(name, params).trim()
  }
}

const prettyOf = (params: unknown, raw: string): string =>
  params === undefined ? raw : JSON.stringify(params, undefined, 2)

/** The result in a few words. */
const resultOf = (row: RunView.Block, name: string): string => {
  const { result, state } = row
  const [first = ""] = result.trim().split("\n")
  if (state === "rejected") return refusalOf(first)
  if (state === "cancelled") return "stopped"
  const code = exitCodeOf(result)
  if (name === "shell" && code !== undefined) return `exit code ${code}`
  if (state === "failed") return Inert.line(first, 120)
  const output = outputOf(result)
  if (output === "") return "no output"
  const count = output.split("\n").length
  return count === 1 && first.length <= 60 && name !== "shell"
    ? Inert.line(first)
    : `${count} ${count === 1 ? "line" : "lines"}`
}

/** Why a call was refused, without the words around it for the model. */
const refusalOf = (text: string): string => {
  const hook = /refused by hook: .*/.exec(text)?.[0]
  if (hook !== undefined) return Inert.line(hook, 120)
  const reason = /: (.*)$/.exec(text)?.[1] ?? text
  return `refused: ${Inert.line(reason.replace(/\.$/, ""), 120)}`
}

const compactionOf = ({ state, text }: RunView.Block): string => {
  const [, before, after] = /from (\S+) to (\S+) tokens/.exec(text) ?? []
  return state === "failed" || before === undefined
    ? Inert.line(text)
    : `Compacted: ${before} → ${after} tokens.`
}

const timeOf = ({ from, to }: { readonly from: number; readonly to: number }): string =>
  `${((to - from) / 1000).toFixed(1)} s`

const secondsOf = ({ from, to = from }: RunView.Row): string => `${Math.round((to - from) / 1000)} s`

/** The exit code in the line on the end of a command. */
export const exitCodeOf = (result: string): string | undefined =>
  /Exit code (\d+)/.exec(result.slice(-200))?.[1]

/** The output of a command, without the line on its end. */
export const outputOf = (result: string): string =>
  result
    .trimEnd()
    .replace(/\n?\[Exit code \d+\]$/, "")
    .trimEnd()

const tailOf = (output: string, theme: Theme): ReadonlyArray<string> => {
  if (output === "") return []
  const lines = output.split("\n")
  const more = lines.length - maxOutput
  const shown = lines
    .slice(-maxOutput)
    .map((line) => theme.style("dim", Inert.line(lastPart(line).replaceAll("\t", "    "), 400)))
  return more > 0 ? [...shown, moreOf(more, theme)] : shown
}

/** A carriage return begins a line anew, as progress bars do. */
const lastPart = (line: string): string => line.split("\r").findLast((part) => part !== "") ?? ""

const moreOf = (count: number, theme: Theme): string =>
  theme.style("dim", `… ${count} more ${count === 1 ? "line" : "lines"} (Ctrl-O)`)

/** The characters of a line of a diff that are shown. */
const maxDiffLine = 400

/** The lines of a unified diff without its head, with numbers. */
export const diffLines = (diff: string, theme: Theme): ReadonlyArray<string> => {
  const lines = diff
    .replace(/^---.*\n\+\+\+.*\n/, "")
    .replace(/\n$/, "")
    .split("\n")
  const isWhole = !lines.some((line) => line.startsWith("@@"))
  const preview = { title: "", kind: "diff", lines, brief: { lines: maxDiff, chars: 300 } } as const
  const paint = {
    dim: (text: string) => theme.style("dim", text),
    red: (text: string) => theme.style("red", text),
    green: (text: string) => theme.style("green", text),
    bold: (text: string) => theme.style("bold", text)
  }
  const shown = Preview.whole(preview, paint)
  const cut = shown.map((line) => (line.length > maxDiffLine ? `${line.slice(0, maxDiffLine)}…` : line))
  return isWhole ? cut : cut.filter((_, index) => !(lines[index] ?? "").startsWith("@@"))
}

/** A prompt as the person wrote it, with the names of its files alone. */
export const shownPrompt = (text: string): string =>
  text
    .replace(/\n\n<terminal>\n[^]*$/, "")
    .replaceAll(/\n<file path=("(?:[^"\\]|\\.)*")>\n[^]*?\n<\/file>(?=\n<file path=|$)/g, "")

/** A prompt as the transcript has it. The parts that the program appended for the model are left out. */
export const promptLines = (text: string, theme: Theme, width: number): ReadonlyArray<string> =>
  Inert.text(shownPrompt(text))
    .split("\n")
    .flatMap((line) => Markdown.wrapped(line.replaceAll("\t", "    "), width - 2))
    .map((line, index) => theme.style("bold", `${index === 0 ? "> " : "  "}${line}`).trimEnd())

/** A text on one line that is no wider. */
export const shortened = (text: string, width: number): string => {
  const line = Inert.line(text, Math.max(20, width * 2))
  if (visibleWidth(line) <= width) return line
  let end = Math.min(line.length, width)
  while (end > 0 && visibleWidth(line.slice(0, end)) > width - 1) end--
  return `${line.slice(0, end).replace(/[\ud800-\udbff]$/, "")}…`
}
