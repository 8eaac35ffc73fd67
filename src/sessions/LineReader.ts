/**
 * The lines of a file, read in pieces, and the failures of files in words.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import type { StoredLine } from "./SessionStorage.ts"

const lineFeed = 0x0a
/** The bytes that are read at first, and at most at a time: a reader of many small files must not allocate more than they have. */
const [firstPiece, maxPiece] = [64 * 1024, 1024 * 1024]

/** The pieces of a line whose end has not been read. */
type Rest = ReadonlyArray<Uint8Array>

/** Reads the lines of a file from its start. Its last line may have no line feed. */
export const lines = (
  path: string
): Stream.Stream<Arr.NonEmptyReadonlyArray<StoredLine>, PlatformError, FileSystem.FileSystem> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const file = yield* files.open(path, { flag: "r" })
      let size = firstPiece
      const step = (rest: Rest) =>
        Effect.map(file.readAlloc(size), (piece) => {
          size = Math.min(size * 2, maxPiece)
          return linesOf(rest, piece)
        })
      return Stream.paginate<Rest, ReadonlyArray<StoredLine>, PlatformError, never>([], (rest) =>
        Effect.map(step(rest), ({ lines, next }) => [[lines], next])
      ).pipe(Stream.filter(Arr.isReadonlyArrayNonEmpty))
    })
  )

/** The lines that a piece completes, and the rest, `none` at the end of the file. */
const linesOf = (rest: Rest, piece: Option.Option<Uint8Array>) => {
  if (Option.isNone(piece)) {
    return { lines: rest.length === 0 ? [] : [text(joined(rest))], next: Option.none<Rest>() }
  }
  const lines: Array<StoredLine> = []
  const bytes = piece.value
  let start = 0
  for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
    const last = bytes.subarray(start, end)
    lines.push(text(start === 0 && rest.length > 0 ? joined([...rest, last]) : last))
    start = end + 1
  }
  const tail = bytes.subarray(start)
  const before = start === 0 ? rest : []
  return { lines, next: Option.some<Rest>(tail.length === 0 ? before : [...before, tail]) }
}

const joined = (pieces: Rest): Uint8Array => {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

const strict = new TextDecoder("utf-8", { fatal: true })

/** The text of a line, or its bytes where they are not UTF-8. */
const text = (bytes: Uint8Array): StoredLine => {
  try {
    return strict.decode(bytes)
  } catch {
    return bytes
  }
}

/** The words of the system, which name its code, such as ENOSPC for a full disk and EROFS for one that takes no writes. */
export const detailOf = ({ message, reason }: PlatformError): string => {
  const cause = Predicate.hasProperty(reason, "cause") ? reason.cause : undefined
  return cause instanceof Error
    ? cause.message
    : ((reason._tag === "BadArgument" ? undefined : reason.description) ?? message)
}
