/**
 * The sessions of the program, a file for each in a folder for each working directory or in the store that `--store` names, and the session of a
 * run: a new one, or the one that `--continue`, `--resume` or `--fork` name.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
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
import type { Service, Contents, Summary, ListOptions } from "../../sessions/SessionStore.ts"
import type { Settings } from "../settings/Settings.ts"
import type { StoreAddress } from "../settings/Values.ts"
import type { Session, SessionError } from "../../Session.ts"
import { UsageError } from "../ExitCode.ts"
import type { File } from "../settings/Setting.ts"
import * as Inert from "../terminal/Inert.ts"
import { Keyboard } from "../terminal/StandardInput.ts"
import { Screen } from "../terminal/Screen.ts"
import * as ModelChoice from "./ModelChoice.ts"
import * as KeptFiles from "./KeptFiles.ts"

/** The settings that name the place. */
type Place = Pick<Settings, "cwd" | "store"> & Partial<Pick<Settings, "keepFile" | "keepSession">>

/** A store, and the working directory whose sessions a list has; `undefined` for all sessions of a folder that the user named. */
interface Sessions {
  readonly store: SessionStore.Service
  readonly cwd: string
  readonly listed: { readonly cwd?: string }
  /** The large tool results of all sessions of the store. */
  readonly artifacts: ArtifactStore["Service"]
  /** The versions of the files that the calls of a session change. */
  readonly kept: KeptFiles.Place
  /** The logs of the runs of a server: in the database of the sessions, or in a folder beside them. */
  readonly logs: Layer.Layer<RunLogStore, RunLogError, FileSystem.FileSystem | Path.Path>
}

/** The stores of one place. */
export interface Stores extends Pick<Sessions, "artifacts" | "store" | "kept"> {
  /** The logs of the runs of a server, in the same database; `undefined` for a store in files. */
  readonly logs: Layer.Layer<RunLogStore, RunLogError> | undefined
}

/** Opens the store, whose connections the scope holds. */
export const at = Effect.fnUntraced(function* (place: Place) {
  const path = yield* Path.Path
  const cwd = path.resolve(place.cwd)
  const address = Option.getOrUndefined(place.store)
  const stores = yield* address === undefined ? inHome : storesAt(address)
  const logs = stores.logs ?? JsonlRunLogStore.layer({ directory: yield* folderOfLogs(cwd, address) })
  const store = KeptFiles.removing(withArtifacts(stores.store, stores.artifacts), stores.kept)
  const kept = KeptFiles.limited(stores.kept, place)
  const sessions: Sessions = {
    ...stores,
    kept,
    store,
    logs,
    cwd,
    listed: address?._tag === "Files" ? {} : { cwd }
  }
  return sessions
})

const folderOfLogs = Effect.fnUntraced(function* (cwd: string, address: StoreAddress | undefined) {
  const path = yield* Path.Path
  if (address?._tag === "Files") return path.join(path.resolve(address.directory), "runs")
  const home = yield* Effect.orDie(SessionHome.home)
  return path.join(home, "sessions", yield* SessionHome.folderOf(cwd), "runs")
})

const storesAt = Effect.fnUntraced(function* (address: StoreAddress) {
  const path = yield* Path.Path
  if (address._tag === "Files") return yield* filesIn({ directory: path.resolve(address.directory) })
  const { postgres, sqlite } = yield* Effect.promise(() => import("./DatabaseStore.ts"))
  return yield* address._tag === "Sqlite" ? sqlite(path.resolve(address.filename)) : postgres(address.url)
})

const filesIn = Effect.fnUntraced(function* (
  folders: { readonly directory: string } | { readonly root: string }
) {
  const path = yield* Path.Path
  const folder = "root" in folders ? folders.root : folders.directory
  const large = yield* Layer.build(FileArtifactStore.layer({ directory: path.join(folder, "artifacts") }))
  const stores: Stores = {
    store: SessionStore.make(yield* JsonlSessionStore.storage(folders)),
    artifacts: Context.get(large, ArtifactStore),
    kept: yield* KeptFiles.inFiles(folders),
    logs: undefined
  }
  return stores
})

const inHome = Effect.gen(function* () {
  const path = yield* Path.Path
  return yield* filesIn({ root: path.join(yield* Effect.orDie(SessionHome.home), "sessions") })
})

/** The path of the file of a session; `""` if it is in a database, or there is none yet. */
export const fileOf = Effect.fnUntraced(function* ({ cwd, store }: Place, sessionId: string) {
  const address = Option.getOrUndefined(store)
  if (address !== undefined && address._tag !== "Files") return ""
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = yield* Effect.orDie(SessionHome.home)
  const folder =
    address === undefined
      ? path.join(home, "sessions", yield* SessionHome.folderOf(cwd))
      : path.resolve(address.directory)
  const names = yield* Effect.orElseSucceed(files.readDirectory(folder), (): Array<string> => [])
  const name = names.find((name) => name.endsWith(`_${sessionId}.jsonl`))
  return name === undefined ? "" : path.join(folder, name)
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

// ───────────────────────── The session of a run

/** The settings that choose the session. */
type Options = Place & Pick<Settings, "continue" | "fork" | "name" | "noSession" | "resume">

/** A session, and the store of its large tool results. */
export interface Opened {
  readonly session: Session
  readonly artifacts: Sessions["artifacts"]
  /** Keeps what calls change in files. Default: nothing does. */
  readonly keeper?: KeptFiles.Kept
}

/** A session as it was before the run, and its folder and model as settings. */
interface Chosen {
  readonly sessionId: string
  readonly file: File
}

const ofSession = "--continue, --resume, --fork and --no-session exclude one another: give one of them."

/** The session that the settings name, `undefined` for a new one. Fails with `UsageError` if there is no such session. */
export const find = Effect.fnUntraced(function* (options: Options) {
  const { fork, noSession, resume } = options
  const chosen = [options.continue, Option.isSome(resume), Option.isSome(fork), noSession]
  if (chosen.filter(Boolean).length > 1) return yield* new UsageError({ detail: ofSession })
  if (noSession || !chosen.includes(true)) return undefined
  const { listed, store } = yield* at(options)
  const newest = (limit: number) => Effect.map(store.list({ ...listed, limit }), ({ items }) => items)
  const named = Option.getOrUndefined(Option.orElse(resume, () => fork))
  const id =
    named === undefined
      ? (yield* newest(1))[0]?.sessionId
      : named === ""
        ? (yield* pick(yield* newest(maxListed))).sessionId
        : named
  if (id === undefined)
    return yield* new UsageError({ detail: "There is no session of this folder to continue." })
  return chosenOf(yield* use(store, id, store.read))
}, Effect.scoped)

const chosenOf = ({ entries, session: { cwd, sessionId }, view }: Contents): Chosen => {
  const begun = entries.findLast(
    (entry) => entry.type === "run" && entry.phase === "start" && entry.model !== ""
  )
  const model = view.options.model ?? (begun?.type === "run" ? begun.model : "")
  const members = {
    ...(cwd === "" ? {} : { cwd }),
    // An application names models in its own way.
    ...(ModelChoice.isKnown(model) ? { model } : {})
  }
  return { sessionId, file: { path: "the session", members, isTrusted: true } }
}

/** The most sessions to pick from. */
const maxListed = 20

/** The session that the person at the terminal picks. Fails with `UsageError` if none can, or wants to. */
const pick = Effect.fnUntraced(function* (sessions: ReadonlyArray<Summary>) {
  const { err, isInteractive } = yield* Screen
  const keyboard = yield* Keyboard
  if (sessions.length === 0)
    return yield* new UsageError({ detail: "There is no session of this folder to continue." })
  if (!isInteractive)
    return yield* new UsageError({
      detail: "Give the id of a session, or its beginning: effect-agent sessions lists them."
    })
  const lines = sessions.map(
    (session, index) =>
      `${String(index + 1).padStart(2)}  ${timeOf(session)}  ${Inert.line(session.title, 80)}\n`
  )
  yield* err(`${lines.join("")}Number of the session: `)
  const typed = yield* Effect.onInterrupt(keyboard.line, () => err("\n"))
  const picked = sessions[Number(typed?.trim() || NaN) - 1]
  return picked ?? (yield* new UsageError({ detail: "That is no number of the list." }))
})

/** The time of the last entry, in UTC. */
export const timeOf = ({ modified }: Summary): string =>
  new Date(modified).toISOString().slice(0, 19).replace("T", " ")

/** Opens the session for writing. */
export const open = Effect.fnUntraced(function* (options: Options) {
  const { artifacts, cwd, kept, store } = yield* at(options)
  const { fork, name, resume } = options
  const created = { cwd, ...Option.match(name, { onNone: () => ({}), onSome: (name) => ({ name }) }) }
  const opening = Option.isSome(fork)
    ? Effect.flatMap(store.fork(fork.value, created), store.open)
    : Option.isSome(resume)
      ? store.open(resume.value)
      : store.create(created)
  const session = yield* opening
  if (Option.isSome(resume) && Option.isSome(name)) yield* session.rename(name.value)
  const keeper = yield* KeptFiles.keeperOf(kept, session)
  return { session, artifacts, keeper } satisfies Opened
})

// ───────────────────────── Ids

/** Uses the session of an id, else the only one whose id begins so. Fails with `UsageError` if there is none, or several. */
export const use = <A, R>(
  store: Service,
  text: string,
  use: (sessionId: string) => Effect.Effect<A, SessionError | UsageError, R>
): Effect.Effect<A, SessionError | UsageError, R> =>
  Effect.catchReason(use(text), "SessionError", "Missing", () => Effect.flatMap(whole(store, text), use))

const whole = Effect.fnUntraced(function* (store: Service, text: string) {
  const found = text === "" ? [] : yield* all(store, { query: text })
  const ids = found.flatMap(({ sessionId, title }) =>
    isSession(sessionId, text) ? [{ id: sessionId, title }] : []
  )
  return yield* only("session", text, ids)
})

/** Whether the program or a server made the id of a session. One that a person gave, such as `trip`, is no beginning of another, such as `trip-2`. */
const isMade = (sessionId: string): boolean =>
  /^[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/.test(sessionId)

/** Whether a text is the beginning of the id that the program made for a session. */
export const isSession = (sessionId: string, text: string): boolean =>
  isMade(sessionId) && sessionId.startsWith(text)

/** Whether a text is the beginning of the id of a run, and no whole one: `run_a_1` is no beginning of `run_a_12`. */
export const isRun = (runId: string, text: string): boolean =>
  /^(?:run_)?[^_]+_?$/.test(text) && (runId.startsWith(text) || runId.startsWith(`run_${text}`))

interface Candidate {
  readonly id: string
  readonly title: string
}

/** The most candidates that a failure names. */
const maxNamed = 5

/** The id of the only candidate. */
export const only = (
  kind: "run" | "session",
  text: string,
  candidates: ReadonlyArray<Candidate>
): Effect.Effect<string, UsageError> => {
  const [first, ...others] = candidates
  if (first !== undefined && others.length === 0) return Effect.succeed(first.id)
  const names = candidates.slice(0, maxNamed).map(({ id, title }) => `${id} (${Inert.line(title, 60)})`)
  const more = candidates.length > maxNamed ? ` and ${candidates.length - maxNamed} more` : ""
  const detail =
    first === undefined
      ? `There is no ${kind} ${JSON.stringify(text)}.`
      : `The ids of several ${kind}s begin with ${JSON.stringify(text)}: ${names.join(", ")}${more}.`
  return Effect.fail(new UsageError({ detail }))
}

/** All pages of a list. */
export const all = (store: Service, page: ListOptions): Effect.Effect<ReadonlyArray<Summary>, SessionError> =>
  Effect.flatMap(store.list(page), ({ items, nextCursor }) =>
    nextCursor === undefined
      ? Effect.succeed(items)
      : Effect.map(all(store, { ...page, cursor: nextCursor }), (more) => [...items, ...more])
  )

/** The fewest characters of an id that a list shows. */
const minShown = 8

/** The beginning of each id by which it differs from the others. */
export const shortened = (ids: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const sorted = [...new Set(ids)].toSorted()
  const common = (one: string, other = "") => {
    let length = 0
    while (length < one.length && one[length] === other[length]) length++
    return length
  }
  return new Map(
    sorted.map((id, index) => {
      const differs = Math.max(common(id, sorted[index - 1]), common(id, sorted[index + 1])) + 1
      return [id, isMade(id) ? id.slice(0, Math.max(minShown, differs)) : id]
    })
  )
}
