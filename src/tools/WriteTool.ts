/**
 * The tool `write`: creates a file or replaces all of it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import * as Files from "./Files.ts"
import * as Folder from "./internal/Folder.ts"
import { FileFailed, PathFailure, fromPlatform } from "./PathFailure.ts"
import type * as Root from "./Root.ts"

const Params = Schema.Struct({
  path: Schema.String,
  content: Schema.Union([Schema.String, Schema.JsonObject, Schema.Array(Schema.Json)])
})
type Params = typeof Params.Type

/** The description for the model. Some models send the content of a JSON file as JSON all the same. */
const parameters = {
  type: "object",
  properties: {
    path: { type: "string", description: "The file, relative to the root or absolute" },
    content: { type: "string", description: "The whole content of the file" }
  },
  required: ["path", "content"],
  additionalProperties: false
}

/** Names of files that hold JSON. */
const holdsJson = /\.(?:\w*json\w*|ipynb|webmanifest|har)$|rc$/i

/**
 * Makes the tool `write`.
 *
 * **Details**
 *
 * The tool writes UTF-8 text, creates missing folders, and keeps the mode and, where permitted, the owner of
 * the file that it replaces. Content without CRLF gets the CRLF line ends and the byte order mark of that file,
 * and the result has a note of it. The content of a JSON file may be a JSON value. It writes a temporary file and renames it, so that a reader never sees a part of
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
    parameters,
    failure: PathFailure,
    execute: Effect.fnUntraced(function* ({ content, path }: Params) {
      if (typeof content !== "string" && !holdsJson.test(path))
        return yield* new FileFailed({ path, reason: "other", detail: "the content must be a text" })
      const text = typeof content === "string" ? content : `${JSON.stringify(content, undefined, 2)}\n`
      const { target, written } = yield* Files.update(options, path, (target) => like(target, path, text))
      const { info, shown } = target
      const { bytes, notes } = written
      const lines = lineCount(text)
      const done = info === undefined ? "Wrote new file" : `Replaced ${info.size} bytes of`
      const report = `${done} ${shown}: ${bytes.length} bytes, ${lines} ${lines === 1 ? "line" : "lines"}.`
      return Tool.output([report, ...notes, ...Files.linkNote(target)].join("\n"), {
        details: { path: shown, bytes: bytes.length, lines, created: info === undefined }
      })
    })
  })

/** The bytes of the text with the line ends and the byte order mark of the file that it replaces. */
const like = Effect.fnUntraced(function* ({ folder, info, name }: Files.Target, path: string, text: string) {
  const start = info === undefined ? new Uint8Array() : yield* startOf(folder, name, path)
  const kind = Files.kindOf(start)
  const isWide = kind._tag === "Text" && kind.encoding !== "utf-8"
  const lines = new TextDecoder("utf-8", { ignoreBOM: true }).decode(start)
  const [all, crlf] = [lines.split("\n").length - 1, lines.split("\r\n").length - 1]
  const keepsEnds = !isWide && crlf * 2 > all && text.includes("\n") && !text.includes("\r\n")
  const keepsMark = !isWide && lines.startsWith("\ufeff") && !text.startsWith("\ufeff")
  const kept = (keepsMark ? "\ufeff" : "") + (keepsEnds ? text.replaceAll("\n", "\r\n") : text)
  const notes = [
    ...(keepsEnds ? ["[Lines end in CRLF, as before.]"] : []),
    ...(keepsMark ? ["[It begins with a byte order mark, as before.]"] : []),
    ...(isWide ? ["[It was UTF-16 text, and is UTF-8 now.]"] : [])
  ]
  return { bytes: new TextEncoder().encode(kept), notes }
})

/** The first bytes of a file, none if the tools may not read it. */
const startOf = Effect.fnUntraced(
  function* (folder: Folder.Folder, name: string, path: string) {
    const { file } = yield* Folder.openFile(folder, name, path)
    const chunk = yield* Effect.mapError(file.readAlloc(Files.chunkSize), (error) =>
      fromPlatform(path, error)
    )
    return Option.getOrElse(chunk, () => new Uint8Array())
  },
  Effect.scoped,
  Effect.catchIf(
    (failure) => failure._tag === "PathRefused" || failure.reason === "denied",
    () => Effect.succeed(new Uint8Array())
  )
)

const lineCount = (content: string): number =>
  content === "" ? 0 : content.split("\n").length - (content.endsWith("\n") ? 1 : 0)
