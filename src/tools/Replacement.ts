/**
 * Exact replacement of texts in a text. All or none; each text is looked for in the original, so that one replacement
 * cannot disturb another.
 *
 * Line ends are not compared: a text given with `\n` is found in a file with `\r\n`, and what replaces it gets the line
 * ends of the file. What is not replaced stays as it is, to the byte.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { cutLine } from "./Output.ts"
import { nearest } from "./Similarity.ts"

/** One text to be replaced by another. */
export interface Edit {
  readonly oldText: string
  readonly newText: string
  /** Default: the old text must be there exactly once. */
  readonly replaceAll?: boolean
}

/** The edits do not fit the text. `detail` says which and why, with what was found instead. */
export class EditRefused extends Schema.TaggedError<EditRefused>()("EditRefused", {
  path: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.path} was not changed: ${this.detail}`
  }
}

/** What the edits made of a text. */
export interface Replaced {
  readonly text: string
  /** How many places were replaced. */
  readonly count: number
}

/** Applies the edits, or says why not, for the model. */
export const apply = (original: string, edits: ReadonlyArray<Edit>): Result.Result<Replaced, string> => {
  const lineEnd = usualLineEnd(original)
  const file = withoutReturns(original)
  const places: Array<Place> = []
  for (const [index, edit] of edits.entries()) {
    const found = find(file, edit)
    if (Result.isFailure(found)) {
      return Result.fail(
        edits.length === 1 ? found.failure : `edit ${index + 1} of ${edits.length}: ${found.failure}`
      )
    }
    const newText = lines(edit.newText).join(lineEnd)
    for (const at of found.success) {
      places.push({
        from: file.offsetOf(at),
        to: file.offsetOf(at + lines(edit.oldText).join("\n").length),
        newText
      })
    }
  }
  return joined(original, places)
}

/** A place in the original, by offsets. */
interface Place {
  readonly from: number
  readonly to: number
  readonly newText: string
}

/** A text with `\n` for each `\r\n`, and the way back to the original. */
interface Plain {
  readonly text: string
  readonly offsetOf: (at: number) => number
}

const withoutReturns = (original: string): Plain => {
  // Offsets in the plain text before which a \r was taken out.
  const removed: Array<number> = []
  for (let at = original.indexOf("\r\n"); at !== -1; at = original.indexOf("\r\n", at + 1)) {
    removed.push(at - removed.length)
  }
  return {
    text: removed.length === 0 ? original : original.replaceAll("\r\n", "\n"),
    // A place that begins at a line end takes its \r along; one that ends there leaves it.
    offsetOf: (at) => at + countBelow(removed, at)
  }
}

/** How many of the ascending numbers are below `bound`. */
const countBelow = (ascending: ReadonlyArray<number>, bound: number): number => {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ascending[middle] ?? bound) < bound) low = middle + 1
    else high = middle
  }
  return low
}

const usualLineEnd = (text: string): "\n" | "\r\n" => {
  const all = text.split("\n").length - 1
  const crlf = text.split("\r\n").length - 1
  return crlf * 2 > all ? "\r\n" : "\n"
}

const lines = (text: string): Array<string> => text.split(/\r?\n/)

/** The offsets at which the old text stands. */
const find = (file: Plain, edit: Edit): Result.Result<ReadonlyArray<number>, string> => {
  const wanted = lines(edit.oldText).join("\n")
  if (wanted === "") return Result.fail("the old text is empty. To make or fill a file use write")
  if (wanted === lines(edit.newText).join("\n"))
    return Result.fail("the old text and the new text are the same")
  const found: Array<number> = []
  for (let at = file.text.indexOf(wanted); at !== -1; at = file.text.indexOf(wanted, at + wanted.length)) {
    found.push(at)
  }
  if (found.length === 0)
    return Result.fail(`the old text is not in the file. ${candidates(file.text, wanted)}`)
  if (found.length > 1 && edit.replaceAll !== true) {
    const numbers = found.slice(0, 10).map((at) => lineAt(file.text, at))
    return Result.fail(
      `the old text is there ${found.length} times, at line ${numbers.join(", ")}${found.length > 10 ? ", ..." : ""}. ` +
        "Give more of the text around it, or set replaceAll"
    )
  }
  return Result.succeed(found)
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split("\n").length

/** What the model may have meant: the same lines but for white space, else the lines most like the first one. */
const candidates = (text: string, wanted: string): string => {
  const inFile = text.split("\n")
  const inWanted = wanted.replace(/^\n+|\n+$/g, "").split("\n")
  const spaced = firstPlace(inFile.map(squeezed), inWanted.map(squeezed))
  if (spaced !== -1) {
    const found = inFile.slice(spaced, spaced + Math.min(inWanted.length, 10))
    return `It differs only in white space from line ${spaced + 1} on:\n${found.map(shown).join("\n")}`
  }
  const first = inWanted.find((line) => line.trim() !== "") ?? ""
  const numbered = inFile.slice(0, 20_000).map((line, index) => ({ line, number: index + 1 }))
  const near = nearest(first.trim(), numbered, ({ line }) => line.trim(), 3)
  return near.length === 0
    ? "No line of the file is like it; read the file again"
    : `Most like its first line:\n${near.map(({ line, number }) => `${number}: ${shown(line)}`).join("\n")}`
}

/** The index at which these lines follow one another, or -1. As one text, which the engine searches faster than a loop. */
const firstPlace = (among: ReadonlyArray<string>, wanted: ReadonlyArray<string>): number => {
  const text = `\n${among.join("\n")}\n`
  const at = text.indexOf(`\n${wanted.join("\n")}\n`)
  return at === -1 ? -1 : lineAt(text, at) - 1
}

const squeezed = (line: string): string => line.replace(/\s+/g, "")

const shown = (line: string): string => cutLine(line, 200)

const joined = (original: string, places: ReadonlyArray<Place>): Result.Result<Replaced, string> => {
  const sorted = places.toSorted((self, that) => self.from - that.from)
  let text = ""
  let at = 0
  for (const { from, newText, to } of sorted) {
    if (from < at) return Result.fail("two of the edits change the same text. Make them one")
    text += original.slice(at, from) + newText
    at = to
  }
  return Result.succeed({ text: text + original.slice(at), count: sorted.length })
}
