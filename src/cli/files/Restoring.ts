/** Takes back what calls have changed in files, or makes it again. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import { KeepFailed, type KeptStore } from "./KeptStore.ts"
import type { Change, Item, Restore, Write } from "./Ledger.ts"
import type { Reads } from "./Snapshot.ts"
import * as Version from "./Version.ts"

export type Direction = "back" | "forth"

export interface Plan {
  readonly direction: Direction
  /** The items for the other direction, with the versions that they would bring back. */
  readonly items: ReadonlyArray<Item>
  readonly writes: ReadonlyArray<Write>
  /** The paths whose content is not what the agent left. */
  readonly conflicts: ReadonlyArray<string>
  /** The paths of which no version is kept: they stay as they are. */
  readonly notKept: ReadonlyArray<string>
}

/** Plans the way of items back, or forth again, in this order. The paths of `kept` stay as they are. */
export const plan = Effect.fnUntraced(function* (
  direction: Direction,
  items: ReadonlyArray<Item>,
  kept: ReadonlySet<string>,
  read: Reads
) {
  const isBack = direction === "back"
  const [source, goal] = isBack ? (["after", "before"] as const) : (["before", "after"] as const)
  const found = new Map<string, Version.Version>()
  const now = new Map<string, Version.Version>()
  const conflicts = new Set<string>()
  const notKept = new Set<string>()
  const gone: Array<Item> = []
  for (const item of items) {
    const done: Array<Change> = []
    const stayed: Array<Change> = []
    for (const change of isBack ? [...item.changes, ...item.idle] : item.changes) {
      const { path } = change
      const here = now.get(path) ?? (yield* read(path))
      if (!found.has(path)) found.set(path, here)
      now.set(path, here)
      const target = change[goal]
      // The version that is there now must not be lost either.
      if (!Version.isKept(target) || !Version.isKept(here)) notKept.add(path)
      if (kept.has(path) || notKept.has(path) || !(yield* isAt(path))) {
        stayed.push(change)
        if (!kept.has(path)) notKept.add(path)
        continue
      }
      if (!Version.isSame(here, change[source]) && !Version.isSame(here, target)) conflicts.add(path)
      now.set(path, target)
      done.push({ ...change, [source]: here })
    }
    gone.push(
      isBack
        ? { ...item, changes: done, idle: stayed }
        : { ...item, changes: [...done, ...stayed, ...item.idle], idle: [] }
    )
  }
  const writes = [...now].flatMap(([path, to]) => {
    const from = found.get(path)
    return from === undefined || Version.isEqual(from, to) ? [] : [{ path, from, to }]
  })
  // A file that goes away makes room for a folder of its name.
  const ordered = [...writes.filter(isRemoved), ...writes.filter((write) => !isRemoved(write))]
  const result: Plan = {
    direction,
    items: gone,
    writes: ordered,
    conflicts: [...conflicts],
    notKept: [...notKept]
  }
  return result
})

const isRemoved = ({ to }: Write): boolean => to.kind === "absent"

/** Whether a path leads to where it led when it was recorded: no folder of it has become a link. */
const isAt = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  let folder = paths.dirname(path)
  while (folder !== paths.dirname(folder)) {
    const real = yield* Effect.option(files.realPath(folder))
    if (real._tag === "Some") return real.value === folder
    folder = paths.dirname(folder)
  }
  return true
})

/** Brings each file of a restore to one of its two versions. A file that is neither of them stays: a person has changed it. */
export const write = Effect.fnUntraced(function* (
  { id, writes }: Restore,
  side: "from" | "to",
  store: KeptStore
): Effect.fn.Return<void, KeepFailed, FileSystem.FileSystem | Path.Path> {
  const other = side === "to" ? "from" : "to"
  const ordered = side === "to" ? writes : writes.toReversed()
  for (const one of ordered) {
    const { path } = one
    const to = one[side]
    const { version: here } = yield* Effect.mapError(Version.read(path, Infinity), failed(path))
    if (Version.isEqual(here, to) || !Version.isSame(here, one[other]) || !(yield* isAt(path))) continue
    const content = to.kind === "file" ? { content: yield* contentOf(store, to, path) } : {}
    yield* Effect.mapError(
      Version.put(path, { version: to, ...content }, `.effect-agent-${id}.tmp`),
      failed(path)
    )
  }
})

/** The content of a version, if the store has it whole. */
const contentOf = Effect.fnUntraced(function* (store: KeptStore, { hash }: Version.File, path: string) {
  const content = yield* store.get(hash)
  return Version.hashOf(content) === hash
    ? content
    : yield* new KeepFailed({ detail: `the version of ${path} is damaged` })
})

const failed = (path: string) => (error: PlatformError) =>
  new KeepFailed({ detail: `${path}: ${error.message}` })
