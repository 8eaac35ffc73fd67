/**
 * Decides which entries of a folder the tools leave out: those that git ignores (`.gitignore` of the folder and
 * of the folders above it, up to the root; `.git/info/exclude`), `node_modules` unless a rule includes it, and
 * `.git`.
 *
 * It does not read ignore files outside the root, nor the global ones of the user (`core.excludesFile`), and
 * skips rules with a negated class (`[!a]`).
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import ignore, { type Ignore } from "ignore"
import * as Files from "./Files.ts"
import * as Folder from "./Folder.ts"
import * as Paced from "./Paced.ts"
import type { PathFailure } from "./PathFailure.ts"

/** The ignore rules that apply in one folder. */
export interface IgnoreRules {
  /** Whether to leave out an entry of the folder. */
  readonly isLeftOut: (name: string, isFolder: boolean) => boolean
  /** The rules that apply in an open subfolder with these entries. */
  readonly inside: (folder: Folder.Folder, name: string, entries: Entries) => Reads<IgnoreRules>
}

type Entries = ReadonlyArray<FileSystem.DirectoryEntry>
type Reads<A> = Effect.Effect<A, never, FileSystem.FileSystem | Path.Path>

/** Leaves out `.git` only. */
export const none: IgnoreRules = {
  isLeftOut: (name) => name === ".git",
  inside: () => Effect.succeed(none)
}

/** Rules of every project, applied before the first `.gitignore`. */
const usual: ReadonlyArray<string> = ["node_modules/"]

/** The rules of the outermost folder. */
export const of = (folder: Folder.Folder, entries: Entries): Reads<IgnoreRules> =>
  make(folder, entries, "", usual)

const make = Effect.fnUntraced(function* (
  folder: Folder.Folder,
  entries: Entries,
  prefix: string,
  outer: ReadonlyArray<string>
): Effect.fn.Return<IgnoreRules, never, FileSystem.FileSystem | Path.Path> {
  const git = entries.find(({ name }) => name === ".git")
  // A nested repository has its own rules only.
  const inherited = git === undefined ? outer : usual
  const excluded = git?.type === "Directory" ? yield* excludedBy(folder) : []
  const own = entries.some(({ name, type }) => name === ".gitignore" && type === "File")
    ? yield* linesOf(Folder.openFile(folder, ".gitignore", ".gitignore"))
    : []
  const rules = [...inherited, ...[...excluded, ...own].map((line) => below(prefix, line))].slice(-maxRules)
  const matcher = ignore({ ignoreCase: false }).add(rules)
  return {
    isLeftOut: (name, isFolder) =>
      name === ".git" || matches(matcher, `${prefix}${name}${isFolder ? "/" : ""}`),
    inside: (inner, name, found) => make(inner, found, `${prefix}${name}/`, rules)
  }
})

const matches = (matcher: Ignore, path: string): boolean =>
  Result.getOrElse(
    Result.try(() => matcher.ignores(path)),
    () => false
  )

const excludedBy = (folder: Folder.Folder): Reads<ReadonlyArray<string>> =>
  linesOf(
    Folder.enter(folder, ".git", ".git").pipe(
      Effect.flatMap((git) => Folder.enter(git, "info", ".git/info")),
      Effect.flatMap((info) => Folder.openFile(info, "exclude", ".git/info/exclude"))
    )
  )

/** Maximum bytes of an ignore file. A larger one is skipped. */
const maxBytes = 256 * 1024
/** Maximum rules in one folder. The innermost rules win. */
const maxRules = 1_000
/** Maximum characters of a rule. A longer rule is skipped. */
const maxLength = 256
/** Maximum rules with two stars in one file. */
const maxCostly = 50

/** The rules of a file, none if it cannot be read. */
const linesOf = Effect.fnUntraced(
  function* (
    open: Effect.Effect<Folder.OpenFile, PathFailure, FileSystem.FileSystem | Path.Path | Scope.Scope>
  ) {
    const bytes = yield* Files.readAll(yield* open, "rules", maxBytes)
    const text = yield* Paced.run(Paced.decoded(bytes, new TextDecoder()))
    return yield* Paced.run(readable(text))
  },
  Effect.scoped,
  Effect.orElseSucceed((): ReadonlyArray<string> => [])
)

/**
 * The lines that are rules, without those that could block a search: each rule becomes a regular expression,
 * and one with many stars needs exponential time on a long name.
 */
function* readable(text: string): Paced.Work<ReadonlyArray<string>> {
  const rules: Array<string> = []
  let [read, costly] = [0, 0]
  for (const line of Paced.lines(text)) {
    if (++read % 500 === 0) yield
    // The `ignore` package reads the `!` of a negated class as a member of the class.
    if (/\[[!^]/.test(line)) continue
    if (line.length > maxLength || line.startsWith("#") || line.trim() === "") continue
    const stars = mostStars(line)
    if (stars > 2 || (stars === 2 && ++costly > maxCostly)) continue
    rules.push(line)
    if (rules.length === maxRules) break
  }
  return rules
}

/** The number of `**` in the rule, or of stars in one of its names, whichever is greater. */
const mostStars = (line: string): number => {
  const names = line.split("/")
  return Math.max(
    names.filter((name) => name === "**").length,
    ...names.map((name) => (name === "**" ? 0 : name.split(/\*+/).length - 1))
  )
}

/** Converts a rule of a subfolder to a rule of the outermost folder. */
const below = (prefix: string, rule: string): string => {
  if (prefix === "") return rule
  const [mark, body] = rule.startsWith("!") ? ["!", rule.slice(1)] : ["", rule]
  const folder = prefix.replace(/[\\*?[\]]/g, "\\$&")
  // A rule with a slash that is not its last character matches one place. Other rules match in all folders
  // below.
  const isPlaced = /\/(?!\s*$)/.test(body)
  return `${mark}/${folder}${isPlaced ? "" : "**/"}${body.replace(/^\//, "")}`
}
