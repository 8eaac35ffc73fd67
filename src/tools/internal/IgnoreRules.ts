/**
 * Decides which entries of a folder the tools leave out: those that git ignores (`.gitignore` of the folder and
 * of the folders above it, up to the root; `.git/info/exclude`), `node_modules` unless a rule includes it, and
 * `.git`.
 *
 * It does not read ignore files outside the root, nor the global ones of the user (`core.excludesFile`).
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import type * as Scope from "effect/Scope"
import * as Files from "../Files.ts"
import * as Folder from "./Folder.ts"
import * as Paced from "../Paced.ts"
import type { PathFailure } from "../PathFailure.ts"
import * as PathPattern from "./PathPattern.ts"

/** The ignore rules that apply in one folder. */
export interface IgnoreRules {
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
export const none: IgnoreRules = {
  // oxlint-disable-next-line require-yield
  *leavesOut(name) {
    return name === ".git"
  },
  inside: () => Effect.succeed(none)
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
export const of = (folder: Folder.Folder, entries: Entries): Reads<IgnoreRules> =>
  make(folder, entries, usual)

/** `outer`: the rules of each file, outermost first. */
const make = Effect.fnUntraced(function* (
  folder: Folder.Folder,
  entries: Entries,
  outer: ReadonlyArray<ReadonlyArray<Rule>>
): Effect.fn.Return<IgnoreRules, never, FileSystem.FileSystem | Path.Path> {
  const git = entries.find(({ name }) => name === ".git")
  // A nested repository has its own rules only.
  const inherited = git === undefined ? outer : usual
  const excluded = git?.type === "Directory" ? yield* excludedBy(folder) : []
  const own = entries.some(({ name, type }) => name === ".gitignore" && type === "File")
    ? yield* rulesOf(Folder.openFile(folder, ".gitignore", ".gitignore"))
    : []
  const levels = [...inherited, excluded, own].filter((rules) => rules.length > 0)
  const meter = { units: 0 }
  return {
    leavesOut: (name, isFolder) => leavesOut(levels, name, isFolder, meter),
    inside: (inner, name, found) =>
      Effect.flatMap(Paced.run(below(levels, name)), (levels) => make(inner, found, levels))
  }
})

/** The last rule that matches counts. */
function* leavesOut(
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
function* below(
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
  rulesOf(
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
const rulesOf = Effect.fnUntraced(
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
