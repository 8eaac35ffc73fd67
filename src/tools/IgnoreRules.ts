/**
 * Which entries of a folder are not the project's own: those that git ignores (`.gitignore` of the folder and of the
 * folders above it, up to the root; `.git/info/exclude`), `node_modules` unless a rule says otherwise, and `.git`.
 *
 * Files of ignore rules outside the root are not read, nor those of the user (`core.excludesFile`). Rules with a negated
 * class (`[!a]`) do not hold.
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

/** The rules that hold in one folder. */
export interface IgnoreRules {
  /** Whether an entry of the folder is left out. */
  readonly isLeftOut: (name: string, isFolder: boolean) => boolean
  /** The rules in a folder of this folder, which is open, with what is in it. */
  readonly inside: (folder: Folder.Folder, name: string, entries: Entries) => Reads<IgnoreRules>
}

type Entries = ReadonlyArray<FileSystem.DirectoryEntry>
type Reads<A> = Effect.Effect<A, never, FileSystem.FileSystem | Path.Path>

/** Leaves nothing out but `.git`. */
export const none: IgnoreRules = {
  isLeftOut: (name) => name === ".git",
  inside: () => Effect.succeed(none)
}

/** What every project ignores, as though a `.gitignore` outside of all began with it. */
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
  // A repository in a repository has rules of its own alone.
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

/** A larger file of rules is not read. In bytes. */
const maxBytes = 256 * 1024
/** Rules that hold at most in one folder: the innermost. */
const maxRules = 1_000
/** Longer rules do not hold. In characters. */
const maxLength = 256
/** Rules of a file with several stars that hold at most. */
const maxCostly = 50

/** The rules of a file; none if it cannot be read. */
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
 * The lines that are rules, less what could hold up a search: a rule becomes a regular expression, and one with many
 * stars could take for ever on a long name.
 */
function* readable(text: string): Paced.Work<ReadonlyArray<string>> {
  const rules: Array<string> = []
  let [read, costly] = [0, 0]
  for (const line of Paced.lines(text)) {
    if (++read % 500 === 0) yield
    // The library takes the mark of a negated class for a member of it.
    if (/\[[!^]/.test(line)) continue
    if (line.length > maxLength || line.startsWith("#") || line.trim() === "") continue
    const stars = mostStars(line)
    if (stars > 2 || (stars === 2 && ++costly > maxCostly)) continue
    rules.push(line)
    if (rules.length === maxRules) break
  }
  return rules
}

/** Stars in one name of the rule, or `**` in all of it, whichever are more. */
const mostStars = (line: string): number => {
  const names = line.split("/")
  return Math.max(
    names.filter((name) => name === "**").length,
    ...names.map((name) => (name === "**" ? 0 : name.split(/\*+/).length - 1))
  )
}

/** A rule of a folder, as a rule of the outermost one. */
const below = (prefix: string, rule: string): string => {
  if (prefix === "") return rule
  const [mark, body] = rule.startsWith("!") ? ["!", rule.slice(1)] : ["", rule]
  const folder = prefix.replace(/[\\*?[\]]/g, "\\$&")
  // A rule with a slash that is not its last character is for one place, another one for all folders below.
  const isPlaced = /\/(?!\s*$)/.test(body)
  return `${mark}/${folder}${isPlaced ? "" : "**/"}${body.replace(/^\//, "")}`
}
