/**
 * Writes a whole file.
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

/** The tool `write`: as a whole or not at all, with the mode of the file it replaces. */
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
