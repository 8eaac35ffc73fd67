/**
 * The folders that the file tools may read and write, and the check of a path against them.
 *
 * The check resolves symbolic links first, so a link inside a root works if its target is inside a root too.
 * Another process can change a path after the check. The tools close that gap by opening the folder and
 * checking it again, on Linux through the open folder. The check does not detect folders that are mounted into
 * a root, because a bind mount looks like any folder.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import { cutLine } from "./Output.ts"
import { FileFailed, PathRefused, type PathFailure, fromPlatform } from "./PathFailure.ts"

/**
 * The folders that the file tools may use.
 *
 * @since 0.1.0
 * @category options
 */
export interface Options {
  /**
   * The folder at which relative paths start.
   *
   * Always readable. Absolute, or relative to the working directory of the process.
   */
  readonly root: string
  /**
   * Further folders that the tools may read (default: none).
   *
   * Absolute, or relative to `root`.
   */
  readonly readRoots?: ReadonlyArray<string>
  /**
   * The folders that the tools may read and change.
   *
   * Absolute, or relative to `root`. Default: `root`. `[]`: none.
   */
  readonly writeRoots?: ReadonlyArray<string>
  /**
   * Whether the tools read a file that has several hard links (default: `"refuse"`).
   *
   * One of them may be outside the roots, and the system does not report where: where others than the user of the
   * process fill the roots, a link could show them what only the process may read. Package managers that link
   * files from a store (pnpm, uv) need `"allow"`, which the program sets, because it has the rights of its user.
   * Writing never changes the other links, because it replaces the file.
   */
  readonly hardLinks?: "refuse" | "allow"
  /**
   * Names of files and folders that `write` and `edit` refuse to change, with everything in them, at any depth
   * (default: `Protection.names`).
   *
   * Case-insensitive. If `.git` is among them, the tools also refuse git folders with other names and the
   * folder that `core.hooksPath` specifies. To add one name: `[...Protection.names, "keys"]`. `[]`: none.
   */
  readonly protect?: ReadonlyArray<string>
}

/**
 * The purpose for which a path is resolved.
 *
 * `write` covers creating and replacing.
 *
 * @since 0.1.0
 * @category models
 */
export type Access = "read" | "write"

/**
 * A path inside the roots.
 *
 * @since 0.1.0
 * @category models
 */
export interface Place {
  /** Real path of the deepest part that exists. */
  readonly existing: string
  /** Names below `existing` that do not exist yet. */
  readonly missing: ReadonlyArray<string>
  /** The path for display: relative to the root if it is inside, else absolute. */
  readonly shown: string
  /** Real paths of the roots against which the path was checked. */
  readonly roots: ReadonlyArray<string>
}

/**
 * Resolves a path against the roots.
 *
 * **Details**
 *
 * Fails with `PathRefused` if the path is outside the roots for `access`, empty, longer than 32,768 characters, a URL, or starts with `~`.
 * Fails with `FileFailed` if the root does not exist or the system refuses access. The path itself may be
 * missing.
 *
 * **Example** (Resolving a path)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { Root } from "effect-agent/tools"
 *
 * const program = Effect.gen(function* () {
 *   const { shown } = yield* Root.resolve({ root: "." }, "read", "./package.json")
 *   console.log(shown) // => package.json
 *   const failure = yield* Effect.flip(Root.resolve({ root: "." }, "read", "/etc/passwd"))
 *   console.log(failure._tag) // => PathRefused
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(NodeServices.layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const resolve = Effect.fnUntraced(function* (
  options: Options,
  access: Access,
  path: string
): Effect.fn.Return<Place, PathFailure, FileSystem.FileSystem | Path.Path> {
  const paths = yield* Path.Path
  const fault = misspelling(path, paths.sep)
  if (fault !== undefined) return yield* new PathRefused({ path: cutLine(path, 300), detail: fault })

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

/**
 * Whether `path` is `root` or below it.
 *
 * **Gotchas**
 *
 * Both must be absolute and free of symbolic links: the function compares texts.
 *
 * **Example** (Comparing two paths)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Path } from "effect"
 * import { Root } from "effect-agent/tools"
 *
 * const program = Effect.map(Path.Path, (paths) => Root.contains(paths, "/work", "/work/src/a.ts"))
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(NodeServices.layer)))) // => true
 * ```
 *
 * @since 0.1.0
 * @category predicates
 */
export const contains = (paths: Path.Path, root: string, path: string): boolean => {
  const relative = paths.relative(root, path)
  return relative !== ".." && !relative.startsWith(`..${paths.sep}`) && !paths.isAbsolute(relative)
}

/**
 * Whether an absolute path is in `/proc` or `/sys`, whose files show other processes and the machine.
 *
 * **Example** (Checking a path)
 *
 * ```ts
 * import { Root } from "effect-agent/tools"
 *
 * console.log(Root.isVirtual("/proc/self/environ")) // => true
 * ```
 *
 * @since 0.1.0
 * @category predicates
 */
export const isVirtual = (path: string): boolean => /^\/(?:proc|sys)(?:\/|$)/.test(path)

/** Maximum characters of a path: no system takes longer ones. */
const maxPath = 32_768

const misspelling = (path: string, separator: string): string | undefined => {
  if (path.length > maxPath) return `it has ${path.length} characters, and a path may have ${maxPath}`
  if (path.trim() === "") return "it is empty"
  if (path.includes("\0")) return "it holds a NUL character"
  if (/^~(?:\/|$)/.test(path)) return "~ is not expanded; give a path relative to the root"
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(path)) return "it is a URL; give a path"
  // On other systems a backslash is part of a name, but a model that writes such a path means one of Windows.
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

/** A further root that does not exist permits nothing. */
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

/**
 * The real path of an entry that exists. Fails for a dangling link, because creating a file through it would
 * create its target.
 */
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
