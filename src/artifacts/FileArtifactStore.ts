/**
 * Keeps artifacts as files.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
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
 * all. A killed process may leave a file `.….tmp`. Nothing removes old files.
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
            : Effect.fail(new ArtifactNotFound({ artifactId: id }))
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

const failed = (operation: "put" | "get", artifactId: string, error: PlatformError | Schema.SchemaError) =>
  new ArtifactStoreFailed({
    operation,
    artifactId,
    detail: error._tag === "PlatformError" ? error.message : "its file does not hold an artifact"
  })
