/** Opens, reads and replaces files and folders by the path that a model gave, inside the roots. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Keeping } from "./Keeping.ts"
import { visible } from "./Output.ts"
import * as Paced from "./Paced.ts"
import { FileFailed, type PathFailure, PathRefused, fromPlatform } from "./PathFailure.ts"
import * as Protection from "./Protection.ts"
import * as Root from "./Root.ts"
import * as Folder from "./internal/Folder.ts"
import * as Likeness from "./internal/Likeness.ts"

type Services = FileSystem.FileSystem | Path.Path

/** An open file or folder, and its path for display. */
type Shown<A> = A & { readonly shown: string }

/** Opens a file for reading. Fails for a folder, and for a missing file with similar names in the message. */
export const open = Effect.fnUntraced(function* (
  options: Root.Options,
  path: string
): Effect.fn.Return<Shown<Folder.OpenFile>, PathFailure, Services | Scope.Scope> {
  const paths = yield* Path.Path
  const place = yield* present(options, path)
  // This check comes before opening the folder of the file, because the folder of a root is outside the root.
  if ((yield* look(place.existing, path)).type === "Directory") return yield* isFolder(path)
  const folder = yield* Folder.open(options, place.roots, paths.dirname(place.existing), path)
  const opened = yield* Folder.openFile(folder, paths.basename(place.existing), path)
  return { ...opened, shown: place.shown }
})

/** Opens a folder. If the path names a file, opens its folder and returns the name of the file. */
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

/** A file to write. */
export interface Target {
  readonly folder: Folder.Folder
  readonly name: string
  readonly shown: string
  /** The file that exists, `undefined` if there is none. */
  readonly info: FileSystem.File.Info | undefined
}

/**
 * Writes a file. `content` computes the new content from the existing file. Creates missing folders after that,
 * so a failure of `content` creates nothing. A lock keeps other calls in this process from changing the file
 * meanwhile.
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
    // Resolves again, because the previous holder of the lock may have created the missing parts.
    const place = yield* resolve
    if (pathOf(place) !== where) return yield* Folder.changed(path)
    const target = yield* targetOf(options, place, path)
    const written = yield* content(target)
    const folder = yield* Effect.reduce(
      place.missing.slice(0, -1),
      () => target.folder,
      (parent, name) => Folder.make(parent, name, path)
    )
    // The current path: another process may have renamed a folder above.
    const at = paths.join(yield* Folder.current(folder, path), target.name)
    const name = Protection.nameIn(paths, options, folder.roots, at)
    if (name !== undefined) return yield* Protection.refused(path, `${name} is protected`)
    const keeper = yield* Keeping
    if (keeper !== undefined) {
      const change = { path: at, through: folder.at(target.name), content: written.bytes }
      yield* Effect.mapError(keeper.file(change), ({ detail }) => Folder.unchanged(path, detail))
    }
    yield* replace(folder, target.name, path, written.bytes, target.info)
    return { target, written }
  })
  return yield* change.pipe(Effect.scoped, withLock(where))
})

/** The note for the model on a file that had other names, which a write does not change. */
export const linkNote = ({ info }: Target): ReadonlyArray<string> => {
  const others = Option.getOrElse(info?.nlink ?? Option.none(), () => 1n) - 1n
  return others > 0n
    ? [`[It was a hard link: ${others} other name${others > 1n ? "s keep" : " keeps"} the old content.]`]
    : []
}

/** Reads all bytes of a file. Fails with reason `tooLarge` above `limit` bytes. */
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
    // The file may grow while this loop reads it.
    if (size > limit) return yield* tooLarge(BigInt(size))
  }
  const bytes = new Uint8Array(size)
  chunks.reduce((at, chunk) => (bytes.set(chunk, at), at + chunk.length), 0)
  return bytes
})

/** Bytes of one read call. */
export const chunkSize = 64 * 1024

/** Resolves a path for reading. Fails if it does not exist. */
const present = Effect.fnUntraced(function* (options: Root.Options, path: string) {
  const { names, place } = yield* alike(options, "read", path)
  return names === undefined ? place : yield* notFound(place, names, path)
})

/** The path of the only file that looks like one that does not exist, `undefined` if there is none. */
export const likely = Effect.fnUntraced(function* (
  options: Root.Options,
  path: string
): Effect.fn.Return<string | undefined, PathFailure, Services> {
  const { names, place } = yield* alike(options, "write", path)
  return names === undefined ? place.existing : undefined
})

interface Alike {
  readonly place: Root.Place
  /** The names in the folder without the one that is missing, `undefined` if none is. */
  readonly names: ReadonlyArray<string> | undefined
}

/** Resolves a path in which each name that does not exist stands for the only one that looks like it. */
const alike = Effect.fnUntraced(function* (
  options: Root.Options,
  access: Root.Access,
  path: string
): Effect.fn.Return<Alike, PathFailure, Services> {
  const paths = yield* Path.Path
  const files = yield* FileSystem.FileSystem
  const place = yield* Root.resolve(options, access, path)
  const [missing, ...below] = place.missing
  if (missing === undefined) return { place, names: undefined }
  const names = yield* Folder.open(options, place.roots, place.existing, path).pipe(
    Effect.flatMap((folder) => files.readDirectory(folder.here)),
    Effect.scoped,
    Effect.orElseSucceed((): Array<string> => [])
  )
  const [name, ...others] = names.filter((name) => Likeness.isLike(name, missing))
  return name === undefined || others.length > 0
    ? { place, names }
    : yield* alike(options, access, paths.join(place.existing, name, ...below))
})

const notFound = Effect.fnUntraced(function* (place: Root.Place, names: ReadonlyArray<string>, path: string) {
  const paths = yield* Path.Path
  const near = yield* Paced.run(Likeness.nearest(place.missing[0] ?? "", names, (name) => name, 3))
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
  // A rename needs permission for the folder only. This check keeps the tools from replacing a file that they
  // may not write.
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

// ───────────────────────── Writing

// Replaces a file atomically: a reader, or the next start after a crash, sees the old content or the new
// content, never a part. It writes a temporary file beside the target, syncs it to the disk, and renames it.
//
// The new file keeps mode and owner. Other names of the old file (hard links) keep the old content, and access
// control lists and extended attributes are those of a new file. If the process is killed during the write, a
// file named `.effect-agent-….tmp` may remain.

/**
 * Writes `content` as the file `name` of the folder.
 *
 * - `previous`: the file that the caller saw. If it differs from the current file, the write fails with reason
 *   `changed` and changes nothing.
 * Another process can still write between this comparison and the rename.
 */
const replace = (
  folder: Folder.Folder,
  name: string,
  shown: string,
  content: Uint8Array,
  previous: FileSystem.File.Info | undefined
): Effect.Effect<void, FileFailed, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const temporary = folder.at(`.effect-agent-${crypto.randomUUID()}.tmp`)
    const write = Effect.gen(function* () {
      yield* writeNew(temporary, content, previous)
      const current = yield* Effect.option(files.lstat(folder.at(name)))
      if (!isUnchanged(previous, Option.getOrUndefined(current))) return yield* Folder.changed(shown)
      yield* files.rename(temporary, folder.at(name))
    })
    yield* write.pipe(
      Effect.onExit((exit) =>
        Exit.isSuccess(exit) ? Effect.void : Effect.ignore(files.remove(temporary, { force: true }))
      ),
      Effect.catchTag("PlatformError", (error) => Effect.fail(fromPlatform(shown, error)))
    )
    // Some systems cannot sync a folder. The content itself is on the disk by then.
    yield* Effect.ignore(folder.sync)
  }).pipe(
    // An interrupted fiber cannot stop a system call, which must not outlive the open file or the lock.
    Effect.uninterruptible
  )

const writeNew = (
  path: string,
  content: Uint8Array,
  previous: FileSystem.File.Info | undefined
): Effect.Effect<void, PlatformError, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    // The temporary file never has a more permissive mode than the file that it replaces. A new file gets the
    // default mode.
    const mode = previous === undefined ? 0o666 : previous.mode & 0o7777
    const file = yield* files.open(path, { flag: "wx", mode })
    yield* file.writeAll(content)
    if (previous !== undefined) {
      yield* keepOwner(path, yield* file.stat, previous)
      // This comes after the change of owner, which clears the set-user-id bit.
      yield* files.chmod(path, mode)
    }
    yield* file.sync
  }).pipe(Effect.scoped)

/** Only root may change the owner of a file. For other users the new file is theirs, as with any editor. */
const keepOwner = (path: string, current: FileSystem.File.Info, previous: FileSystem.File.Info) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const [uid, gid] = [Option.getOrUndefined(previous.uid), Option.getOrUndefined(previous.gid)]
    if (uid === undefined || gid === undefined) return
    if (uid === Option.getOrUndefined(current.uid) && gid === Option.getOrUndefined(current.gid)) return
    yield* Effect.ignore(files.chown(path, uid, gid))
  })

const isUnchanged = (
  previous: FileSystem.File.Info | undefined,
  current: FileSystem.File.Info | undefined
): boolean =>
  previous === undefined || current === undefined
    ? previous === current
    : Folder.sameFile(previous, current) &&
      previous.size === current.size &&
      Option.getOrUndefined(previous.mtime)?.getTime() === Option.getOrUndefined(current.mtime)?.getTime()

// ───────────────────────── Locks

// A lock for each file, by real path, for the whole process. Tools of one turn run in parallel, and without the
// lock two edits of one file would each overwrite the change of the other.

interface Lock {
  readonly semaphore: Semaphore.Semaphore
  users: number
}

const locks = new Map<string, Lock>()

/** Runs the effect while no other effect of this process holds the lock of `path`. */
const withLock =
  (path: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => enter(path)),
      (lock) => lock.semaphore.withPermit(effect),
      (lock) => Effect.sync(() => leave(path, lock))
    )

const enter = (path: string): Lock => {
  const lock = locks.get(path) ?? { semaphore: Semaphore.makeUnsafe(1), users: 0 }
  lock.users++
  locks.set(path, lock)
  return lock
}

const leave = (path: string, lock: Lock): void => {
  lock.users--
  if (lock.users === 0) locks.delete(path)
}

// ───────────────────────── The type of a file, by its first bytes, not by its name

type FileKind =
  | { readonly _tag: "Text"; readonly encoding: "utf-8" | "utf-16le" | "utf-16be" }
  | { readonly _tag: "Image"; readonly mediaType: string }
  | { readonly _tag: "Binary"; readonly format: string }

/** Detects the type by the first bytes of a file. 8,000 bytes are enough: git searches as many for a NUL. */
export const kindOf = (start: Uint8Array): FileKind => {
  const mediaType = images.find(({ at, bytes }) =>
    bytes.every((byte, index) => start[at + index] === byte)
  )?.mediaType
  if (mediaType === "image/webp" && !ascii(start.subarray(0, 4), "RIFF"))
    return { _tag: "Binary", format: "binary" }
  if (mediaType !== undefined) return { _tag: "Image", mediaType }
  if (start[0] === 0xff && start[1] === 0xfe) return { _tag: "Text", encoding: "utf-16le" }
  if (start[0] === 0xfe && start[1] === 0xff) return { _tag: "Text", encoding: "utf-16be" }
  return ofPlain(start.subarray(0, 8_000))
}

/** Detects text without a byte order mark. Text may have a few NULs, as a script with a NUL in a string. */
const ofPlain = (start: Uint8Array): FileKind => {
  if (!start.includes(0)) return { _tag: "Text", encoding: "utf-8" }
  const count = (is: (byte: number, index: number) => boolean) => start.filter(is).length
  const controls = count((byte) => (byte > 0 && byte < 7) || (byte > 13 && byte < 27))
  const zeros = count((byte) => byte === 0)
  const odd = count((byte, index) => byte === 0 && index % 2 === 1)
  // ASCII in UTF-16 has a zero in each pair.
  if (controls === 0 && zeros * 5 > start.length * 2 && (odd === 0 || odd === zeros)) {
    return { _tag: "Text", encoding: odd === 0 ? "utf-16be" : "utf-16le" }
  }
  return (controls + zeros) * 10 < start.length && isUtf8(start)
    ? { _tag: "Text", encoding: "utf-8" }
    : { _tag: "Binary", format: "binary" }
}

/** Whether the start of a text is UTF-8. */
export const isUtf8 = (start: Uint8Array): boolean => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(start, { stream: true }) !== ""
  } catch {
    return false
  }
}

const images: ReadonlyArray<{
  readonly mediaType: string
  readonly at: number
  readonly bytes: ReadonlyArray<number>
}> = [
  { mediaType: "image/png", at: 0, bytes: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] },
  { mediaType: "image/jpeg", at: 0, bytes: [0xff, 0xd8, 0xff] },
  { mediaType: "image/gif", at: 0, bytes: [0x47, 0x49, 0x46, 0x38] },
  { mediaType: "image/webp", at: 8, bytes: [0x57, 0x45, 0x42, 0x50] }
]

const ascii = (bytes: Uint8Array, text: string): boolean =>
  Array.from(bytes, (byte) => String.fromCharCode(byte)).join("") === text
