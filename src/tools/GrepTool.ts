/**
 * The tool `grep`: returns the lines of text files that match a pattern.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import * as FileSearch from "./internal/FileSearch.ts"
import * as Files from "./Files.ts"
import * as LineMatcher from "./internal/LineMatcher.ts"
import * as Matches from "./internal/Matches.ts"
import { cutLine } from "./Output.ts"
import { PathFailure } from "./PathFailure.ts"
import * as PathGlob from "./internal/PathGlob.ts"
import * as Ripgrep from "./internal/Ripgrep.ts"
import * as Walk from "./internal/Walk.ts"
import { TaggedError } from "../internal/errors.ts"

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
  const ripgrep = Ripgrep.finder()
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
      const matches = Matches.make(matcher.search, { context, matches: limit, size: maxOutput })
      const searching = { matches, matcher, budget, maxBytes: maxFileBytes }
      const { file, folder, shown } = yield* Files.openEither(options, path)
      if (file !== undefined) {
        const left = yield* FileSearch.file(searching, folder, file, shown)
        const reason = left instanceof Uint8Array ? "binary file" : left
        const missed: Walk.Missed = new Map(reason === undefined ? [] : [[reason, [shown]]])
        return rendered(params, searching, { wanted: 1, missed, leftOut: [], shown: "." })
      }
      const searched = yield* FileSearch.folder(searching, folder, {
        shown,
        isWanted: yield* PathGlob.within(options, folder, shown, params.glob ?? "**", true),
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
  { budget, matches }: FileSearch.Searching,
  { leftOut, missed, shown, wanted }: FileSearch.Searched
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
      ? `No file matches the glob, so none was searched.${PathGlob.adviceOn(glob)}`
      : `No line matches.${literal === true ? "" : LineMatcher.adviceOn(pattern)}`
  const text = lines === 0 ? [nothing] : matches.lines
  const isMissed = Array.from(missed.keys()).some((reason) => reason !== "link")
  return Tool.output([...text, ...notes].join("\n"), {
    details: { matches: lines, files, complete: !isFull && !isLate && !isMissed, leftOut: leftOut.length }
  })
}
