/**
 * The tool `find`: returns the paths that match a glob.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import * as Files from "./Files.ts"
import { visible } from "./Output.ts"
import * as Paced from "./Paced.ts"
import { FileFailed, PathFailure } from "./PathFailure.ts"
import * as PathPattern from "./internal/PathPattern.ts"
import * as Walk from "./internal/Walk.ts"

export type { Options } from "./internal/Walk.ts"

/**
 * Maximum paths that one call returns.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxResults = 1_000

const Params = Schema.Struct({
  pattern: Schema.NonEmptyString.annotate({
    description:
      "Glob: * and ? within a name, ** over folders, [a-z], {a,b}, !*.x to exclude. Without a / it matches names in all folders"
  }),
  path: Schema.optionalKey(Schema.String).annotate({ description: "Folder to look in. Default: the root" }),
  includeIgnored: Walk.includeIgnored
})
type Params = typeof Params.Type

/**
 * Makes the tool `find`.
 *
 * **Details**
 *
 * The tool stops after `searchTime` (default 10 seconds) or `maxResults` paths, returns the paths it found by
 * then and reports that the search is incomplete. It does not follow symbolic links. It leaves out `.git`,
 * `node_modules` and paths that `.gitignore` ignores, unless `includeIgnored` is set.
 *
 * **Example** (Finding Markdown files)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { FindTool } from "effect-agent/tools"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any", tools: [FindTool.make({ root: "." })] })
 *     const { newMessages } = yield* agent.prompt("Which Markdown files are here?")
 *     for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
 *   })
 * )
 *
 * const script = [ScriptedProvider.toolCall("find", { pattern: "*.md" }), ScriptedProvider.text("Done.")]
 * const layer = Layer.merge(ScriptedProvider.layer(script), NodeServices.layer)
 * await Effect.runPromise(program.pipe(Effect.provide(layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Walk.Options) =>
  Tool.make({
    name: "find",
    label: "Find",
    effect: "pure",
    description:
      "Finds files and folders by a glob pattern such as **/*.ts. Paths come relative to the root, folders end in /. " +
      Walk.leavesOut,
    params: Params,
    failure: PathFailure,
    execute: Effect.fnUntraced(function* ({ includeIgnored = false, path = ".", pattern }: Params) {
      const { file, folder, shown } = yield* Files.openEither(options, path)
      if (file !== undefined) {
        return yield* new FileFailed({ path, reason: "notFolder", detail: "it is a file, not a folder" })
      }
      const matches = yield* PathPattern.within(options, folder, shown, pattern, false)
      const inAnyCase = yield* PathPattern.within(options, folder, shown, pattern.toLowerCase(), false)
      const [found, others]: [Array<string>, Array<string>] = [[], []]
      const budget = yield* Walk.budget(options)
      const { ended, leftOut, missed } = yield* Walk.walk(folder, { includeIgnored, budget }, (entry) => {
        const path = entry.type === "Directory" ? `${entry.path}/` : entry.path
        function* compare(): Paced.Work<Walk.Step> {
          if (yield* matches(path)) {
            if (found.length === maxResults) return "stop"
            found.push(Walk.below(shown, path))
          } else if (found.length + others.length === 0 && (yield* inAnyCase(path.toLowerCase()))) {
            others.push(Walk.below(shown, path))
          }
          return "continue"
        }
        return Effect.map(Paced.runWithin(compare(), budget), (step) => step ?? "stop")
      })
      const note =
        ended === "continue"
          ? []
          : budget.hasStopped()
            ? [Walk.lateNote(budget)]
            : [`[Only the first ${maxResults} are shown. Narrow the pattern or the path.]`]
      const nothing = [
        "Nothing matches.",
        others.length === 0
          ? PathPattern.adviceOn(pattern)
          : ` In other letter case: ${visible(others.join())}`
      ].join("")
      return Tool.output(
        [
          ...(found.length === 0 ? [nothing] : found.map(visible)),
          ...note,
          ...Walk.missedNote(shown, missed),
          ...Walk.leftOutNote(shown, leftOut)
        ].join("\n"),
        {
          details: {
            path: shown,
            found: found.length,
            complete: ended === "continue",
            leftOut: leftOut.length
          }
        }
      )
    }, Effect.scoped)
  })

/**
 * Returns a function that tests whether a path below a folder matches a glob.
 *
 * **Details**
 *
 * A glob without `/` matches names in all folders. Names with a leading dot match too. Several globs are separated by
 * commas, and one with a leading `!` excludes paths. A glob of more than 1,000 characters matches nothing.
 *
 * **Example** (Matching a name at any depth)
 *
 * ```ts
 * import { FindTool } from "effect-agent/tools"
 *
 * const matches = FindTool.matcher("*.ts")
 * console.log(matches("src/index.ts"), matches("README.md")) // => true false
 * ```
 *
 * @since 0.1.0
 * @category predicates
 */
export const matcher = (pattern: string): ((path: string) => boolean) => {
  const glob = Result.getOrUndefined(PathPattern.make(pattern))
  return (path) => {
    if (glob === undefined) return false
    const work = glob(path)
    let step = work.next()
    while (step.done !== true) step = work.next()
    return step.value
  }
}
