/**
 * The tool `list`: returns the entries of one folder.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import * as Files from "./Files.ts"
import type * as Folder from "./internal/Folder.ts"
import * as Walk from "./internal/Walk.ts"
import { visible } from "./Output.ts"
import { FileFailed, PathFailure } from "./PathFailure.ts"

/**
 * Maximum entries that one call returns.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxEntries = 500

const Params = Schema.Struct({
  path: Schema.optionalKey(Schema.String).annotate({ description: "The folder. Default: the root" }),
  includeIgnored: Walk.includeIgnored
})
type Params = typeof Params.Type

/**
 * Makes the tool `list`.
 *
 * **Details**
 *
 * The tool returns hidden entries too, and the size of each file in bytes. It leaves out `.git`, `node_modules`
 * and entries that `.gitignore` ignores, and reports how many, unless `includeIgnored` is set. After `searchTime`
 * (default 10 seconds) it returns the entries it has and reports that the list is incomplete. It fails with
 * `FileFailed` if the path is missing or a file.
 *
 * **Example** (Listing the root)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { ListTool } from "effect-agent/tools"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any", tools: [ListTool.make({ root: "." })] })
 *     const { newMessages } = yield* agent.prompt("Which files are here?")
 *     for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
 *   })
 * )
 *
 * const script = [ScriptedProvider.toolCall("list", {}), ScriptedProvider.text("Done.")]
 * const layer = Layer.merge(ScriptedProvider.layer(script), NodeServices.layer)
 * await Effect.runPromise(program.pipe(Effect.provide(layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Walk.Options) =>
  Tool.make({
    name: "list",
    label: "List",
    effect: "pure",
    description:
      "Lists the entries of one folder, hidden ones too: folders end in /, files come with their size in bytes. " +
      `To look into folders below use find. ${Walk.leavesOut}`,
    params: Params,
    failure: PathFailure,
    execute: Effect.fnUntraced(function* ({ includeIgnored = false, path = "." }: Params) {
      const budget = yield* Walk.budget(options)
      const { file, folder, shown } = yield* Files.openEither(options, path)
      if (file !== undefined) {
        return yield* new FileFailed({
          path,
          reason: "notFolder",
          detail: "it is a file, not a folder. Use read"
        })
      }
      const found = yield* Walk.entries(folder)
      const rules = includeIgnored ? Walk.noRules : yield* Walk.rulesIn(folder, found)
      const verdicts = yield* Walk.verdictsOf(rules, found, budget)
      const entries = found.filter((_, index) => verdicts[index] === false)
      const leftOut = found
        .filter(({ name }, index) => verdicts[index] === true && name !== ".git")
        .map(({ name, type }) => (type === "Directory" ? `${name}/` : name))
      const lines = yield* Effect.forEach(entries.slice(0, maxEntries), (entry) => describe(folder, entry), {
        concurrency: 8
      })
      const rest = entries.length - lines.length
      const note =
        rest > 0 ? [`[${rest} of ${entries.length} entries are not shown. Use find to narrow down.]`] : []
      const isLate = budget.hasStopped()
      const notes = [...note, ...(isLate ? [Walk.lateNote(budget)] : []), ...Walk.leftOutNote(".", leftOut)]
      const text = [
        ...(entries.length === 0 && notes.length === 0 ? ["(The folder is empty.)"] : lines),
        ...notes
      ]
      return Tool.output(text.join("\n"), {
        details: { path: shown, entries: entries.length, complete: !isLate, leftOut: leftOut.length }
      })
    }, Effect.scoped)
  })

const describe = Effect.fnUntraced(function* (
  folder: Folder.Folder,
  { name, type }: FileSystem.DirectoryEntry
) {
  const files = yield* FileSystem.FileSystem
  const shown = visible(name)
  switch (type) {
    case "Directory":
      return `${shown}/`
    case "SymbolicLink": {
      const target = yield* Effect.option(files.readLink(folder.at(name)))
      return target._tag === "Some" ? `${shown} -> ${visible(target.value)}` : shown
    }
    case "File": {
      const info = yield* Effect.option(files.lstat(folder.at(name)))
      return info._tag === "Some" ? `${shown} (${info.value.size})` : shown
    }
    default:
      return `${shown} (${type})`
  }
})
