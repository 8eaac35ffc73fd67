/**
 * Finds a regular expression or a text in lines, in time linear to the line.
 *
 * re2js matches the regular expressions. The engine of JavaScript needs years for `(a+)+$` on a line of 60
 * characters, and cannot be interrupted.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import { RE2JS, RE2JSSyntaxException } from "re2js"
import { cutLine } from "../Output.ts"
import * as Paced from "../Paced.ts"
import * as ChildEnvironment from "../ChildEnvironment.ts"
import * as Root from "../Root.ts"

export interface LineMatcher {
  /** The end of the first match in a line, in code units, or -1. */
  readonly search: (line: string) => Paced.Work<number>
  /** Texts of which each matching line contains at least one. Empty if there are none that rule lines out. */
  readonly words: ReadonlyArray<string>
  /** Whether a line may contain the word with other letter case. */
  readonly ignoreCase: boolean
  /** Whether the pattern names ASCII alone, so that it matches a text in another encoding that extends ASCII. */
  readonly isAscii: boolean
}

export interface Options {
  /** Whether the pattern is a text, not a regular expression (default: `false`). */
  readonly literal?: boolean | undefined
  /** Whether letter case matters not (default: `false`). */
  readonly ignoreCase?: boolean | undefined
}

const advice: ReadonlyArray<readonly [RegExp, string]> = [
  [/\(\?<?[=!]/, "There is no look-around: search for the part that must be there"],
  [/\\[1-9]|\\k</, "There are no back references"],
  [/\(\?>|[*+?}]\+/, "There are no atomic groups and possessive repeats"],
  [/\\n|\n/, "Each line is searched alone, so \\n never matches: search for a part of one line"],
  [/\\[<>]/, "The ends of a word are \\b"],
  [/\\[|+?]/, "\\|, \\+ and \\? stand for the characters themselves: write |, + and ?"],
  [
    /\p{L}\p{M}|[\u00c0-\u024f]/u,
    "A file may have a letter and its accent as two characters: search for a part without accents"
  ],
  [/\$[^)|]/, "$ stands for the end of a line: write \\$ for the character"]
]

/** Advice for the model on a regular expression that is invalid or matches nothing, `""` if there is none. */
export const adviceOn = (pattern: string): string => {
  const found = advice.find(([form]) => form.test(pattern))
  return found === undefined ? "" : ` ${found[1]}.`
}

/** Maximum characters of a pattern that re2js compiles. It compiles the longest in 0.3 seconds. */
const maxPattern = 1_000

/** Maximum instructions of a compiled pattern, which bounds the time for one character. */
const maxSize = 1_100

/**
 * Makes a matcher. Fails with a description of the fault in the pattern. A leading `(?i)` ignores case, as
 * `ignoreCase` does.
 */
export const make = (
  pattern: string,
  { ignoreCase: anyCase = false, literal = false }: Options = {}
): Result.Result<LineMatcher, string> => {
  const isInline = !literal && pattern.startsWith("(?i)")
  const source = isInline ? pattern.slice(4) : pattern
  const ignoreCase = anyCase || isInline
  const isText = literal || /^[\w\s"'=:;,<>/@#%&!~`-]+$/.test(source)
  const isAscii = !(literal ? /[^\0-\x7f]/ : /[^\0-\x7f]|\\[xup]/i).test(source)
  if (isText && !ignoreCase)
    return Result.succeed({ search: text(source), words: known([source]), ignoreCase, isAscii })
  if (source.length > maxPattern) return Result.fail(`it has more than ${maxPattern} characters`)
  return Result.flatMap(compiled(isText ? RE2JS.quote(source) : withUnicode(source), ignoreCase), (found) =>
    found.expression.programSize() > maxSize
      ? Result.fail("it repeats too much")
      : Result.succeed({ search: automaton(found.expression), words: found.words, ignoreCase, isAscii })
  )
}

const text = (wanted: string): LineMatcher["search"] =>
  function* (line) {
    const at = yield* Paced.indexOf(line, wanted)
    return at === -1 ? -1 : at + wanted.length
  }

/** With the escapes of JavaScript for code points (`\u00e9`) in the syntax of RE2. */
const withUnicode = (source: string): string =>
  source.replace(/\\(?:u\{?([0-9a-fA-F]{4,6})\}?|[^])/g, (escape, code?: string) =>
    code === undefined ? escape : `\\x{${code}}`
  )

const compiled = (source: string, ignoreCase: boolean) =>
  Result.try({
    try: () => ({
      expression: RE2JS.compile(source, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0),
      // re2js knows the words of an expression only if case matters.
      words: known(wordsOf(RE2JS.compile(source).re2().prefilter))
    }),
    catch: (cause) => {
      if (!(cause instanceof RE2JSSyntaxException)) return cutLine(String(cause), 200)
      const part = cause.input ?? ""
      return part === "" || part.endsWith(source) ? cause.error : `${cause.error}: ${cutLine(part, 100)}`
    }
  })

/** Units of work between two pauses: characters times instructions. One takes 1 to 45 nanoseconds of CPU time. */
const costly = 100_000

/**
 * Searches a long line in pieces that overlap by half, so that the search can pause. A match at the cut of
 * two pieces does not count if the pattern has the start or the end of the line.
 */
const automaton = (expression: RE2JS): LineMatcher["search"] => {
  const size = expression.programSize()
  // At least the size, because a pattern of counted parts matches about as many characters.
  const step = Math.max(size, Math.floor(costly / size / 2))
  const piece = 2 * step
  const [needsStart, needsEnd] = [/(?<!\[)\^|\\A/, /\$|\\z/].map((mark) => mark.test(expression.pattern()))
  let cost = 0
  return function* (line) {
    for (let from = 0; ; from += step) {
      const part = line.length <= piece ? line : line.slice(from, from + piece)
      cost += (part.length + 1) * size
      if (cost > costly) {
        cost = 0
        yield
      }
      const isLast = from + piece >= line.length
      const found = matchIn(expression, part)
      const isCut =
        (needsStart === true && from > 0 && found?.start === 0) ||
        (needsEnd === true && !isLast && found?.end === part.length)
      if (found !== undefined && !isCut) return from + found.end
      if (isLast) return -1
    }
  }
}

/** The first match. `test` comes first, because it runs an automaton that is much faster than `find`. */
const matchIn = (expression: RE2JS, part: string) => {
  if (!expression.test(part)) return undefined
  const matcher = expression.matcher(part)
  return matcher.find() ? { start: matcher.start(), end: matcher.end() } : undefined
}

/**
 * The words that re2js requires before it runs an expression. It holds them as a tree: 1 is a word, 2 requires
 * all branches, 3 one of them.
 */
const wordsOf = (filter: unknown): ReadonlyArray<string> => {
  if (!Predicate.hasProperty(filter, "type") || !Predicate.hasProperty(filter, "subs")) return []
  if (filter.type === 1) {
    return Predicate.hasProperty(filter, "str") && Predicate.isString(filter.str) ? [filter.str] : []
  }
  const branches = Array.isArray(filter.subs) ? filter.subs.map(wordsOf) : []
  if (filter.type === 3) return branches.some(({ length }) => length === 0) ? [] : branches.flat()
  if (filter.type !== 2) return []
  return branches.toSorted((self, that) => shortest(that) - shortest(self))[0] ?? []
}

const shortest = (words: ReadonlyArray<string>): number =>
  words.length === 0 ? 0 : Math.min(...words.map(({ length }) => length))

/** Maximum words. More take too much room among the arguments of a program. */
const maxWords = 40

/** The starts of the words, if each can be an argument of a program that finds it in the bytes of a file. */
const known = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (words.length > maxWords) return []
  const starts = words.map((word) => Array.from(word.slice(0, 200)).slice(0, 100).join(""))
  return starts.some((word) => word === "" || /[\0\n\r\ufffd\ufeff\p{Cs}]/u.test(word)) ? [] : starts
}

// ───────────────────────── Ripgrep
//
// Ripgrep (`rg`), if it is installed, finds the files that contain certain words.
//
// The search itself does not depend on its answer being right: the caller opens the files that it names inside the roots and matches their
// lines. So a link that another process puts in place of a file during the search leads nowhere, and a search without ripgrep finds the same
// lines, only later.

/**
 * Returns the files of `paths`, relative to the real path `folder`, that may contain a match. `undefined` if
 * ripgrep fails.
 */
export type Ripgrep = (
  folder: string,
  paths: ReadonlyArray<string>
) => Effect.Effect<ReadonlySet<string> | undefined>

/**
 * Makes a function that gives the search for the words of a matcher. It finds `rg` through `PATH` when it is first
 * called, and keeps the answer. `undefined` if the matcher has no words, or one that a file in another encoding hides, no process can be started, or there is
 * no `rg` outside the roots: a model that may write files must not choose the program that runs.
 */
export const finder = () => {
  let found: Option.Option<string> | undefined
  return Effect.fnUntraced(function* (roots: ReadonlyArray<string>, matcher: LineMatcher) {
    const spawner = yield* Effect.serviceOption(ChildProcessSpawner.ChildProcessSpawner)
    if (Option.isNone(spawner) || matcher.words.length === 0 || !matcher.isAscii) return undefined
    found ??= yield* installed(roots)
    return Option.isNone(found) ? undefined : ripgrep(spawner.value, found.value, matcher)
  })
}

const installed = Effect.fnUntraced(function* (roots: ReadonlyArray<string>) {
  const paths = yield* Path.Path
  const isWindows = paths.sep === "\\"
  const folders = (globalThis.process.env["PATH"] ?? "").split(isWindows ? ";" : ":")
  for (const folder of folders.filter(paths.isAbsolute)) {
    const program = yield* programAt(paths.join(folder, isWindows ? "rg.exe" : "rg"))
    if (program !== undefined && !roots.some((root) => Root.contains(paths, root, program))) {
      return Option.some(program)
    }
  }
  return Option.none<string>()
})

const programAt = Effect.fnUntraced(
  function* (path: string) {
    const files = yield* FileSystem.FileSystem
    const program = yield* files.realPath(path)
    return (yield* files.stat(program)).type === "File" ? program : undefined
  },
  Effect.orElseSucceed(() => undefined)
)

const ripgrep = (
  { spawn }: ChildProcessSpawner.ChildProcessSpawner["Service"],
  program: string,
  { ignoreCase, words }: LineMatcher
): Ripgrep => {
  const options = [
    ...usual,
    ...(ignoreCase ? ["--ignore-case"] : []),
    ...words.flatMap((word) => ["-e", escaped(word), ...wide(word)])
  ]
  return (folder, paths) =>
    spawn(command(program, [...options, "--", ...paths.map(named)], folder)).pipe(
      Effect.flatMap(filesOf),
      Effect.map((found) => (found !== undefined && isWithin(found, paths) ? found : undefined)),
      Effect.orElseSucceed(() => undefined),
      Effect.scoped
    )
}

const escaped = (word: string): string => word.replace(/[\\.+*?()|[\]{}^$#&~-]/g, "\\$&")

/** The word in UTF-16, which a file without a byte order mark may have. */
const wide = (word: string): ReadonlyArray<string> =>
  /^[\0-\x7f]+$/.test(word)
    ? ["-e", `(?-u:${Array.from(word.slice(0, 20), (char) => escaped(char)).join("\\x00")})`]
    : []

/** ripgrep takes the name `-` for its stdin. */
const named = (path: string): string => (path === "-" ? "./-" : path)

const isWithin = (found: ReadonlySet<string>, paths: ReadonlyArray<string>): boolean => {
  const known = new Set(paths)
  return Array.from(found).every((path) => known.has(path))
}

const usual: ReadonlyArray<string> = [
  "--no-config",
  "--no-messages",
  "--no-mmap",
  "--color=never",
  "--files-with-matches",
  "--null",
  // The caller skips files that are no texts. ripgrep decodes UTF-16 with a byte order mark, and takes other bytes
  // as they are.
  "--text"
]

const command = (program: string, options: ReadonlyArray<string>, folder: string) =>
  ChildProcess.make(program, options, {
    cwd: folder,
    env: ChildEnvironment.make(globalThis.process.env, { passed: [], added: {} }),
    stdin: "ignore",
    stderr: "ignore"
  })

/** Exit code 0: some files match. 1: none does. Others: an error, of one file or of all. */
const filesOf = Effect.fnUntraced(function* (handle: ChildProcessSpawner.ChildProcessHandle) {
  const output = yield* Stream.mkString(Stream.decodeText(handle.stdout))
  const code = yield* handle.exitCode
  if (code > 1) return undefined
  const paths = output.split("\0").filter((path) => path !== "")
  return new Set(paths.map((path) => (path === "./-" ? "-" : path)))
})
