/** The store of the program: a file for each session, in a folder for each working directory, or what `--store` names. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Stream from "effect/Stream"
import { ArtifactStore } from "../../artifacts/ArtifactStore.ts"
import * as FileArtifactStore from "../../artifacts/FileArtifactStore.ts"
import * as JsonlRunLogStore from "../../runs/JsonlRunLogStore.ts"
import type { RunLogError, RunLogStore } from "../../runs/RunLogStore.ts"
import * as JsonlSessionStore from "../../sessions/JsonlSessionStore.ts"
import * as SessionEntry from "../../sessions/SessionEntry.ts"
import * as SessionHome from "../../sessions/SessionHome.ts"
import * as SessionStore from "../../sessions/SessionStore.ts"
import type { Service } from "../../sessions/SessionStore.ts"
import type { Settings } from "../settings/Settings.ts"
import type { StoreAddress } from "../settings/Values.ts"

/** The settings that name the place. */
export type Place = Pick<Settings, "cwd" | "store">

/** A store, and the working directory whose sessions a list has; `undefined` for all sessions of a folder that the user named. */
export interface Sessions {
  readonly store: SessionStore.Service
  readonly cwd: string
  readonly listed: { readonly cwd?: string }
  /** The large tool results of all sessions of the store. */
  readonly artifacts: ArtifactStore["Service"]
  /** The logs of the runs of a server: in the database of the sessions, or in a folder beside them. */
  readonly logs: Layer.Layer<RunLogStore, RunLogError, FileSystem.FileSystem | Path.Path>
}

/** The stores of one place. */
export interface Stores extends Pick<Sessions, "artifacts" | "store"> {
  /** The logs of the runs of a server, in the same database; `undefined` for a store in files. */
  readonly logs: Layer.Layer<RunLogStore, RunLogError> | undefined
}

/** Opens the store, whose connections the scope holds. */
export const at = Effect.fnUntraced(function* (place: Place) {
  const path = yield* Path.Path
  const cwd = path.resolve(place.cwd)
  const address = Option.getOrUndefined(place.store)
  const stores = yield* address === undefined ? inHome : open(address)
  const logs = stores.logs ?? JsonlRunLogStore.layer({ directory: yield* folderOfLogs(cwd, address) })
  const store = withArtifacts(stores.store, stores.artifacts)
  const sessions: Sessions = { ...stores, store, logs, cwd, listed: address?._tag === "Files" ? {} : { cwd } }
  return sessions
})

const folderOfLogs = Effect.fnUntraced(function* (cwd: string, address: StoreAddress | undefined) {
  const path = yield* Path.Path
  if (address?._tag === "Files") return path.join(path.resolve(address.directory), "runs")
  const home = yield* Effect.orDie(SessionHome.home)
  return path.join(home, "sessions", yield* SessionHome.folderOf(cwd), "runs")
})

const open = Effect.fnUntraced(function* (address: StoreAddress) {
  const path = yield* Path.Path
  if (address._tag === "Files") return yield* files({ directory: path.resolve(address.directory) })
  const { postgres, sqlite } = yield* Effect.promise(() => import("./DatabaseStore.ts"))
  return yield* address._tag === "Sqlite" ? sqlite(path.resolve(address.filename)) : postgres(address.url)
})

const files = Effect.fnUntraced(function* (
  folders: { readonly directory: string } | { readonly root: string }
) {
  const path = yield* Path.Path
  const folder = "root" in folders ? folders.root : folders.directory
  const large = yield* Layer.build(FileArtifactStore.layer({ directory: path.join(folder, "artifacts") }))
  const stores: Stores = {
    store: SessionStore.make(yield* JsonlSessionStore.storage(folders)),
    artifacts: Context.get(large, ArtifactStore),
    logs: undefined
  }
  return stores
})

const inHome = Effect.gen(function* () {
  const path = yield* Path.Path
  return yield* files({ root: path.join(yield* Effect.orDie(SessionHome.home), "sessions") })
})

/** A line about the faults of a session, `undefined` if it has none. */
export const remarkOn = (
  sessionId: string,
  damage: ReadonlyArray<SessionStore.Damage>
): string | undefined => {
  const [first] = damage
  if (first === undefined) return undefined
  const lines = damage.length === 1 ? "1 line is" : `${damage.length} lines are`
  return `Session ${sessionId} is damaged: ${lines} left out. Line ${first.line}: ${first.detail}`
}

// ───────────────────────── Artifacts

/** A store whose sessions take their artifacts with them, but for those that another session names, such as a fork. */
export const withArtifacts = (store: Service, artifacts: ArtifactStore["Service"]): Service => {
  const remove = Effect.fnUntraced(function* (id: string) {
    const hit = yield* Stream.runHead(store.search(id))
    if (Option.isNone(hit)) yield* artifacts.remove(id)
  })
  return {
    ...store,
    delete: Effect.fnUntraced(function* (sessionId) {
      const owned = yield* artifactsOf(store, artifacts, sessionId)
      yield* store.delete(sessionId)
      // The session is gone. An artifact that stays behind harms no other one.
      yield* Effect.forEach(owned, (id) => Effect.ignore(remove(id), { log: "Warn" }), { discard: true })
    })
  }
}

/** The ids of the artifacts that the runs of a session have stored. */
const artifactsOf = Effect.fnUntraced(function* (
  store: Service,
  artifacts: ArtifactStore["Service"],
  sessionId: string
) {
  const { entries } = yield* store.read(sessionId)
  const text = JSON.stringify(entries.map(SessionEntry.toJson))
  const runs = new Set(Array.from(text.matchAll(/"runId":"([^"]+)"/g), ([, runId]) => runId))
  const ids = [...new Set(text.match(/\bartifact_[\w-]+/g))]
  return yield* Effect.filter(ids, (id) =>
    Effect.orElseSucceed(
      Effect.map(artifacts.get(id), ({ runId }) => runs.has(runId)),
      () => false
    )
  )
})
