/**
 * Replaces exact texts in a text: all of them or none.
 *
 * Every old text is searched in the original, so one replacement does not affect another. Line ends do not
 * matter for the search: `\n` matches `\r\n`, and the new text gets the line ends of the file. All other bytes
 * stay unchanged. An old text that does not occur may match one place whose quotes, dashes and spaces are
 * typographic, or whose accents are composed in another way. The parts that old and new text share stay there.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Likeness from "./internal/Likeness.ts"
import { cutLine } from "./Output.ts"
import * as Paced from "./Paced.ts"
import { TaggedError } from "../internal/errors.ts"

/**
 * One replacement.
 *
 * @since 0.1.0
 * @category models
 */
export interface Edit {
  /**
   * The text to replace.
   *
   * Must not be empty.
   */
  readonly oldText: string
  /** The text that replaces it. */
  readonly newText: string
  /**
   * Whether to replace every occurrence (default: `false`, and `apply` fails if the old text occurs more than
   * once).
   */
  readonly replaceAll?: boolean
}

/**
 * The replacements do not fit the text.
 *
 * `detail` says which one and why, and shows similar lines.
 *
 * @since 0.1.0
 * @category errors
 */
export class EditRefused extends TaggedError<EditRefused>()("EditRefused", {
  /** The file that was not changed. */
  path: Schema.String,
  /** The reason for the model. */
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.path} was not changed: ${this.detail}`
  }
}

/**
 * The result of `apply`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Replaced {
  /** The text after all replacements. */
  readonly text: string
  /** Number of replaced occurrences. */
  readonly count: number
  /**
   * The replaced ranges, in ascending order.
   *
   * @since 0.2.0
   */
  readonly places: ReadonlyArray<Place>
  /**
   * Typographic characters that the file has where an old text has plain ones.
   *
   * @since 0.2.0
   */
  readonly likened: ReadonlyArray<string>
}

/**
 * A replaced range of the original text.
 *
 * @since 0.2.0
 * @category models
 */
export interface Place {
  /** The offset of its first character. */
  readonly from: number
  /** The offset after its last character. */
  readonly to: number
  /** The text in its place, with the line ends of the file. */
  readonly newText: string
}

/**
 * Applies replacements to a text.
 *
 * **Details**
 *
 * Fails with a message for the model if an old text is empty, equals the new text, does not occur, or occurs
 * several times without `replaceAll`, and if two replacements overlap. The effect works in slices of a few
 * milliseconds, so that an interruption takes effect.
 *
 * **Example** (Replacing a text)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Replacement } from "effect-agent/tools"
 *
 * const replaced = Replacement.apply("port = 80", [{ oldText: "80", newText: "8080" }])
 * console.log((await Effect.runPromise(replaced)).text) // => port = 8080
 * ```
 *
 * @since 0.1.0
 * @category transforming
 */
export const apply = (original: string, edits: ReadonlyArray<Edit>): Effect.Effect<Replaced, string> =>
  Effect.flatMap(
    Effect.suspend(() => Paced.run(replaced(original, edits))),
    Effect.fromResult
  )

type Found<A> = Paced.Work<Result.Result<A, string>>

function* replaced(original: string, edits: ReadonlyArray<Edit>): Found<Replaced> {
  const lineEnd = yield* usualLineEnd(original)
  const file = yield* withoutReturns(original)
  const places: Array<Place> = []
  const likened = new Set<string>()
  for (const [index, edit] of edits.entries()) {
    const found = yield* find(file, edit)
    if (Result.isFailure(found)) {
      return Result.fail(
        edits.length === 1 ? found.failure : `edit ${index + 1} of ${edits.length}: ${found.failure}`
      )
    }
    const { characters, ranges, text } = found.success
    for (const character of characters) likened.add(character)
    const newText = yield* Paced.replaced(text, "\n", lineEnd)
    for (const [from, to] of ranges) {
      if (places.push({ from: file.offsetOf(from), to: file.offsetOf(to), newText }) % stride === 0) yield
    }
  }
  // The places of one edit are in order.
  const sorted = edits.length === 1 ? places : places.toSorted((self, that) => self.from - that.from)
  return Result.map(yield* joined(original, sorted), (joined) => ({
    ...joined,
    likened: Array.from(likened)
  }))
}

/** Number of places, lines or characters between two yields. */
const stride = 5_000

/** A text with `\n` for each `\r\n`, and the mapping of its offsets to the original. */
interface Plain {
  readonly text: string
  readonly offsetOf: (at: number) => number
}

function* withoutReturns(original: string): Paced.Work<Plain> {
  // Offsets in the plain text before which a \r was removed.
  const removed: Array<number> = []
  for (let at = original.indexOf("\r\n"); at !== -1; at = original.indexOf("\r\n", at + 1)) {
    if (removed.push(at - removed.length) % stride === 0) yield
  }
  return {
    text: removed.length === 0 ? original : yield* plainLines(original),
    // A range that starts at a line end includes its \r. A range that ends there does not.
    offsetOf: (at) => at + Paced.countBelow(removed, at)
  }
}

function* usualLineEnd(text: string): Paced.Work<"\n" | "\r\n"> {
  let [all, crlf] = [0, 0]
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (text[at - 1] === "\r") crlf++
    if (++all % stride === 0) yield
  }
  return crlf * 2 > all ? "\r\n" : "\n"
}

const plainLines = (text: string) => Paced.replaced(text, "\r\n", "\n")

/** The places of an old text in the plain text. */
interface Occurrences {
  readonly ranges: ReadonlyArray<readonly [from: number, to: number]>
  /** The text that replaces each. */
  readonly text: string
  /** Typographic characters that only the file has. */
  readonly characters: ReadonlyArray<string>
}

function* find(file: Plain, edit: Edit): Found<Occurrences> {
  const [wanted, text] = [yield* plainLines(edit.oldText), yield* plainLines(edit.newText)]
  if (wanted === "") return Result.fail("the old text is empty. To make or fill a file use write")
  if (wanted === text) return Result.fail("the old text and the new text are the same")
  const found = yield* occurrences(file.text, wanted)
  if (found.length === 0) {
    const like = yield* Likeness.find(file.text, wanted, text)
    if (like === undefined)
      return Result.fail(`the old text is not in the file. ${yield* candidates(file.text, wanted)}`)
    const { characters } = like
    return like.isOnly
      ? Result.succeed({ ranges: [[like.from, like.to]], text: like.newText, characters })
      : Result.fail(
          `the old text is there several times, but with ${characters.join(", ")}. Give more of the text around it, or these characters`
        )
  }
  if (found.length > 1 && edit.replaceAll !== true) {
    const numbers: Array<number> = []
    for (const at of found.slice(0, 10)) numbers.push(yield* lineAt(file.text, at))
    return Result.fail(
      `the old text is there ${found.length} times, at line ${numbers.join(", ")}${found.length > 10 ? ", ..." : ""}. ` +
        "Give more of the text around it, or set replaceAll"
    )
  }
  return Result.succeed({ ranges: found.map((at) => [at, at + wanted.length]), text, characters: [] })
}

function* occurrences(text: string, wanted: string): Paced.Work<ReadonlyArray<number>> {
  const found: Array<number> = []
  for (let at = yield* Paced.indexOf(text, wanted); at !== -1; ) {
    if (found.push(at) % stride === 0) yield
    at = yield* Paced.indexOf(text, wanted, at + wanted.length)
  }
  return found
}

/** The number of the line that contains the offset, from 1. */
function* lineAt(text: string, offset: number): Paced.Work<number> {
  let number = 1
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) {
    if (++number % stride === 0) yield
  }
  return number
}

/**
 * A hint for the model: lines that differ only in white space, else the lines most similar to the first one.
 */
function* candidates(text: string, wanted: string): Paced.Work<string> {
  const block = yield* withoutOuterLines(wanted)
  const inFile = `\n${yield* squeezed(text)}\n`
  const spaced = yield* Paced.indexOf(inFile, `\n${yield* squeezed(block)}\n`)
  if (spaced !== -1) {
    const from = yield* lineAt(inFile, spaced)
    const until = from + Math.min(yield* lineAt(block, block.length), 10)
    const found = yield* linesOf(text, until - 1)
    return `It differs only in white space from line ${from} on:\n${found
      .slice(from - 1)
      .map(shown)
      .join("\n")}`
  }
  const first = (yield* firstLine(block)).trim()
  const numbered = (yield* linesOf(text, 20_000)).map((line, index) => ({ line, number: index + 1 }))
  const near = yield* Likeness.nearest(first, numbered, ({ line }) => line.trim(), 3)
  return near.length === 0
    ? "No line of the file is like it; read the file again"
    : [
        `Most like its first line:\n${near.map(({ line, number }) => `${number}: ${shown(line)}`).join("\n")}`,
        ...near.slice(0, 1).flatMap(({ line, number }) => Likeness.difference(line.trim(), first, number))
      ].join("\n")
}

/** Without line ends at the start and the end. */
function* withoutOuterLines(text: string): Paced.Work<string> {
  let [from, to] = [0, text.length]
  while (from < to && text[from] === "\n") if (++from % stride === 0) yield
  while (to > from && text[to - 1] === "\n") if (--to % stride === 0) yield
  return text.slice(from, to)
}

/** The lines without white space. */
const squeezed = (text: string) => Paced.replaced(text, /[^\S\n]+/, "")

/** The first lines, at most `count`. */
function* linesOf(text: string, count: number): Paced.Work<ReadonlyArray<string>> {
  const all: Array<string> = []
  for (const line of Paced.lines(text)) {
    if (all.length === count) break
    if (all.push(line) % stride === 0) yield
  }
  return all
}

/** The first line that is not blank. */
function* firstLine(text: string): Paced.Work<string> {
  let count = 0
  for (const line of Paced.lines(text)) {
    if (line.trim() !== "") return line
    if (++count % stride === 0) yield
  }
  return ""
}

const shown = (line: string): string => cutLine(line, 200)

function* joined(original: string, places: ReadonlyArray<Place>): Found<Omit<Replaced, "likened">> {
  const parts: Array<string> = []
  let [text, at] = ["", 0]
  for (const { from, newText, to } of places) {
    if (from < at) return Result.fail("two of the edits change the same text. Make them one")
    if (parts.push(original.slice(at, from), newText) >= 2 * stride) {
      text += parts.join("")
      parts.length = 0
      yield
    }
    at = to
  }
  return Result.succeed({ text: text + parts.join("") + original.slice(at), count: places.length, places })
}
