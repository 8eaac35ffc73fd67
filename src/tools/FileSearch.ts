/** Searches the lines of a file, or of the files below a folder, in the order of their paths. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as FileKind from "./FileKind.ts"
import * as Files from "./Files.ts"
import * as Folder from "./Folder.ts"
import type * as Matches from "./Matches.ts"
import { visible } from "./Output.ts"
import * as Paced from "./Paced.ts"
import type { Ripgrep } from "./Ripgrep.ts"
import * as Walk from "./Walk.ts"

export interface Searching {
  readonly matches: Matches.Matches
  readonly budget: Paced.Budget
  /** Maximum bytes of a file. */
  readonly maxBytes: number
}

export interface Options {
  /** The path of the folder for display. */
  readonly shown: string
  readonly isWanted: (path: string) => boolean
  readonly includeIgnored: boolean
  /** Names the files that may match. `undefined`: the search opens each file. */
  readonly ripgrep: Ripgrep | undefined
}

/** The parts of a folder that the search left out. */
export interface Missed {
  /** Number of files above `maxBytes`. */
  readonly tooLarge: number
  /** Ignored paths, relative to the folder `shown`. */
  readonly leftOut: ReadonlyArray<string>
  readonly shown: string
}

/** Searches a file of the folder. Skips a file that is no text. */
export const file = Effect.fnUntraced(function* (
  { budget, matches, maxBytes }: Searching,
  folder: Folder.Folder,
  name: string,
  shown: string
) {
  const opened = yield* Folder.openFile(folder, name, shown)
  const bytes = yield* Files.readAll(opened, shown, maxBytes)
  if (FileKind.of(bytes)._tag !== "Text") return
  const text = yield* Paced.run(Paced.decoded(bytes, new TextDecoder()))
  yield* Paced.runWithin(matches.search(visible(shown), text), budget)
}, Effect.scoped)

/** Searches the files below the folder, until there are more matches than the limits allow. */
export const folder = Effect.fnUntraced(function* (
  searching: Searching,
  top: Folder.Folder,
  { includeIgnored, isWanted, ripgrep, shown }: Options
) {
  const { budget, matches } = searching
  const paths = yield* Path.Path
  let tooLarge = 0
  const search = (at: Folder.Folder, path: string, below: string) =>
    fileAt(searching, at, below.split("/"), Walk.below(shown, path)).pipe(
      Effect.catch((failure) =>
        // Unreadable files do not fail the search.
        Effect.sync(() => {
          if (failure._tag === "FileFailed" && failure.reason === "tooLarge") tooLarge++
        })
      ),
      Effect.map((): Walk.Step => (matches.isFull() ? "stop" : "continue"))
    )
  const batches =
    ripgrep === undefined
      ? undefined
      : inBatches(searching, top, ripgrep, (path) => search(top, path, path), maxBatch(paths.sep))
  const { leftOut } = yield* Walk.walk(top, { includeIgnored, budget }, (entry) =>
    entry.type !== "File" || !isWanted(entry.path)
      ? Effect.succeed<Walk.Step>("continue")
      : (batches?.add(entry) ?? search(entry.folder, entry.path, entry.name))
  )
  if (batches !== undefined) yield* batches.flush
  return { tooLarge, leftOut: leftOut.slice(0, batches?.ignored()), shown } satisfies Missed
})

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
 * The files that may match. ripgrep does not read those above the limit, which the search counts.
 */
const candidates = Effect.fnUntraced(function* (
  { maxBytes }: Searching,
  top: Folder.Folder,
  ripgrep: Ripgrep,
  paths: ReadonlyArray<string>
) {
  const files = yield* FileSystem.FileSystem
  const isLarge = (path: string) =>
    files.lstat(top.at(path)).pipe(
      Effect.map(({ size }) => size > maxBytes),
      Effect.orElseSucceed(() => false)
    )
  const large = new Set(yield* Effect.filter(paths, isLarge, { concurrency: 16 }))
  const small = paths.filter((path) => !large.has(path))
  const found = small.length === 0 ? new Set<string>() : yield* ripgrep(top.path, small)
  return found === undefined ? new Set(paths) : new Set([...large, ...found])
})
