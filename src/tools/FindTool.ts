/**
 * Finds files by the pattern of their names.
 */
import * as Effect from "effect/Effect"
import * as Glob from "effect/Glob"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import * as Files from "./Files.ts"
import { visible } from "./Output.ts"
import { FileFailed, PathFailure } from "./PathFailure.ts"
import * as Walk from "./Walk.ts"

export type { Options } from "./Walk.ts"

/** Paths given at most. */
export const maxResults = 1_000

const Params = Schema.Struct({
  pattern: Schema.NonEmptyString.annotate({
    description:
      "Glob: * and ? within a name, ** over folders, [a-z], {a,b}. Without a / it is looked for in all folders"
  }),
  path: Schema.optionalKey(Schema.String).annotate({ description: "Folder to look in. Default: the root" }),
  includeIgnored: Walk.includeIgnored
})
type Params = typeof Params.Type

/** The tool `find`. Goes on for `searchTime` at most, and gives what it found by then. */
export const make = (options: Walk.Options) =>
  Tool.make({
    name: "find",
    label: "Find",
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
      const matches = matcher(pattern)
      const found: Array<string> = []
      const budget = yield* Walk.budget(options)
      const { ended, leftOut } = yield* Walk.walk(folder, { includeIgnored, budget }, (entry) =>
        Effect.sync((): Walk.Step => {
          const isFolder = entry.type === "Directory"
          if (!matches(isFolder ? `${entry.path}/` : entry.path)) return "continue"
          if (found.length === maxResults) return "stop"
          found.push(Walk.below(shown, entry.path) + (isFolder ? "/" : ""))
          return "continue"
        })
      )
      const note =
        ended === "continue"
          ? []
          : budget.hasStopped()
            ? [Walk.lateNote(budget)]
            : [`[Only the first ${maxResults} are shown. Narrow the pattern or the path.]`]
      return Tool.output(
        [
          ...(found.length === 0 ? ["Nothing matches."] : found.map(visible)),
          ...note,
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

/** Matches paths below a folder by a glob; one without a `/` is for names. Names with a leading dot match too. */
export const matcher = (pattern: string): ((path: string) => boolean) => {
  const anywhere = pattern.replace(/\/$/, "").includes("/") ? pattern.replace(/^\.?\//, "") : `**/${pattern}`
  const glob = Glob.make(anywhere, { dot: true })
  return (path) => Glob.match(glob, path)
}
