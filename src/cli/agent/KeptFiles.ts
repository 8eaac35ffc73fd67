/** The place of the versions of files that the calls of a session change. The modules that keep them are loaded with the first change. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Hook from "../../Hook.ts"
import * as Message from "../../Message.ts"
import type { Session } from "../../Session.ts"
import * as SessionName from "../../sessions/SessionName.ts"
import type { Service } from "../../sessions/SessionStore.ts"
import type { Keeper } from "../../tools/Keeping.ts"
import type { FileKeeper, Limits } from "../files/FileKeeper.ts"
import type { Settings } from "../settings/Settings.ts"
import type { KeepFailed } from "../files/KeptStore.ts"

/** The versions of the sessions of a store. */
export interface Place {
  /** Whether there are versions of a session. */
  readonly has: (sessionId: string) => Effect.Effect<boolean>
  /** Ends what a killed process has left. */
  readonly open: (sessionId: string, limits?: Limits) => Effect.Effect<FileKeeper, KeepFailed>
  readonly remove: (sessionId: string) => Effect.Effect<void>
}

/** The folders of a store of sessions in files: the one with the files, or the one that has a folder for each working directory. */
type Folders = { readonly directory: string } | { readonly root: string }

/** The versions lie in `files/ID` beside the file of the session. */
export const inFiles = Effect.fnUntraced(function* (folders: Folders) {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const folder = (sessionId: string) => Effect.provideContext(folderOf(folders, sessionId), context)
  const place: Place = {
    has: (sessionId) => Effect.map(folder(sessionId), ({ isThere }) => isThere),
    open: (sessionId, limits) =>
      Effect.gen(function* () {
        const { path } = yield* folder(sessionId)
        const { openFolder } = yield* load
        return yield* openFolder(path, limits)
      }).pipe(Effect.provideContext(context)),
    remove: (sessionId) =>
      Effect.flatMap(folder(sessionId), ({ isThere, path }) =>
        isThere ? FileSystem.FileSystem.use((files) => files.remove(path, { recursive: true })) : Effect.void
      ).pipe(Effect.ignore({ log: "Warn" }), Effect.provideContext(context))
  }
  return place
})

const load = Effect.promise(() => import("../files/KeptVersions.ts"))

const folderOf = Effect.fnUntraced(function* (folders: Folders, sessionId: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const namesIn = (folder: string) =>
    Effect.orElseSucceed(files.readDirectory(folder), (): ReadonlyArray<string> => [])
  const name = SessionName.of(sessionId)
  const places =
    "directory" in folders
      ? [folders.directory]
      : (yield* namesIn(folders.root)).map((entry) => paths.join(folders.root, entry))
  for (const place of places) {
    const path = paths.join(place, "files", name)
    const names = yield* namesIn(place)
    const isThere = names.includes("files") && (yield* Effect.orElseSucceed(files.exists(path), () => false))
    if (isThere || names.some((entry) => entry.endsWith(`Z_${name}.jsonl`))) return { path, isThere }
  }
  const [first = "."] = "directory" in folders ? [folders.directory] : [folders.root]
  return { path: paths.join(first, "files", name), isThere: false }
})

/** The versions are rows of the database. */
export const inDatabase = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const place: Place = {
    has: (sessionId) => Effect.flatMap(load, ({ has }) => has(sql, sessionId)),
    open: (sessionId, limits) =>
      Effect.gen(function* () {
        const { openTables } = yield* load
        return yield* openTables(sql, sessionId, limits)
      }).pipe(Effect.provideContext(context)),
    remove: (sessionId) => Effect.flatMap(load, ({ remove }) => remove(sql, sessionId))
  }
  return place
})

/** A place with the limits of some settings, which count megabytes. */
export const limited = (
  place: Place,
  {
    keepFile = Option.none(),
    keepSession = Option.none()
  }: Partial<Pick<Settings, "keepFile" | "keepSession">>
): Place => {
  const limits: Limits = {
    ...(Option.isSome(keepFile) ? { keepFile: keepFile.value * 1_000_000 } : {}),
    ...(Option.isSome(keepSession) ? { keepSession: keepSession.value * 1_000_000 } : {})
  }
  return { ...place, open: (sessionId) => place.open(sessionId, limits) }
}

/** A store whose sessions take their versions with them. */
export const removing = (store: Service, place: Place): Service => ({
  ...store,
  delete: (sessionId) => Effect.andThen(store.delete(sessionId), place.remove(sessionId)),
  retain: (retention) =>
    Effect.tap(store.retain(retention), (ids) => Effect.forEach(ids, place.remove, { discard: true }))
})

/** The keeper of an agent. */
export interface Kept extends Keeper {
  /** The hooks that list for the model the files of a folder that went back since its last prompt. */
  readonly hooks: (root: string) => ReadonlyArray<Hook.Runnable>
}

/** Opens a keeper with the first use. One that fails is opened again. */
const once = (open: Effect.Effect<FileKeeper, KeepFailed>) =>
  Effect.map(
    Effect.cachedInvalidateWithTTL(open, (exit) => (exit._tag === "Success" ? "Infinity" : 0)),
    ([opened]) => opened
  )

/** The keeper of a session that is open, which opens with the first change. Before that it ends what a killed process has left. */
export const keeperOf = Effect.fnUntraced(function* (place: Place, { id, restored }: Session) {
  let known: FileKeeper | undefined
  const open = Effect.tap(place.open(id), (keeper) => Effect.sync(() => void (known = keeper)))
  const opened = yield* once(open)
  if (restored.messages.length > 0 && (yield* place.has(id))) yield* Effect.ignore(opened, { log: "Warn" })
  return lazily(opened, () => known)
})

/** A keeper that opens with the first change. `known` is the open one. */
const lazily = (
  opened: Effect.Effect<FileKeeper, KeepFailed>,
  known: () => FileKeeper | undefined
): Kept => ({
  file: (change) => Effect.flatMap(opened, (files) => files.file(change)),
  command: (root, run) => Effect.flatMap(opened, (files) => files.command(root, run)),
  hooks: (root) => [
    Hook.steering(() =>
      Effect.suspend(() => known()?.report(root) ?? Effect.undefined).pipe(
        Effect.map((words) => (words === undefined ? [] : [Message.user(words)])),
        Effect.catch((error) => Effect.as(Effect.logWarning(error.message), []))
      )
    )
  ]
})

/** The keepers of the sessions of a process: the agent of a session and the commands of the person share one. */
export const shared = (place: Place) => {
  const keepers = new Map<string, Effect.Effect<FileKeeper, KeepFailed>>()
  const known = new Map<string, FileKeeper>()
  const open = (sessionId: string) =>
    Effect.suspend(() => {
      const keeper = keepers.get(sessionId)
      if (keeper !== undefined) return keeper
      const opening = Effect.tap(place.open(sessionId), (keeper) =>
        Effect.sync(() => known.set(sessionId, keeper))
      )
      return Effect.flatMap(once(opening), (opened) => {
        keepers.set(sessionId, opened)
        return opened
      })
    })
  return {
    open,
    keeper: (sessionId: string) => lazily(open(sessionId), () => known.get(sessionId)),
    /** Ends what a killed process has left of a session. */
    settle: Effect.fnUntraced(function* (sessionId: string) {
      if (keepers.has(sessionId) || !(yield* place.has(sessionId))) return
      yield* Effect.ignore(open(sessionId), { log: "Warn" })
    })
  }
}
