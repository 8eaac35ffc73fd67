/**
 * Visits the entries below a folder, in the order of their names.
 *
 * A walk does not follow symbolic links, so it cannot leave the folder or loop.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Folder from "./Folder.ts"
import * as IgnoreRules from "./IgnoreRules.ts"
import { visible } from "../Output.ts"
import * as Paced from "../Paced.ts"
import { type PathFailure, fromPlatform } from "../PathFailure.ts"
import * as Root from "../Root.ts"

/**
 * The folders that `grep` and `find` may search, and for how long.
 *
 * @since 0.2.0
 * @category options
 */
export interface Options extends Root.Options {
  /**
   * Maximum time of one call of `grep`, `find` or `list` (default: 10 seconds).
   *
   * The call then returns the results it has and reports that the search is incomplete. `"Infinity"`: only the
   * timeout of the tool limits the call.
   */
  readonly searchTime?: Duration.Input
}

/** Starts the time budget of one call. */
export const budget = ({ searchTime = "10 seconds" }: Options): Effect.Effect<Paced.Budget> =>
  Paced.budget(Duration.fromInputUnsafe(searchTime))

/** The note for the model if the budget ran out. */
export const lateNote = ({ time }: Paced.Budget): string =>
  `[Stopped after ${Duration.toSeconds(time)} seconds: not all was searched. Narrow the pattern or the path.]`

/** The parameter `includeIgnored` of `list`, `find` and `grep`. */
export const includeIgnored = Schema.optionalKey(Schema.Boolean).annotate({
  description: "Include node_modules and paths that .gitignore ignores. Default: false"
})

/** The sentence on ignored paths in the descriptions of `list`, `find` and `grep`. */
export const leavesOut =
  "Leaves out .git, node_modules and paths that .gitignore ignores, unless path names them or includeIgnored is set."

export interface Entry {
  readonly folder: Folder.Folder
  readonly name: string
  readonly type: FileSystem.File.Type
  /** The path relative to the folder of the walk, with `/` between names. */
  readonly path: string
  /** Number of ignored paths before it. */
  readonly ignored: number
}

/** The return value of a visitor: whether the walk continues. */
export type Step = "continue" | "stop"

type Services = FileSystem.FileSystem | Path.Path

/** Reasons for which a search did not look at a path, in the singular. */
export type Reason =
  | "binary file"
  | "non-UTF-8 file"
  | "large file"
  | "hard link"
  | "link"
  | "unreadable path"

/** The paths at which a search did not look, relative to its folder. */
export type Missed = Map<Reason, Array<string>>

/** Adds a path. */
export const miss = (missed: Missed, reason: Reason, path: string): void => {
  const paths = missed.get(reason)
  if (paths === undefined) missed.set(reason, [path])
  else paths.push(path)
}

/** The note for the model about paths at which a search did not look, empty if there are none. */
export const missedNote = (shown: string, missed: Missed): ReadonlyArray<string> => {
  const reasons = Array.from(missed, ([reason, paths]) => {
    const some = paths.slice(0, 3).map((path) => visible(below(shown, path)))
    const rest = paths.length > some.length ? ", ..." : ""
    return `${paths.length} ${reason}${paths.length === 1 ? "" : "s"} (${some.join(", ")}${rest})`
  })
  return reasons.length === 0 ? [] : [`[Not searched: ${reasons.toSorted().join(", ")}.]`]
}

/** The outcome of a walk. */
export interface Walked {
  readonly ended: Step
  /** Links, which the walk did not follow, and folders that it could not read. */
  readonly missed: Missed
  /**
   * Ignored paths, relative to the folder of the walk.
   *
   * Paths of folders end in `/`.
   */
  readonly leftOut: ReadonlyArray<string>
}

interface Course<E, R> {
  readonly budget: Paced.Budget
  readonly visit: (entry: Entry) => Effect.Effect<Step, E, R>
  readonly leftOut: Array<string>
  readonly missed: Missed
}

/**
 * Visits each entry below `top`, a folder before its content, until the budget runs out. The walk skips folders
 * that cannot be read. It fails only if `top` cannot be read.
 */
export const walk = Effect.fnUntraced(function* <E, R>(
  top: Folder.Folder,
  options: { readonly includeIgnored: boolean; readonly budget: Paced.Budget },
  visit: (entry: Entry) => Effect.Effect<Step, E, R>
): Effect.fn.Return<Walked, E | PathFailure, R | Services> {
  const found = yield* entries(top)
  const rules = options.includeIgnored ? IgnoreRules.none : yield* rulesIn(top, found)
  const { budget } = options
  const course: Course<E, R> = { budget, visit, leftOut: [], missed: new Map() }
  const ended = yield* each(top, found, rules, "", course)
  return { ended, leftOut: course.leftOut, missed: course.missed }
})

/** The entries of one folder, sorted by name. */
export const entries = Effect.fnUntraced(function* (
  folder: Folder.Folder
): Effect.fn.Return<ReadonlyArray<FileSystem.DirectoryEntry>, PathFailure, FileSystem.FileSystem> {
  const files = yield* FileSystem.FileSystem
  const found = yield* files
    .readDirectoryEntries(folder.here)
    .pipe(Effect.mapError((error) => fromPlatform(folder.path, error)))
  return found.toSorted((self, that) => (self.name < that.name ? -1 : 1))
})

/**
 * The ignore rules that apply in an open folder. None apply in a folder that is ignored itself, because the
 * model named it.
 */
export const rulesIn = Effect.fnUntraced(function* (
  top: Folder.Folder,
  found: ReadonlyArray<FileSystem.DirectoryEntry>
): Effect.fn.Return<IgnoreRules.IgnoreRules, PathFailure, Services> {
  const paths = yield* Path.Path
  const root = top.roots.find((folder) => Root.contains(paths, folder, top.path)) ?? top.path
  const names = paths
    .relative(root, top.path)
    .split(paths.sep)
    .filter((name) => name !== "")
  if (names.length === 0) return yield* IgnoreRules.of(top, found)
  const descend = Effect.gen(function* () {
    let folder = yield* Folder.open(top.options, top.roots, root, root)
    let rules = yield* IgnoreRules.of(folder, yield* entries(folder))
    for (const name of names) {
      if (yield* Paced.run(rules.leavesOut(name, true))) return IgnoreRules.none
      folder = yield* Folder.enter(folder, name, name)
      rules = yield* rules.inside(folder, name, yield* entries(folder))
    }
    return rules
  })
  return yield* Effect.scoped(descend)
})

/** The note for the model about ignored paths, empty if there are none. `shown` is the folder of the walk. */
export const leftOutNote = (shown: string, leftOut: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (leftOut.length === 0) return []
  const some = leftOut.slice(0, 5).map((path) => visible(below(shown, path)))
  const rest = leftOut.length > some.length ? ` and ${leftOut.length - some.length} more` : ""
  return [`[Left out as ignored: ${some.join(", ")}${rest}. To include them set includeIgnored.]`]
}

/** The path of an entry below the folder, in the form in which the folder is shown. */
export const below = (folder: string, path: string): string =>
  folder === "." ? path : folder.endsWith("/") ? folder + path : `${folder}/${path}`

/** For each entry of a folder whether to leave it out, in order, as far as the budget permits. */
export const verdictsOf = (
  rules: IgnoreRules.IgnoreRules,
  found: ReadonlyArray<FileSystem.DirectoryEntry>,
  budget: Paced.Budget
): Effect.Effect<ReadonlyArray<boolean>> => {
  const verdicts: Array<boolean> = []
  function* work(): Paced.Work<void> {
    for (const { name, type } of found) {
      verdicts.push(yield* rules.leavesOut(name, type === "Directory"))
      if (verdicts.length % 1_000 === 0) yield
    }
  }
  return Effect.map(Paced.runWithin(work(), budget), () => verdicts)
}

const each = <E, R>(
  folder: Folder.Folder,
  found: ReadonlyArray<FileSystem.DirectoryEntry>,
  rules: IgnoreRules.IgnoreRules,
  prefix: string,
  course: Course<E, R>
): Effect.Effect<Step, E, R | Services> =>
  Effect.gen(function* () {
    const verdicts = yield* verdictsOf(rules, found, course.budget)
    for (const [index, { name, type }] of found.entries()) {
      const path = prefix + name
      const isFolder = type === "Directory"
      const isLeftOut = verdicts[index]
      if (isLeftOut === undefined || course.budget.isSpent()) return "stop"
      if (isLeftOut) {
        if (name !== ".git") course.leftOut.push(isFolder ? `${path}/` : path)
        continue
      }
      if ((yield* course.visit({ folder, name, type, path, ignored: course.leftOut.length })) === "stop")
        return "stop"
      if (type === "SymbolicLink") miss(course.missed, "link", path)
      if (!isFolder) continue
      const inside = Effect.gen(function* () {
        const opened = yield* Effect.result(openInside(folder, name, path))
        if (opened._tag === "Failure") {
          miss(course.missed, "unreadable path", `${path}/`)
          return "continue"
        }
        const { folder: inner, found } = opened.success
        return yield* each(inner, found, yield* rules.inside(inner, name, found), `${path}/`, course)
      })
      if ((yield* Effect.scoped(inside)) === "stop") return "stop"
    }
    return "continue"
  })

const openInside = Effect.fnUntraced(function* (parent: Folder.Folder, name: string, path: string) {
  const folder = yield* Folder.enter(parent, name, path)
  return { folder, found: yield* entries(folder) }
})
