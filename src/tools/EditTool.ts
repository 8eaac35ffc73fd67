/**
 * The tool `edit`: replaces exact texts in a file.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import * as Files from "./Files.ts"
import * as Folder from "./internal/Folder.ts"
import * as LineDiff from "./LineDiff.ts"
import * as Paced from "./Paced.ts"
import { FileFailed, PathFailure } from "./PathFailure.ts"
import * as Replacement from "./Replacement.ts"
import type * as Root from "./Root.ts"

/**
 * Maximum bytes of a file that the tool edits, because it holds the file in memory.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxBytes = 10 * 1024 * 1024

/** Maximum characters of the diff in `details`. A longer diff is cut in the middle. */
const maxDiff = 10_000

const edit = {
  oldText: Schema.String.annotate({ description: "Text to replace, exactly as it is in the file" }),
  newText: Schema.String.annotate({ description: "Text to put in its place" }),
  replaceAll: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Replace each occurrence. Default: the old text must occur exactly once"
  })
}

/**
 * Schema of the parameters of `edit`: either `oldText` and `newText`, or `edits`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Params = Schema.Struct({
  /** The file, relative to the root or absolute. */
  path: Schema.String.annotate({ description: "The file, relative to the root or absolute" }),
  /** The text to replace. */
  oldText: Schema.optionalKey(edit.oldText),
  /** The replacement. */
  newText: Schema.optionalKey(edit.newText),
  /** Whether to replace every occurrence (default: `false`). */
  replaceAll: edit.replaceAll,
  /** Several replacements, instead of `oldText` and `newText`. */
  edits: Schema.optionalKey(Schema.Array(Schema.Struct(edit))).annotate({
    description:
      "Several replacements at once, instead of oldText and newText. Each oldText is searched in the unchanged file"
  })
})

/**
 * The decoded parameters of `edit`.
 *
 * @since 0.1.0
 * @category models
 */
export type Params = typeof Params.Type

/**
 * Makes the tool `edit`.
 *
 * **Details**
 *
 * The tool makes all replacements of a call or none. It keeps line ends, byte order mark and mode of the file,
 * and returns a unified diff as `details.diff` (at most 10,000 characters). It fails with `EditRefused` if a
 * text does not occur, or occurs several times without `replaceAll`; with `FileFailed` if the file is missing,
 * not UTF-8, too large, or changed meanwhile; and with `PathRefused` for a path outside the writable folders or
 * with a protected name.
 *
 * **Example** (Replacing a text in a file)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem, Layer } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { EditTool } from "effect-agent/tools"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const files = yield* FileSystem.FileSystem
 *     const root = yield* files.makeTempDirectoryScoped()
 *     yield* files.writeFileString(`${root}/port.txt`, "port = 80\n")
 *     const agent = yield* Agent.make({ model: "any", tools: [EditTool.make({ root })] })
 *     const { newMessages } = yield* agent.prompt("Use port 8080.")
 *     for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
 *   })
 * )
 *
 * const params = { path: "port.txt", oldText: "80", newText: "8080" }
 * const script = [ScriptedProvider.toolCall("edit", params), ScriptedProvider.text("Done.")]
 * const layer = Layer.merge(ScriptedProvider.layer(script), NodeServices.layer)
 * await Effect.runPromise(program.pipe(Effect.provide(layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Root.Options) =>
  Tool.make({
    name: "edit",
    label: "Edit",
    description:
      "Replaces text in a file. The old text must match exactly, white space included, and occur once unless " +
      "replaceAll is set. Give oldText and newText, or edits for several at once: all are made, or none.",
    params: Params,
    failure: Schema.Union([...PathFailure.members, Replacement.EditRefused]),
    execute: Effect.fnUntraced(function* (params: Params) {
      const edits = yield* Effect.fromResult(editsOf(params))
      const edited = (path: string) => Files.update(options, path, (target) => change(target, path, edits))
      const { target, written } = yield* Effect.catchIf(edited(params.path), isMissing, (failure) =>
        Effect.flatMap(Files.likely(options, params.path), (path) =>
          path === undefined ? Effect.fail(failure) : edited(path)
        )
      )
      return yield* rendered(target, written)
    })
  })

const isMissing = (failure: PathFailure | Replacement.EditRefused): failure is FileFailed =>
  failure._tag === "FileFailed" && failure.reason === "notFound"

interface Done {
  readonly bytes: Uint8Array
  readonly before: string
  readonly places: ReadonlyArray<Replacement.Place>
  readonly likened: ReadonlyArray<string>
}

/**
 * Returns the replacements that a call of `edit` specifies.
 *
 * **Details**
 *
 * Fails with `EditRefused` if the parameters have both `edits` and `oldText` or `newText`, or neither. Empty texts
 * count as absent, and so does an edit that is among `edits`.
 *
 * **Example** (Reading the replacements of a call in an approval)
 *
 * ```ts
 * import { Result } from "effect"
 * import { EditTool } from "effect-agent/tools"
 *
 * const edits = EditTool.editsOf({ path: "a.txt", oldText: "one", newText: "two" })
 * console.log(Result.isSuccess(edits) && edits.success.length) // => 1
 * ```
 *
 * @since 0.1.0
 * @category getters
 */
export const editsOf = (
  params: Params
): Result.Result<ReadonlyArray<Replacement.Edit>, Replacement.EditRefused> => {
  const { newText, oldText, path, replaceAll } = params
  const refuse = (detail: string) => Result.fail(new Replacement.EditRefused({ path, detail }))
  const isEmpty = (edit: Pick<Params, "oldText" | "newText">) => !edit.oldText && !edit.newText
  const edits = params.edits?.filter((edit) => !isEmpty(edit)) ?? []
  if (edits.length > 0) {
    // Some models fill in all parameters.
    return isEmpty(params) || edits.some((edit) => edit.oldText === oldText && edit.newText === newText)
      ? Result.succeed(edits)
      : refuse("give either edits or oldText and newText")
  }
  if (oldText === undefined || newText === undefined) return refuse("give oldText and newText, or edits")
  return Result.succeed([{ oldText, newText, ...(replaceAll === undefined ? {} : { replaceAll }) }])
}

const change = Effect.fnUntraced(function* (
  { folder, info, name }: Files.Target,
  path: string,
  edits: ReadonlyArray<Replacement.Edit>
) {
  if (info === undefined) {
    const detail = "there is no such file. To make it use write"
    return yield* new FileFailed({ path, reason: "notFound", detail })
  }
  const opened = yield* Folder.openFile(folder, name, path)
  if (!Folder.sameFile(info, opened.info)) return yield* Folder.changed(path)
  const bytes = yield* Files.readAll(opened, path, maxBytes)
  const before = yield* decoded(bytes, path)
  const { likened, places, text } = yield* Effect.mapError(
    // The text that was decoded has no byte order mark.
    Replacement.apply(
      before,
      edits.map((edit) => ({ ...edit, ...withoutMark(edit) }))
    ),
    (detail) => new Replacement.EditRefused({ path, detail })
  )
  return { bytes: encoded(text, bytes), before, places, likened } satisfies Done
}, Effect.scoped)

/** Fails for bytes that are not UTF-8, because encoding them again would change the file. */
const decoded = (bytes: Uint8Array, path: string): Effect.Effect<string, FileFailed> => {
  const kind = Files.kindOf(bytes)
  const refuse = (format: string) =>
    new FileFailed({ path, reason: "other", detail: `it is ${format}, and only UTF-8 text can be edited` })
  if (kind._tag !== "Text") return Effect.fail(refuse(kind._tag === "Image" ? kind.mediaType : kind.format))
  if (kind.encoding !== "utf-8") return Effect.fail(refuse("UTF-16 text"))
  return Effect.flatMap(Paced.run(validText(bytes)), (text) =>
    text === undefined ? Effect.fail(refuse("not valid UTF-8")) : Effect.succeed(text)
  )
}

function* validText(bytes: Uint8Array): Paced.Work<string | undefined> {
  try {
    return yield* Paced.decoded(bytes, new TextDecoder("utf-8", { fatal: true }))
  } catch {
    return undefined
  }
}

const withoutMark = ({ newText, oldText }: Replacement.Edit) => ({
  oldText: oldText.replace(/^\ufeff/, ""),
  newText: newText.replace(/^\ufeff/, "")
})

const byteOrderMark = [0xef, 0xbb, 0xbf]

const encoded = (text: string, original: Uint8Array): Uint8Array => {
  const bytes = new TextEncoder().encode(text)
  if (!byteOrderMark.every((byte, index) => original[index] === byte)) return bytes
  const marked = new Uint8Array(byteOrderMark.length + bytes.length)
  marked.set(byteOrderMark)
  marked.set(bytes, byteOrderMark.length)
  return marked
}

const rendered = Effect.fnUntraced(function* (target: Files.Target, { before, likened, places }: Done) {
  const path = target.shown
  const { added, diff, removed } = yield* Paced.run(LineDiff.make(before, places, path, maxDiff))
  const replaced = places.length
  const count = replaced === 1 ? "1 place" : `${replaced} places`
  const notes = [
    `Replaced ${count} in ${path} (+${added} -${removed} lines).`,
    ...(likened.length === 0 ? [] : [`[The file has ${likened.join(", ")} there, unlike the old text.]`]),
    ...Files.linkNote(target)
  ]
  return Tool.output(notes.join("\n"), {
    details: { path, replaced, added, removed, diff }
  })
})
