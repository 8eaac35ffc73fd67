/**
 * The tool `write`: creates a file or replaces all of it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import * as Files from "./Files.ts"
import { PathFailure } from "./PathFailure.ts"
import type * as Root from "./Root.ts"

const Params = Schema.Struct({
  path: Schema.String.annotate({ description: "The file, relative to the root or absolute" }),
  content: Schema.String.annotate({ description: "The whole content of the file" })
})
type Params = typeof Params.Type

/**
 * Makes the tool `write`.
 *
 * **Details**
 *
 * The tool writes UTF-8 text, creates missing folders, and keeps the mode and, where permitted, the owner of
 * the file that it replaces. It writes a temporary file and renames it, so that a reader never sees a part of
 * the content. It fails with `PathRefused` for a path outside the writable folders or with a protected name,
 * and with `FileFailed` if the system refuses the write or another process changed the file meanwhile.
 *
 * **Example** (Writing a file)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem, Layer } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { WriteTool } from "effect-agent/tools"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const files = yield* FileSystem.FileSystem
 *     const root = yield* files.makeTempDirectoryScoped()
 *     const agent = yield* Agent.make({ model: "any", tools: [WriteTool.make({ root })] })
 *     const { newMessages } = yield* agent.prompt("Write a note.")
 *     for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
 *   })
 * )
 *
 * const params = { path: "note.txt", content: "Hello" }
 * const script = [ScriptedProvider.toolCall("write", params), ScriptedProvider.text("Done.")]
 * const layer = Layer.merge(ScriptedProvider.layer(script), NodeServices.layer)
 * await Effect.runPromise(program.pipe(Effect.provide(layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Root.Options) =>
  Tool.make({
    name: "write",
    label: "Write",
    description:
      "Writes a file as UTF-8 text: makes it, with the folders it needs, or replaces all of it. " +
      "To change parts of a file use edit.",
    params: Params,
    failure: PathFailure,
    execute: Effect.fnUntraced(function* ({ content, path }: Params) {
      const bytes = new TextEncoder().encode(content)
      const { target } = yield* Files.update(options, path, () => Effect.succeed({ bytes }))
      const { info, shown } = target
      const lines = lineCount(content)
      const done = info === undefined ? "Wrote new file" : `Replaced ${info.size} bytes of`
      return Tool.output(
        `${done} ${shown}: ${bytes.length} bytes, ${lines} ${lines === 1 ? "line" : "lines"}.`,
        {
          details: { path: shown, bytes: bytes.length, lines, created: info === undefined }
        }
      )
    })
  })

const lineCount = (content: string): number =>
  content === "" ? 0 : content.split("\n").length - (content.endsWith("\n") ? 1 : 0)
