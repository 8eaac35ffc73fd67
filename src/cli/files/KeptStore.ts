/** Keeps versions of files beside a session, and the records of what calls have changed: in a folder of its own. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import { TaggedError } from "../../internal/errors.ts"
import * as Version from "./Version.ts"

/** The store could not write or read. */
export class KeepFailed extends TaggedError<KeepFailed>()("KeepFailed", {
  /** The reason in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return `Versions of files: ${this.detail}`
  }
}

/** The versions and records of one session. Each write is on the disk when it succeeds. */
export interface KeptStore {
  /** The records, one JSON object a line. A line that a crash has cut is none. */
  readonly lines: Effect.Effect<ReadonlyArray<string>, KeepFailed>
  readonly append: (line: string) => Effect.Effect<void, KeepFailed>
  /** The sizes of the contents by their hash. */
  readonly sizes: Effect.Effect<ReadonlyMap<string, number>, KeepFailed>
  readonly put: (hash: string, content: Uint8Array) => Effect.Effect<void, KeepFailed>
  readonly get: (hash: string) => Effect.Effect<Uint8Array, KeepFailed>
  readonly drop: (hash: string) => Effect.Effect<void, KeepFailed>
}

const failing = <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<A, KeepFailed, R> =>
  Effect.mapError(effect, ({ message }) => new KeepFailed({ detail: message }))

const isMissing = ({ reason }: PlatformError): boolean => reason._tag === "NotFound"

const records = "changes.jsonl"

/** Makes the store of a folder, which is made with the first write. */
export const inFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const at = (name: string) => paths.join(folder, name)
  const write = Effect.fnUntraced(function* (path: string, content: Uint8Array, flag: "a" | "wx") {
    const file = yield* files.open(path, { flag, mode: 0o600 })
    yield* file.writeAll(content)
    yield* file.sync
  }, Effect.scoped)
  const ready = files.makeDirectory(folder, { recursive: true, mode: 0o700 })
  const synced = Effect.provideService(Version.sync(folder), FileSystem.FileSystem, files)
  const store: KeptStore = {
    lines: files.readFileString(at(records)).pipe(
      Effect.catchIf(isMissing, () => Effect.succeed("")),
      Effect.map((text) => text.split("\n").filter((line) => line !== "")),
      failing
    ),
    append: (line) =>
      Effect.gen(function* () {
        yield* ready
        // A line begins with a line end: a crash may have cut the one before.
        yield* write(at(records), new TextEncoder().encode(`\n${line}\n`), "a")
        yield* synced
      }).pipe(failing),
    sizes: files.readDirectory(folder).pipe(
      Effect.catchIf(isMissing, () => Effect.succeed([])),
      Effect.flatMap((names) =>
        Effect.forEach(
          names.filter((name) => /^[0-9a-f]{64}$/.test(name)),
          (name) => Effect.map(files.stat(at(name)), ({ size }) => [name, Number(size)] as const),
          { concurrency: 16 }
        )
      ),
      Effect.map((sizes) => new Map(sizes)),
      failing
    ),
    put: (hash, content) => {
      const temporary = at(`.${crypto.randomUUID()}.tmp`)
      return Effect.gen(function* () {
        yield* ready
        yield* write(temporary, content, "wx")
        yield* files.rename(temporary, at(hash))
        yield* synced
      }).pipe(
        Effect.onError(() => Effect.ignore(files.remove(temporary, { force: true }))),
        Effect.uninterruptible,
        failing
      )
    },
    get: (hash) => failing(files.readFile(at(hash))),
    drop: (hash) => failing(files.remove(at(hash), { force: true }))
  }
  return store
})
