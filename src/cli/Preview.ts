/**
 * What a tool call would do, for the person who decides on it: the whole command, or what changes in which file.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TextDiff from "effect/TextDiff"
import * as EditTool from "../tools/EditTool.ts"
import * as Inert from "./Inert.ts"

/** Lines of a change that are shown. What is left out is counted. */
const maxLines = 24
/** Characters of such a line that are shown. */
const maxLine = 300
/** Characters of a command or of params that are shown. */
const maxText = 4_000
/** A larger file is not compared. In bytes. */
const maxBytes = 1024 * 1024

const Write = Schema.Struct({ path: Schema.String, content: Schema.String })
const Shell = Schema.Struct({ command: Schema.String })

/** Lines to show; everything in them is inert. `root` is where relative paths start. */
export const of = (
  name: string,
  params: unknown,
  root: string
): Effect.Effect<ReadonlyArray<string>, never, FileSystem.FileSystem | Path.Path> => {
  const shell = Schema.decodeUnknownOption(Shell)(params)
  if (name === "shell" && Option.isSome(shell)) return Effect.succeed(["shell", ...cut(shell.value.command)])
  const edit = Option.flatMap(Schema.decodeUnknownOption(EditTool.Params)(params), ofEdit)
  if (name === "edit" && Option.isSome(edit)) return Effect.succeed(edit.value)
  const write = Schema.decodeUnknownOption(Write)(params)
  if (name === "write" && Option.isSome(write)) return ofWrite(write.value, root)
  return Effect.succeed([Inert.exact(name), ...cut(JSON.stringify(params, undefined, 2))])
}

/** Nothing for an edit that the tool refuses. */
const ofEdit = (params: EditTool.Params): Option.Option<ReadonlyArray<string>> =>
  Option.map(Result.getSuccess(EditTool.editsOf(params)), (edits) => {
    const lines = edits.flatMap(({ newText, oldText, replaceAll = false }) => [
      ...(replaceAll ? ["every occurrence:"] : []),
      ...marked("-", oldText),
      ...marked("+", newText)
    ])
    return [`edit ${Inert.exact(params.path)}`, ...few(lines)]
  })

const marked = (mark: string, text: string): ReadonlyArray<string> =>
  text === "" ? [] : text.split("\n").map((line) => mark + line)

const ofWrite = Effect.fnUntraced(function* ({ content, path }: typeof Write.Type, root: string) {
  const before = yield* Effect.option(contentOf(path, root))
  const title = `write ${Inert.exact(path)}`
  if (Option.isNone(before)) return [`${title}: replaces what is there`, ...few(marked("+", content))]
  const script = TextDiff.lines(before.value ?? "", content, { maxEdits: 1_000 })
  const count = (tag: "Insert" | "Delete") =>
    script.reduce((sum, run) => (run._tag === tag ? sum + run.items.length : sum), 0)
  const change = `+${count("Insert")} -${count("Delete")} lines`
  const what = before.value === undefined ? `new file, ${change}` : change
  return [`${title}: ${what}`, ...few(TextDiff.unified(script).split("\n"))]
})

/** Nothing when there is no such file. Fails when there is one that cannot be compared. */
const contentOf = Effect.fnUntraced(function* (path: string, root: string) {
  const files = yield* FileSystem.FileSystem
  const at = (yield* Path.Path).resolve(root, path)
  const info = yield* Effect.catchReason(files.stat(at), "PlatformError", "NotFound", () => Effect.undefined)
  if (info === undefined) return undefined
  // Anything else, a pipe or a device, may have no end.
  if (info.type !== "File" || info.size > maxBytes) return yield* Effect.fail("not comparable")
  return yield* files.readFileString(at)
})

const few = (lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  const shown = lines.slice(0, maxLines).map((line) => {
    const chars = Array.from(line)
    const start = Inert.exact(chars.slice(0, maxLine).join(""))
    return chars.length > maxLine ? `${start}… ${omitted(chars.length - maxLine)}` : start
  })
  const rest = lines.length - shown.length
  return rest > 0 ? [...shown, `… ${rest} more lines`] : shown
}

const cut = (text: string): ReadonlyArray<string> => {
  const shown = Inert.exact(text.slice(0, maxText)).split("\n")
  return text.length > maxText ? [...shown, `… ${omitted(text.length - maxText)}`] : shown
}

const omitted = (count: number): string => `${count} more characters, not shown`
