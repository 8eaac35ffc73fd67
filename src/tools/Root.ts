/**
 * Where tools may read and write: a few folders, and nothing that a path, a symbolic link or an odd name leads to
 * outside of them. A path is judged by the real path of what exists of it, so links inside the roots work as long as
 * they stay inside.
 *
 * What is checked here can change before it is used; `Folder` closes that gap where the system allows it. Out of reach:
 * folders mounted into a root (a bind mount looks like any folder).
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import { FileFailed, PathRefused, type PathFailure, fromPlatform } from "./PathFailure.ts"

/** The folders that tools may use, and how. */
export interface Options {
  /** Where relative paths start. Always readable. Relative to the folder of the process, or absolute. */
  readonly root: string
  /** Further folders that may be read, relative to the root or absolute. Default: none. */
  readonly readRoots?: ReadonlyArray<string>
  /** Folders that may be changed, and read, relative to the root or absolute. Default: the root. `[]`: none. */
  readonly writeRoots?: ReadonlyArray<string>
  /**
   * A file of several names (a hard link) may be the same file as one outside the roots, which nothing can tell. By
   * default such a file is not read; package managers that link from a store need `"allow"`. Writing never reaches the
   * other names: the file is replaced, not overwritten.
   */
  readonly hardLinks?: "refuse" | "allow"
  /**
   * Names of files and folders that `write` and `edit` refuse to change, wherever in the roots they are, and all that is
   * in them. In whatever case they are written. With `.git` among them, git's folders under other names and the folder
   * that `core.hooksPath` names are refused too. Default: `Protection.names`. To add one: `[...Protection.names, "keys"]`.
   * `[]`: nothing is protected.
   */
  readonly protect?: ReadonlyArray<string>
}

/** What a path is to be used for. Writing takes in making and replacing. */
export type Access = "read" | "write"

/** A path inside the roots. */
export interface Place {
  /** The real path of the deepest part that exists. */
  readonly existing: string
  /** Names below it that do not exist yet. */
  readonly missing: ReadonlyArray<string>
  /** For display: relative to the root, or absolute when outside of it. */
  readonly shown: string
  /** The real paths of the roots this place was judged by. */
  readonly roots: ReadonlyArray<string>
}

/** Finds out where `path` leads. Fails with `PathRefused` when that is outside the roots for `access`. */
export const resolve = Effect.fnUntraced(function* (
  options: Options,
  access: Access,
  path: string
): Effect.fn.Return<Place, PathFailure, FileSystem.FileSystem | Path.Path> {
  const paths = yield* Path.Path
  const fault = misspelling(path, paths.sep)
  if (fault !== undefined) return yield* new PathRefused({ path, detail: fault })

  const root = yield* realRoot(options.root)
  const { existing, missing } = yield* deepest(path, paths.resolve(options.root, path))
  const roots = yield* rootsFor(options, access, root)
  const where = paths.join(existing, ...missing)
  if (isVirtual(where))
    return yield* new PathRefused({ path, detail: "it is a view of the system, not a file" })
  if (!roots.some((inside) => contains(paths, inside, where))) {
    return yield* new PathRefused({ path, detail: allowed(access, root, roots) })
  }
  const shown = contains(paths, root, where) ? paths.relative(root, where) || "." : where
  return { existing, missing, shown, roots }
})

/** Whether `path` is `root` or below it. Both absolute and free of links. */
export const contains = (paths: Path.Path, root: string, path: string): boolean => {
  const relative = paths.relative(root, path)
  return relative !== ".." && !relative.startsWith(`..${paths.sep}`) && !paths.isAbsolute(relative)
}

/** Files there are made when they are read, and show other processes and the machine. */
export const isVirtual = (path: string): boolean => /^\/(?:proc|sys)(?:\/|$)/.test(path)

const misspelling = (path: string, separator: string): string | undefined => {
  if (path.trim() === "") return "it is empty"
  if (path.includes("\0")) return "it holds a NUL character"
  if (/^~(?:\/|$)/.test(path)) return "~ is not expanded; give a path relative to the root"
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(path)) return "it is a URL; give a path"
  // Elsewhere a backslash is part of a name; what looks like a path of Windows is meant as one.
  if (separator === "/" && /^[a-z]:[\\/]|^\\\\|^\.\.\\|\\\.\.(?:\\|$)/i.test(path)) {
    return "it is a path of Windows; use / between names"
  }
  return undefined
}

const realRoot = Effect.fnUntraced(function* (root: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  return yield* files
    .realPath(paths.resolve(root))
    .pipe(Effect.mapError((error) => fromPlatform("the root folder", error)))
})

/** A further root that does not exist allows nothing. */
const rootsFor = Effect.fnUntraced(function* (options: Options, access: Access, root: string) {
  const paths = yield* Path.Path
  const writable = options.writeRoots ?? [options.root]
  const all = access === "write" ? writable : [options.root, ...(options.readRoots ?? []), ...writable]
  const found = yield* Effect.forEach(Array.from(new Set(all)), (folder) =>
    folder === options.root ? Effect.succeedSome(root) : Effect.option(realRoot(paths.resolve(root, folder)))
  )
  return found.flatMap(Option.toArray)
})

const allowed = (access: Access, root: string, roots: ReadonlyArray<string>): string =>
  roots.length === 0
    ? `nothing may be ${access === "write" ? "changed" : "read"} here`
    : `it leads outside. Only paths inside ${roots.join(", ")} may be ${access === "write" ? "changed" : "read"}; ` +
      `a relative path starts at ${root}`

/** Follows links as far as the path exists. */
const deepest = Effect.fnUntraced(function* (path: string, absolute: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const missing: Array<string> = []
  let at = absolute
  while (true) {
    const entry = yield* Effect.result(files.lstat(at))
    if (entry._tag === "Success") return { existing: yield* realPath(path, at), missing }
    if (entry.failure.reason._tag !== "NotFound" || paths.dirname(at) === at) {
      return yield* fromPlatform(path, entry.failure)
    }
    missing.unshift(paths.basename(at))
    at = paths.dirname(at)
  }
})

/** The real path of what is there. A link that leads nowhere fails: a file made through it would appear at its target. */
const realPath = Effect.fnUntraced(function* (path: string, at: string) {
  const files = yield* FileSystem.FileSystem
  return yield* files
    .realPath(at)
    .pipe(
      Effect.mapError((error) =>
        error.reason._tag === "NotFound"
          ? new FileFailed({ path, reason: "other", detail: "it is a symbolic link to nothing" })
          : fromPlatform(path, error)
      )
    )
})
