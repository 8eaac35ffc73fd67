/**
 * A store of the logs of runs in files: one file for each run, in a folder for each session.
 *
 * **Details**
 *
 * A log has the name `RUN.open.jsonl` until its run has ended, then `RUN.jsonl`. Files have the mode 0600 and folders 0700.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import { type RunKey, RunLogError, RunLogStore, type Service } from "./RunLogStore.ts"

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
      yield* failing(store.index)
      return store.service
    })
  )

const failing = <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<A, RunLogError, R> =>
  Effect.mapError(effect, ({ message }) => new RunLogError({ detail: message }))

interface Known extends RunKey {
  isOpen: boolean
}

const openEnd = ".open.jsonl"
const end = ".jsonl"
const keysFile = "keys.jsonl"
const isName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/.test(name)
const encoder = new TextEncoder()

class Files {
  private readonly known = new Map<string, Known>()
  private readonly directory: string
  private readonly files: FileSystem.FileSystem
  private readonly paths: Path.Path

  constructor(directory: string, files: FileSystem.FileSystem, paths: Path.Path) {
    this.directory = directory
    this.files = files
    this.paths = paths
  }

  /** Reads the names of all logs. */
  readonly index = Effect.gen({ self: this }, function* () {
    for (const sessionId of yield* this.names(this.directory)) {
      for (const name of yield* this.names(this.folder(sessionId))) {
        const isOpen = name.endsWith(openEnd)
        if (name === keysFile || !name.endsWith(end)) continue
        const runId = name.slice(0, isOpen ? -openEnd.length : -end.length)
        this.known.set(runId, { runId, sessionId, isOpen })
      }
    }
  })

  /** The names in a folder, none if it is not one. */
  private names(folder: string) {
    return Effect.orElseSucceed(this.files.readDirectory(folder), () => [])
  }

  private folder(sessionId: string): string {
    return this.paths.join(this.directory, sessionId)
  }

  private path({ runId, sessionId }: RunKey, isOpen: boolean): string {
    return this.paths.join(this.folder(sessionId), `${runId}${isOpen ? openEnd : end}`)
  }

  private open(run: RunKey) {
    return Effect.gen({ self: this }, function* () {
      const { runId, sessionId } = run
      if (!isName(runId) || !isName(sessionId)) {
        return yield* new RunLogError({ detail: `no file can have the name ${JSON.stringify(runId)}` })
      }
      const append = yield* this.appending(sessionId, this.path(run, true))
      this.known.set(runId, { runId, sessionId, isOpen: true })
      return append
    })
  }

  /** Opens a file. Begins with a line feed if it has lines, since a crash may have cut the last one. */
  private appending(
    sessionId: string,
    path: string
  ): Effect.Effect<
    (lines: ReadonlyArray<string>) => Effect.Effect<void, RunLogError>,
    RunLogError,
    Scope.Scope
  > {
    return failing(
      Effect.gen({ self: this }, function* () {
        const { files } = this
        yield* files.makeDirectory(this.folder(sessionId), { recursive: true, mode: 0o700 })
        const file = yield* files.open(path, { flag: "a", mode: 0o600 })
        let isCut = Number((yield* file.stat).size) > 0
        return (lines: ReadonlyArray<string>) => {
          if (lines.length === 0) return Effect.void
          const text = `${isCut ? "\n" : ""}${lines.join("\n")}\n`
          // Until it has succeeded: a write may stop within a line.
          isCut = true
          const done = Effect.sync(() => void (isCut = false))
          return failing(Effect.andThen(file.writeAll(encoder.encode(text)), done))
        }
      })
    )
  }

  private read(path: string) {
    return Effect.gen({ self: this }, function* () {
      if (!(yield* failing(this.files.exists(path)))) return []
      const text = yield* failing(this.files.readFileString(path))
      return text.split("\n").filter((line) => line !== "")
    })
  }

  get service(): Service {
    const { files, known } = this
    const all = () => [...known.values()]
    return {
      open: (run) => this.open(run),
      end: (run) =>
        Effect.suspend(() => {
          const log = known.get(run.runId)
          if (log === undefined || !log.isOpen) return Effect.void
          log.isOpen = false
          return failing(files.rename(this.path(run, true), this.path(run, false)))
        }),
      read: (run) => Effect.suspend(() => this.read(this.path(run, known.get(run.runId)?.isOpen === true))),
      find: (runId) => Effect.sync(() => known.get(runId)),
      list: (sessionId) => Effect.sync(() => all().filter((log) => log.sessionId === sessionId)),
      unended: Effect.sync(() => all().filter(({ isOpen }) => isOpen)),
      addKey: (sessionId, line) =>
        Effect.scoped(
          Effect.flatMap(
            this.appending(sessionId, this.paths.join(this.folder(sessionId), keysFile)),
            (append) => append([line])
          )
        ),
      keys: (sessionId) =>
        isName(sessionId) ? this.read(this.paths.join(this.folder(sessionId), keysFile)) : Effect.succeed([]),
      remove: (sessionId) =>
        Effect.suspend(() => {
          for (const { runId } of all().filter((log) => log.sessionId === sessionId)) known.delete(runId)
          if (!isName(sessionId)) return Effect.void
          return failing(files.remove(this.folder(sessionId), { recursive: true, force: true }))
        })
    }
  }
}
