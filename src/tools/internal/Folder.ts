/**
 * Holds a folder open while a tool uses it, so that renames and new links cannot replace the folder that was
 * checked.
 *
 * On Linux, paths go through the open folder (`/proc/self/fd/N/name`) and the kernel reports its real path, so
 * a race with another process cannot lead outside the roots. On other systems, the real path is checked again
 * after opening. That leaves a gap of some microseconds for a process that replaces folders by links. On all
 * systems, a read blocks if another process replaces the file by a pipe in that gap.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import { FileFailed, PathRefused, type PathFailure, fromPlatform } from "../PathFailure.ts"
import * as Root from "../Root.ts"

export interface Folder {
  /** Real path of the folder. */
  readonly path: string
  /** The path of an entry, for calls of `FileSystem`. */
  readonly at: (name: string) => string
  /** The path of the folder, for calls of `FileSystem`. */
  readonly here: string
  /** Whether `here` goes through the open folder, which no rename or link can redirect. */
  readonly anchored: boolean
  /** Writes the list of entries to the disk. */
  readonly sync: Effect.Effect<void, PlatformError>
  readonly options: Root.Options
  readonly roots: ReadonlyArray<string>
}

/** An open file and its metadata. */
export interface OpenFile {
  readonly file: FileSystem.File
  readonly info: FileSystem.File.Info
}

type Opens<A> = Effect.Effect<A, PathFailure, FileSystem.FileSystem | Path.Path | Scope.Scope>

/** Opens the folder at a real path. `shown` names it in failures. */
export const open = (
  options: Root.Options,
  roots: ReadonlyArray<string>,
  path: string,
  shown: string
): Opens<Folder> => hold(options, roots, path, path, shown)

/** Opens a folder inside a folder. Does not follow a link. */
export const enter = (folder: Folder, name: string, shown: string): Opens<Folder> =>
  Effect.flatMap(Path.Path, (paths) =>
    hold(folder.options, folder.roots, paths.join(folder.path, name), folder.at(name), shown)
  )

/** Creates the folder `name` if it is missing, and opens it. */
export const make = Effect.fnUntraced(function* (folder: Folder, name: string, shown: string) {
  const files = yield* FileSystem.FileSystem
  yield* files.makeDirectory(folder.at(name)).pipe(
    Effect.catchIf(
      (error) => error.reason._tag === "AlreadyExists",
      () => Effect.void
    ),
    Effect.mapError((error) => fromPlatform(shown, error))
  )
  return yield* enter(folder, name, shown)
})

/**
 * Opens a file of the folder for reading. Fails for folders, links, devices, pipes and sockets, and for files
 * with several names (hard links) unless the options allow them.
 */
export const openFile = Effect.fnUntraced(function* (
  folder: Folder,
  name: string,
  shown: string
): Effect.fn.Return<OpenFile, PathFailure, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const files = yield* FileSystem.FileSystem
  // `lstat` comes before opening, because opening a pipe waits for its other end.
  const entry = yield* files
    .lstat(folder.at(name))
    .pipe(Effect.mapError((error) => fromPlatform(shown, error)))
  yield* checkFile(folder, entry, shown)
  const file = yield* openNoFollow(folder.at(name)).pipe(
    Effect.mapError((error) => fromPlatform(shown, error))
  )
  const info = yield* file.stat.pipe(Effect.mapError((error) => fromPlatform(shown, error)))
  yield* checkFile(folder, info, shown)
  if (!sameFile(entry, info) || !(yield* isStillThere(folder, name))) return yield* changed(shown)
  return { file, info }
})

/** Whether both describe the same file. */
export const sameFile = (self: FileSystem.File.Info, that: FileSystem.File.Info): boolean =>
  self.dev === that.dev && Option.getOrUndefined(self.ino) === Option.getOrUndefined(that.ino)

/** The failure for a path that another process changed during the call. */
export const changed = (path: string): FileFailed =>
  new FileFailed({
    path,
    reason: "changed",
    detail: "another process changed it meanwhile; read it again"
  })

/** The failure for a file whose earlier content could not be kept. */
export const unchanged = (path: string, detail: string): FileFailed =>
  new FileFailed({ path, reason: "other", detail: `its earlier content could not be kept: ${detail}` })

/** The current path of the open folder. Another process may have renamed it. */
export const current = Effect.fnUntraced(function* (folder: Folder, shown: string) {
  const files = yield* FileSystem.FileSystem
  const path = folder.anchored ? files.readLink(folder.here) : files.realPath(folder.here)
  return yield* Effect.mapError(path, (error) => fromPlatform(shown, error))
})

const hold = Effect.fnUntraced(function* (
  options: Root.Options,
  roots: ReadonlyArray<string>,
  path: string,
  through: string,
  shown: string
): Effect.fn.Return<Folder, PathFailure, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const file = yield* openNoFollow(through).pipe(Effect.mapError((error) => fromPlatform(shown, error)))
  const info = yield* file.stat.pipe(Effect.mapError((error) => fromPlatform(shown, error)))
  if (info.type !== "Directory") {
    return yield* new FileFailed({ path: shown, reason: "notFolder", detail: "it is not a folder" })
  }
  const anchor = yield* anchorOf(file)
  const where =
    anchor?.where ??
    (yield* files.realPath(path).pipe(Effect.mapError((error) => fromPlatform(shown, error))))
  if (Root.isVirtual(where) || !roots.some((root) => Root.contains(paths, root, where))) {
    return yield* new PathRefused({ path: shown, detail: "it now leads outside the roots" })
  }
  const here = anchor?.through ?? where
  const at = (name: string) => paths.join(here, name)
  return { path: where, here, at, anchored: anchor !== undefined, sync: file.sync, options, roots }
})

/** The path through the open folder and its real path, `undefined` on systems without such paths. */
const anchorOf = Effect.fnUntraced(function* (file: FileSystem.File) {
  const files = yield* FileSystem.FileSystem
  // The type `File` has no descriptor, but the files of Node and Bun have `fd`.
  if (!Predicate.hasProperty(file, "fd") || typeof file.fd !== "number") return undefined
  const through = `/proc/self/fd/${file.fd}`
  const where = yield* Effect.option(files.readLink(through))
  return where._tag === "Some" ? { through, where: where.value } : undefined
})

const isStillThere = Effect.fnUntraced(function* (folder: Folder, name: string) {
  if (folder.anchored) return true
  const files = yield* FileSystem.FileSystem
  return yield* files.realPath(folder.at(name)).pipe(
    Effect.map((real) => real === folder.at(name)),
    Effect.orElseSucceed(() => false)
  )
})

const openNoFollow = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  return yield* files.open(path, { flag: "r", noFollow: true }).pipe(
    // Some systems do not support this flag. The checks after opening remain.
    Effect.catchIf(
      (error) => error.reason._tag === "BadArgument",
      () => files.open(path, { flag: "r" })
    )
  )
})

const checkFile = (
  folder: Folder,
  info: FileSystem.File.Info,
  shown: string
): Effect.Effect<void, PathFailure> => {
  if (info.type === "Directory") {
    return Effect.fail(new FileFailed({ path: shown, reason: "isFolder", detail: "it is a folder" }))
  }
  if (info.type !== "File") {
    return Effect.fail(new PathRefused({ path: shown, detail: `it is a ${info.type}, not a file` }))
  }
  if (!isRefusedLink(folder.options, info)) return Effect.void
  return Effect.fail(
    new PathRefused({
      path: shown,
      detail:
        "it is a hard link, and its content may be that of a file outside the roots. The option hardLinks of the tools permits it"
    })
  )
}

/** Whether a file has several names (hard links), and the options refuse that. */
export const isRefusedLink = ({ hardLinks }: Root.Options, { nlink }: FileSystem.File.Info): boolean =>
  hardLinks !== "allow" && Option.getOrElse(nlink, () => 1n) > 1n
