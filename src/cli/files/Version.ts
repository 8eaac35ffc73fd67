/** A version of a file, by the SHA-256 of its content. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"

const File = Schema.Struct({
  kind: Schema.Literal("file"),
  hash: Schema.String,
  /** The mode; absent for a file that did not exist yet. */
  mode: Schema.optionalKey(Schema.Int),
  /** Whether the store has the content. */
  kept: Schema.Boolean
})

/** `other`: content that nothing keeps, such as that of a large file. `stamp` differs where it has changed. */
export const Version = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("absent") }),
  File,
  Schema.Struct({ kind: Schema.Literal("link"), target: Schema.String }),
  Schema.Struct({ kind: Schema.Literal("other"), stamp: Schema.String })
])
export type Version = typeof Version.Type
export type File = typeof File.Type

export const absent: Version = { kind: "absent" }

export const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

const keyOf = (version: Version): string => {
  switch (version.kind) {
    case "absent":
      return ""
    case "file":
      return `file ${version.hash}`
    case "link":
      return `link ${version.target}`
    case "other":
      return `other ${version.stamp}`
  }
}

/** Whether both have one content. */
export const isSame = (one: Version, other: Version): boolean => keyOf(one) === keyOf(other)

const modeOf = (version: Version) => (version.kind === "file" ? version.mode : undefined)

/** Whether both have one content and, as far as it is known, one mode. */
export const isEqual = (one: Version, other: Version): boolean => {
  const [mode, otherMode] = [modeOf(one), modeOf(other)]
  return isSame(one, other) && (mode === undefined || otherMode === undefined || mode === otherMode)
}

/** Whether a file can become this version again. */
export const isKept = (version: Version): boolean =>
  version.kind === "file" ? version.kept : version.kind !== "other"

/** A version, and its content if it is a file. */
export interface Found {
  readonly version: Version
  readonly content?: Uint8Array
}

/** The size and times of a file, which differ where it has changed. */
export const stampOf = ({ ino, mtime, size }: FileSystem.File.Info): string =>
  `${size}:${Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })}:${Option.getOrElse(ino, () => 0)}`

const isMissing = ({ reason }: PlatformError): boolean =>
  // A part of the path is a file: the system says `ENOTDIR`.
  reason._tag === "NotFound" || reason._tag === "BadResource"

/** Reads what is at a path. A file with more bytes than `limit`, or that cannot be read, is `other`. */
export const read = Effect.fnUntraced(function* (
  path: string,
  limit: number
): Effect.fn.Return<Found, PlatformError, FileSystem.FileSystem> {
  const files = yield* FileSystem.FileSystem
  const info = yield* Effect.catchIf(Effect.asSome(files.lstat(path)), isMissing, () => Effect.succeedNone)
  if (Option.isNone(info)) return { version: absent }
  const { mode, size, type } = info.value
  if (type === "SymbolicLink")
    return { version: { kind: "link" as const, target: yield* files.readLink(path) } }
  const other: Found = { version: { kind: "other", stamp: `${type}:${stampOf(info.value)}` } }
  if (type !== "File" || size > limit) return other
  const content = yield* Effect.option(files.readFile(path))
  if (Option.isNone(content) || content.value.length > limit) return other
  const version = { kind: "file" as const, hash: hashOf(content.value), mode: mode & 0o7777, kept: false }
  return { version, content: content.value }
})

/** Puts a version at a path: whole, or not at all. `temporary` is the name of a file beside it that may be replaced. */
export const put = Effect.fnUntraced(function* (
  path: string,
  { content, version }: Found,
  temporary: string
): Effect.fn.Return<void, PlatformError, FileSystem.FileSystem | Path.Path> {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = paths.dirname(path)
  if (version.kind === "absent") {
    yield* Effect.catchIf(files.remove(path), isMissing, () => Effect.void)
    return yield* sync(folder)
  }
  yield* files.makeDirectory(folder, { recursive: true })
  const beside = paths.join(folder, temporary)
  yield* files.remove(beside, { force: true })
  const write =
    version.kind === "link"
      ? files.symlink(version.target, beside)
      : written(beside, path, content ?? new Uint8Array(), modeOf(version))
  yield* Effect.andThen(write, files.rename(beside, path)).pipe(
    Effect.onError(() => Effect.ignore(files.remove(beside, { force: true })))
  )
  yield* sync(folder)
}, Effect.uninterruptible)

const written = (beside: string, path: string, content: Uint8Array, mode: number | undefined) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const file = yield* files.open(beside, { flag: "wx", mode: mode ?? 0o666 })
    yield* file.writeAll(content)
    const owner = yield* Effect.option(files.lstat(path))
    if (Option.isSome(owner)) {
      const { gid, uid } = owner.value
      // Only root may do this.
      if (Option.isSome(uid) && Option.isSome(gid))
        yield* Effect.ignore(files.chown(beside, uid.value, gid.value))
    }
    if (mode !== undefined) yield* files.chmod(beside, mode)
    yield* file.sync
  }).pipe(Effect.scoped)

/** Writes the list of the files of a folder to the disk. Some systems cannot. */
export const sync = (folder: string): Effect.Effect<void, never, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((files) =>
    Effect.flatMap(files.open(folder, { flag: "r" }), (file) => file.sync)
  ).pipe(Effect.scoped, Effect.ignore)
