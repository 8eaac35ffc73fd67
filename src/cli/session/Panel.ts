/** The requests of a session to a person: a panel takes keys on the screen, and a line in line mode. */
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { OfTag } from "../../AgentEvent.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Preview from "../terminal/Preview.ts"
import * as Requests from "../terminal/Requests.ts"
import * as Markdown from "./Markdown.ts"
import type { Theme } from "./Theme.ts"

/** A key: its name, and the text that it types. */
export interface Key {
  readonly id: string
  readonly data: string
}

export interface Panel {
  /** The request that it is about, `undefined` for one that the person opened. */
  readonly requestId: string | undefined
  readonly lines: (theme: Theme, width: number, rows: number) => ReadonlyArray<string>
  /** Takes a key; returns whether it did. One that it does not take goes to the input, if the panel reads texts there. */
  readonly key: (key: Key) => boolean
  /** Takes a text of the input, if the panel reads them; returns whether it did. */
  readonly text: ((text: string) => boolean) | undefined
  /** The lines of line mode. */
  readonly plain: () => ReadonlyArray<string>
  /** Takes a line of line mode. */
  readonly line: (line: string) => void
}

// ───────────────────────── Approvals

export interface ApprovalChoice {
  readonly yes: () => void
  readonly always: () => void
  readonly no: () => void
  readonly edit: () => void
  readonly stop: () => void
}

interface ApprovalOptions {
  readonly request: OfTag<"ApprovalRequested">
  readonly preview: Preview.Preview
  /** The place of the request among those that wait, and their number. */
  readonly place: () => readonly [index: number, of: number]
  /** The calls that an answer "always" permits, in words. */
  readonly scope: string
  /** Why the call needs an approval, and what the model wrote before it. */
  readonly why: ReadonlyArray<string>
  readonly choose: ApprovalChoice
  /** Shows lines above the panel. */
  readonly show: (lines: ReadonlyArray<string>) => void
}

export const approval = (options: ApprovalOptions): Panel => {
  const { choose, place, preview, request, show } = options
  const view = { isWhy: false }
  const acts: Readonly<Record<string, () => void>> = {
    y: choose.yes,
    a: choose.always,
    n: choose.no,
    e: choose.edit,
    escape: choose.stop,
    w: () => void (view.isWhy = !view.isWhy),
    v: () => show(Preview.whole(preview, plainPaint).map((line) => `  ${line}`))
  }
  const title = () => {
    const [index, of] = place()
    return `Allow ${Inert.name(request.toolName)}?${of > 1 ? ` (${index} of ${of})` : ""}`
  }
  return {
    requestId: request.approvalId,
    lines: (theme, width, rows) => approvalLines(options, view, title(), { theme, width, rows }),
    // A key of another kind does nothing.
    key: ({ id }) => {
      acts[id]?.()
      return true
    },
    text: undefined,
    plain: () => [
      `approval: ${title()}`,
      ...[...headingOf(options), ...Preview.brief(preview, plainPaint)].map((line) => `  ${line}`),
      `Allow ${Inert.name(request.toolName)}? y yes, a always, n no, e edit, w why, v all:`
    ],
    line: (line) => {
      const [answer = ""] = line.trim().toLowerCase()
      if (answer === "v") show(Preview.whole(preview, plainPaint).map((line) => `  ${line}`))
      else if (answer === "w") show(options.why.map((line) => `  ${line}`))
      else (["y", "a", "e"].includes(answer) ? acts[answer] : choose.no)?.()
    }
  }
}

/** The place of a call of `write` or `edit`. */
const headingOf = ({ preview, request: { toolName } }: ApprovalOptions): ReadonlyArray<string> =>
  preview.title === toolName ? [] : [preview.title.replace(`${toolName} `, "")]

const approvalLines = (
  options: ApprovalOptions,
  { isWhy }: { readonly isWhy: boolean },
  title: string,
  { rows, theme, width }: { readonly theme: Theme; readonly width: number; readonly rows: number }
): ReadonlyArray<string> => {
  const { preview, scope, why } = options
  const paint = paintOf(theme)
  const body = Preview.brief(preview, paint)
  const reasons = isWhy ? why.map((line) => theme.style("dim", line)) : []
  const room = Math.max(1, rows - 8 - reasons.length)
  const lines = [...headingOf(options), ...body].flatMap((line) => Markdown.wrapped(line, width - 2))
  const more = lines.length - room
  const cut = more > 0 ? [...lines.slice(0, room), `… ${more} more lines, v shows all`] : lines
  const all = Preview.isCut(preview) || more > 0 ? " · v all" : ""
  const choices = `y yes · a always ${scope} · n no · e edit · w why${all} · Esc no and stop`
  const rest = [...reasons, choices].flatMap((line) => Markdown.wrapped(line, width - 2))
  return [theme.style("bold", title), ...[...cut, ...rest].map((line) => `  ${line}`)]
}

const paintOf = (theme: Theme) => ({
  dim: (text: string) => theme.style("dim", text),
  red: (text: string) => theme.style("red", text),
  green: (text: string) => theme.style("green", text),
  bold: (text: string) => theme.style("bold", text)
})

const same = (text: string): string => text
const plainPaint = { dim: same, red: same, green: same, bold: same }

// ───────────────────────── Questions

interface QuestionOptions {
  readonly request: OfTag<"QuestionAsked">
  readonly answer: (answer: Schema.Json) => void
  readonly decline: () => void
  readonly complain: (text: string) => void
}

const decodeValues = Schema.decodeUnknownOption(Schema.Array(Schema.Json))
const decodeProperties = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Json))

const memberOf = (schema: Schema.Json, name: string): Schema.Json | undefined =>
  Option.getOrUndefined(decodeProperties(schema))?.[name]

/** The only property of an object. */
const onlyOf = (schema: Schema.Json): readonly [name: string, schema: Schema.Json] | undefined => {
  const [first, ...others] = Object.entries(
    Option.getOrElse(decodeProperties(memberOf(schema, "properties")), () => ({}))
  )
  return others.length === 0 ? first : undefined
}

interface Choices {
  readonly values: ReadonlyArray<Schema.Json>
  /** Whether several count. */
  readonly many: boolean
}

/** The choices of a schema. An object with one member has those of that member. */
const choicesOf = (schema: Schema.Json): Choices => {
  const values = Option.getOrUndefined(decodeValues(memberOf(schema, "enum")))
  if (values !== undefined) return { values, many: false }
  if (memberOf(schema, "type") === "array")
    return { values: choicesOf(memberOf(schema, "items") ?? null).values, many: true }
  const only = onlyOf(schema)
  return only === undefined ? { values: [], many: false } : choicesOf(only[1])
}

/** An answer in the form of the schema: as the only member of an object, where that is one. */
const formed = (schema: Schema.Json, value: Schema.Json): Schema.Json => {
  const only = onlyOf(schema)
  return only === undefined ? value : { [only[0]]: value }
}

const wordOf = (value: Schema.Json): string => (typeof value === "string" ? value : JSON.stringify(value))

export const question = ({ answer, complain, decline, request }: QuestionOptions): Panel => {
  const { many, values } = choicesOf(request.schema)
  const chosen = new Set<number>()
  let at = 0
  const text = (typed: string): boolean => {
    const given = Requests.givenAnswer(typed, request.schema)
    if (Result.isSuccess(given)) answer(given.success)
    else complain(Inert.line(given.failure))
    return Result.isSuccess(given)
  }
  const choose = (index: number): void => {
    const value = values[index]
    if (value !== undefined) answer(formed(request.schema, many ? [value] : value))
  }
  const confirm = (): void => {
    if (!many || chosen.size === 0) return choose(at)
    answer(
      formed(
        request.schema,
        values.filter((_, index) => chosen.has(index))
      )
    )
  }
  return {
    requestId: request.questionId,
    lines: (theme, width) => {
      const [first = "", ...rest] = Inert.exact(request.question).split("\n")
      const head = [`The model asks: ${first}`, ...rest].flatMap((line) => Markdown.wrapped(line, width))
      const mark = (index: number) => (many ? `${chosen.has(index) ? "[x]" : "[ ]"} ` : "")
      const choices = values.map((value, index) => {
        const line = `${index === at ? ">" : " "} ${index + 1} ${mark(index)}${Inert.exactLine(wordOf(value), width)}`
        return index === at ? theme.style("bold", line) : line
      })
      const keys = values.length === 0 ? "Enter answers" : `1-9 or arrows${many ? ", Space" : ""} and Enter`
      return [
        ...head.map((line) => theme.style("bold", line)),
        ...choices,
        ...(values.length === 0 ? [] : ["  type another answer and Enter"]),
        `  ${keys} · Esc declines`
      ]
    },
    key: ({ id }) => {
      if (id === "escape") decline()
      else if (values.length === 0) return false
      else if (id === "up") at = Math.max(0, at - 1)
      else if (id === "down") at = Math.min(values.length - 1, at + 1)
      else if (/^[1-9]$/.test(id) && Number(id) <= values.length) {
        at = Number(id) - 1
        if (many) toggle(chosen, at)
        else choose(at)
      } else if (id === "space" && many) toggle(chosen, at)
      else if (id === "enter") confirm()
      else return false
      return true
    },
    text,
    plain: () => [
      `question: ${Inert.exact(request.question)}`,
      ...values.map((value, index) => `${index + 1} ${Inert.exactLine(wordOf(value), 200)}`),
      "Answer:"
    ],
    line: (line) => {
      const number = Number(line.trim())
      if (Number.isInteger(number) && number >= 1 && number <= values.length) choose(number - 1)
      else if (line.trim() === "") decline()
      else text(line)
    }
  }
}

const toggle = (set: Set<number>, index: number): void => void (set.delete(index) || set.add(index))

// ───────────────────────── Lists, and choices by one key

export interface Item<A> {
  readonly value: A
  readonly label: string
}

interface ListOptions<A> {
  readonly title: string
  readonly items: ReadonlyArray<Item<A>>
  readonly pick: (value: A) => void
  readonly cancel: () => void
}

/** A list that typing filters. */
export const list = <A>({ cancel, items, pick, title }: ListOptions<A>): Panel => {
  let filter = ""
  let at = 0
  const matching = () => items.filter(({ label }) => label.toLowerCase().includes(filter.toLowerCase()))
  return {
    requestId: undefined,
    lines: (theme, width, rows) => {
      const found = matching()
      const most = Math.max(1, Math.min(12, rows - 8))
      const from = Math.max(0, Math.min(at - most + 1, found.length - most))
      const shown = found.slice(from, from + most).map(({ label }, index) => {
        const line = `${from + index === at ? ">" : " "} ${Inert.line(label, width)}`
        return from + index === at ? theme.style("bold", line) : line
      })
      const more = found.length > most ? ` · ${at + 1} of ${found.length}` : ""
      const none = items.length === 0 ? "  Nothing to choose from." : "  No match."
      return [
        theme.style("bold", `${title}${filter === "" ? "" : ` · ${Inert.line(filter)}`}`),
        ...(found.length === 0 ? [none] : shown),
        `  arrows and Enter · type to filter · Esc back${more}`
      ]
    },
    key: ({ data, id }) => {
      const found = matching()
      if (id === "escape" || id === "ctrl+c") cancel()
      else if (id === "up") at = Math.max(0, at - 1)
      else if (id === "down") at = Math.min(found.length - 1, at + 1)
      else if (id === "enter") {
        const item = found[at]
        if (item !== undefined) pick(item.value)
      } else if (id === "backspace") {
        filter = filter.slice(0, -1)
        at = 0
      } else if (data >= " " && !data.startsWith("\u001b")) {
        filter += data
        at = 0
      }
      return true
    },
    text: undefined,
    plain: () => [
      title,
      ...items.map(({ label }, index) => `${index + 1} ${Inert.line(label, 200)}`),
      "Number:"
    ],
    line: (line) => {
      const item = items[Number(line.trim()) - 1]
      if (item === undefined) cancel()
      else pick(item.value)
    }
  }
}

interface KeysOptions {
  readonly requestId?: string
  readonly title: ReadonlyArray<string>
  /** The keys, each with its words. */
  readonly keys: ReadonlyArray<readonly [key: string, words: string, act: () => void]>
  readonly cancel: () => void
  /** The words for Esc. Default `back`. */
  readonly back?: string
}

/** A choice by one key. */
export const keys = ({ back = "back", cancel, keys: all, requestId, title }: KeysOptions): Panel => {
  const words = [...all.map(([key, words]) => `${key} ${words}`), `Esc ${back}`].join(" · ")
  const on = (id: string): boolean => {
    const act = all.find(([key]) => key === id)?.[2]
    if (act !== undefined) act()
    else if (id === "escape" || id === "ctrl+c") cancel()
    return true
  }
  return {
    requestId,
    lines: (theme, width) => [
      ...title
        .flatMap((line) => Markdown.wrapped(line, width))
        .map((line, index) => (index === 0 ? theme.style("bold", line) : line)),
      ...Markdown.wrapped(words, width - 2).map((line) => `  ${line}`)
    ],
    key: ({ id }) => on(id),
    text: undefined,
    plain: () => [...title, `${words}:`],
    line: (line) => void (on(line.trim().slice(0, 1)) && line.trim() === "" && cancel())
  }
}

interface SearchOptions {
  /** The prompts, the oldest first. */
  readonly prompts: ReadonlyArray<string>
  readonly pick: (prompt: string) => void
  readonly cancel: () => void
}

/** The search in the history of prompts. */
export const search = ({ cancel, pick, prompts }: SearchOptions): Panel => {
  let query = ""
  let skipped = 0
  const newest = prompts.toReversed()
  const found = () => newest.filter((prompt) => prompt.includes(query))[skipped]
  return {
    requestId: undefined,
    lines: (theme, width) => [
      theme.style("bold", `Search history: ${Inert.line(query)}`),
      `  ${Inert.line(query === "" ? "" : (found() ?? "No match."), width * 2)}`,
      "  Ctrl-R older · Enter takes it · Esc back"
    ],
    key: ({ data, id }) => {
      if (id === "escape" || id === "ctrl+c") cancel()
      else if (id === "ctrl+r") skipped = found() === undefined ? 0 : skipped + 1
      else if (id === "enter") {
        const prompt = query === "" ? undefined : found()
        if (prompt === undefined) cancel()
        else pick(prompt)
      } else if (id === "backspace") {
        query = query.slice(0, -1)
        skipped = 0
      } else if (data >= " " && !data.startsWith("\u001b")) {
        query += data
        skipped = 0
      }
      return true
    },
    text: undefined,
    plain: () => ["Search is a key of the full screen."],
    line: cancel
  }
}

interface SecretOptions {
  readonly title: string
  readonly enter: (secret: string) => void
  readonly cancel: () => void
}

/** A text that is not shown, such as a key. */
export const secret = ({ cancel, enter, title }: SecretOptions): Panel => {
  let typed = ""
  return {
    requestId: undefined,
    lines: (theme) => [theme.style("bold", title), "  It is not shown. Enter keeps it · Esc back"],
    key: ({ data, id }) => {
      if (id === "escape" || id === "ctrl+c") cancel()
      else if (id === "enter") enter(typed.trim())
      else if (id === "backspace") typed = typed.slice(0, -1)
      else if (data >= " " && !data.startsWith("\u001b")) typed += data
      return true
    },
    text: undefined,
    plain: () => [`${title}:`],
    line: (line) => (line.trim() === "" ? cancel() : enter(line.trim()))
  }
}
