/**
 * A store of the logs of runs in files: one file for each run, in a folder for each session.
 *
 * **Details**
 *
 * A log has the name `RUN.open.jsonl` until its run has ended, then `RUN.jsonl`. `RUN.starts.json` counts the starts of a run that has
 * not made progress since. Files have the mode 0600 and folders 0700. Several processes may use a folder, such as the old and the new one
 * of a deploy: the lock of a session says which of them writes the logs of its runs.
 *
 * @since 0.2.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as SessionName from "../sessions/SessionName.ts"
import {
  type Append,
  ended,
  missing,
  type RunKey,
  RunLogError,
  RunLogStore,
  type Service,
  type StoredRun
} from "./RunLogStore.ts"
import { type Starts, nextStarts, noStarts, newestPage, restingStarts } from "./internal/RunState.ts"
import type { PlatformError } from "effect/PlatformError"
import * as LineReader from "../sessions/LineReader.ts"

/**
 * The options of a store in files.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The folder that has a folder for each session. */
  readonly directory: string
}

/**
 * Makes a layer of a store in files.
 *
 * **Example** (Keeping logs in a folder)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { JsonlRunLogStore, RunLogStore } from "effect-agent/server"
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   const directory = yield* files.makeTempDirectoryScoped()
 *   const store = RunLogStore.RunLogStore.use((store) => store.find("run_1"))
 *   return yield* Effect.provide(store, JsonlRunLogStore.layer({ directory }))
 * }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
 *
 * console.log(await Effect.runPromise(program)) // => undefined
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = ({
  directory
}: Options): Layer.Layer<RunLogStore, RunLogError, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    RunLogStore,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const paths = yield* Path.Path
      const store = new Files(directory, files, paths)
      yield* store.index
      return store.service
    })
  )

/** A log whose file the folder has. */
interface Known extends RunKey {
  isOpen: boolean
  starts: Starts
  /** The number of those in this process who have it open. Its file does not count meanwhile. */
  holders: number
}

/** Milliseconds after which a folder that has changed has another time. */
const tick = 2000

const openEnd = ".open.jsonl"
const end = ".jsonl"
const startsEnd = ".starts.json"
const keysFile = "keys.jsonl"
const isName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/.test(name)

const StartsFile = Schema.fromJsonString(
  Schema.Struct({
    v: Schema.Literal(1),
    attempts: Schema.Int,
    parked: Schema.optionalKey(Schema.String),
    isResting: Schema.optionalKey(Schema.Boolean)
  })
)
const decodeStarts = Schema.decodeUnknownOption(StartsFile)

class Files {
  private readonly known = new Map<string, Known>()
  /** The times of the folders whose names were read. */
  private readonly read = new Map<string, number>()
  private readonly directory: string
  private readonly files: FileSystem.FileSystem
  private readonly paths: Path.Path

  constructor(directory: string, files: FileSystem.FileSystem, paths: Path.Path) {
    this.directory = directory
    this.files = files
    this.paths = paths
  }

  /** Reads the names of all logs, and the starts of those that are open, in the folders that have changed. */
  readonly index = Effect.gen({ self: this }, function* () {
    const names = yield* this.names(this.directory)
    const sessions = names.flatMap((name) => SessionName.idOf(name) ?? [])
    yield* Effect.forEach(sessions, (sessionId) => this.indexChanged(sessionId), {
      concurrency: 16,
      discard: true
    })
  })

  private indexChanged(sessionId: string): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const now = yield* Clock.currentTimeMillis
      const modified = yield* Effect.option(this.files.stat(this.folder(sessionId)))
      const time = Option.getOrUndefined(Option.flatMap(modified, ({ mtime }) => mtime))?.getTime() ?? now
      if (this.read.get(sessionId) === time) return
      yield* this.indexOne(sessionId)
      // A change of the same moment would not be seen.
      if (time < now - tick) this.read.set(sessionId, time)
    })
  }

  /** Reads the names of the logs of a session. */
  private indexOne(sessionId: string): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const found = new Map<string, boolean>()
      for (const name of yield* this.names(this.folder(sessionId))) {
        const isOpen = name.endsWith(openEnd)
        if (name === keysFile || !name.endsWith(end)) continue
        found.set(name.slice(0, isOpen ? -openEnd.length : -end.length), isOpen)
      }
      for (const log of this.known.values())
        if (log.sessionId === sessionId && log.holders === 0 && !found.has(log.runId))
          this.known.delete(log.runId)
      for (const [runId, isOpen] of found) {
        const starts = isOpen ? yield* this.startsOf({ runId, sessionId }) : noStarts
        const log = this.known.get(runId)
        if (log === undefined) this.known.set(runId, { runId, sessionId, isOpen, starts, holders: 0 })
        else if (log.holders === 0) Object.assign(log, { isOpen, starts })
      }
    })
  }

  /** A log as the folder has it now. */
  private find(runId: string): Effect.Effect<Known | undefined> {
    return Effect.gen({ self: this }, function* () {
      if (!isName(runId)) return undefined
      const log = this.known.get(runId)
      if (log === undefined) yield* this.index
      else if (log.holders === 0) yield* this.indexOne(log.sessionId)
      return this.known.get(runId)
    })
  }

  /** The names in a folder, none if it is not one. */
  private names(folder: string) {
    return Effect.orElseSucceed(this.files.readDirectory(folder), () => [])
  }

  private folder(sessionId: string): string {
    return this.paths.join(this.directory, SessionName.of(sessionId))
  }

  private path({ runId, sessionId }: RunKey, isOpen: boolean): string {
    return this.paths.join(this.folder(sessionId), `${runId}${isOpen ? openEnd : end}`)
  }

  private startsPath({ runId, sessionId }: RunKey): string {
    return this.paths.join(this.folder(sessionId), `${runId}${startsEnd}`)
  }

  private startsOf(run: RunKey) {
    return Effect.map(
      Effect.option(this.files.readFileString(this.startsPath(run))),
      (text): Starts =>
        Option.match(Option.flatMap(text, decodeStarts), {
          onNone: () => noStarts,
          onSome: ({ attempts, isResting = false, parked }) => ({ attempts, parked, isResting })
        })
    )
  }

  /** Keeps the starts of a log in a file, unless there are none. */
  private setStarts(log: Known, starts: Starts): Effect.Effect<void, RunLogError> {
    const { attempts, isResting, parked } = starts
    const path = this.startsPath(log)
    const isNone = attempts === 0 && parked === undefined && !isResting
    const text = JSON.stringify({ v: 1, attempts, parked, ...(isResting ? { isResting } : {}) })
    const kept = isNone
      ? this.files.remove(path, { force: true })
      : this.files.writeFileString(path, text, { mode: 0o600 })
    return failing(
      Effect.andThen(
        kept,
        Effect.sync(() => void (log.starts = starts))
      )
    )
  }

  /** Changes the starts of a log, if it is there and the change is one. */
  private change(runId: string, changed: (starts: Starts) => Starts) {
    return Effect.suspend(() => {
      const log = this.known.get(runId)
      if (log === undefined) return Effect.void
      const starts = changed(log.starts)
      const isSame =
        starts.attempts === log.starts.attempts &&
        starts.parked === log.starts.parked &&
        starts.isResting === log.starts.isResting
      return isSame ? Effect.void : this.setStarts(log, starts)
    })
  }

  private open(run: RunKey, first?: string): Effect.Effect<Append, RunLogError, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const { runId, sessionId } = run
      if (!isName(runId) || !SessionName.isName(sessionId)) {
        return yield* new RunLogError({ detail: `no file can have the name ${JSON.stringify(runId)}` })
      }
      const known = this.known.get(runId)
      if (known?.holders === 0) yield* this.indexOne(sessionId)
      if (this.known.get(runId)?.isOpen === false) return yield* ended(run)
      if (this.known.get(runId) === undefined) {
        const lines = first === undefined ? [] : [first]
        yield* appendLines(this.files, this.folder(sessionId), this.path(run, true), lines)
      }
      const none = { runId, sessionId, isOpen: true, starts: noStarts, holders: 0 }
      const log: Known = this.known.get(runId) ?? none
      this.known.set(runId, log)
      yield* Effect.acquireRelease(
        Effect.sync(() => void log.holders++),
        () => Effect.sync(() => void log.holders--)
      )
      return () => Effect.void
    })
  }

  private end(run: RunKey) {
    return Effect.suspend(() => {
      const log = this.known.get(run.runId)
      if (log === undefined || !log.isOpen) return Effect.void
      log.isOpen = false
      const renamed = failing(this.files.rename(this.path(run, true), this.path(run, false)))
      return Effect.andThen(
        Effect.tapError(renamed, () => Effect.sync(() => void (log.isOpen = true))),
        this.change(run.runId, () => noStarts)
      )
    })
  }

  /** A log with the times of its file. */
  private stored({ isOpen, runId, sessionId, starts }: Known): Effect.Effect<StoredRun> {
    const timeOf = (time: Option.Option<Date> | undefined) =>
      time === undefined ? 0 : Option.match(time, { onNone: () => 0, onSome: (date) => date.getTime() })
    const stat = Effect.option(this.files.stat(this.path({ runId, sessionId }, isOpen)))
    return Effect.map(stat, (found) => {
      const info = Option.getOrUndefined(found)
      const modified = timeOf(info?.mtime)
      const created = timeOf(info?.birthtime) || modified
      return { runId, sessionId, created, ended: isOpen ? undefined : modified, ...starts, range: {} }
    })
  }

  private list(isWanted: (log: Known) => boolean): Effect.Effect<ReadonlyArray<StoredRun>> {
    return Effect.map(
      Effect.suspend(() =>
        Effect.forEach([...this.known.values()].filter(isWanted), (log) => this.stored(log), {
          concurrency: 16
        })
      ),
      (runs) => runs.toSorted((left, right) => left.created - right.created)
    )
  }

  private begun(run: RunKey): Effect.Effect<StoredRun, RunLogError> {
    return Effect.suspend(() => {
      const log = this.known.get(run.runId)
      if (log === undefined) return Effect.fail(missing(run))
      return Effect.andThen(
        this.change(run.runId, nextStarts),
        Effect.suspend(() => this.stored(log))
      )
    })
  }

  private delete(run: RunKey): Effect.Effect<void, RunLogError> {
    return Effect.suspend(() => {
      this.known.delete(run.runId)
      if (!isName(run.runId) || !SessionName.isName(run.sessionId)) return Effect.void
      const paths = [this.path(run, true), this.path(run, false), this.startsPath(run)]
      return failing(
        Effect.forEach(paths, (path) => this.files.remove(path, { force: true }), { discard: true })
      )
    })
  }

  private remove(sessionId: string): Effect.Effect<void, RunLogError> {
    return Effect.suspend(() => {
      for (const { runId } of [...this.known.values()].filter((log) => log.sessionId === sessionId))
        this.known.delete(runId)
      if (!SessionName.isName(sessionId)) return Effect.void
      return failing(this.files.remove(this.folder(sessionId), { recursive: true, force: true }))
    })
  }

  private retain(maxAge: Duration.Input) {
    return Effect.gen({ self: this }, function* () {
      const before = (yield* Clock.currentTimeMillis) - Duration.toMillis(maxAge)
      const runs = yield* this.list(({ isOpen }) => !isOpen)
      const old = runs.filter(({ ended = Infinity }) => ended <= before)
      yield* Effect.forEach(old, (run) => this.delete(run), { discard: true })
      return old
    })
  }

  /** The lines of a log. Another process may end it meanwhile. */
  private lines(run: RunKey): Effect.Effect<ReadonlyArray<string>, RunLogError> {
    return Effect.gen({ self: this }, function* () {
      const isOpen = this.known.get(run.runId)?.isOpen === true
      const lines = yield* readLines(this.files, this.path(run, isOpen))
      return lines.length > 0 ? lines : yield* readLines(this.files, this.path(run, !isOpen))
    })
  }

  private addKey(sessionId: string, line: string) {
    const folder = this.folder(sessionId)
    return appendLines(this.files, folder, this.paths.join(folder, keysFile), [line])
  }

  get service(): Service {
    return {
      inSessions: true,
      open: (run, first) => this.open(run, first),
      end: (run) => this.end(run),
      read: (run) => this.lines(run),
      find: (runId) =>
        Effect.flatMap(this.find(runId), (log) => (log === undefined ? Effect.undefined : this.stored(log))),
      list: (sessionId) =>
        Effect.andThen(
          this.indexOne(sessionId),
          this.list((log) => log.sessionId === sessionId)
        ),
      active: (sessionId) =>
        Effect.andThen(
          this.indexOne(sessionId),
          this.list((log) => log.sessionId === sessionId && log.isOpen)
        ),
      unended: Effect.andThen(
        this.index,
        this.list(({ isOpen }) => isOpen)
      ),
      newest: (options) =>
        Effect.andThen(
          this.index,
          Effect.map(
            this.list(({ isOpen }) => isOpen || options.isUnended !== true),
            (runs) => newestPage(runs, options)
          )
        ),
      begun: (run) => this.begun(run),
      progressed: ({ runId }) => this.change(runId, (starts) => ({ ...starts, attempts: 0 })),
      rest: ({ runId }) => this.change(runId, restingStarts),
      park: ({ runId }, parked) => this.change(runId, (starts) => ({ ...starts, parked })),
      unpark: (runId) => this.change(runId, () => noStarts),
      addKey: (sessionId, line) => this.addKey(sessionId, line),
      keys: (sessionId) =>
        SessionName.isName(sessionId)
          ? readLines(this.files, this.paths.join(this.folder(sessionId), keysFile))
          : Effect.succeed([]),
      remove: (sessionId) => this.remove(sessionId),
      delete: (run) => this.delete(run),
      retain: (maxAge) => this.retain(maxAge)
    }
  }
}

// ───────────────────────── Lines of files

const failing = <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<A, RunLogError, R> =>
  Effect.mapError(effect, (error) => new RunLogError({ detail: LineReader.detailOf(error) }))

const encoder = new TextEncoder()

/**
 * Appends lines to a file in a folder, and makes both if they are not there. Begins with a line feed if the file has lines, since a crash
 * may have cut the last one.
 */
const appendLines = (
  files: FileSystem.FileSystem,
  folder: string,
  path: string,
  lines: ReadonlyArray<string>
): Effect.Effect<void, RunLogError> => {
  const appended = Effect.gen(function* () {
    yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
    const file = yield* files.open(path, { flag: "a", mode: 0o600 })
    const start = Number((yield* file.stat).size) > 0 ? "\n" : ""
    if (lines.length > 0) yield* file.writeAll(encoder.encode(`${start}${lines.join("\n")}\n`))
  })
  return failing(Effect.scoped(appended))
}

/** Reads the lines of a file; none if it is not there. */
const readLines = Effect.fnUntraced(function* (files: FileSystem.FileSystem, path: string) {
  if (!(yield* failing(files.exists(path)))) return []
  const text = yield* failing(files.readFileString(path))
  return text.split("\n").filter((line) => line !== "")
})
