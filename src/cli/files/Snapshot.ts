/** The files that a command may change: in a git work tree those that are not clean, else all files of a folder. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import { execFile } from "node:child_process"
import type { KeepFailed } from "./KeptStore.ts"
import type { Change } from "./Ledger.ts"
import * as Version from "./Version.ts"

export const Snapshot = Schema.Struct({
  /** The folder of the work tree, or of the command. */
  top: Schema.String,
  /** Whether it is a work tree. */
  isTree: Schema.Boolean,
  /** The commit that has the clean files; absent where there is none. */
  base: Schema.optionalKey(Schema.String),
  files: Schema.Array(Schema.Tuple([Schema.String, Version.Version])),
  /** Whether there are more files than the snapshot has. */
  isPartial: Schema.Boolean
})
export interface Snapshot extends Schema.Schema.Type<typeof Snapshot> {}

/** The most files and bytes of a folder that is no work tree. */
const maxFiles = 2_000
const maxBytes = 50_000_000
/** The most files of a work tree that are not clean. */
const maxChanged = 10_000

/** Reads a version, and keeps its content. */
export type Reads = (
  path: string,
  limit?: number
) => Effect.Effect<Version.Version, PlatformError | KeepFailed>
/** Keeps a content, as a file with a mode. */
export type Keeps = (content: Uint8Array, mode?: number) => Effect.Effect<Version.Version, KeepFailed>
// ───────────────────────── git

/** Runs git, which must not write to the repository, nor run a program that the repository names. */
const git = (folder: string, args: ReadonlyArray<string>): Effect.Effect<Option.Option<Uint8Array>> =>
  Effect.callback((resume) => {
    const { GIT_DIR: _d, GIT_INDEX_FILE: _i, GIT_WORK_TREE: _w, ...inherited } = process.env
    const env = { ...inherited, GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C" }
    const fixed = ["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]
    const options = { cwd: folder, env, encoding: "buffer", maxBuffer: 200_000_000 } as const
    const child = execFile("git", [...fixed, ...args], options, (error, stdout) =>
      resume(Effect.succeed(error === null ? Option.some(stdout) : Option.none()))
    )
    return Effect.sync(() => child.kill())
  })

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
const partsOf = (bytes: Uint8Array): ReadonlyArray<string> =>
  text(bytes)
    .split("\0")
    .filter((part) => part !== "")

/** The folder of the work tree that a folder is in; none for a folder that the work tree ignores. */
const treeOf = Effect.fnUntraced(function* (folder: string) {
  const top = yield* git(folder, ["rev-parse", "--show-toplevel"])
  if (Option.isNone(top)) return Option.none()
  const ignored = yield* git(folder, ["check-ignore", "--quiet", "--", folder])
  return Option.isSome(ignored) ? Option.none() : Option.some(text(top.value).replace(/\n$/, ""))
})

const headOf = (top: string) =>
  Effect.map(
    git(top, ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]),
    Option.map((bytes) => text(bytes).trim())
  )

/** The paths of a work tree that are not clean, and not ignored. */
const changedIn = (top: string) =>
  Effect.map(
    git(top, [
      "status",
      "--porcelain=v2",
      "-z",
      "--no-renames",
      "--untracked-files=all",
      "--ignore-submodules=all"
    ]),
    Option.map((bytes) => partsOf(bytes).flatMap((line) => pathOf(line)))
  )

const pathOf = (line: string): ReadonlyArray<string> => {
  const fields = { "1": 8, u: 10, "?": 1 }[line[0] ?? ""]
  if (fields === undefined) return []
  const path = line.split(" ").slice(fields).join(" ")
  // An untracked repository ends in a slash.
  return path.endsWith("/") ? [] : [path]
}

/** The paths that differ between two commits. */
const between = (top: string, base: string, head: string) =>
  Effect.map(
    git(top, ["diff-tree", "-r", "-z", "--name-only", "--no-renames", base, head]),
    Option.match({ onNone: () => [], onSome: partsOf })
  )

/** The version of a clean file, with its content as a check-out would write it. */
const clean = Effect.fnUntraced(function* (
  { base, top }: Snapshot,
  name: string,
  after: Version.Version,
  keep: Keeps
) {
  if (base === undefined) return Version.absent
  const listed = yield* git(top, ["--literal-pathspecs", "ls-tree", "-z", "--full-tree", base, "--", name])
  if (Option.isNone(listed)) return unknown
  const [bits = "", type] = text(listed.value).split(/\s/)
  if (bits === "") return Version.absent
  if (type !== "blob") return unknown
  const content = yield* git(top, ["cat-file", "--filters", `${base}:${name}`])
  if (Option.isNone(content)) return unknown
  if (bits === "120000") return { kind: "link" as const, target: text(content.value) }
  const run = bits === "100755" ? 0o111 : 0
  const rights = after.kind === "file" ? (after.mode ?? 0o644) : 0o644
  return yield* keep(content.value, (rights & ~0o111) | run)
})

const unknown: Version.Version = { kind: "other", stamp: "unknown" }

// ───────────────────────── Taking and comparing

/** Takes a snapshot of what a command in a folder may change. */
export const take = Effect.fnUntraced(function* (root: string, read: Reads) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* Effect.orElseSucceed(files.realPath(root), () => root)
  const tree = yield* treeOf(folder)
  const changed = Option.isSome(tree) ? yield* changedIn(tree.value) : Option.none()
  return yield* Option.isSome(tree) && Option.isSome(changed)
    ? ofTree(tree.value, changed.value, read)
    : ofFolder(folder, read)
})

const ofTree = Effect.fnUntraced(function* (top: string, names: ReadonlyArray<string>, read: Reads) {
  const paths = yield* Path.Path
  const base = yield* headOf(top)
  const found = yield* Effect.forEach(
    names.slice(0, maxChanged),
    (name) => Effect.map(read(paths.join(top, name)), (version) => [name, version] as const),
    { concurrency: 8 }
  )
  const snapshot: Snapshot = {
    top,
    isTree: true,
    ...(Option.isSome(base) ? { base: base.value } : {}),
    files: found,
    isPartial: names.length > maxChanged
  }
  return snapshot
})

const ofFolder = Effect.fnUntraced(function* (top: string, read: Reads) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const found = new Map<string, Version.Version>()
  const folders = [""]
  let bytes = 0
  let isPartial = false
  for (const folder of folders) {
    const entries = yield* Effect.orElseSucceed(
      files.readDirectoryEntries(paths.join(top, folder)),
      (): ReadonlyArray<FileSystem.DirectoryEntry> => []
    )
    for (const { name: own, type } of entries) {
      const name = paths.join(folder, own)
      if (type === "Directory") {
        if (own !== ".git") folders.push(name)
        continue
      }
      if (type !== "File" && type !== "SymbolicLink") continue
      isPartial ||= found.size >= maxFiles
      if (isPartial) break
      const path = paths.join(top, name)
      const { size } = yield* files.lstat(path)
      const isOver = bytes + Number(size) > maxBytes
      if (!isOver) bytes += Number(size)
      found.set(name, yield* read(path, isOver ? -1 : undefined))
    }
    if (isPartial) break
  }
  const snapshot: Snapshot = { top, isTree: false, files: [...found], isPartial }
  return snapshot
})

/** The changes since a snapshot, and the paths that changed and were not kept. */
export const compare = Effect.fnUntraced(function* (before: Snapshot, read: Reads, keep: Keeps) {
  const paths = yield* Path.Path
  const after = before.isTree
    ? yield* ofTree(
        before.top,
        Option.getOrElse(yield* changedIn(before.top), () => []),
        read
      )
    : yield* ofFolder(before.top, read)
  const moved =
    before.base !== undefined && after.base !== undefined && before.base !== after.base
      ? yield* between(before.top, before.base, after.base)
      : []
  const [earlier, later] = [new Map(before.files), new Map(after.files)]
  const names = new Set([...earlier.keys(), ...later.keys(), ...moved])
  const changes: Array<Change> = []
  const notKept: Array<string> = []
  for (const name of names) {
    const path = paths.join(before.top, name)
    const now = later.get(name) ?? (yield* read(path))
    const then =
      earlier.get(name) ??
      (yield* before.isTree
        ? clean(before, name, now, keep)
        : Effect.succeed(before.isPartial ? unknown : Version.absent))
    if (Version.isEqual(then, now)) continue
    if (Version.isKept(then)) changes.push({ path, before: then, after: now })
    else notKept.push(path)
  }
  if (before.isPartial || after.isPartial) notKept.push(paths.join(before.top, "…"))
  return { changes, notKept }
})
