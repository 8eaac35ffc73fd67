/**
 * The tool `grep`: returns the lines of text files that match a pattern.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import * as FileKind from "./FileKind.ts"
import * as Files from "./Files.ts"
import { matcher } from "./FindTool.ts"
import * as Folder from "./Folder.ts"
import * as LineSearch from "./LineSearch.ts"
import * as Matches from "./Matches.ts"
import { cutLine, visible } from "./Output.ts"
import * as Paced from "./Paced.ts"
import { PathFailure } from "./PathFailure.ts"
import * as Walk from "./Walk.ts"

export type { Options } from "./Walk.ts"

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
export class InvalidPattern extends Schema.TaggedError<InvalidPattern>()("InvalidPattern", {
  /** The pattern of the call. */
  pattern: Schema.String,
  /** The syntax error and its position. */
  detail: Schema.String
}) {
  override get message(): string {
    return `The pattern ${JSON.stringify(cutLine(this.pattern, 300))} is invalid: ${this.detail}. To search for it as text, set literal.`
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
    description: "Search only files that match, such as *.ts"
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
 * The time of a search is linear in the size of the files for every pattern, so patterns have no look-around
 * and no back references. The tool searches in slices of a few milliseconds, so that other fibers run and an
 * interruption takes effect. It stops after `searchTime` (default 10 seconds) and returns the lines it found by
 * then. It skips binary files and files above `maxFileBytes`. It fails with `InvalidPattern` for a pattern it
 * cannot parse.
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
export const make = (options: Walk.Options) =>
  Tool.make({
    name: "grep",
    label: "Grep",
    description:
      "Searches text files for lines that match a pattern, and gives path:line: text. " +
      `Leaves out binary files. ${Walk.leavesOut}`,
    params: Params,
    failure: Schema.Union([...PathFailure.members, InvalidPattern]),
    execute: Effect.fnUntraced(function* (params: Params) {
      const { context = 0, limit = maxMatches, path = "." } = params
      const budget = yield* Walk.budget(options)
      const matches = Matches.make(yield* searchOf(params), { context, matches: limit, size: maxOutput })
      const { file, folder, shown } = yield* Files.openEither(options, path)
      if (file !== undefined) {
        yield* searchFile({ matches, budget }, folder, file, shown)
        return rendered({ matches, budget }, { tooLarge: 0, leftOut: [], shown })
      }
      return rendered({ matches, budget }, yield* searchFolder({ matches, budget }, folder, shown, params))
    }, Effect.scoped)
  })

const searchOf = (params: Params): Effect.Effect<LineSearch.Search, InvalidPattern> => {
  const { ignoreCase = false, pattern } = params
  if (params.literal === true) return Effect.succeed(LineSearch.literal(pattern, { ignoreCase }))
  return Effect.fromResult(
    Result.mapError(
      LineSearch.regex(pattern, { ignoreCase }),
      (detail) => new InvalidPattern({ pattern, detail })
    )
  )
}

interface Searching {
  readonly matches: Matches.Matches
  readonly budget: Paced.Budget
}

/** The parts of a folder that the search left out. */
interface Missed {
  /** Number of files above `maxFileBytes`. */
  readonly tooLarge: number
  /** Ignored paths, relative to the folder `shown`. */
  readonly leftOut: ReadonlyArray<string>
  readonly shown: string
}

/** Searches the files below the folder. */
const searchFolder = Effect.fnUntraced(function* (
  searching: Searching,
  folder: Folder.Folder,
  shown: string,
  params: Params
) {
  const isWanted = params.glob === undefined ? () => true : matcher(params.glob)
  let tooLarge = 0
  const { includeIgnored = false } = params
  const { leftOut } = yield* Walk.walk(folder, { includeIgnored, budget: searching.budget }, (entry) => {
    if (entry.type !== "File" || !isWanted(entry.path)) return Effect.succeed<Walk.Step>("continue")
    return searchFile(searching, entry.folder, entry.name, Walk.below(shown, entry.path)).pipe(
      Effect.catch((failure) =>
        // Unreadable files do not fail the search.
        Effect.sync(() => {
          if (failure._tag === "FileFailed" && failure.reason === "tooLarge") tooLarge++
        })
      ),
      Effect.map((): Walk.Step => (searching.matches.isFull() ? "stop" : "continue"))
    )
  })
  return { tooLarge, leftOut, shown } satisfies Missed
})

const searchFile = Effect.fnUntraced(function* (
  { budget, matches }: Searching,
  folder: Folder.Folder,
  name: string,
  shown: string
) {
  const opened = yield* Folder.openFile(folder, name, shown)
  const bytes = yield* Files.readAll(opened, shown, maxFileBytes)
  if (FileKind.of(bytes)._tag !== "Text") return
  const text = yield* Paced.run(Paced.decoded(bytes, new TextDecoder()))
  yield* Paced.runWithin(matches.search(visible(shown), text), budget)
}, Effect.scoped)

const rendered = ({ budget, matches }: Searching, { leftOut, shown, tooLarge }: Missed): Tool.ToolOutput => {
  const { files, lines } = matches.count()
  const isLate = budget.hasStopped()
  const notes = [
    ...(matches.isFull()
      ? [`[Only the first ${lines} matching lines are shown. Narrow the pattern, the path or the glob.]`]
      : []),
    ...(isLate ? [Walk.lateNote(budget)] : []),
    ...(tooLarge > 0 ? [`[${tooLarge} files of more than ${maxFileBytes} bytes were not searched.]`] : []),
    ...Walk.leftOutNote(shown, leftOut)
  ]
  const text = lines === 0 ? ["No line matches."] : matches.lines
  return Tool.output([...text, ...notes].join("\n"), {
    details: {
      matches: lines,
      files,
      complete: !matches.isFull() && !isLate && tooLarge === 0,
      leftOut: leftOut.length
    }
  })
}
