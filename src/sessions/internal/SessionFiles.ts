/**
 * The files of sessions: their names, and their places in folders.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as SessionHome from "../SessionHome.ts"
import * as SessionName from "../SessionName.ts"

/** The folders of a store. */
export interface Folders {
  /** The folder that holds the files. */
  readonly directory?: string
  /** The folder that has a folder for each working directory. */
  readonly root?: string
}

/** A file of a session. */
export interface SessionFile {
  readonly path: string
  readonly sessionId: string
  readonly created: number
}

const form = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z_(.+)\.jsonl$/

/** The name of the file of a session. */
export const nameOf = (sessionId: string, created: number): string =>
  `${new Date(created).toISOString().replace(/[:.]/g, "-")}_${SessionName.of(sessionId)}.jsonl`

/** The files that the names of each folder stand for: a name is read once. */
export type Names = Map<string, ReadonlyMap<string, ReadonlyArray<SessionFile>>>

/** The file that a name stands for, `undefined` for other files. */
const fileOf = (folder: string, name: string, paths: Path.Path): ReadonlyArray<SessionFile> => {
  const [, date, hours, minutes, seconds, millis, named = ""] = form.exec(name) ?? []
  const sessionId = SessionName.idOf(named)
  const created = Date.parse(`${date}T${hours}:${minutes}:${seconds}.${millis}Z`)
  return named === "" || sessionId === undefined || Number.isNaN(created)
    ? []
    : [{ path: paths.join(folder, name), sessionId, created }]
}

type Finding<A> = Effect.Effect<A, PlatformError, FileSystem.FileSystem | Path.Path>

/** The names in a folder, none if it does not exist. */
const namesIn = (folder: string): Finding<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    return yield* Effect.catchIf(
      files.readDirectory(folder),
      ({ reason }) => reason._tag === "NotFound",
      () => Effect.succeed([])
    )
  })

/** The folder of the sessions of a working directory. */
export const folderOf = ({ directory, root = "." }: Folders, cwd: string): Finding<string> =>
  Effect.gen(function* () {
    if (directory !== undefined) return directory
    const paths = yield* Path.Path
    return paths.join(root, yield* SessionHome.folderOf(cwd))
  })

/** The files of the sessions of a working directory, or of all. Of files with one session id the oldest counts. */
export const find = (folders: Folders, names: Names, cwd?: string): Finding<ReadonlyArray<SessionFile>> =>
  Effect.gen(function* () {
    const paths = yield* Path.Path
    const among = yield* foldersOf(folders, cwd)
    const found = yield* Effect.forEach(among, (folder) =>
      Effect.map(namesIn(folder), (there) => {
        const before = names.get(folder)
        const now = new Map(there.map((name) => [name, before?.get(name) ?? fileOf(folder, name, paths)]))
        names.set(folder, now)
        return [...now.values()].flat()
      })
    )
    const oldest = new Map<string, SessionFile>()
    for (const file of found.flat()) {
      const other = oldest.get(file.sessionId)
      if (other === undefined || isBefore(file, other)) oldest.set(file.sessionId, file)
    }
    return [...oldest.values()]
  })

const isBefore = (one: SessionFile, other: SessionFile): boolean =>
  one.created < other.created || (one.created === other.created && one.path < other.path)

const foldersOf = (folders: Folders, cwd: string | undefined): Finding<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const { directory, root = "." } = folders
    if (directory !== undefined || cwd !== undefined) return [yield* folderOf(folders, cwd ?? "")]
    const paths = yield* Path.Path
    const names = yield* namesIn(root)
    const files = yield* FileSystem.FileSystem
    const kept = yield* Effect.filter(names, (name) =>
      Effect.map(
        Effect.option(files.stat(paths.join(root, name))),
        Option.exists(({ type }) => type === "Directory")
      )
    )
    return kept.map((name) => paths.join(root, name))
  })
