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
import type * as Scope from "effect/Scope"
import * as Folder from "./Folder.ts"
import { visible } from "../Output.ts"
import * as Paced from "../Paced.ts"
import { type PathFailure, fromPlatform } from "../PathFailure.ts"
import * as Root from "../Root.ts"
import * as Files from "../Files.ts"
import * as PathPattern from "./PathPattern.ts"

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
interface Walked {
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
  const rules = options.includeIgnored ? noRules : yield* rulesIn(top, found)
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
): Effect.fn.Return<IgnoreRules, PathFailure, Services> {
  const paths = yield* Path.Path
  const root = top.roots.find((folder) => Root.contains(paths, folder, top.path)) ?? top.path
  const names = paths
    .relative(root, top.path)
    .split(paths.sep)
    .filter((name) => name !== "")
  if (names.length === 0) return yield* rulesOfTop(top, found)
  const descend = Effect.gen(function* () {
    let folder = yield* Folder.open(top.options, top.roots, root, root)
    let rules = yield* rulesOfTop(folder, yield* entries(folder))
    for (const name of names) {
      if (yield* Paced.run(rules.leavesOut(name, true))) return noRules
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
  rules: IgnoreRules,
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
  rules: IgnoreRules,
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

// ───────────────────────── Entries that are left out
//
// Those that git ignores (`.gitignore` of the folder and of the folders above it, up to the root; `.git/info/exclude`), `node_modules` unless
// a rule includes it, and `.git`. Ignore files outside the root are not read, nor the global ones of the user (`core.excludesFile`).

/** The ignore rules that apply in one folder. */
interface IgnoreRules {
  /** Whether to leave out an entry of the folder. */
  readonly leavesOut: (name: string, isFolder: boolean) => Paced.Work<boolean>
  /** The rules that apply in an open subfolder with these entries. */
  readonly inside: (folder: Folder.Folder, name: string, entries: Entries) => Reads<IgnoreRules>
}

type Entries = ReadonlyArray<FileSystem.DirectoryEntry>
type Reads<A> = Effect.Effect<A, never, FileSystem.FileSystem | Path.Path>

interface Rule {
  readonly parts: ReadonlyArray<PathPattern.Part>
  /** The states in this folder, `undefined` for a rule on names at any depth. */
  readonly states: PathPattern.States | undefined
  readonly forFolders: boolean
  readonly isException: boolean
}

/** Leaves out `.git` only. */
export const noRules: IgnoreRules = {
  // oxlint-disable-next-line require-yield
  *leavesOut(name) {
    return name === ".git"
  },
  inside: () => Effect.succeed(noRules)
}

/** Rules of every project, which each `.gitignore` comes before. */
const usual: ReadonlyArray<ReadonlyArray<Rule>> = [
  [
    {
      parts: [[{ prefix: "node_modules", middle: [], suffix: "" }]],
      states: undefined,
      forFolders: true,
      isException: false
    }
  ]
]

/** The rules of the outermost folder. */
const rulesOfTop = (folder: Folder.Folder, entries: Entries): Reads<IgnoreRules> =>
  rulesFrom(folder, entries, usual)

/** `outer`: the rules of each file, outermost first. */
const rulesFrom = Effect.fnUntraced(function* (
  folder: Folder.Folder,
  entries: Entries,
  outer: ReadonlyArray<ReadonlyArray<Rule>>
): Effect.fn.Return<IgnoreRules, never, FileSystem.FileSystem | Path.Path> {
  const git = entries.find(({ name }) => name === ".git")
  // A nested repository has its own rules only.
  const inherited = git === undefined ? outer : usual
  const excluded = git?.type === "Directory" ? yield* excludedBy(folder) : []
  const own = entries.some(({ name, type }) => name === ".gitignore" && type === "File")
    ? yield* rulesOfFile(Folder.openFile(folder, ".gitignore", ".gitignore"))
    : []
  const levels = [...inherited, excluded, own].filter((rules) => rules.length > 0)
  const meter = { units: 0 }
  return {
    leavesOut: (name, isFolder) => isLeftOut(levels, name, isFolder, meter),
    inside: (inner, name, found) =>
      Effect.flatMap(Paced.run(levelsBelow(levels, name)), (levels) => rulesFrom(inner, found, levels))
  }
})

/** The last rule that matches counts. */
function* isLeftOut(
  levels: ReadonlyArray<ReadonlyArray<Rule>>,
  name: string,
  isFolder: boolean,
  meter: PathPattern.Meter
): Paced.Work<boolean> {
  if (name === ".git") return true
  for (let level = levels.length - 1; level >= 0; level--) {
    const rules = levels[level] ?? []
    for (let index = rules.length - 1; index >= 0; index--) {
      const rule = rules[index]
      if (rule !== undefined && matches(rule, name, isFolder, meter)) return !rule.isException
      if (meter.units < PathPattern.stride) continue
      meter.units = 0
      yield
    }
  }
  return false
}

const matches = (
  { forFolders, parts, states }: Rule,
  name: string,
  isFolder: boolean,
  meter: PathPattern.Meter
): boolean => (isFolder || !forFolders) && PathPattern.endsWith(parts, states ?? anyDepth, name, meter)

/** The states of a rule on names. */
const anyDepth: PathPattern.States = [0]

/** The rules in the folder `name`, without those that match nothing below it. */
function* levelsBelow(
  levels: ReadonlyArray<ReadonlyArray<Rule>>,
  name: string
): Paced.Work<ReadonlyArray<ReadonlyArray<Rule>>> {
  const meter = { units: 0 }
  const inner: Array<ReadonlyArray<Rule>> = []
  for (const rules of levels) {
    if (!rules.some(({ states }) => states !== undefined)) {
      inner.push(rules)
      continue
    }
    const left: Array<Rule> = []
    for (const rule of rules) {
      const states = rule.states && PathPattern.step(rule.parts, rule.states, name, meter)
      if (states === undefined || states.length > 0) left.push({ ...rule, states })
      if (meter.units < PathPattern.stride) continue
      meter.units = 0
      yield
    }
    inner.push(left)
  }
  return inner
}

const excludedBy = (folder: Folder.Folder): Reads<ReadonlyArray<Rule>> =>
  rulesOfFile(
    Folder.enter(folder, ".git", ".git").pipe(
      Effect.flatMap((git) => Folder.enter(git, "info", ".git/info")),
      Effect.flatMap((info) => Folder.openFile(info, "exclude", ".git/info/exclude"))
    )
  )

/** Maximum bytes of an ignore file. A larger one is skipped. */
const maxBytes = 256 * 1024
/** Maximum characters of a rule, as many as a path may have. A longer rule is skipped. */
const maxLength = 4_096

/** The rules of a file, none if it cannot be read. */
const rulesOfFile = Effect.fnUntraced(
  function* (
    open: Effect.Effect<Folder.OpenFile, PathFailure, FileSystem.FileSystem | Path.Path | Scope.Scope>
  ) {
    const bytes = yield* Files.readAll(yield* open, "rules", maxBytes)
    const text = yield* Paced.run(Paced.decoded(bytes, new TextDecoder()))
    return yield* Paced.run(parsed(text))
  },
  Effect.scoped,
  Effect.orElseSucceed((): ReadonlyArray<Rule> => [])
)

function* parsed(text: string): Paced.Work<ReadonlyArray<Rule>> {
  const rules: Array<Rule> = []
  let read = 0
  for (const line of Paced.lines(text)) {
    read += line.length + 1
    if (line.length <= maxLength) rules.push(...ruleOf(line))
    if (read < maxLength) continue
    read = 0
    yield
  }
  return rules
}

/** The rule of a line, none for a comment, an empty line, and a rule that matches nothing. */
const ruleOf = (line: string): ReadonlyArray<Rule> => {
  const isException = line.startsWith("!")
  const text = trimmed(line.slice(isException ? 1 : 0))
  const forFolders = text.endsWith("/")
  const body = forFolders ? text.slice(0, -1) : text
  const parts = body === "" || line.startsWith("#") ? undefined : PathPattern.parse(body.replace(/^\//, ""))
  if (parts === undefined) return []
  // A rule with a slash that is not its last character matches one place.
  if (!body.includes("/")) return [{ parts, states: undefined, forFolders, isException }]
  // `a/**` ignores what is in the folder, not the folder.
  const placed =
    parts.at(-1) === "**" ? [...parts.slice(0, -1), PathPattern.anyName, ...parts.slice(-1)] : parts
  return [{ parts: placed, states: PathPattern.start(placed), forFolders, isException }]
}

/** Without the spaces at the end, but for one that a backslash quotes. */
const trimmed = (line: string): string => {
  let end = line.length
  while (line[end - 1] === " ") end--
  const isQuoted = end < line.length && /(?<!\\)(?:\\\\)*\\$/.test(line.slice(0, end))
  return line.slice(0, isQuoted ? end + 1 : end)
}
