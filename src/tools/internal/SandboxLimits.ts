/** The limits of a sandbox: the folders that its commands may change, and the paths that they cannot see. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as GitFolders from "./GitFolders.ts"
import * as Root from "../Root.ts"

/** All paths are real paths of existing files and folders. */
export interface Limits {
  readonly root: string
  /** The folders that commands may change, with `root`. */
  readonly writable: ReadonlyArray<string>
  /** Files and folders inside `writable` that commands must not change. */
  readonly readOnly: ReadonlyArray<string>
  /** Names that commands must not change inside `writable`, where the system can enforce it for new files too. */
  readonly protect: ReadonlyArray<string>
  readonly hidden: ReadonlyArray<Hidden>
  /** Files and folders inside hidden ones that commands can read. */
  readonly shown: ReadonlyArray<string>
  readonly network: boolean
}

export interface Hidden {
  readonly path: string
  readonly isFolder: boolean
}

export interface Input {
  readonly root: string
  readonly writable: ReadonlyArray<string>
  readonly protect: ReadonlyArray<string>
  readonly hidden: ReadonlyArray<string>
  readonly shown: ReadonlyArray<string>
  readonly network: boolean
}

/** Resolves all paths, and finds the protected ones. Fails if the root is not there, or the search fails. */
export const of = Effect.fnUntraced(function* (input: Input) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const root = yield* files.realPath(paths.resolve(input.root))
  const writable = yield* existing(outermost(paths, [root, paths.resolve(input.root)], input.writable))
  const hidden = yield* existing(input.hidden.map((path) => paths.resolve(root, path)))
  const isHidden = (path: string) => hidden.some((one) => Root.contains(paths, one.path, path))
  const shown = (yield* existing(input.shown)).flatMap(({ path }) => (isHidden(path) ? [path] : []))
  const folders = [root, ...writable.flatMap(({ isFolder, path }) => (isFolder ? [path] : []))]
  const isHiddenIn = (folder: string) => (path: string) =>
    hidden.some(
      (one) =>
        one.path !== folder && Root.contains(paths, folder, one.path) && Root.contains(paths, one.path, path)
    )
  const found = yield* protectedIn(folders, input.protect)
  // To mount a hidden path as a read-only one would show it.
  const readOnly = found.filter(
    (path) => !folders.some((folder) => Root.contains(paths, folder, path) && isHiddenIn(folder)(path))
  )
  const { network, protect } = input
  return { root, writable: folders, readOnly, protect, hidden, shown, network } satisfies Limits
})

/**
 * The folders that no other one contains. A command can replace a folder inside another one by a link, which
 * would make the target of the link writable for the next command.
 */
const outermost = (
  paths: Path.Path,
  roots: readonly [root: string, spelled: string],
  folders: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const all = folders.map((folder) => paths.resolve(roots[0], folder))
  const isIn = (folder: string) => (other: string) => Root.contains(paths, other, folder)
  return all.filter(
    (folder) => !roots.some(isIn(folder)) && !all.filter((other) => other !== folder).some(isIn(folder))
  )
}

/** The real paths of those that exist, each once. */
const existing = Effect.fnUntraced(function* (wanted: ReadonlyArray<string>) {
  const files = yield* FileSystem.FileSystem
  const look = (path: string) =>
    Effect.gen(function* () {
      const real = yield* files.realPath(path)
      const { type } = yield* files.stat(real)
      return [[real, { path: real, isFolder: type === "Directory" }]] as const
    }).pipe(Effect.orElseSucceed(() => []))
  const found = yield* Effect.forEach(wanted, look, { concurrency: 16 })
  return Array.from(new Map(found.flat()).values())
})

/** Folders below a writable one that the search of protected names reaches. */
const maxDepth = 5

/** The folders of `find` on the usual systems. Commands cannot change these folders. */
const systemFolders = "/usr/bin:/bin:/run/current-system/sw/bin"

/** Protected files and folders that exist. A search in `node_modules` would take too long. */
const protectedIn = Effect.fnUntraced(function* (
  folders: ReadonlyArray<string>,
  protect: ReadonlyArray<string>
): Effect.fn.Return<
  ReadonlyArray<string>,
  PlatformError,
  FileSystem.FileSystem | Path.Path | ChildProcessSpawner
> {
  const paths = yield* Path.Path
  const [first, ...others] = protect.map((name) => ["-iname", name.replace(/[\\*?[]/g, "\\$&")])
  if (first === undefined) return []
  const names = [...first, ...others.flatMap((name) => ["-o", ...name])]
  const skip = ["-name", "node_modules", "-prune"]
  const args = [
    ...folders,
    "-mindepth",
    "1",
    "-maxdepth",
    `${maxDepth}`,
    ...skip,
    "-o",
    "(",
    ...names,
    ")",
    "-prune",
    "-print0"
  ]
  const spawner = yield* ChildProcessSpawner
  const found = yield* spawner.string(
    ChildProcess.make("find", args, { env: { PATH: systemFolders }, stdin: "ignore", stderr: "ignore" })
  )
  const hooks = protect.includes(".git") ? yield* Effect.forEach(folders, GitFolders.hooksOf) : []
  // A command can take away the permission to list a folder. That does not hide a file whose name is known.
  const known = folders.flatMap((folder) => protect.map((name) => paths.join(folder, name)))
  const all = [...known, ...found.split("\0"), ...hooks.flatMap((folder) => folder ?? [])]
  const real = (yield* existing(all.filter((path) => path !== ""))).map(({ path }) => path)
  return real.filter((path) =>
    folders.some((folder) => folder !== path && Root.contains(paths, folder, path))
  )
})
