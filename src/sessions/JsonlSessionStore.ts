/**
 * A store of sessions in files: one file for each session, with one entry as JSON on each line.
 *
 * **Details**
 *
 * A file has the name `2026-11-22T22-57-00-000Z_ID.jsonl`, by the time at which the session began, in UTC. It only grows: the store
 * never changes or removes a byte of it. A lock file beside it, with `.lock` after its name, names the process that may write. The lock
 * of a process that ended counts for nothing.
 *
 * A line that a crash cut stays as a line without meaning. A reader skips it, reports it, and reads the lines behind it.
 *
 * **Gotchas**
 *
 * Locks work between the processes of one machine, not on a folder that machines share.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Stream from "effect/Stream"
import { JsonlStorage } from "./internal/JsonlStorage.ts"
import type { SessionStorage } from "./SessionStorage.ts"
import * as SessionStore from "./SessionStore.ts"

/**
 * The place of the files, and the safety of a write.
 *
 * @category options
 * @since 0.2.0
 */
export interface Files {
  /** The folder that holds the files. Default: folders in `root`. */
  readonly directory?: string
  /** The folder that has a folder for each working directory, named by `SessionHome.folderOf`. Default: `directory`, or `"."`. */
  readonly root?: string
  /**
   * Whether each append waits until the disk has it. Default `"never"`, with which entries survive the end of the process, but not a
   * loss of power.
   */
  readonly fsync?: "never" | "always"
}

/**
 * The options of a store in files.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options extends SessionStore.Options, Files {}

/**
 * Makes a storage in files.
 *
 * **Example** (Reading sessions of another store)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { JsonlSessionStore } from "effect-agent/sessions"
 *
 * const program = Effect.gen(function* () {
 *   const storage = yield* JsonlSessionStore.storage({ directory: "/no/such/folder" })
 *   return yield* storage.list()
 * }).pipe(Effect.provide(NodeServices.layer))
 *
 * console.log(await Effect.runPromise(program)) // => []
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const storage = (
  options: Files
): Effect.Effect<SessionStorage, never, FileSystem.FileSystem | Path.Path> =>
  Effect.map(Effect.context<FileSystem.FileSystem | Path.Path>(), (all) => {
    const files = new JsonlStorage(options)
    // Nothing else of the context, above all not its scope.
    const context = Context.pick(FileSystem.FileSystem, Path.Path)(all)
    return {
      create: (session) => Effect.provideContext(files.create(session), context),
      open: (sessionId) => Effect.provideContext(files.open(sessionId), context),
      lines: (sessionId) => Stream.provideContext(files.lines(sessionId), context),
      find: (sessionId) => Effect.provideContext(files.find(sessionId), context),
      list: (where) => Effect.provideContext(files.list(where?.cwd), context),
      remove: (sessionId) => Effect.provideContext(files.remove(sessionId), context)
    }
  })

/**
 * Makes a layer of a store in files.
 *
 * **Example** (Keeping a conversation in a folder)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { Agent } from "effect-agent"
 * import { JsonlSessionStore, SessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const ask = Effect.gen(function* () {
 *   const store = yield* SessionStore.SessionStore
 *   const session = yield* store.create({ sessionId: "trip" })
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini", session })
 *   yield* agent.prompt("Do I need a coat in Oslo?")
 *   const { view } = yield* store.read("trip")
 *   console.log(view.messages.length)
 * }).pipe(Effect.scoped)
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   const directory = yield* files.makeTempDirectoryScoped()
 *   yield* Effect.provide(ask, JsonlSessionStore.layer({ directory }))
 * }).pipe(
 *   Effect.scoped,
 *   Effect.provide([ScriptedProvider.layer([ScriptedProvider.text("Yes.")]), NodeServices.layer])
 * )
 *
 * await Effect.runPromise(program) // => 2
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (
  options: Options
): Layer.Layer<SessionStore.SessionStore, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    SessionStore.SessionStore,
    Effect.map(storage(options), (files) => SessionStore.make(files, options))
  )
