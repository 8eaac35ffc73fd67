/**
 * Keeps artifacts as files.
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
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import { Artifact, ArtifactNotFound, ArtifactStore, ArtifactStoreFailed } from "./ArtifactStore.ts"

/**
 * Keeps each artifact in a file of its own, as JSON.
 *
 * **Details**
 *
 * The file of an artifact is `<id>.json` in `directory`, which is made when it is first needed. Only the user of the process can
 * read it (mode 0600, directories 0700). It is written under another name and then renamed, so that a reader finds it whole or not at
 * all. A killed process may leave a file `.….tmp`. Nothing removes old
 * files but `retain`.
 *
 * **Example** (Keeping artifacts in a folder)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { ArtifactStore, FileArtifactStore } from "effect-agent/artifacts"
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   const directory = yield* files.makeTempDirectoryScoped()
 *   const text = Effect.gen(function* () {
 *     const store = yield* ArtifactStore.ArtifactStore
 *     const call = { runId: "run_1", toolCallId: "call_1", toolName: "log", mediaType: "text/plain" }
 *     yield* store.put({ id: "log-1", ...call, text: "all is well" })
 *     return (yield* store.get("log-1")).text
 *   })
 *   console.log(yield* Effect.provide(text, FileArtifactStore.layer({ directory })))
 *   console.log(yield* files.readDirectory(directory))
 * }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
 *
 * await Effect.runPromise(program)
 * // => all is well
 * // => [ 'log-1.json' ]
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: {
  readonly directory: string
}): Layer.Layer<ArtifactStore, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    ArtifactStore,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const fileOf = (id: string) => path.join(options.directory, `${id}.json`)
      const put = (artifact: Artifact) => {
        const temporary = path.join(options.directory, `.${artifact.id}-${crypto.randomUUID()}.tmp`)
        return Effect.gen(function* () {
          const json = yield* encode(artifact)
          yield* files.makeDirectory(options.directory, { recursive: true, mode: 0o700 })
          yield* files.writeFileString(temporary, json, { flag: "wx", mode: 0o600 })
          yield* files.rename(temporary, fileOf(artifact.id))
        }).pipe(Effect.onError(() => Effect.ignore(files.remove(temporary, { force: true }))))
      }
      return {
        put: (artifact: Artifact) =>
          isSafe(artifact.id)
            ? Effect.mapError(put(artifact), (error) => failed("put", artifact.id, error))
            : Effect.fail(unsafe(artifact.id)),
        get: (id: string) =>
          isSafe(id)
            ? Effect.flatMap(files.readFileString(fileOf(id)), decode).pipe(
                Effect.mapError((error) =>
                  isMissing(error) ? new ArtifactNotFound({ artifactId: id }) : failed("get", id, error)
                )
              )
            : Effect.fail(new ArtifactNotFound({ artifactId: id })),
        remove: (id: string) =>
          isSafe(id)
            ? Effect.mapError(files.remove(fileOf(id), { force: true }), (error) =>
                failed("remove", id, error)
              )
            : Effect.void
      }
    })
  )

const json = Schema.fromJsonString(Artifact)
const encode = Schema.encodeEffect(json)
const decode = Schema.decodeEffect(json)

/** A model writes ids: no other id may become part of a path. */
const isSafe = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(id)

const unsafe = (artifactId: string) =>
  new ArtifactStoreFailed({
    operation: "put",
    artifactId,
    detail: "an id has 1 to 100 letters, digits, _ and -, and begins with a letter or a digit"
  })

const isMissing = (error: PlatformError | Schema.SchemaError): boolean =>
  error._tag === "PlatformError" && error.reason._tag === "NotFound"

const failed = (
  operation: ArtifactStoreFailed["operation"],
  artifactId: string,
  error: PlatformError | Schema.SchemaError
) =>
  new ArtifactStoreFailed({
    operation,
    artifactId,
    detail: error._tag === "PlatformError" ? error.message : "its file does not hold an artifact"
  })

/**
 * The bounds of the artifacts that a directory keeps.
 *
 * @category options
 * @since 0.2.0
 */
export interface Retention {
  /** The longest time since an artifact was written. Default: no bound. */
  readonly maxAge?: Duration.Input
  /** The most artifacts. Default: no bound. */
  readonly maxCount?: number
  /** The most bytes of all files together. Default: no bound. */
  readonly maxBytes?: number
}

/**
 * Removes the artifacts of a directory that exceed a bound, the oldest first, and returns their ids.
 *
 * **Details**
 *
 * It also removes files that a killed process left more than an hour ago. A directory that does not exist has no artifacts.
 *
 * **Gotchas**
 *
 * `read_artifact` reports an artifact that was removed as not found, also in a conversation that still names it.
 *
 * **Example** (Keeping one artifact)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { FileArtifactStore } from "effect-agent/artifacts"
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   const directory = yield* files.makeTempDirectoryScoped()
 *   yield* files.writeFileString(`${directory}/log-1.json`, "{}")
 *   yield* files.utimes(`${directory}/log-1.json`, 1, 1)
 *   yield* files.writeFileString(`${directory}/log-2.json`, "{}")
 *   console.log(yield* FileArtifactStore.retain({ directory, maxCount: 1 }))
 * }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
 *
 * await Effect.runPromise(program) // => [ 'log-1' ]
 * ```
 *
 * @category filtering
 * @since 0.2.0
 */
export const retain = Effect.fnUntraced(function* ({
  directory,
  ...retention
}: { readonly directory: string } & Retention): Effect.fn.Return<
  ReadonlyArray<string>,
  PlatformError,
  FileSystem.FileSystem | Path.Path
> {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const now = yield* Clock.currentTimeMillis
  const names = yield* orMissing(files.readDirectory(directory), [])
  const found = yield* Effect.forEach(names, (name) =>
    orMissing(Effect.map(files.stat(path.join(directory, name)), kept(name)), [])
  )
  const surplus = excess(found.flat(), retention, now)
  yield* Effect.forEach(
    surplus,
    ({ name }) => orMissing(files.remove(path.join(directory, name)), undefined),
    {
      discard: true
    }
  )
  return surplus.flatMap(({ id }) => (id === undefined ? [] : [id]))
})

interface Kept {
  readonly name: string
  /** The id of its artifact; `undefined` for a file that was not finished. */
  readonly id: string | undefined
  readonly bytes: number
  readonly modified: number
}

/** The file of an artifact, whole or not. Others stay as they are. */
const kept =
  (name: string) =>
  ({ mtime, size, type }: FileSystem.File.Info): ReadonlyArray<Kept> => {
    const [, id] = /^(.+)\.json$/.exec(name) ?? []
    const isOurs = id === undefined ? /^\..+-[\da-f-]{36}\.tmp$/.test(name) : isSafe(id)
    if (type !== "File" || !isOurs) return []
    const modified = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
    return [{ name, id, bytes: Number(size), modified }]
  }

/** The files that exceed a bound, the oldest first. */
const excess = (
  files: ReadonlyArray<Kept>,
  { maxAge = Duration.infinity, maxBytes = Infinity, maxCount = Infinity }: Retention,
  now: number
): ReadonlyArray<Kept> => {
  const oldest = now - Duration.toMillis(maxAge)
  const newest = files.toSorted((a, b) => b.modified - a.modified || (a.name < b.name ? 1 : -1))
  const left = newest.filter(({ id, modified }) => id === undefined && modified < now - unfinished)
  let sum = 0
  const surplus = newest
    .filter(({ id }) => id !== undefined)
    .filter(({ bytes, modified }, index) => {
      sum += bytes
      return index >= maxCount || modified < oldest || sum > maxBytes
    })
  return [...left, ...surplus.reverse()]
}

/** Milliseconds after which the process that wrote a file is gone. */
const unfinished = 3_600_000

const orMissing = <A, R>(effect: Effect.Effect<A, PlatformError, R>, missing: A) =>
  Effect.catchIf(effect, isMissing, () => Effect.succeed(missing))
