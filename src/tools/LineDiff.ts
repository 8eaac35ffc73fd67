/**
 * Makes a unified diff of the lines that replacements change.
 *
 * It compares the lines around the replacements, not the texts as a whole: one comparison of two large texts would
 * block the event loop.
 */
import * as TextDiff from "effect/TextDiff"
import { type Bounded, bounded } from "./Output.ts"
import * as Paced from "./Paced.ts"
import type { Place } from "./Replacement.ts"

export interface LineDiff {
  /** Number of lines that only the new text has. */
  readonly added: number
  /** Number of lines that only the old text has. */
  readonly removed: number
  /** The diff, cut in the middle if it is long. */
  readonly diff: string
}

/** Unchanged lines before and after each change. */
const context = 3

/** Lines or characters after which a part ends, if the next place is in another line. */
const maxPart = { lines: 1_000, characters: 64 * 1024 }

/** Maximum lines, old and new, of a part that is compared. Above it the diff marks unchanged lines as changed. */
const maxCompared = 4_000

/** Places between two yields. */
const stride = 5_000

/**
 * Makes the diff. `places` are in ascending order and do not overlap. `limit`: maximum characters of the diff.
 */
export function* make(
  original: string,
  places: ReadonlyArray<Place>,
  path: string,
  limit: number
): Paced.Work<LineDiff> {
  const out = bounded(limit)
  out.append(`--- ${path}\n+++ ${path}\n`)
  let [added, removed, done, line] = [0, 0, 0, 0]
  for (let index = 0; index < places.length; ) {
    const part = yield* partFrom(original, places, index, done)
    line += yield* newlines(original.slice(done, part.start))
    yield
    const counts = yield* described(original, part, { line, shift: added - removed }, out)
    line += yield* newlines(original.slice(part.start, part.end))
    added += counts.added
    removed += counts.removed
    done = part.end
    index = part.next
  }
  return { added, removed, diff: out.text() }
}

/** Lines with replacements that are at most a few lines apart, by offsets of the original. */
interface Part {
  /** The start of the context before it. */
  readonly start: number
  /** The start of the first changed line. */
  readonly from: number
  /** The end of the last changed line. */
  readonly to: number
  /** The end of the context after it. */
  readonly end: number
  /** The text that replaces the original between `from` and `to`. */
  readonly after: string
  /** The index of the first place after it. */
  readonly next: number
}

function* partFrom(
  original: string,
  places: ReadonlyArray<Place>,
  first: number,
  done: number
): Paced.Work<Part> {
  const from = lineStart(original, places[first]?.from ?? 0)
  const texts: Array<string> = []
  let [at, lines, next, after] = [from, 0, first, ""]
  for (let place = places[next]; place !== undefined; place = places[++next]) {
    const gap = original.slice(at, place.from)
    const apart = gapLines(gap)
    const isFull = lines > maxPart.lines || at - from > maxPart.characters
    if (next > first && (apart > 2 * context || (isFull && apart > 0))) break
    texts.push(gap, place.newText)
    lines += 1 + apart
    at = place.to
    if (texts.length >= stride) {
      after += texts.join("")
      texts.length = 0
      yield
    }
  }
  after += texts.join("")
  // A text that does not end a line continues in the next one.
  const isWhole = after === "" || after.endsWith("\n")
  const to = lineEnd(original, isWhole || original[at - 1] !== "\n" ? at : at + 1)
  const following = places[next]
  const bound = following === undefined ? original.length : lineStart(original, following.from)
  const start = Math.max(done, linesBefore(original, from))
  const end = Math.min(bound, linesAfter(original, to))
  return { start, from, to, end, after: after + original.slice(at, to), next }
}

/** The number of line ends, at most one more than two contexts. */
const gapLines = (gap: string): number => {
  let count = 0
  for (let at = gap.indexOf("\n"); at !== -1 && count <= 2 * context; at = gap.indexOf("\n", at + 1)) count++
  return count
}

const lineStart = (text: string, at: number): number => (at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1)

/** The end of the line that contains the offset, or the offset if it is the start of a line. */
const lineEnd = (text: string, at: number): number => {
  if (at === 0 || text[at - 1] === "\n") return at
  const end = text.indexOf("\n", at)
  return end === -1 ? text.length : end + 1
}

const linesBefore = (text: string, from: number): number => {
  let at = from
  for (let count = 0; count < context; count++) at = lineStart(text, Math.max(0, at - 1))
  return at
}

const linesAfter = (text: string, to: number): number => {
  let at = to
  for (let count = 0; count < context && at < text.length; count++) at = lineEnd(text, at + 1)
  return at
}

function* newlines(text: string): Paced.Work<number> {
  let count = 0
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (++count % stride === 0) yield
  }
  return count
}

function* lineCount(text: string): Paced.Work<number> {
  return (yield* newlines(text)) + (text === "" || text.endsWith("\n") ? 0 : 1)
}

/** The number of lines before a part, and of lines that the parts before it add. */
interface Position {
  readonly line: number
  readonly shift: number
}

/** Appends the hunks of a part. */
function* described(
  original: string,
  part: Part,
  position: Position,
  out: Bounded
): Paced.Work<Omit<LineDiff, "diff">> {
  const before = original.slice(part.from, part.to)
  const [removed, added] = [yield* lineCount(before), yield* lineCount(part.after)]
  const lines = removed + added
  if (lines <= maxCompared) return compared(original, part, position, out)
  const line = position.line + (yield* newlines(original.slice(part.start, part.from)))
  out.append(`@@ -${range(line, removed)} +${range(line + position.shift, added)} @@\n`)
  yield* marked("-", before, out)
  yield* marked("+", part.after, out)
  return { added, removed }
}

const range = (line: number, count: number): string =>
  count === 0 ? `${line},0` : count === 1 ? `${line + 1}` : `${line + 1},${count}`

const compared = (
  original: string,
  { after, end, from, start, to }: Part,
  { line, shift }: Position,
  out: Bounded
): Omit<LineDiff, "diff"> => {
  const around = (text: string) => original.slice(start, from) + text + original.slice(to, end)
  // The algorithm takes about 4 nanoseconds for each line and edit.
  const script = TextDiff.lines(around(original.slice(from, to)), around(after), { maxEdits: 500 })
  const count = (tag: "Insert" | "Delete") =>
    script.reduce((sum, run) => (run._tag === tag ? sum + run.items.length : sum), 0)
  const hunks = TextDiff.unified(script, { context }).replace(
    /(?<=^|\n)@@ -(\d+)((?:,\d+)?) \+(\d+)/g,
    (_, old: string, size: string, own: string) =>
      `@@ -${Number(old) + line}${size} +${Number(own) + line + shift}`
  )
  out.append(hunks)
  return { added: count("Insert"), removed: count("Delete") }
}

/** Characters of one piece. */
const piece = 64 * 1024

/** Appends lines with a sign before each. */
function* marked(sign: "-" | "+", text: string, out: Bounded): Paced.Work<void> {
  for (let at = 0; at < text.length; ) {
    const end = lineEnd(text, Math.min(at + piece, text.length))
    out.append(text.slice(at, end).replace(/[^\n]*\n|[^\n]+$/g, `${sign}$&`))
    at = end
    yield
  }
  if (text !== "" && !text.endsWith("\n")) out.append("\n\\ No newline at end of file\n")
}
