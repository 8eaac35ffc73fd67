/** Searches the lines of a file, or of the files below a folder, in the order of their paths. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as FileKind from "../FileKind.ts"
import * as Files from "../Files.ts"
import * as Folder from "./Folder.ts"
import type * as LineMatcher from "./LineMatcher.ts"
import type * as Matches from "./Matches.ts"
import { visible } from "../Output.ts"
import * as Paced from "../Paced.ts"
import type { PathFailure } from "../PathFailure.ts"
import type { PathGlob } from "./PathGlob.ts"
import type { Ripgrep } from "./Ripgrep.ts"
import * as Walk from "./Walk.ts"

export interface Searching {
  readonly matches: Matches.Matches
  readonly matcher: LineMatcher.LineMatcher
  readonly budget: Paced.Budget
  /** Maximum bytes of a file. */
  readonly maxBytes: number
}

export interface Options {
  /** The path of the folder for display. */
  readonly shown: string
  readonly isWanted: PathGlob
  readonly includeIgnored: boolean
  /** Names the files that may match. `undefined`: the search opens each file. */
  readonly ripgrep: Ripgrep | undefined
}

/** The paths that a search left out. */
export interface Searched {
  /** Number of files that the glob selects. */
  readonly wanted: number
  readonly missed: Walk.Missed
  /** Ignored paths, relative to the folder `shown`. */
  readonly leftOut: ReadonlyArray<string>
  readonly shown: string
}

/**
 * Searches a file of the folder. Returns the bytes of one that is no text, and the reason to name one whose bytes of another encoding
 * may hide a match.
 */
export const file = Effect.fnUntraced(function* (
  { budget, matcher, matches, maxBytes }: Searching,
  folder: Folder.Folder,
  name: string,
  shown: string
) {
  const opened = yield* Folder.openFile(folder, name, shown)
  const bytes = yield* Files.readAll(opened, shown, maxBytes)
  const kind = FileKind.of(bytes)
  if (kind._tag !== "Text") return bytes
  const text = yield* Paced.run(Paced.decoded(bytes, new TextDecoder(kind.encoding)))
  yield* Paced.runWithin(matches.search(visible(shown), text), budget)
  const isHidden = !matcher.isAscii && text.includes("\ufffd") && !FileKind.isUtf8(bytes)
  return isHidden ? "non-UTF-8 file" : undefined
}, Effect.scoped)

/** Maximum bytes of a binary file that are compared with a pattern that has no words. */
const maxBinary = 1024 * 1024

/** Whether a binary file may match. Only then it is worth a note. */
function* mayMatch(
  { ignoreCase, search, words }: LineMatcher.LineMatcher,
  bytes: Uint8Array
): Paced.Work<boolean> {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  if (words.length > 0 && !ignoreCase) return words.some((word) => start.includes(word))
  for (const line of Paced.lines(start.toString("utf8", 0, maxBinary))) {
    if ((yield* search(line)) !== -1) return true
    yield
  }
  return false
}

/** Searches the files below the folder, until there are more matches than the limits allow. */
export const folder = Effect.fnUntraced(function* (
  searching: Searching,
  top: Folder.Folder,
  { includeIgnored, isWanted, ripgrep, shown }: Options
) {
  const { budget, matches } = searching
  const paths = yield* Path.Path
  let wanted = 0
  const found: Walk.Missed = new Map()
  const search = (at: Folder.Folder, path: string, below: string) =>
    fileAt(searching, at, below.split("/"), Walk.below(shown, path)).pipe(
      Effect.flatMap((left) =>
        left instanceof Uint8Array
          ? Effect.map(Paced.runWithin(mayMatch(searching.matcher, left), budget), (mayMatch) =>
              mayMatch === true ? "binary file" : undefined
            )
          : Effect.succeed(left)
      ),
      // Unreadable files do not fail the search.
      Effect.catch((failure) => Effect.succeed(reasonOf(failure))),
      Effect.map((reason): Walk.Step => {
        if (reason !== undefined) Walk.miss(found, reason, path)
        return matches.isFull() ? "stop" : "continue"
      })
    )
  const batches =
    ripgrep === undefined
      ? undefined
      : inBatches(searching, top, ripgrep, (path) => search(top, path, path), maxBatch(paths.sep))
  const { leftOut, missed } = yield* Walk.walk(top, { includeIgnored, budget }, (entry) =>
    entry.type !== "File"
      ? Effect.succeed<Walk.Step>("continue")
      : Effect.flatMap(Paced.runWithin(isWanted(entry.path), budget), (isIncluded) => {
          if (isIncluded !== true) return Effect.succeed<Walk.Step>("continue")
          wanted++
          return batches?.add(entry) ?? search(entry.folder, entry.path, entry.name)
        })
  )
  if (batches !== undefined) yield* batches.flush
  return {
    wanted,
    missed: new Map([...missed, ...found]),
    leftOut: leftOut.slice(0, batches?.ignored()),
    shown
  } satisfies Searched
})

const reasonOf = (failure: PathFailure): Walk.Reason =>
  failure._tag === "PathRefused"
    ? "hard link"
    : failure.reason === "tooLarge"
      ? "large file"
      : "unreadable path"

/** Searches a file of a folder below. Enters each folder on the way, and follows no link. */
const fileAt = (
  searching: Searching,
  folder: Folder.Folder,
  [name = "", ...inner]: ReadonlyArray<string>,
  shown: string
): ReturnType<typeof file> =>
  inner.length === 0
    ? file(searching, folder, name, shown)
    : Folder.enter(folder, name, shown).pipe(
        Effect.flatMap((entered) => fileAt(searching, entered, inner, shown)),
        Effect.scoped
      )

/** Maximum characters of the paths of one batch: they become arguments of a program. Windows permits 32,767. */
const maxBatch = (separator: string): number => (separator === "\\" ? 20_000 : 100_000)

/** Collects files in batches, and searches those of a batch that ripgrep names. */
const inBatches = <R>(
  searching: Searching,
  top: Folder.Folder,
  ripgrep: Ripgrep,
  search: (path: string) => Effect.Effect<Walk.Step, never, R>,
  limit: number
) => {
  let [batch, characters, ignored]: [Array<Walk.Entry>, number, number | undefined] = [[], 0, undefined]
  const flush = Effect.gen(function* () {
    const entries = batch
    ;[batch, characters] = [[], 0]
    const paths = entries.map(({ path }) => path)
    const picked = yield* Paced.within(candidates(searching, top, ripgrep, paths), searching.budget)
    if (picked._tag === "None") return "stop"
    for (const { ignored: before, path } of entries) {
      if (!picked.value.has(path)) continue
      if (searching.budget.isSpent()) return "stop"
      if ((yield* search(path)) === "continue") continue
      ignored = before
      return "stop"
    }
    return "continue"
  })
  const add = (entry: Walk.Entry) => {
    batch.push(entry)
    characters += entry.path.length + 1
    return characters < limit ? Effect.succeed<Walk.Step>("continue") : flush
  }
  return {
    add,
    /** Searches the last batch. */
    flush: Effect.suspend(() => (batch.length === 0 ? Effect.void : flush)),
    /** Number of ignored paths before the file at which the search stopped. */
    ignored: () => ignored
  }
}

/**
 * The files that may match, and those that the search cannot open but counts.
 */
const candidates = Effect.fnUntraced(function* (
  { maxBytes }: Searching,
  top: Folder.Folder,
  ripgrep: Ripgrep,
  paths: ReadonlyArray<string>
) {
  const files = yield* FileSystem.FileSystem
  const isRefused = (path: string) =>
    files.lstat(top.at(path)).pipe(
      Effect.map((info) => info.size > maxBytes || Folder.isRefusedLink(top.options, info)),
      Effect.orElseSucceed(() => false)
    )
  const refused = new Set(yield* Effect.filter(paths, isRefused, { concurrency: 16 }))
  const small = paths.filter((path) => !refused.has(path))
  const found = small.length === 0 ? new Set<string>() : yield* ripgrep(top.path, small)
  return found === undefined ? new Set(paths) : new Set([...refused, ...found])
})
