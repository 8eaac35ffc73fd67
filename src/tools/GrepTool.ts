/**
 * The tool `grep`: returns the lines of text files that match a pattern.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import { TaggedError } from "../internal/errors.ts"
import * as Files from "./Files.ts"
import { cutLine, visible } from "./Output.ts"
import * as Paced from "./Paced.ts"
import { PathFailure } from "./PathFailure.ts"
import * as Folder from "./internal/Folder.ts"
import * as LineMatcher from "./internal/LineMatcher.ts"
import * as PathPattern from "./internal/PathPattern.ts"
import * as Walk from "./internal/Walk.ts"

export type { Options } from "./internal/Walk.ts"

/**
 * Maximum matching lines that one call returns.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxMatches = 200

/**
 * Maximum characters of output of one call.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxOutput = 30_000

/**
 * Maximum bytes of a file that the tool searches, because it holds the file in memory.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxFileBytes = 16 * 1024 * 1024

/**
 * The pattern of a call is not a valid regular expression.
 *
 * `detail` says why.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidPattern extends TaggedError<InvalidPattern>()("InvalidPattern", {
  /** The pattern of the call. */
  pattern: Schema.String,
  /** The syntax error, and the part of the pattern that has it. */
  detail: Schema.String
}) {
  override get message(): string {
    return `The pattern ${JSON.stringify(cutLine(this.pattern, 300))} is invalid: ${this.detail}.${LineMatcher.adviceOn(this.pattern)} To search for it as text, set literal.`
  }
}

const Params = Schema.Struct({
  pattern: Schema.NonEmptyString.annotate({
    description: "Regular expression, matched in each line. No look-around, no back references"
  }),
  path: Schema.optionalKey(Schema.String).annotate({
    description: "File or folder to search. Default: the root"
  }),
  glob: Schema.optionalKey(Schema.String).annotate({
    description: "Search only files that match, such as *.ts or src/**/*.{js,ts}; !*.md excludes"
  }),
  literal: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Take the pattern as text. Default: false"
  }),
  ignoreCase: Schema.optionalKey(Schema.Boolean).annotate({ description: "Default: false" }),
  context: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 }))).annotate({
    description: "Lines shown before and after each match. Default: 0"
  }),
  limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxMatches }))).annotate(
    {
      description: `Matching lines to give. Default and at most: ${maxMatches}`
    }
  ),
  includeIgnored: Walk.includeIgnored
})
type Params = typeof Params.Type

/**
 * Makes the tool `grep`.
 *
 * **Details**
 *
 * Patterns have the syntax of RE2: the time of a search is linear in the size of the files, so there are no
 * look-around and no back references. The tool fails with `InvalidPattern` for a pattern it cannot parse. It
 * skips binary files and files above `maxFileBytes`, names those that it left out, searches in slices of a few milliseconds, and stops after
 * `searchTime` (default 10 seconds) with the lines it found by then. It searches a line of more than some 20,000
 * characters (fewer for a complex pattern) in overlapping pieces.
 *
 * If `rg` (ripgrep) is in `PATH`, outside the roots, and the services include `ChildProcessSpawner`, ripgrep
 * names the files to search, which takes a tenth of the time in large folders. The result is the same without
 * it.
 *
 * **Example** (Searching for a text)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { GrepTool } from "effect-agent/tools"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any", tools: [GrepTool.make({ root: "." })] })
 *     const { newMessages } = yield* agent.prompt("Under which license is this?")
 *     for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
 *   })
 * )
 *
 * const script = [ScriptedProvider.toolCall("grep", { pattern: "license", path: "package.json" }), ScriptedProvider.text("Done.")]
 * const layer = Layer.merge(ScriptedProvider.layer(script), NodeServices.layer)
 * await Effect.runPromise(program.pipe(Effect.provide(layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Walk.Options) => {
  const ripgrep = LineMatcher.finder()
  return Tool.make({
    name: "grep",
    label: "Grep",
    effect: "pure",
    description:
      "Searches text files for lines that match a pattern, and gives path:line: text. " +
      `Leaves out binary files. ${Walk.leavesOut}`,
    params: Params,
    failure: Schema.Union([...PathFailure.members, InvalidPattern]),
    execute: Effect.fnUntraced(function* (params: Params) {
      const { context = 0, limit = maxMatches, path = "." } = params
      const budget = yield* Walk.budget(options)
      const matcher = yield* matcherOf(params)
      const matches = matchesOf(matcher.search, { context, matches: limit, size: maxOutput })
      const searching = { matches, matcher, budget, maxBytes: maxFileBytes }
      const { file, folder, shown } = yield* Files.openEither(options, path)
      if (file !== undefined) {
        const left = yield* inFile(searching, folder, file, shown)
        const reason = left instanceof Uint8Array ? "binary file" : left
        const missed: Walk.Missed = new Map(reason === undefined ? [] : [[reason, [shown]]])
        return rendered(params, searching, { wanted: 1, missed, leftOut: [], shown: "." })
      }
      const searched = yield* inFolder(searching, folder, {
        shown,
        isWanted: yield* PathPattern.within(options, folder, shown, params.glob ?? "**", true),
        includeIgnored: params.includeIgnored ?? false,
        ripgrep: yield* ripgrep(folder.roots, matcher)
      })
      return rendered(params, searching, searched)
    }, Effect.scoped)
  })
}

const matcherOf = (params: Params): Effect.Effect<LineMatcher.LineMatcher, InvalidPattern> => {
  const { pattern } = params
  return Effect.fromResult(
    Result.mapError(LineMatcher.make(pattern, params), (detail) => new InvalidPattern({ pattern, detail }))
  )
}

const rendered = (
  { glob, literal, pattern }: Params,
  { budget, matches }: Searching,
  { leftOut, missed, shown, wanted }: Searched
): Tool.ToolOutput => {
  const { files, lines } = matches.count()
  const isLate = budget.hasStopped()
  const isFull = matches.isFull()
  const notes = [
    ...(isFull
      ? [`[Only the first ${lines} matching lines are shown. Narrow the pattern, the path or the glob.]`]
      : [...Walk.missedNote(shown, missed)]),
    ...(isLate ? [Walk.lateNote(budget)] : []),
    ...Walk.leftOutNote(shown, leftOut)
  ]
  const nothing =
    wanted === 0 && glob !== undefined && !isLate
      ? `No file matches the glob, so none was searched.${PathPattern.adviceOn(glob)}`
      : `No line matches.${literal === true ? "" : LineMatcher.adviceOn(pattern)}`
  const text = lines === 0 ? [nothing] : matches.lines
  const isMissed = Array.from(missed.keys()).some((reason) => reason !== "link")
  return Tool.output([...text, ...notes].join("\n"), {
    details: { matches: lines, files, complete: !isFull && !isLate && !isMissed, leftOut: leftOut.length }
  })
}

// ───────────────────────── The search

interface Searching {
  readonly matches: Matches
  readonly matcher: LineMatcher.LineMatcher
  readonly budget: Paced.Budget
  /** Maximum bytes of a file. */
  readonly maxBytes: number
}

interface Options {
  /** The path of the folder for display. */
  readonly shown: string
  readonly isWanted: PathPattern.PathGlob
  readonly includeIgnored: boolean
  /** Names the files that may match. `undefined`: the search opens each file. */
  readonly ripgrep: LineMatcher.Ripgrep | undefined
}

/** The paths that a search left out. */
interface Searched {
  /** Number of files that the glob selects. */
  readonly wanted: number
  readonly missed: Walk.Missed
  /** Ignored paths, relative to the folder `shown`. */
  readonly leftOut: ReadonlyArray<string>
  readonly shown: string
}

/**
 * Searches a file of the folder. Returns the bytes of one that is no text, and the reason to name one whose bytes of another encoding
 * may hide a match.
 */
const inFile = Effect.fnUntraced(function* (
  { budget, matcher, matches, maxBytes }: Searching,
  folder: Folder.Folder,
  name: string,
  shown: string
) {
  const opened = yield* Folder.openFile(folder, name, shown)
  const bytes = yield* Files.readAll(opened, shown, maxBytes)
  const kind = Files.kindOf(bytes)
  if (kind._tag !== "Text") return bytes
  const text = yield* Paced.run(Paced.decoded(bytes, new TextDecoder(kind.encoding)))
  yield* Paced.runWithin(matches.search(visible(shown), text), budget)
  const isHidden = !matcher.isAscii && text.includes("\ufffd") && !Files.isUtf8(bytes)
  return isHidden ? "non-UTF-8 file" : undefined
}, Effect.scoped)

/** Maximum bytes of a binary file that are compared with a pattern that has no words. */
const maxBinary = 1024 * 1024

/** Whether a binary file may match. Only then it is worth a note. */
function* mayMatch(
  { ignoreCase, search, words }: LineMatcher.LineMatcher,
  bytes: Uint8Array
): Paced.Work<boolean> {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  if (words.length > 0 && !ignoreCase) return words.some((word) => start.includes(word))
  for (const line of Paced.lines(start.toString("utf8", 0, maxBinary))) {
    if ((yield* search(line)) !== -1) return true
    yield
  }
  return false
}

/** Searches the files below the folder, until there are more matches than the limits allow. */
const inFolder = Effect.fnUntraced(function* (
  searching: Searching,
  top: Folder.Folder,
  { includeIgnored, isWanted, ripgrep, shown }: Options
) {
  const { budget, matches } = searching
  const paths = yield* Path.Path
  let wanted = 0
  const found: Walk.Missed = new Map()
  const search = (at: Folder.Folder, path: string, below: string) =>
    fileAt(searching, at, below.split("/"), Walk.below(shown, path)).pipe(
      Effect.flatMap((left) =>
        left instanceof Uint8Array
          ? Effect.map(Paced.runWithin(mayMatch(searching.matcher, left), budget), (mayMatch) =>
              mayMatch === true ? "binary file" : undefined
            )
          : Effect.succeed(left)
      ),
      // Unreadable files do not fail the search.
      Effect.catch((failure) => Effect.succeed(reasonOf(failure))),
      Effect.map((reason): Walk.Step => {
        if (reason !== undefined) Walk.miss(found, reason, path)
        return matches.isFull() ? "stop" : "continue"
      })
    )
  const batches =
    ripgrep === undefined
      ? undefined
      : inBatches(searching, top, ripgrep, (path) => search(top, path, path), maxBatch(paths.sep))
  const { leftOut, missed } = yield* Walk.walk(top, { includeIgnored, budget }, (entry) =>
    entry.type !== "File"
      ? Effect.succeed<Walk.Step>("continue")
      : Effect.flatMap(Paced.runWithin(isWanted(entry.path), budget), (isIncluded) => {
          if (isIncluded !== true) return Effect.succeed<Walk.Step>("continue")
          wanted++
          return batches?.add(entry) ?? search(entry.folder, entry.path, entry.name)
        })
  )
  if (batches !== undefined) yield* batches.flush
  return {
    wanted,
    missed: new Map([...missed, ...found]),
    leftOut: leftOut.slice(0, batches?.ignored()),
    shown
  } satisfies Searched
})

const reasonOf = (failure: PathFailure): Walk.Reason =>
  failure._tag === "PathRefused"
    ? "hard link"
    : failure.reason === "tooLarge"
      ? "large file"
      : "unreadable path"

/** Searches a file of a folder below. Enters each folder on the way, and follows no link. */
const fileAt = (
  searching: Searching,
  folder: Folder.Folder,
  [name = "", ...inner]: ReadonlyArray<string>,
  shown: string
): ReturnType<typeof inFile> =>
  inner.length === 0
    ? inFile(searching, folder, name, shown)
    : Folder.enter(folder, name, shown).pipe(
        Effect.flatMap((entered) => fileAt(searching, entered, inner, shown)),
        Effect.scoped
      )

/** Maximum characters of the paths of one batch: they become arguments of a program. Windows permits 32,767. */
const maxBatch = (separator: string): number => (separator === "\\" ? 20_000 : 100_000)

/** Collects files in batches, and searches those of a batch that ripgrep names. */
const inBatches = <R>(
  searching: Searching,
  top: Folder.Folder,
  ripgrep: LineMatcher.Ripgrep,
  search: (path: string) => Effect.Effect<Walk.Step, never, R>,
  limit: number
) => {
  let [batch, characters, ignored]: [Array<Walk.Entry>, number, number | undefined] = [[], 0, undefined]
  const flush = Effect.gen(function* () {
    const entries = batch
    ;[batch, characters] = [[], 0]
    const paths = entries.map(({ path }) => path)
    const picked = yield* Paced.within(candidates(searching, top, ripgrep, paths), searching.budget)
    if (picked._tag === "None") return "stop"
    for (const { ignored: before, path } of entries) {
      if (!picked.value.has(path)) continue
      if (searching.budget.isSpent()) return "stop"
      if ((yield* search(path)) === "continue") continue
      ignored = before
      return "stop"
    }
    return "continue"
  })
  const add = (entry: Walk.Entry) => {
    batch.push(entry)
    characters += entry.path.length + 1
    return characters < limit ? Effect.succeed<Walk.Step>("continue") : flush
  }
  return {
    add,
    /** Searches the last batch. */
    flush: Effect.suspend(() => (batch.length === 0 ? Effect.void : flush)),
    /** Number of ignored paths before the file at which the search stopped. */
    ignored: () => ignored
  }
}

/**
 * The files that may match, and those that the search cannot open but counts.
 */
const candidates = Effect.fnUntraced(function* (
  { maxBytes }: Searching,
  top: Folder.Folder,
  ripgrep: LineMatcher.Ripgrep,
  paths: ReadonlyArray<string>
) {
  const files = yield* FileSystem.FileSystem
  const isRefused = (path: string) =>
    files.lstat(top.at(path)).pipe(
      Effect.map((info) => info.size > maxBytes || Folder.isRefusedLink(top.options, info)),
      Effect.orElseSucceed(() => false)
    )
  const refused = new Set(yield* Effect.filter(paths, isRefused, { concurrency: 16 }))
  const small = paths.filter((path) => !refused.has(path))
  const found = small.length === 0 ? new Set<string>() : yield* ripgrep(top.path, small)
  return found === undefined ? new Set(paths) : new Set([...refused, ...found])
})

// ───────────────────────── Matches

// Collects the matching lines of several files in the format of grep: `path:12: text` for a match, `path-11-
// text` for the lines around it, and `--` between groups.

interface Limits {
  /** Lines to include before and after each match. */
  readonly context: number
  /** Maximum matching lines. */
  readonly matches: number
  /** Maximum characters. The match that exceeds it is still included. */
  readonly size: number
}

interface Matches {
  /** Searches the text of another file. */
  readonly search: (path: string, text: string) => Paced.Work<void>
  /** Whether the files have more matches than the limits allow. */
  readonly isFull: () => boolean
  /** Number of matching lines that are included, and of files that contain them. */
  readonly count: () => { readonly lines: number; readonly files: number }
  readonly lines: ReadonlyArray<string>
}

/** Lines between two yields, for searches that do not yield themselves. */
const stride = 500

/** Makes an empty collection. */
const matchesOf = (matches: LineMatcher.LineMatcher["search"], limits: Limits): Matches => {
  const written: Array<string> = []
  let [count, files, size, full] = [0, 0, 0, false]

  const write = (text: string) => {
    written.push(text)
    size += text.length + 1
  }
  const isAtLimit = () => count === limits.matches || size > limits.size

  function* search(path: string, text: string): Paced.Work<void> {
    const before: Array<string> = []
    // `last` is the number of the line that was written last.
    let [number, hits, after, last] = [0, 0, 0, 0]
    for (const line of Paced.lines(text)) {
      if (++number % stride === 0) yield
      const end = yield* matches(line)
      if (end !== -1 && isAtLimit()) full = true
      if (full && after === 0) return
      if (end !== -1 && !full) {
        const from = number - before.length
        if (limits.context > 0 && written.length > 0 && (hits === 0 || from > last + 1)) write("--")
        for (const [index, earlier] of before.entries())
          write(`${path}-${from + index}- ${excerpt(earlier, 0)}`)
        write(`${path}:${number}: ${excerpt(line, end)}`)
        if (hits++ === 0) files++
        count++
        before.length = 0
        after = limits.context
        last = number
      } else if (after > 0) {
        last = number
        write(`${path}-${number}- ${excerpt(line, 0)}`)
        after--
      } else if (limits.context > 0) {
        before.push(line)
        if (before.length > limits.context) before.shift()
      }
    }
  }

  return {
    search,
    isFull: () => full,
    count: () => ({ lines: count, files }),
    lines: written
  }
}

/** Maximum characters of one line. */
const shown = 300

/** The line, or the part of a long line around the end of the match. */
const excerpt = (line: string, end: number): string => {
  // Vendors refuse requests with a NUL.
  const part = (from: number, to: number) =>
    line
      .slice(from, to)
      .replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, "")
      .replaceAll("\0", "\u2400")
  if (line.length <= shown) return part(0, shown)
  const from = Math.max(0, Math.min(end - shown / 2, line.length - shown))
  const [before, after] = [from > 0 ? "[...] " : "", from + shown < line.length ? " [...]" : ""]
  return before + part(from, from + shown) + after
}
