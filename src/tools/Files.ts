/**
 * Files and folders by the path a model gave: confined, opened, replaced.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type * as Scope from "effect/Scope"
import * as AtomicWrite from "./AtomicWrite.ts"
import * as FileLock from "./FileLock.ts"
import * as Folder from "./Folder.ts"
import { visible } from "./Output.ts"
import * as Paced from "./Paced.ts"
import { FileFailed, type PathFailure, PathRefused, fromPlatform } from "./PathFailure.ts"
import * as Protection from "./Protection.ts"
import * as Root from "./Root.ts"
import { nearest } from "./Similarity.ts"

type Services = FileSystem.FileSystem | Path.Path

/** An open file or folder, and how to name it. */
type Shown<A> = A & { readonly shown: string }

/** Opens a file for reading. A missing one fails with the names near to it; a folder fails. */
export const open = Effect.fnUntraced(function* (
  options: Root.Options,
  path: string
): Effect.fn.Return<Shown<Folder.OpenFile>, PathFailure, Services | Scope.Scope> {
  const paths = yield* Path.Path
  const place = yield* present(options, path)
  // Before its folder is opened: that of a root is outside of it.
  if ((yield* look(place.existing, path)).type === "Directory") return yield* isFolder(path)
  const folder = yield* Folder.open(options, place.roots, paths.dirname(place.existing), path)
  const opened = yield* Folder.openFile(folder, paths.basename(place.existing), path)
  return { ...opened, shown: place.shown }
})

/** Opens a folder, or the file that the path names instead. */
export const openEither = Effect.fnUntraced(function* (
  options: Root.Options,
  path: string
): Effect.fn.Return<
  Shown<{ readonly folder: Folder.Folder; readonly file: string | undefined }>,
  PathFailure,
  Services | Scope.Scope
> {
  const paths = yield* Path.Path
  const place = yield* present(options, path)
  const isFile = (yield* look(place.existing, path)).type !== "Directory"
  const at = isFile ? paths.dirname(place.existing) : place.existing
  const folder = yield* Folder.open(options, place.roots, at, path)
  return { folder, file: isFile ? paths.basename(place.existing) : undefined, shown: place.shown }
})

/** A file that is about to be written. */
export interface Target {
  readonly folder: Folder.Folder
  readonly name: string
  readonly shown: string
  /** Absent when there is no such file yet. */
  readonly info: FileSystem.File.Info | undefined
}

/**
 * Writes a file, from what `content` makes of the one that is there. Folders that are missing are made once the content
 * is known. No other change of the file by this process comes between reading and writing.
 */
export const update = Effect.fnUntraced(function* <A extends { readonly bytes: Uint8Array }, E, R>(
  options: Root.Options,
  path: string,
  content: (target: Target) => Effect.Effect<A, E, R>
): Effect.fn.Return<{ readonly target: Target; readonly written: A }, PathFailure | E, Services | R> {
  const paths = yield* Path.Path
  if (path.endsWith("/")) return yield* new PathRefused({ path, detail: "it names a folder, not a file" })
  const resolve = Root.resolve(options, "write", path)
  const pathOf = ({ existing, missing }: Root.Place) => paths.join(existing, ...missing)
  const first = yield* resolve
  yield* Protection.check(options, first, path)
  const where = pathOf(first)
  const change = Effect.gen(function* () {
    // Again: whoever had the lock before may have made what was missing.
    const place = yield* resolve
    if (pathOf(place) !== where) return yield* Folder.changed(path)
    const target = yield* targetOf(options, place, path)
    const written = yield* content(target)
    const folder = yield* Effect.reduce(
      place.missing.slice(0, -1),
      () => target.folder,
      (parent, name) => Folder.make(parent, name, path)
    )
    // Where it is now: a folder above may have got another name meanwhile.
    const at = paths.join(yield* Folder.current(folder, path), target.name)
    const name = Protection.nameIn(paths, options, folder.roots, at)
    if (name !== undefined) return yield* Protection.refused(path, `${name} is protected`)
    yield* AtomicWrite.replace(folder, target.name, path, written.bytes, target.info)
    return { target, written }
  })
  return yield* change.pipe(Effect.scoped, FileLock.withLock(where))
})

/** All bytes of a file of at most `limit` bytes. */
export const readAll = Effect.fnUntraced(function* (
  { file, info }: Folder.OpenFile,
  path: string,
  limit: number
): Effect.fn.Return<Uint8Array, PathFailure> {
  const tooLarge = (size: bigint) =>
    new FileFailed({
      path,
      reason: "tooLarge",
      detail: `it has ${size} bytes, more than the ${limit} this tool reads`
    })
  if (info.size > limit) return yield* tooLarge(info.size)
  const chunks: Array<Uint8Array> = []
  let size = 0
  yield* file.seek(0n, "start").pipe(Effect.mapError((error) => fromPlatform(path, error)))
  while (true) {
    const chunk = yield* file.readAlloc(chunkSize).pipe(Effect.mapError((error) => fromPlatform(path, error)))
    if (chunk._tag === "None") break
    chunks.push(chunk.value)
    size += chunk.value.length
    // It may grow while it is read.
    if (size > limit) return yield* tooLarge(BigInt(size))
  }
  const bytes = new Uint8Array(size)
  chunks.reduce((at, chunk) => (bytes.set(chunk, at), at + chunk.length), 0)
  return bytes
})

/** Bytes asked of the system at once. */
export const chunkSize = 64 * 1024

/** Where the path leads, when something is there. */
const present = Effect.fnUntraced(function* (options: Root.Options, path: string) {
  const place = yield* Root.resolve(options, "read", path)
  return place.missing.length === 0 ? place : yield* notFound(options, place, path)
})

const notFound = Effect.fnUntraced(function* (options: Root.Options, place: Root.Place, path: string) {
  const paths = yield* Path.Path
  const files = yield* FileSystem.FileSystem
  const missing = place.missing[0] ?? ""
  const names = yield* Folder.open(options, place.roots, place.existing, path).pipe(
    Effect.flatMap((folder) => files.readDirectory(folder.here)),
    Effect.scoped,
    Effect.orElseSucceed((): Array<string> => [])
  )
  const near = yield* Paced.run(nearest(missing, names, (name) => name, 3))
  const above = place.shown.slice(0, place.shown.length - paths.join(...place.missing).length)
  const hint =
    near.length === 0 ? "" : `. Near to it: ${near.map((name) => visible(above + name)).join(", ")}`
  const detail = `there is no such file or folder${hint}`
  return yield* new FileFailed({ path, reason: "notFound", detail })
})

const targetOf = Effect.fnUntraced(function* (options: Root.Options, place: Root.Place, path: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const { existing, missing, roots, shown } = place
  const missingName = missing.at(-1)
  if (missingName !== undefined) {
    const folder = yield* Folder.open(options, roots, existing, path)
    return { folder, name: missingName, shown, info: undefined } satisfies Target
  }
  const info = yield* look(existing, path)
  if (info.type === "Directory") return yield* isFolder(path)
  if (info.type !== "File")
    return yield* new PathRefused({ path, detail: `it is a ${info.type}, not a file` })
  const folder = yield* Folder.open(options, roots, paths.dirname(existing), path)
  const name = paths.basename(existing)
  // A rename asks for rights to the folder alone; a file that may not be written is not to be replaced either.
  yield* files
    .access(folder.at(name), { writable: true })
    .pipe(Effect.mapError((error) => fromPlatform(path, error)))
  return { folder, name, shown, info } satisfies Target
})

const look = Effect.fnUntraced(function* (existing: string, path: string) {
  const files = yield* FileSystem.FileSystem
  return yield* files.lstat(existing).pipe(Effect.mapError((error) => fromPlatform(path, error)))
})

const isFolder = (path: string) =>
  new FileFailed({ path, reason: "isFolder", detail: "it is a folder, not a file" })
