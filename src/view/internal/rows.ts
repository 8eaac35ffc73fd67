/** The rows of a view: where each stands, how it grows, and how many the view holds. */
import type { AgentEvent } from "../../AgentEvent.ts"
import type { Block, Kind, State, View } from "./model.ts"
import * as Texts from "./texts.ts"

/** The members that say where a row of an event stands. */
export interface Place {
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
  title: Texts.lineOf(title ?? Texts.lineOf(text, 80), 200),
  text: text.slice(0, bounds.text),
  result: result.slice(-bounds.output),
  bytes: Texts.bytesOf(text) + Texts.bytesOf(result),
  preview: Texts.lineOf(result === "" ? text : result, maxPreview),
  digest: Texts.digestOf(kind, title ?? "", text, result)
})

/** A block with what came back. */
export const answered = ({ bounds }: View, block: Block, result: string): Block => ({
  ...block,
  result: result.slice(-bounds.output),
  bytes: block.bytes + Texts.bytesOf(result),
  preview: Texts.lineOf(result === "" ? block.text : result, maxPreview),
  digest: Texts.digestOf(block.kind, block.title, block.text, result)
})

/** A block before it says anything. */
export const unsaid = (kind: Kind, title = "") =>
  ({ kind, title, text: "", result: "", bytes: 0, preview: "", digest: "", state: "running" }) as const

const maxPreview = 300

/** Appends a piece to the text of a block. */
export const grown = (block: Block, delta: string, { bounds }: View): Block => {
  const bytes = block.bytes + Texts.bytesOf(delta)
  if (block.text.length >= bounds.text) return { ...block, bytes }
  const whole = block.text + delta
  const text = whole.length > bounds.text ? whole.slice(0, bounds.text) : whole
  // The start does not change any more.
  if (block.text.length >= maxPreview * Texts.read) return { ...block, bytes, text }
  const title = block.toolCallId === undefined ? Texts.lineOf(text, 80) : block.title
  return { ...block, bytes, text, title, preview: Texts.lineOf(text, maxPreview) }
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
    digest: row.digest === "" ? Texts.digestOf(row.kind, row.title, row.text, row.result) : row.digest
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
