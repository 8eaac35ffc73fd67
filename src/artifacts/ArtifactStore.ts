/**
 * The service that keeps the whole texts of large tool results.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Trust } from "../Message.ts"
import { TaggedError } from "../internal/errors.ts"

/**
 * The whole text of a tool result.
 *
 * @category models
 * @since 0.2.0
 */
export const Artifact = Schema.Struct({
  /** The id, unique among all artifacts: letters, digits, `_` and `-`. */
  id: Schema.String,
  /** The id of the run. */
  runId: Schema.String,
  /** The id of the call. */
  toolCallId: Schema.String,
  /** The name of the tool. */
  toolName: Schema.String,
  /** The media type of the text: `"text/plain"` or `"application/json"`. */
  mediaType: Schema.String,
  /** The text. */
  text: Schema.String,
  /** Whether the application may trust the text. Default `"trusted"`. */
  trust: Schema.optionalKey(Trust)
})
export interface Artifact extends Schema.Schema.Type<typeof Artifact> {}

/**
 * The store has no artifact of the id, or has it no longer.
 *
 * @category errors
 * @since 0.2.0
 */
export class ArtifactNotFound extends TaggedError<ArtifactNotFound>()("ArtifactNotFound", {
  /** The id. */
  artifactId: Schema.String
}) {
  override get message(): string {
    return `There is no artifact ${JSON.stringify(this.artifactId.slice(0, 100))}`
  }
}

/**
 * The store could not write or read an artifact.
 *
 * @category errors
 * @since 0.2.0
 */
export class ArtifactStoreFailed extends TaggedError<ArtifactStoreFailed>()("ArtifactStoreFailed", {
  /** The function of the store that failed. */
  operation: Schema.Literals(["put", "get", "remove"]),
  /** The id of the artifact. */
  artifactId: Schema.String,
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return `Artifact ${this.artifactId} could not be ${participles[this.operation]}: ${this.detail}`
  }
}

const participles = { put: "stored", get: "read", remove: "removed" }

/**
 * The service that keeps artifacts.
 *
 * **Details**
 *
 * `put` writes an artifact, whole or not at all. `get` returns it. A store may drop old artifacts: `get` then fails with
 * `ArtifactNotFound`. The id of `get` comes from a model: a store must not use it as a path or a query before it has checked it.
 *
 * **Example** (Storing a text)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ArtifactStore } from "effect-agent/artifacts"
 *
 * const program = Effect.gen(function* () {
 *   const store = yield* ArtifactStore.ArtifactStore
 *   const call = { runId: "run_1", toolCallId: "call_1", toolName: "log", mediaType: "text/plain" }
 *   yield* store.put({ id: "log-1", ...call, text: "all is well" })
 *   return (yield* store.get("log-1")).text
 * }).pipe(Effect.provide(ArtifactStore.layerMemory()))
 *
 * console.log(await Effect.runPromise(program)) // => all is well
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class ArtifactStore extends Context.Service<
  ArtifactStore,
  {
    /** Writes an artifact. An artifact with the same id is replaced. */
    readonly put: (artifact: Artifact) => Effect.Effect<void, ArtifactStoreFailed>
    /** Returns the artifact of an id. */
    readonly get: (id: string) => Effect.Effect<Artifact, ArtifactNotFound | ArtifactStoreFailed>
    /** Removes the artifact of an id, if there is one. */
    readonly remove: (id: string) => Effect.Effect<void, ArtifactStoreFailed>
  }
>()("effect-agent/artifacts/ArtifactStore") {}

/**
 * Keeps artifacts in memory, for as long as the layer lives.
 *
 * **Details**
 *
 * `maxCharacters`, default 50,000,000, is the number of characters that it keeps. It drops the oldest artifacts beyond that, and
 * fails with `ArtifactStoreFailed` for one that is larger.
 *
 * **Example** (Dropping the oldest artifact)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ArtifactStore } from "effect-agent/artifacts"
 *
 * const program = Effect.gen(function* () {
 *   const store = yield* ArtifactStore.ArtifactStore
 *   const call = { runId: "run_1", toolCallId: "call_1", toolName: "log", mediaType: "text/plain" }
 *   yield* store.put({ id: "one", ...call, text: "12345" })
 *   yield* store.put({ id: "two", ...call, text: "67890" })
 *   return yield* Effect.flip(store.get("one"))
 * }).pipe(Effect.provide(ArtifactStore.layerMemory({ maxCharacters: 8 })))
 *
 * console.log((await Effect.runPromise(program)).message) // => There is no artifact "one"
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layerMemory = (options?: { readonly maxCharacters?: number }): Layer.Layer<ArtifactStore> =>
  Layer.sync(ArtifactStore, () => {
    const max = options?.maxCharacters ?? 50_000_000
    const artifacts = new Map<string, Artifact>()
    let size = 0
    const remove = (id: string) => {
      size -= artifacts.get(id)?.text.length ?? 0
      artifacts.delete(id)
    }
    return {
      put: (artifact) =>
        Effect.suspend(() => {
          const { id, text } = artifact
          const { length } = text
          if (length > max) {
            const detail = `it has ${length} characters, and the store keeps ${max}`
            return new ArtifactStoreFailed({ operation: "put", artifactId: id, detail })
          }
          remove(id)
          artifacts.set(id, artifact)
          size += length
          for (const oldest of artifacts.keys()) {
            if (size <= max) break
            remove(oldest)
          }
          return Effect.void
        }),
      get: (id) =>
        Effect.suspend(() => {
          const artifact = artifacts.get(id)
          return artifact === undefined ? new ArtifactNotFound({ artifactId: id }) : Effect.succeed(artifact)
        }),
      remove: (id) => Effect.sync(() => remove(id))
    }
  })

/**
 * Makes a store that keeps what a function leaves of each artifact, such as a text without secrets.
 *
 * **Details**
 *
 * The model reads what is kept. Where the function throws, `put` fails with `ArtifactStoreFailed`.
 *
 * **Example** (Removing a secret)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { ArtifactStore } from "effect-agent/artifacts"
 *
 * const store = ArtifactStore.redacted((artifact) => ({
 *   ...artifact,
 *   text: artifact.text.replaceAll("hunter2", "[removed]")
 * })).pipe(Layer.provide(ArtifactStore.layerMemory()))
 *
 * const program = Effect.gen(function* () {
 *   const store = yield* ArtifactStore.ArtifactStore
 *   const call = { runId: "run_1", toolCallId: "call_1", toolName: "log", mediaType: "text/plain" }
 *   yield* store.put({ id: "log-1", ...call, text: "password: hunter2" })
 *   return (yield* store.get("log-1")).text
 * }).pipe(Effect.provide(store))
 *
 * console.log(await Effect.runPromise(program)) // => password: [removed]
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const redacted = (
  redact: (artifact: Artifact) => Artifact
): Layer.Layer<ArtifactStore, never, ArtifactStore> =>
  Layer.effect(
    ArtifactStore,
    Effect.map(ArtifactStore, (store) => ({
      ...store,
      put: (artifact) =>
        Effect.try({
          try: () => ({ ...redact(artifact), id: artifact.id }),
          catch: () =>
            new ArtifactStoreFailed({
              operation: "put",
              artifactId: artifact.id,
              detail: "the function that redacts it failed"
            })
        }).pipe(Effect.flatMap(store.put))
    }))
  )
