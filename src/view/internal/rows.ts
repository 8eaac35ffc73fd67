/** The rows of a view: their types, where each stands, how it grows, its texts, and how many the view holds. */
import type { AgentEvent, ApprovalRequested, QuestionAsked, RunStatus } from "../../AgentEvent.ts"
import type { Message } from "../../Message.ts"
import type { Usage } from "../../Usage.ts"

/**
 * The kind of a row.
 *
 * **Details**
 *
 * - `"user"`: a prompt, or a message that steers or follows up.
 * - `"turn"`, `"call"`: a turn, and a call of the model in it.
 * - `"thinking"`, `"answer"`: a block of what the model wrote.
 * - `"tool"`, `"agent"`: a call of a tool, and a call of a tool that runs a sub-agent, whose rows stand inside.
 * - `"approval"`, `"question"`: a request to a person.
 * - `"output"`: the typed output of the run.
 * - `"retry"`, `"compaction"`, `"limit"`, `"handoff"`, `"hook"`, `"note"`, `"error"`: other things that happened. A hook has a row if it failed.
 *
 * @category models
 * @since 0.2.0
 */
export type Kind =
  | "user"
  | "turn"
  | "call"
  | "thinking"
  | "answer"
  | "tool"
  | "approval"
  | "question"
  | "agent"
  | "output"
  | "retry"
  | "compaction"
  | "limit"
  | "handoff"
  | "hook"
  | "note"
  | "error"

/**
 * How far a row has come.
 *
 * @category models
 * @since 0.2.0
 */
export type State = "running" | "waiting" | "done" | "failed" | "rejected" | "retracted" | "cancelled"

/**
 * One row, without its texts.
 *
 * @category models
 * @since 0.2.0
 */
export interface Row {
  /** The id of the row, which it keeps. */
  readonly id: string
  /** The kind of the row. */
  readonly kind: Kind
  /** The id of the run to which the row belongs, which for a row of a sub-agent is its own. */
  readonly runId: string
  /** The id of the row that this row stands in: a turn, or the call of a sub-agent; absent for a row that stands in none. */
  readonly parent?: string
  /** How many rows this row stands in. */
  readonly depth: number
  /** The number of the turn in its run, absent outside of turns. */
  readonly turn?: number
  /** The position in the log of the event with which the row began. */
  readonly position: number
  /** The subject of the row, on one line of at most 200 characters: a text, a model, or a tool with its first argument. */
  readonly title: string
  /** How far the row has come. */
  readonly state: State
  /** The time at which the row began, in milliseconds since the epoch. */
  readonly from: number
  /** The time at which it ended, absent until then. */
  readonly to?: number
  /** The bytes of its texts as UTF-8, also of what the view leaves out. */
  readonly bytes: number
  /** The tokens of all that is inside, absent until they are known. */
  readonly usage?: Usage
  /** The cost of all that is inside, absent while no price is known. */
  readonly cost?: number
  /** The start of the result or else of the text, on one line of at most 300 characters. */
  readonly preview: string
  /** A digest of what the row says, which is equal for rows that say the same; `""` until the row has said it all. */
  readonly digest: string
  /** The id of the session's entry, absent if the events do not name it. */
  readonly entryId?: string
  /** The id of the message of which the row is a part, absent if there is none. */
  readonly messageId?: string
  /** The id of the tool call, absent if the row concerns none. */
  readonly toolCallId?: string
  /** The id of the row of the model call that wrote the row, absent for other rows. */
  readonly callId?: string
}

/**
 * A row with its texts, as far as the bounds of the view keep them.
 *
 * @category models
 * @since 0.2.0
 */
export interface Block extends Row {
  /** The text of the row: what a person or the model wrote, the arguments of a call, an error in words. */
  readonly text: string
  /** The end of what a tool gave, `""` for other rows. */
  readonly result: string
}

/**
 * A turn of the outermost run in numbers, for charts.
 *
 * @category models
 * @since 0.2.0
 */
export interface Turn {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The time of its start in milliseconds since the epoch. */
  readonly from: number
  /** Its duration in milliseconds, 0 until it ends. */
  readonly ms: number
  /** The time of its model calls in milliseconds. */
  readonly modelMs: number
  /** The time of its tool calls in milliseconds; calls that run at the same time add up. */
  readonly toolMs: number
  /** The number of its tool calls that have ended. */
  readonly toolCalls: number
  /** Its tokens, those of sub-agents included; absent until it ends. */
  readonly usage?: Usage
  /** Its cost, absent while no price is known. */
  readonly cost?: number
  /** The tokens of its last request and answer, which the next request repeats; absent until the provider reports them. */
  readonly context?: number
}

/**
 * The run that the view shows: of a session the last one.
 *
 * @category models
 * @since 0.2.0
 */
export interface Shown {
  /** The id of the run. */
  readonly runId: string
  /** How the run ended, or whether it works. */
  readonly status: "running" | "paused" | RunStatus
  /** The first line of its prompt, at most 80 characters. */
  readonly title: string
  /** The model that the run began with. */
  readonly model: string
  /** The time of its start in milliseconds since the epoch. */
  readonly from: number
  /** The time of its end, absent until then. */
  readonly to?: number
  /** The number of tool calls that have ended, those of sub-agents included. */
  readonly toolCalls: number
  /** The number of tool calls, hooks and runs that failed. */
  readonly problems: number
  /** Its tokens so far, those of sub-agents included. */
  readonly usage: Usage
}

/**
 * How much a view holds.
 *
 * **Details**
 *
 * Of rows and turns a view may hold a fifth more before it leaves the oldest out, rows that have ended first.
 *
 * @category options
 * @since 0.2.0
 */
export interface Bounds {
  /** The most rows (default 500). */
  readonly rows: number
  /** The most turns in numbers (default 1000). */
  readonly turns: number
  /** The most characters of a result, of which the view keeps the end (default 4000). */
  readonly output: number
  /** The most characters of another text, of which the view keeps the start (default 100,000). */
  readonly text: number
  /** The most runs of sub-agents in one call (default 16). */
  readonly inside: number
}

/**
 * The state of a view.
 *
 * @category models
 * @since 0.2.0
 */
export interface View {
  /** The run, `undefined` before its first event. */
  readonly run: Shown | undefined
  /** The rows in the order of a tree: what is inside of a row follows it. A row that did not change is the same object. */
  readonly rows: ReadonlyArray<Block>
  /** The number of rows that the view no longer holds. */
  readonly dropped: number
  /** The requests that wait for a person, the oldest first, those of sub-agents included. */
  readonly asked: ReadonlyArray<ApprovalRequested | QuestionAsked>
  /** The number of messages that wait for the run. */
  readonly queued: { readonly steering: number; readonly followUp: number }
  /** The turns of the outermost runs, the oldest first. */
  readonly turns: ReadonlyArray<Turn>
  /** The tokens of all runs. */
  readonly usage: Usage
  /** The tokens of the runs before this one. */
  readonly usageBefore: Usage
  /** Why the run failed, `undefined` if it did not. */
  readonly error: string | undefined
  /** The position of the last event. */
  readonly position: number
  /** How much the view holds. */
  readonly bounds: Bounds
}

/**
 * An event and its position in a log, as watchers of `Runs` get it.
 *
 * @category models
 * @since 0.2.0
 */
export interface Positioned {
  /** The position of the event. */
  readonly position: number
  /** The event. */
  readonly event: AgentEvent
}

// ───────────────────────── Where a row stands, how it grows, and how many rows a view holds

/** The members that say where a row of an event stands. */
interface Place {
  readonly id: string
  readonly runId: string
  readonly depth: number
  readonly position: number
  readonly from: number
  readonly turn?: number
  readonly parent?: string
}

/** The id of the row of a turn. */
export const turnId = (runId: string, turn: number): string => `${runId}/turn-${turn}`

/** The place of a row that an event begins: in its turn, else in the call that its run is of. */
export const placeOf = (view: View, event: AgentEvent, id = `${event.runId}/${event.seq}`): Place => {
  const { runId, timestamp: from, turn } = event
  const depth = depthOf(event)
  const place = { id, runId, position: view.position, from }
  if (turn !== undefined) return { ...place, turn, depth: depth + 1, parent: turnId(runId, turn) }
  const call = callAround(view, event)
  return call === undefined ? { ...place, depth } : { ...place, depth, parent: call.id }
}

const depthOf = ({ path }: AgentEvent): number => (path?.length ?? 0) * 2

/** The row of a tool call of the run of an event. */
export const callOf = (view: View, event: AgentEvent, toolCallId: string): Block | undefined =>
  callAt(view, event.runId, toolCallId, depthOf(event) + 1)

/** The row of the call inside of which the run of an event is. */
export const callAround = (view: View, event: AgentEvent): Block | undefined =>
  event.parent && callAt(view, event.parent.runId, event.parent.toolCallId, depthOf(event) - 1)

/** The row of a call: one of the run, else one that is open since an earlier run. */
const callAt = ({ rows }: View, runId: string, toolCallId: string, depth: number): Block | undefined => {
  const isCall = (row: Block) =>
    row.toolCallId === toolCallId && (row.kind === "tool" || row.kind === "agent")
  return (
    rows.findLast((row) => isCall(row) && row.runId === runId && row.state !== "retracted") ??
    rows.findLast((row) => isCall(row) && row.depth === depth && isOpen(row))
  )
}

export const isOpen = ({ state }: Block): boolean => state === "running" || state === "waiting"

// ───────────────────────── Texts

export interface Said {
  readonly kind: Kind
  readonly title?: string
  readonly text?: string
  readonly result?: string
}

/** The members that say all that a row says. `title` is by default the start of the text. */
export const said = ({ bounds }: View, { kind, result = "", text = "", title }: Said) => ({
  kind,
  title: lineOf(title ?? lineOf(text, 80), 200),
  text: text.slice(0, bounds.text),
  result: result.slice(-bounds.output),
  bytes: bytesOf(text) + bytesOf(result),
  preview: lineOf(result === "" ? text : result, maxPreview),
  digest: digestOf(kind, title ?? "", text, result)
})

/** A block with what came back. */
export const answered = ({ bounds }: View, block: Block, result: string): Block => ({
  ...block,
  result: result.slice(-bounds.output),
  bytes: block.bytes + bytesOf(result),
  preview: lineOf(result === "" ? block.text : result, maxPreview),
  digest: digestOf(block.kind, block.title, block.text, result)
})

/** A block before it says anything. */
export const unsaid = (kind: Kind, title = "") =>
  ({ kind, title, text: "", result: "", bytes: 0, preview: "", digest: "", state: "running" }) as const

const maxPreview = 300

/** Appends a piece to the text of a block. */
export const grown = (block: Block, delta: string, { bounds }: View): Block => {
  const bytes = block.bytes + bytesOf(delta)
  if (block.text.length >= bounds.text) return { ...block, bytes }
  const whole = block.text + delta
  const text = whole.length > bounds.text ? whole.slice(0, bounds.text) : whole
  // The start does not change any more.
  if (block.text.length >= maxPreview * read) return { ...block, bytes, text }
  const title = block.toolCallId === undefined ? lineOf(text, 80) : block.title
  return { ...block, bytes, text, title, preview: lineOf(text, maxPreview) }
}

// ───────────────────────── Rows

/** Adds a row behind what is inside of its parent. `before`: the row that it stands before, if that is there. */
export const added = (view: View, block: Block, before?: string): View => {
  const rows = fitting(view)
  const dropped = view.dropped + view.rows.length - rows.length
  const at = before === undefined ? -1 : rows.findLastIndex(({ id }) => id === before)
  return { ...view, dropped, rows: rows.toSpliced(at === -1 ? endOf(rows, block.parent) : at, 0, block) }
}

/** The index behind the last row inside of a row. */
const endOf = (rows: ReadonlyArray<Block>, parent: string | undefined): number => {
  const at = parent === undefined ? -1 : rows.findLastIndex(({ id }) => id === parent)
  const depth = rows[at]?.depth ?? -1
  const next = rows.findIndex((row, index) => index > at && row.depth <= depth)
  return next === -1 ? rows.length : next
}

/** The rows, without the oldest where there are too many, those that have ended first. */
const fitting = ({ bounds, rows }: View): ReadonlyArray<Block> => {
  if (rows.length < bounds.rows * 1.2) return rows
  let excess = rows.length - bounds.rows
  return rows.filter((row) => isOpen(row) || excess-- <= 0).slice(-bounds.rows)
}

/** Changes the newest row that is meant, if there is one. */
export const changed = (view: View, isMeant: (row: Block) => boolean, next: (row: Block) => Block): View => {
  const at = view.rows.findLastIndex(isMeant)
  const row = view.rows[at]
  return row === undefined ? view : { ...view, rows: view.rows.with(at, next(row)) }
}

/** Changes all rows that are meant. */
export const changedAll = (
  view: View,
  isMeant: (row: Block) => boolean,
  next: (row: Block) => Block
): View =>
  view.rows.some(isMeant) ? { ...view, rows: view.rows.map((row) => (isMeant(row) ? next(row) : row)) } : view

/** Ends a row. */
export const ended =
  (state: State, to: number) =>
  (row: Block): Block => ({
    ...row,
    state,
    to,
    digest: row.digest === "" ? digestOf(row.kind, row.title, row.text, row.result) : row.digest
  })

/** Leaves out the oldest run of sub-agents inside of a call where there would be too many. */
export const withFewerRuns = (view: View, call: Block, runId: string): View => {
  const runs = new Set(view.rows.filter(({ parent }) => parent === call.id).map(({ runId }) => runId))
  if (runs.has(runId) || runs.size < view.bounds.inside) return view
  const [oldest] = runs
  let under = Infinity
  const rows = view.rows.filter((row) => {
    if (row.depth > under) return false
    under = row.runId === oldest ? row.depth : Infinity
    return under === Infinity
  })
  return { ...view, rows, dropped: view.dropped + view.rows.length - rows.length }
}

// ───────────────────────── The texts of rows: lines, sizes, digests, and values in words

/** A text on one line, with at most so many characters. Only its start counts. */
export const lineOf = (text: string, most: number): string => {
  const flat = text
    .slice(0, most * read)
    .replaceAll(/\s+/g, " ")
    .trim()
  return flat.length <= most ? flat : `${flat.slice(0, most - 1).replace(halfPair, "")}…`
}

/** How much of a text `lineOf` reads, in lengths of its line. */
const read = 4

const halfPair = /[\ud800-\udbff]$/

/** The first line that is not empty. */
export const firstLine = (text: string): string => lineOf(/\S.*/.exec(text.slice(0, 4000))?.[0] ?? "", 80)

/** The bytes of a text as UTF-8. */
const bytesOf = (text: string): number => {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    // Each half of a pair has two of its four bytes.
    bytes += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2
  }
  return bytes
}

/** The same for the same texts, and most likely another one for others. */
const digestOf = (...texts: ReadonlyArray<string>): string => {
  let high = 0x811c9dc5
  let low = 0x9e3779b9
  for (const text of texts) {
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      high = Math.imul(high ^ code, 0x01000193)
      low = Math.imul(low ^ code, 0x85ebca6b) ^ (high >>> 15)
    }
    high = Math.imul(high ^ 0x10000, 0x01000193)
  }
  return `${(high >>> 0).toString(16).padStart(8, "0")}${(low >>> 0).toString(16).padStart(8, "0")}`
}

type Content = Extract<Message, { readonly role: "user" | "assistant" | "toolResult" }>["content"]

/** The texts of blocks, and a mark for each image and file. */
export const textOf = (content: Content): string =>
  content
    .flatMap((block) => {
      if (block.type === "text") return [block.text]
      if (block.type !== "image" && block.type !== "file") return []
      const name = "name" in block ? block.name : undefined
      const type = "mediaType" in block.source ? block.source.mediaType : undefined
      return [`[${name ?? type ?? block.type}]`]
    })
    .join("\n")

/** A value as JSON, `""` for none. */
export const jsonOf = (value: unknown): string => (value === undefined ? "" : JSON.stringify(value))

/** A tool with the first argument of its call. */
export const callTitle = (name: string, params: unknown): string => {
  const [first] = typeof params === "object" && params !== null ? Object.values(params) : []
  return lineOf(`${name} ${lineOf(typeof first === "string" ? first : jsonOf(first), 80)}`, 200)
}

/** An error of an event in words. Events that came as JSON have members alone. */
export const wordsOf = ({ _tag = "Error", detail, message, provider, reason }: Words): string => {
  if (typeof message === "string" && message !== "") return message
  if (typeof reason === "object") return `${provider ?? ""}: ${wordsOf(reason)}`
  const words = detail ?? reason
  return words === undefined ? _tag : `${_tag}: ${words}`
}

/** An error of an event, as a class or as JSON. */
interface Words {
  readonly _tag?: string
  readonly message?: string
  readonly detail?: string
  readonly provider?: string
  readonly reason?: string | Words
}
