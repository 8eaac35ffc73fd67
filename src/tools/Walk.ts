/**
 * Goes through a folder and what is below it, in the order of names. Links are seen and not followed, so a walk cannot
 * leave the folder or go in circles.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import * as Folder from "./Folder.ts"
import * as Paced from "./Paced.ts"
import { type PathFailure, fromPlatform } from "./PathFailure.ts"
import type * as Root from "./Root.ts"

/** The folders that a search may look into, and for how long. */
export interface Options extends Root.Options {
  /**
   * Time that one call of `grep` or `find` may take. When it is over, the call gives what it found by then, and says so.
   * `"Infinity"`: no limit but the time limit of the tool. Default: 10 seconds.
   */
  readonly searchTime?: Duration.Input
}

/** The budget of one call, which begins now. */
export const budget = ({ searchTime = "10 seconds" }: Options): Effect.Effect<Paced.Budget> =>
  Paced.budget(Duration.fromInputUnsafe(searchTime))

/** What the model is told when the budget is spent. */
export const lateNote = ({ time }: Paced.Budget): string =>
  `[Stopped after ${Duration.toSeconds(time)} seconds: not all was searched. Narrow the pattern or the path.]`

/** Folders that are not gone into, unless asked for: what they hold is not the project's own. */
export const ignored: ReadonlySet<string> = new Set([".git", "node_modules"])

export interface Entry {
  readonly folder: Folder.Folder
  readonly name: string
  readonly type: FileSystem.File.Type
  /** From where the walk began, with `/` between names. */
  readonly path: string
}

/** What a visitor says: go on, or enough. */
export type Step = "continue" | "stop"

type Services = FileSystem.FileSystem | Path.Path

/**
 * Visits each entry below `top`, a folder before what is in it, until the budget is spent. Folders that cannot be read are left out; only failing
 * to read `top` fails.
 */
export const walk = <E, R>(
  top: Folder.Folder,
  options: { readonly all: boolean; readonly budget: Paced.Budget },
  visit: (entry: Entry) => Effect.Effect<Step, E, R>
): Effect.Effect<Step, E | PathFailure, R | Services> =>
  Effect.flatMap(entries(top), (found) => each(top, found, "", options, visit))

/** The entries of one folder, by name. */
export const entries = Effect.fnUntraced(function* (
  folder: Folder.Folder
): Effect.fn.Return<ReadonlyArray<FileSystem.DirectoryEntry>, PathFailure, FileSystem.FileSystem> {
  const files = yield* FileSystem.FileSystem
  const found = yield* files
    .readDirectoryEntries(folder.here)
    .pipe(Effect.mapError((error) => fromPlatform(folder.path, error)))
  return found.toSorted((self, that) => (self.name < that.name ? -1 : 1))
})

const each = <E, R>(
  folder: Folder.Folder,
  found: ReadonlyArray<FileSystem.DirectoryEntry>,
  prefix: string,
  options: { readonly all: boolean; readonly budget: Paced.Budget },
  visit: (entry: Entry) => Effect.Effect<Step, E, R>
): Effect.Effect<Step, E, R | Services> =>
  Effect.gen(function* () {
    for (const { name, type } of found) {
      const path = prefix + name
      if (options.budget.isSpent()) return "stop"
      if (type === "Directory" && !options.all && ignored.has(name)) continue
      if ((yield* visit({ folder, name, type, path })) === "stop") return "stop"
      if (type !== "Directory") continue
      const inside = Effect.gen(function* () {
        const opened = yield* Effect.result(openInside(folder, name, path))
        if (opened._tag === "Failure") return "continue"
        return yield* each(opened.success.folder, opened.success.found, `${path}/`, options, visit)
      })
      if ((yield* Effect.scoped(inside)) === "stop") return "stop"
    }
    return "continue"
  })

const openInside = Effect.fnUntraced(function* (parent: Folder.Folder, name: string, path: string) {
  const folder = yield* Folder.enter(parent, name, path)
  return { folder, found: yield* entries(folder) }
})
