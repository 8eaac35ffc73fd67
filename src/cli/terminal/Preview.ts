/** Previews of tool calls for approvals: the command, or the changes of a file. */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TextDiff from "effect/TextDiff"
import * as EditTool from "../../tools/EditTool.ts"
import * as Files from "../../tools/Files.ts"
import * as LineDiff from "../../tools/LineDiff.ts"
import * as Paced from "../../tools/Paced.ts"
import type { PathFailure } from "../../tools/PathFailure.ts"
import * as Replacement from "../../tools/Replacement.ts"
import * as Root from "../../tools/Root.ts"
import * as Inert from "./Inert.ts"
import type { Paint } from "./Screen.ts"

/** A preview of a call. */
export interface Preview {
  /** The kind of the call, on one line, escaped. */
  readonly title: string
  /** `"changes"`: the lines begin with `-` or `+`. `"diff"`: they are a unified diff, whose lines have numbers. */
  readonly kind: "text" | "changes" | "diff"
  /** The complete effect of the call, not escaped. */
  readonly lines: ReadonlyArray<string>
  /** The part of the lines that the question shows. */
  readonly brief: Size
}

interface Size {
  readonly lines: number
  /** Characters of one line. */
  readonly chars: number
}

/** The start of the changes of a file. */
const ofChange: Size = { lines: 24, chars: 300 }
/** Commands and params, nearly always complete. */
const ofText: Size = { lines: 100, chars: 4_000 }
/** Maximum characters of all lines together. */
const maxChars = 8_000
/** Maximum characters of a name. The system permits no longer path. */
const maxName = 4_096
/** Maximum bytes of a file to read, and characters of a text to compare. */
const maxBytes = 1024 * 1024
/** Maximum lines of a preview of changes, old and new together. */
const maxLines = 100_000
/** Maximum lines to compare as a whole. Above it the preview compares only the lines around a change. */
const maxCompared = 20_000
/** Maximum lines times edits of a comparison, which takes some 10 nanoseconds for each. */
const maxSearch = 4_000_000

const Write = Schema.Struct({ path: Schema.String, content: Schema.String })
const Shell = Schema.Struct({ command: Schema.String })

/** Returns the preview of a call. Reads the content of files in `root` only. */
export const of = (
  name: string,
  params: unknown,
  root: string
): Effect.Effect<Preview, never, FileSystem.FileSystem | Path.Path> => {
  const shell = Schema.decodeUnknownOption(Shell)(params)
  if (name === "shell" && Option.isSome(shell))
    return Effect.succeed({
      title: "shell",
      kind: "text",
      lines: shell.value.command.split("\n"),
      brief: ofText
    })
  const edit = Option.flatMap(Schema.decodeUnknownOption(EditTool.Params)(params), (edit) =>
    Option.map(Result.getSuccess(EditTool.editsOf(edit)), (edits) => ({ path: edit.path, edits }))
  )
  if (name === "edit" && Option.isSome(edit)) return ofEdit(edit.value.path, edit.value.edits, root)
  const write = Schema.decodeUnknownOption(Write)(params)
  if (name === "write" && Option.isSome(write)) return ofWrite(write.value, root)
  return Effect.succeed({
    title: named(name),
    kind: "text",
    lines: json(params).split("\n"),
    brief: ofText
  })
}

/** The start of the preview, escaped, with a line on the hidden rest. */
export const brief = (preview: Preview, paint: Paint): ReadonlyArray<string> => {
  const { brief, lines } = preview
  const rest = lines.length - count(preview)
  const shown = shownOf(preview, paint, lines.length - rest, (line) => start(line, brief.chars))
  return rest === 0
    ? shown
    : [...shown, `… ${rest} more ${rest === 1 ? "line" : "lines"} hidden, v shows all`]
}

/** All lines, escaped. */
export const whole = (preview: Preview, paint: Paint): ReadonlyArray<string> =>
  shownOf(preview, paint, preview.lines.length, Inert.exact)

/** The first lines, escaped. Those of a change have colours, and those of a diff numbers: of the old text where they are removed. */
const shownOf = (
  { kind, lines }: Preview,
  paint: Paint,
  length: number,
  escape: (line: string) => string
): ReadonlyArray<string> => {
  let [old, now] = [1, 1]
  return lines.slice(0, length).map((line) => {
    if (kind === "text") return escape(line)
    const numbered = (number: number) =>
      kind === "diff" ? `${String(number).padStart(5)} ${escape(line)}` : escape(line)
    if (line.startsWith("+")) return paint.green(numbered(now++))
    if (line.startsWith("-")) return paint.red(numbered(old++))
    const [, from, to] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line) ?? []
    if (kind !== "diff" || !line.startsWith(" ")) {
      if (from !== undefined) [old, now] = [Number(from), Number(to)]
      return paint.dim(escape(line))
    }
    old++
    return paint.dim(numbered(now++))
  })
}

/** Whether `brief` hides a part. */
export const isCut = (preview: Preview): boolean =>
  preview.lines.length > count(preview) || preview.lines.some(({ length }) => length > preview.brief.chars)

/** Number of lines to show: at most one or two screens. */
const count = ({ brief, lines }: Preview): number => {
  let chars = 0
  const most = lines.findIndex((line, index) => {
    chars += Math.min(line.length, brief.chars)
    return index >= brief.lines || (index > 0 && chars > maxChars)
  })
  return most === -1 ? lines.length : most
}

const start = (line: string, limit: number): string => {
  if (line.length <= limit) return Inert.exact(line)
  // Does not cut a surrogate pair.
  const end = /[\ud800-\udbff]/.test(line.charAt(limit - 1)) ? limit - 1 : limit
  return `${Inert.exact(line.slice(0, end))}… ${line.length - end} more characters hidden, v shows all`
}

const named = (name: string): string =>
  name.length <= maxName
    ? Inert.name(name)
    : `${Inert.name(name.slice(0, maxName))}… ${name.length - maxName} more characters`

/** Large params stay on one line, because indentation would multiply their size. */
const json = (params: unknown): string => {
  const flat = JSON.stringify(params)
  return flat.length > ofText.chars ? flat : JSON.stringify(params, undefined, 2)
}

/** The changes of the file, else the texts of an edit that does not fit it. */
const ofEdit = Effect.fnUntraced(function* (
  path: string,
  edits: ReadonlyArray<Replacement.Edit>,
  root: string
) {
  const texts: Preview = {
    title: `edit ${named(path)}`,
    kind: "changes",
    lines: edits.flatMap(({ newText, oldText, replaceAll = false }) => [
      ...(replaceAll ? ["every occurrence:"] : []),
      ...marked("-", oldText),
      ...marked("+", newText)
    ]),
    brief: ofChange
  }
  const before = yield* Effect.result(contentOf(path, root))
  if (Result.isFailure(before) || before.success === undefined) return texts
  const original = before.success
  if (lineCount(original) > maxLines) return texts
  const replaced = yield* Effect.option(Replacement.apply(original, edits))
  if (Option.isNone(replaced)) return texts
  const { places, text } = replaced.value
  const limit = 4 * (original.length + text.length + maxLines)
  const { added, diff, removed } = yield* Paced.run(LineDiff.make(original, places, "", limit))
  return ofDiff(`${texts.title}: +${added} -${removed} lines`, diff.replace(heading, "").split("\n"))
})

const ofDiff = (title: string, lines: ReadonlyArray<string>): Preview => ({
  title,
  kind: "diff",
  lines,
  brief: ofChange
})

/** The names of the files of a unified diff. */
const heading = /^---.*\n.*\n/

const marked = (mark: string, text: string): ReadonlyArray<string> =>
  text === "" ? [] : text.split("\n").map((line) => mark + line)

const ofWrite = Effect.fnUntraced(function* ({ content, path }: typeof Write.Type, root: string) {
  const before = yield* Effect.result(contentOf(path, root))
  const title = (change: string) => `write ${named(path)}: ${change}`
  const added = marked("+", content.replace(/\n$/, ""))
  const whole = (change: string): Preview => ({
    title: title(change),
    kind: "changes",
    lines: added,
    brief: ofChange
  })
  const uncompared = (why: string) => whole(`not compared with the existing file: ${Inert.name(why)}`)
  if (Result.isFailure(before)) return uncompared(before.failure.detail)
  if (before.success === undefined) return whole(`new file, +${added.length} -0 lines`)
  const lines = lineCount(before.success) + lineCount(content)
  if (before.success.length > maxBytes || content.length > maxBytes || lines > maxLines)
    return uncompared("it is too large")
  const { added: inserted, diff, removed } = yield* changes(before.success, content, lines)
  return ofDiff(title(`+${inserted} -${removed} lines`), diff.split("\n"))
})

const lineCount = (text: string): number => text.split("\n").length

/** The changes as a unified diff without a head. Pauses between parts of large texts, which else would block the program. */
const changes = (before: string, after: string, lines: number): Effect.Effect<LineDiff.LineDiff> => {
  if (lines <= maxCompared) {
    const maxEdits = Math.min(1_000, Math.floor(maxSearch / lines))
    return Effect.sync(() => compared(TextDiff.lines(before, after, { maxEdits })))
  }
  const whole = LineDiff.make(
    before,
    [differing(before, after)],
    "",
    4 * (before.length + after.length + maxLines)
  )
  return Effect.map(Paced.run(whole), (changed) => ({
    ...changed,
    diff: changed.diff.replace(heading, "")
  }))
}

const compared = (script: ReturnType<typeof TextDiff.lines>): LineDiff.LineDiff => {
  const sum = (tag: "Insert" | "Delete") =>
    script.reduce((total, run) => (run._tag === tag ? total + run.items.length : total), 0)
  return { added: sum("Insert"), removed: sum("Delete"), diff: TextDiff.unified(script) }
}

/** The place between the common start and the common end of two texts. */
const differing = (before: string, after: string): Replacement.Place => {
  const most = Math.min(before.length, after.length)
  let start = 0
  while (start < most && before.charCodeAt(start) === after.charCodeAt(start)) start++
  let end = 0
  while (
    end < most - start &&
    before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)
  )
    end++
  return { from: start, to: before.length - end, newText: after.slice(start, after.length - end) }
}

/**
 * The content of the file, `undefined` if it does not exist. Fails if the file is outside the root, too large,
 * or not a regular file.
 */
const contentOf = Effect.fnUntraced(function* (
  path: string,
  root: string
): Effect.fn.Return<string | undefined, PathFailure, FileSystem.FileSystem | Path.Path> {
  const { missing } = yield* Root.resolve({ root }, "read", path)
  if (missing.length > 0) return undefined
  const bytes = yield* Effect.scoped(
    Effect.flatMap(Files.open({ root }, path), (opened) => Files.readAll(opened, path, maxBytes))
  )
  return new TextDecoder().decode(bytes)
})
