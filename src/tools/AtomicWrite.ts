/**
 * Replaces a file as a whole: a reader, or the next start after a crash, finds the old content or the new one, never a
 * part. The new content is written beside the file, brought to the disk, and renamed over it.
 *
 * Mode and owner are kept. What else hangs on the old file is not: other names of it (hard links) keep the old content,
 * and access lists and extended attributes are those of a new file. A kill in the middle may leave a file named
 * `.effect-agent-….tmp` behind.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Folder from "./Folder.ts"
import { type FileFailed, fromPlatform } from "./PathFailure.ts"

/**
 * Writes `content` as the file `name` of the folder.
 *
 * - `previous`: what was seen there before, if anything; when it is no longer so, nothing is written and the write
 *   fails with reason `changed`. That other process may still write between this look and the rename.
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
    // Systems that cannot sync a folder say so; the content itself is safe by then.
    yield* Effect.ignore(folder.sync)
  }).pipe(
    // A call of the system goes on when its fiber is interrupted: it must not outlive the open file or the lock.
    Effect.uninterruptible
  )

const writeNew = (
  path: string,
  content: Uint8Array,
  previous: FileSystem.File.Info | undefined
): Effect.Effect<void, PlatformError, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    // Never more open than the file it replaces, not even while it is being written. A new file gets the usual mode.
    const mode = previous === undefined ? 0o666 : previous.mode & 0o7777
    const file = yield* files.open(path, { flag: "wx", mode })
    yield* file.writeAll(content)
    if (previous !== undefined) {
      yield* keepOwner(path, yield* file.stat, previous)
      // After the owner: a change of owner takes the set-user-id bit away.
      yield* files.chmod(path, mode)
    }
    yield* file.sync
  }).pipe(Effect.scoped)

/** Only root may give files away; for others a file of someone else becomes their own, as with any editor. */
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
