/**
 * What a tool call would do, for the person who decides on it: the whole command, or what changes in which file.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as TextDiff from "effect/TextDiff"
import * as Inert from "./Inert.ts"

/** Lines of a change that are shown. What is left out is counted. */
const maxLines = 24
/** Characters of a command or of params that are shown. */
const maxText = 4_000
/** A larger file is not compared. In bytes. */
const maxBytes = 1024 * 1024

const Write = Schema.Struct({ path: Schema.String, content: Schema.String })
const Replacement = { oldText: Schema.String, newText: Schema.String }
const Edit = Schema.Struct({
  path: Schema.String,
  oldText: Schema.optionalKey(Schema.String),
  newText: Schema.optionalKey(Schema.String),
  edits: Schema.optionalKey(Schema.Array(Schema.Struct(Replacement)))
})
const Shell = Schema.Struct({ command: Schema.String })

/** Lines to show; everything in them is inert. `root` is where relative paths start. */
export const of = (
  name: string,
  params: unknown,
  root: string
): Effect.Effect<ReadonlyArray<string>, never, FileSystem.FileSystem | Path.Path> => {
  const shell = Schema.decodeUnknownOption(Shell)(params)
  if (name === "shell" && Option.isSome(shell)) return Effect.succeed(["shell", ...cut(shell.value.command)])
  const edit = Schema.decodeUnknownOption(Edit)(params)
  if (name === "edit" && Option.isSome(edit)) return Effect.succeed(ofEdit(edit.value))
  const write = Schema.decodeUnknownOption(Write)(params)
  if (name === "write" && Option.isSome(write)) return ofWrite(write.value, root)
  return Effect.succeed([Inert.exact(name), ...cut(JSON.stringify(params, undefined, 2))])
}

const ofEdit = ({ edits, newText = "", oldText = "", path }: typeof Edit.Type): ReadonlyArray<string> => {
  const all = edits !== undefined && edits.length > 0 ? edits : [{ oldText, newText }]
  const lines = all.flatMap((edit) => [...marked("-", edit.oldText), ...marked("+", edit.newText)])
  return [`edit ${Inert.exact(path)}`, ...few(lines)]
}

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
  const shown = lines.slice(0, maxLines).map((line) => Inert.exact(Array.from(line).slice(0, 300).join("")))
  const rest = lines.length - shown.length
  return rest > 0 ? [...shown, `… ${rest} more lines`] : shown
}

const cut = (text: string): ReadonlyArray<string> => {
  const shown = Inert.exact(text.slice(0, maxText)).split("\n")
  return text.length > maxText ? [...shown, `… ${text.length - maxText} more characters, not shown`] : shown
}
