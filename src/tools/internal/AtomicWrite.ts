/**
 * Replaces a file atomically: a reader, or the next start after a crash, sees the old content or the new
 * content, never a part. It writes a temporary file beside the target, syncs it to the disk, and renames it.
 *
 * The new file keeps mode and owner. Other names of the old file (hard links) keep the old content, and access
 * control lists and extended attributes are those of a new file. If the process is killed during the write, a
 * file named `.effect-agent-….tmp` may remain.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Folder from "./Folder.ts"
import { type FileFailed, fromPlatform } from "../PathFailure.ts"

/**
 * Writes `content` as the file `name` of the folder.
 *
 * - `previous`: the file that the caller saw. If it differs from the current file, the write fails with reason
 *   `changed` and changes nothing.
 * Another process can still write between this comparison and the rename.
 */
export const replace = (
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
