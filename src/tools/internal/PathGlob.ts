/** The globs that models write, for `find` and `grep`, and advice on those that match nothing. */
import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import type * as Folder from "./Folder.ts"
import type * as Paced from "../Paced.ts"
import { PathRefused } from "../PathFailure.ts"
import * as PathPattern from "./PathPattern.ts"
import type * as Root from "../Root.ts"

/** Whether a path below the folder of the search matches. Paths of folders end in `/`. */
export type PathGlob = (path: string) => Paced.Work<boolean>

/** Maximum characters of a glob, and of the patterns for which its braces stand. */
const maximum = { characters: 1_000, patterns: 200 }

/**
 * Makes a matcher. Fails with what is wrong with the glob. Several globs are separated by commas, spaces or `|`;
 * one with a leading `!` excludes paths. `[id]` matches a name with these brackets too. `tops` are names of the
 * folder of the search, for absolute globs. With `forFiles` a folder stands for the files in it.
 */
export const make = (
  glob: string,
  { forFiles = false, tops = [] }: { readonly tops?: ReadonlyArray<string>; readonly forFiles?: boolean } = {}
): Result.Result<PathGlob, string> =>
  Result.gen(function* () {
    if (glob.length > maximum.characters)
      return yield* Result.fail(`it has more than ${maximum.characters} characters`)
    if (/[@!+]\([^)]*\|/.test(glob)) return yield* Result.fail("for alternatives use {a,b}, not @(a|b)")
    const wanted: Array<ReadonlyArray<Pattern>> = []
    const unwanted: Array<ReadonlyArray<Pattern>> = []
    for (const one of listed(glob)) {
      const isExclusion = one.startsWith("!")
      const relative = relativeTo(tops, isExclusion ? one.slice(1) : one)
      const patterns = expanded(forFiles ? withFiles(relative) : [relative])
      if (patterns === undefined)
        return yield* Result.fail(`its braces stand for more than ${maximum.patterns} patterns`)
      ;(isExclusion ? unwanted : wanted).push(patterns.flatMap(patternOf))
    }
    const [included, excluded] = [wanted.flat(), unwanted.flat()]
    return function* (path) {
      const isIncluded = wanted.length === 0 || (yield* isMatch(included, path))
      return isIncluded && !(yield* isMatch(excluded, path))
    }
  })

/** Makes the matcher of a call that searches a folder. `forFiles`: a folder stands for the files in it. */
export const within = Effect.fnUntraced(function* (
  options: Root.Options,
  folder: Folder.Folder,
  shown: string,
  glob: string,
  forFiles: boolean
) {
  const paths = yield* Path.Path
  const tops = [folder.path, paths.resolve(options.root, shown)]
  return yield* Effect.fromResult(
    Result.mapError(make(glob, { tops, forFiles }), (detail) => new PathRefused({ path: glob, detail }))
  )
})

interface Pattern {
  readonly parts: ReadonlyArray<PathPattern.Part>
  readonly forFolders: boolean
}

function* isMatch(patterns: ReadonlyArray<Pattern>, path: string): Paced.Work<boolean> {
  const isFolder = path.endsWith("/")
  const names = (isFolder ? path.slice(0, -1) : path).split("/")
  const last = names.pop() ?? ""
  const meter = { units: 0 }
  for (const { forFolders, parts } of patterns) {
    if (forFolders && !isFolder) continue
    let states = PathPattern.start(parts)
    for (const name of names) {
      states = PathPattern.step(parts, states, name, meter)
      if (states.length === 0) break
      if (meter.units < PathPattern.stride) continue
      meter.units = 0
      yield
    }
    if (PathPattern.endsWith(parts, states, last, meter)) return true
  }
  return false
}

/** The globs of a list. One text is a list only if each part has a wildcard. */
const listed = (glob: string): ReadonlyArray<string> => {
  const parts = glob.split(/[,|;\s]+(?![^{]*\})/).filter((part) => part !== "")
  return parts.length > 1 && parts.every((part) => /[*?]|^!/.test(part)) ? parts : [glob]
}

/** An absolute glob below the folder starts there, as one with a leading `/` does. */
const relativeTo = (tops: ReadonlyArray<string>, glob: string): string => {
  const top = tops.find((top) => glob === top || glob.startsWith(`${top}/`))
  return top === undefined ? glob : glob.slice(top.length) || "/"
}

const withFiles = (glob: string): ReadonlyArray<string> =>
  glob.endsWith("/")
    ? [`${glob}**`.replace(/\*\*\/\*\*$/, "**")]
    : /[*?]/.test(glob)
      ? [glob]
      : [glob, `${glob}/**`]

/** The patterns for which braces stand, innermost first. `undefined` if there are too many. */
const expanded = (globs: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  const done = new Set<string>()
  const left = [...globs]
  for (let glob = left.pop(); glob !== undefined; glob = left.pop()) {
    const braces = /\{([^{}]*,[^{}]*|\d{1,4}\.\.\d{1,4})\}/.exec(glob)
    if (braces === null) done.add(glob)
    else {
      const [all, inner = ""] = braces
      const [before, after] = [glob.slice(0, braces.index), glob.slice(braces.index + all.length)]
      for (const word of wordsOf(inner)) left.push(before + word + after)
    }
    if (done.size + left.length > maximum.patterns) return undefined
  }
  return Array.from(done)
}

const wordsOf = (inner: string): ReadonlyArray<string> => {
  const [first, last] = inner.split("..").map(Number)
  if (inner.includes(",") || first === undefined || last === undefined) return inner.split(",")
  return Array.from({ length: Math.abs(last - first) + 1 }, (_, index) => `${Math.min(first, last) + index}`)
}

/** A glob without a `/` is one for names in all folders. */
const patternOf = (glob: string): ReadonlyArray<Pattern> => {
  const forFolders = glob.endsWith("/")
  const names = glob.split("/").filter((name) => name !== "" && name !== ".")
  const isPlaced = glob.slice(0, -1).includes("/")
  // `**.ts` means `**/*.ts`.
  const parts = PathPattern.parse(
    [...(isPlaced ? [] : ["**"]), ...names.map((name) => name.replace(/^\*\*+(?=[^*])/, "**/*"))].join("/"),
    true
  )
  return parts === undefined ? [] : [{ parts, forFolders }]
}

const advice: ReadonlyArray<readonly [RegExp, string]> = [
  [/^~/, "~ is not expanded"],
  [/(?:^|\/)\.\.(?:\/|$)/, "A glob does not leave the folder that is searched: set path"],
  [/[^\\]\\[A-Za-z*]/, "Use / between names"],
  [/^\.\*|\\\.|.\$$|^\^|\.\+/, "This is a glob, not a regular expression: * stands for any characters"],
  [/^\/?[^/*]+\//, "A glob with / starts at the folder that is searched. For any depth begin it with **/"]
]

/** Advice for the model on a glob that matches nothing, `""` if there is none. */
export const adviceOn = (glob: string): string => {
  const found = advice.find(([form]) => form.test(glob))
  return found === undefined ? "" : ` ${found[1]}.`
}
