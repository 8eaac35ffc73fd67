/**
 * The folders from the root of a repository to the current one, and texts of files in them.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"

/** Returns the folders from the root of the repository to `cwd`; `cwd` alone outside a repository. */
export const from = Effect.fnUntraced(function* (cwd: string, root?: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folders = [path.resolve(cwd)]
  const end = root === undefined ? undefined : path.resolve(root)
  for (let folder = folders[0] ?? cwd; ; folder = path.dirname(folder)) {
    if (folder !== folders[0]) folders.unshift(folder)
    const isRoot = end === undefined ? yield* exists(files, path.join(folder, ".git")) : folder === end
    if (isRoot) return folders
    if (path.dirname(folder) === folder) return folders.slice(-1)
  }
})

const exists = (files: FileSystem.FileSystem, path: string): Effect.Effect<boolean> =>
  Effect.orElseSucceed(files.exists(path), () => false)

/** A text, as far as it was read. */
export interface Read {
  readonly text: string
  /** The bytes of the file. */
  readonly bytes: number
  readonly isCut: boolean
}

/**
 * Reads at most `maxBytes` of a regular file whose real path is within the real path of `within`: a symbolic link in a repository must
 * not lead to the keys of the user. Succeeds with `undefined` if it leads elsewhere, or is no regular file.
 */
export const read = Effect.fnUntraced(function* (
  file: string,
  within: string | undefined,
  maxBytes: number
): Effect.fn.Return<Read | undefined, PlatformError, FileSystem.FileSystem | Path.Path> {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const real = yield* files.realPath(file)
  const outer = within === undefined ? path.dirname(real) : yield* files.realPath(within)
  if (!isWithin(path, outer, real)) return undefined
  const { size, type } = yield* files.stat(real)
  if (type !== "File") return undefined
  const content = yield* firstBytes(files, real, maxBytes)
  const isCut = size > maxBytes
  // The decoder holds back a character that is cut.
  const text = new TextDecoder().decode(content, { stream: isCut })
  return { text, bytes: Number(size), isCut }
})

const isWithin = (path: Path.Path, outer: string, inner: string): boolean => {
  const relative = path.relative(outer, inner)
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative)
}

/** The real place of a path that is within a folder by its name, and leads out of it by a link; else `undefined`. */
export const outside = Effect.fnUntraced(function* (place: string, within: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const [outer, inner] = [path.resolve(within), path.resolve(place)]
  const [realOuter, real] = yield* Effect.all([files.realPath(outer), files.realPath(inner)]).pipe(
    // One that is not there leads nowhere.
    Effect.orElseSucceed(() => [outer, outer] as const)
  )
  const isInside = isWithin(path, outer, inner) || isWithin(path, realOuter, inner)
  return isInside && !isWithin(path, realOuter, real) ? real : undefined
})

const firstBytes = (files: FileSystem.FileSystem, path: string, max: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const file = yield* files.open(path, { flag: "r" })
      const content = new Uint8Array(max)
      let length = 0
      while (length < max) {
        const count = Number(yield* file.read(content.subarray(length)))
        if (count === 0) break
        length += count
      }
      return content.subarray(0, length)
    })
  )
