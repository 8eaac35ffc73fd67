/**
 * A storage of sessions in files of lines.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import {
  Exists,
  Locked,
  Missing,
  SessionError,
  type SessionReason,
  StorageFailed,
  Unreadable
} from "../../Session.ts"
import * as LineReader from "../LineReader.ts"
import * as SessionName from "../SessionName.ts"
import type { Line, NewSession, StoredSession, Writer } from "../SessionStorage.ts"
import * as WriterLock from "../WriterLock.ts"
import * as SessionHome from "../SessionHome.ts"

/** The options of the storage. */
export interface Options extends Folders {
  /** Whether each append waits until the disk has it. Default `"never"`. */
  readonly fsync?: "never" | "always"
}

type Services = FileSystem.FileSystem | Path.Path
type Using<A, R = never> = Effect.Effect<A, SessionError, Services | R>

const lineFeed = 0x0a

export class JsonlStorage {
  private readonly options: Options
  /** The files of sessions by their ids, to look there first. */
  private readonly known = new Map<string, SessionFile>()
  private readonly names: Names = new Map()

  constructor(options: Options) {
    this.options = options
  }

  create(session: NewSession): Using<Writer, Scope.Scope> {
    const { created, cwd, sessionId } = session
    return Effect.gen({ self: this }, function* () {
      const files = yield* FileSystem.FileSystem
      const paths = yield* Path.Path
      const fails = failing(sessionId, "create")
      if (!SessionName.isName(sessionId))
        return yield* failure(sessionId, new Unreadable({ detail: tooLong }))
      const folder = yield* fails(folderOf(this.options, cwd))
      yield* fails(files.makeDirectory(folder, { recursive: true, mode: 0o700 }))
      const path = paths.join(folder, nameOf(sessionId, created))
      const made = Effect.andThen(
        lock(sessionId, path),
        fails(Effect.scoped(files.open(path, { flag: "ax", mode: 0o600 })))
      )
      yield* this.first(sessionId, made)
      if (this.options.fsync === "always") yield* syncFolder(folder)
      return yield* this.writer(sessionId, path)
    })
  }

  /** Makes the file of a session, unless there is one: no other process makes one of this id meanwhile, in whatever folder. */
  private first(sessionId: string, make: Using<unknown, Scope.Scope>): Using<void, Scope.Scope> {
    const { directory, root = "." } = this.options
    return Effect.flatMap(Effect.scope, (scope) =>
      Effect.scoped(
        Effect.gen({ self: this }, function* () {
          const paths = yield* Path.Path
          yield* lock(sessionId, paths.join(directory ?? root, `${SessionName.of(sessionId)}.lock`))
          if ((yield* this.search(sessionId)) !== undefined) return yield* failure(sessionId, new Exists())
          yield* Scope.provide(make, scope)
        })
      )
    )
  }

  open(sessionId: string): Using<Writer, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const { path } = yield* this.fileOf(sessionId)
      yield* lock(sessionId, path)
      return yield* this.writer(sessionId, path)
    })
  }

  private writer(sessionId: string, path: string): Using<Writer, Scope.Scope> {
    const { fsync } = this.options
    return Effect.gen(function* () {
      const fails = failing(sessionId, "open")
      const files = yield* FileSystem.FileSystem
      let isCut = yield* fails(endsWithinLine(path))
      const file = yield* fails(files.open(path, { flag: "a", mode: 0o600 }))
      const own = yield* fails(file.stat)
      const appending = failing(sessionId, "append")
      // The system writes to a file that has no name any more, and no reader finds its lines.
      const isRemoved = Effect.map(files.stat(path), (info) => !isSameFile(info, own)).pipe(
        Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed(true))
      )
      const write = (lines: Arr.NonEmptyReadonlyArray<Line>) =>
        Effect.gen(function* () {
          const start = isCut ? "\n" : ""
          // Until it has succeeded: a write may stop within a line.
          isCut = true
          yield* file.writeAll(encoder.encode(`${start}${lines.map(({ text }) => text).join("\n")}\n`))
          if (fsync === "always") yield* file.sync
          isCut = false
        })
      return {
        append: (lines) =>
          Effect.flatMap(appending(isRemoved), (isGone) =>
            isGone ? failure(sessionId, removed) : appending(write(lines))
          )
      }
    })
  }

  lines(
    sessionId: string
  ): Stream.Stream<Arr.NonEmptyReadonlyArray<string | Uint8Array>, SessionError, Services> {
    return Stream.unwrap(
      Effect.map(this.fileOf(sessionId), ({ path }) =>
        Stream.mapError(LineReader.lines(path), (error) => failure(sessionId, reasonOf("read", error)))
      )
    )
  }

  find(sessionId: string): Using<StoredSession> {
    return Effect.gen({ self: this }, function* () {
      const files = yield* FileSystem.FileSystem
      const { created, path } = yield* this.fileOf(sessionId)
      return storedAs(sessionId, created, yield* failing(sessionId, "read")(files.stat(path)))
    })
  }

  list(cwd: string | undefined): Using<ReadonlyArray<StoredSession>> {
    return Effect.gen({ self: this }, function* () {
      const found = yield* failing("", "list")(findFiles(this.options, this.names, cwd))
      for (const file of found) this.known.set(file.sessionId, file)
      const listed = yield* Effect.forEach(found, stored, { concurrency: 16 })
      const sessions = listed.flatMap(Option.toArray)
      if (cwd === undefined || this.options.directory === undefined) return sessions
      return yield* Effect.filter(sessions, ({ sessionId }) => this.isOf(sessionId, cwd))
    })
  }

  /** Whether a session has a working directory, by its first entry. One that another process has removed has none. */
  private isOf(sessionId: string, cwd: string): Using<boolean> {
    return Effect.map(Stream.runHead(this.lines(sessionId)), (head) => {
      const [line] = Option.getOrElse(head, () => [])
      return typeof line === "string" && line.includes(`"cwd":${JSON.stringify(cwd)}`)
    }).pipe(Effect.catchReason("SessionError", "Missing", () => Effect.succeed(false)))
  }

  remove(sessionId: string): Using<void> {
    return Effect.scoped(
      Effect.gen({ self: this }, function* () {
        const files = yield* FileSystem.FileSystem
        const { path } = yield* this.fileOf(sessionId)
        yield* lock(sessionId, path)
        yield* failing(sessionId, "delete")(files.remove(path))
        this.known.delete(sessionId)
      })
    )
  }

  private fileOf(sessionId: string): Using<SessionFile> {
    return Effect.gen({ self: this }, function* () {
      const files = yield* FileSystem.FileSystem
      const known = this.known.get(sessionId)
      if (known !== undefined && (yield* Effect.orElseSucceed(files.exists(known.path), () => false))) {
        return known
      }
      return (yield* this.search(sessionId)) ?? (yield* failure(sessionId, new Missing()))
    })
  }

  private search(sessionId: string): Using<SessionFile | undefined> {
    return Effect.map(failing(sessionId, "open")(findFiles(this.options, this.names)), (found) => {
      const file = found.find((one) => one.sessionId === sessionId)
      if (file !== undefined) this.known.set(sessionId, file)
      return file
    })
  }
}

const storedAs = (
  sessionId: string,
  created: number,
  { mtime, size }: FileSystem.File.Info
): StoredSession => ({
  sessionId,
  created,
  modified: Option.match(mtime, { onNone: () => created, onSome: (date) => date.getTime() }),
  bytes: Number(size)
})

/** A file as a list has it: none that another process has removed meanwhile, and, with a warning, none that cannot be read. */
const stored = ({ created, path, sessionId }: SessionFile) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const info = yield* files.stat(path)
    yield* files.access(path, { readable: true })
    return info.type === "File" ? Option.some(storedAs(sessionId, created, info)) : Option.none()
  }).pipe(
    Effect.catch((error) =>
      error.reason._tag === "NotFound"
        ? Effect.succeedNone
        : Effect.logWarning(`The session cannot be read: ${error.message}`).pipe(
            Effect.annotateLogs({ sessionId }),
            Effect.as(Option.none())
          )
    )
  )

/** Whether two files are one, as far as the system says. */
const isSameFile = (one: FileSystem.File.Info, other: FileSystem.File.Info): boolean =>
  one.dev === other.dev && Option.getOrUndefined(one.ino) === Option.getOrUndefined(other.ino)

const tooLong = "no file can have a name of its id: it is too long with its characters escaped"

const removed = new StorageFailed({
  operation: "append",
  detail: "its file was removed or replaced from outside. Open the session again"
})

const encoder = new TextEncoder()

const failure = (sessionId: string, reason: SessionReason) => new SessionError({ sessionId, reason })

const reasonOf = (operation: string, error: PlatformError): SessionReason =>
  // A session that is to be made needs no file, but its folder.
  error.reason._tag === "NotFound" && operation !== "create"
    ? new Missing()
    : new StorageFailed({ operation, detail: LineReader.detailOf(error) })

const failing =
  (sessionId: string, operation: string) =>
  <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<A, SessionError, R> =>
    Effect.mapError(effect, (error) => failure(sessionId, reasonOf(operation, error)))

const lock = (sessionId: string, path: string): Using<void, Scope.Scope> =>
  WriterLock.acquire(`${path}.lock`).pipe(
    Effect.mapError((error) => {
      if (error._tag !== "Held") return failure(sessionId, reasonOf("lock", error))
      const { pid, since } = error
      const owner = pid === undefined ? {} : { owner: `process ${pid}` }
      return failure(sessionId, new Locked({ ...owner, ...(since === undefined ? {} : { since }) }))
    })
  )

/** Whether the last line of a file has no line feed. */
const endsWithinLine = (path: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const file = yield* files.open(path, { flag: "r" })
      const { size } = yield* file.stat
      if (Number(size) === 0) return false
      const last = yield* file.readAlloc(1, { position: BigInt(Number(size) - 1) })
      return Option.match(last, { onNone: () => false, onSome: ([byte]) => byte !== lineFeed })
    })
  )

/** Some systems cannot sync a folder. */
const syncFolder = (folder: string) =>
  Effect.scoped(
    Effect.flatMap(FileSystem.FileSystem, (files) =>
      Effect.flatMap(files.open(folder, { flag: "r" }), (file) => file.sync)
    )
  ).pipe(Effect.ignore)

// ───────────────────────── The names of the files of sessions, and their places in folders

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
export const findFiles = (
  folders: Folders,
  names: Names,
  cwd?: string
): Finding<ReadonlyArray<SessionFile>> =>
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
