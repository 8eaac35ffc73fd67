/** The records of what calls have changed in files, and of what was taken back; and the fold of them. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Version from "./Version.ts"

/** A change of a file. */
export const Change = Schema.Struct({ path: Schema.String, before: Version.Version, after: Version.Version })
export interface Change extends Schema.Schema.Type<typeof Change> {}

/** Changes of a run: those that are made, or those that were taken back. */
export const Item = Schema.Struct({
  /** The id of the run. */
  runId: Schema.String,
  changes: Schema.Array(Change),
  /** Changes that stayed when the others were taken back. */
  idle: Schema.Array(Change)
})
export interface Item extends Schema.Schema.Type<typeof Item> {}

const Write = Schema.Struct({ path: Schema.String, from: Version.Version, to: Version.Version })
export interface Write extends Schema.Schema.Type<typeof Write> {}

const base = { id: Schema.String, runId: Schema.String }

export const Record = Schema.Union([
  /** A call is about to change a file. */
  Schema.Struct({ type: Schema.Literal("file"), ...base, ...Change.fields }),
  /** A command is about to begin. `snapshot` is the hash of what was there before. */
  Schema.Struct({ type: Schema.Literal("begin"), ...base, root: Schema.String, snapshot: Schema.String }),
  /** A command has ended. */
  Schema.Struct({
    type: Schema.Literal("end"),
    ...base,
    changes: Schema.Array(Change),
    notKept: Schema.Array(Schema.String)
  }),
  /** Files are about to go back, or forth again. `items` replace as many of the other direction. */
  Schema.Struct({
    type: Schema.Literal("restore"),
    id: Schema.String,
    direction: Schema.Literals(["back", "forth"]),
    items: Schema.Array(Item),
    writes: Schema.Array(Write)
  }),
  /** All files of a restore are written, or all are as before. */
  Schema.Struct({ type: Schema.Literal("restored"), id: Schema.String, isDone: Schema.Boolean }),
  /** The model knows of all restores. */
  Schema.Struct({ type: Schema.Literal("reported") })
])
export type Record = typeof Record.Type
export type Restore = Extract<Record, { readonly type: "restore" }>
export type Begin = Extract<Record, { readonly type: "begin" }>

const json = Schema.fromJsonString(Record)
const decode = Schema.decodeUnknownOption(json)
export const encode = Schema.encodeEffect(json)

/** The records of the lines that hold one. */
export const read = (lines: ReadonlyArray<string>): ReadonlyArray<Record> =>
  lines.flatMap((line) => Option.toArray(decode(line)))

interface Intended extends Change {
  readonly runId: string
}

export interface State {
  /** The changes that can be taken back, oldest first. */
  readonly back: ReadonlyArray<Item>
  /** The changes that can be made again; the last one was taken back last. */
  readonly forth: ReadonlyArray<Item>
  /** Commands without an end. */
  readonly begun: ReadonlyArray<Begin>
  /** The last change of each file that a call was about to make. Where a process was killed, or the call failed, it was not made. */
  readonly intended: ReadonlyMap<string, Intended>
  /** A restore without an end. */
  readonly restore: Restore | undefined
  /** The paths that commands changed, and of which nothing is kept. */
  readonly notKept: ReadonlySet<string>
  /** The files that restores wrote, and of which the model does not know. */
  readonly unreported: ReadonlyArray<Write>
}

export const initial: State = {
  back: [],
  forth: [],
  begun: [],
  intended: new Map(),
  restore: undefined,
  notKept: new Set(),
  unreported: []
}

/** Adds changes of a run to those that it made before. */
const add = (state: State, runId: string, changes: ReadonlyArray<Change>): State => {
  const real = changes.filter(({ after, before }) => !Version.isEqual(before, after))
  if (real.length === 0) return state
  const last = state.back.at(-1)
  const merges = last !== undefined && last.runId === runId && last.idle.length === 0
  const byPath = new Map((merges ? last.changes : []).map((change) => [change.path, change]))
  for (const change of real) {
    const { before } = byPath.get(change.path) ?? change
    byPath.set(change.path, { ...change, before })
  }
  const item: Item = { runId, changes: [...byPath.values()], idle: [] }
  return { ...state, back: [...(merges ? state.back.slice(0, -1) : state.back), item], forth: [] }
}

/** Adds the changes of a command, and of a call that was not made. One that brings a file back to where its run found it undoes that run's. */
const end = (state: State, runId: string, changes: ReadonlyArray<Change>): State => {
  const back = [...state.back]
  const others = changes.filter(({ after, path }) => {
    const at = back.findLastIndex((item) => item.changes.some((change) => change.path === path))
    const item = back[at]
    const made = item?.changes.find((change) => change.path === path)
    if (item?.runId !== runId || made === undefined || !Version.isEqual(made.before, after)) return true
    back[at] = { ...item, changes: item.changes.filter((change) => change !== made) }
    return false
  })
  const left = back.filter(({ changes, idle }) => changes.length + idle.length > 0)
  return add({ ...state, back: left }, runId, others)
}

export const step = (state: State, record: Record): State => {
  switch (record.type) {
    case "file":
      return {
        ...add(state, record.runId, [record]),
        intended: new Map(state.intended).set(record.path, record)
      }
    case "begin":
      return { ...state, begun: [...state.begun, record] }
    case "end":
      return {
        ...end(state, record.runId, record.changes),
        intended: without(state.intended, record.changes),
        begun: state.begun.filter(({ id }) => id !== record.id),
        notKept: new Set([...state.notKept, ...record.notKept])
      }
    case "restore":
      return { ...state, restore: record }
    case "restored":
      return state.restore?.id === record.id
        ? {
            ...(record.isDone ? moved(state, state.restore) : state),
            intended: without(state.intended, state.restore.writes),
            restore: undefined
          }
        : state
    case "reported":
      return { ...state, unreported: [] }
  }
}

const without = (intended: State["intended"], paths: ReadonlyArray<{ readonly path: string }>) => {
  const gone = new Set(paths.map(({ path }) => path))
  return new Map([...intended].filter(([path]) => !gone.has(path)))
}

/** One write for each file, without those that are undone. */
const joined = (writes: ReadonlyArray<Write>): ReadonlyArray<Write> => {
  const byPath = new Map<string, Write>()
  for (const write of writes)
    byPath.set(write.path, { ...write, from: byPath.get(write.path)?.from ?? write.from })
  return [...byPath.values()].filter(({ from, to }) => !Version.isEqual(from, to))
}

const moved = (state: State, { direction, items, writes }: Restore): State => {
  const [from, to] = direction === "back" ? [state.back, state.forth] : [state.forth, state.back]
  const [left, other] = [from.slice(0, from.length - items.length), [...to, ...items]]
  const unreported = joined([...state.unreported, ...writes])
  return direction === "back"
    ? { ...state, back: left, forth: other, unreported }
    : { ...state, forth: left, back: other, unreported }
}
