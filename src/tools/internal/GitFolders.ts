/** The folders of git that lie at unusual places. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"

/** Whether the folder is a repository without a working tree, or a git folder with another name. */
export const isGitFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  for (const name of ["HEAD", "objects", "refs"]) {
    const has = yield* Effect.orElseSucceed(files.exists(paths.join(folder, name)), () => false)
    if (!has) return false
  }
  return true
})

/** Maximum bytes of a configuration file that `hooksOf` reads. */
const maxConfig = 64 * 1024

/** The hooks folder of a repository, if its configuration sets one. */
export const hooksOf = Effect.fnUntraced(
  function* (folder: string) {
    const files = yield* FileSystem.FileSystem
    const paths = yield* Path.Path
    const config = paths.join(folder, ".git", "config")
    const info = yield* files.stat(config)
    if (info.type !== "File" || info.size > maxConfig) return undefined
    const text = yield* files.readFileString(config)
    const value = /^[ \t]*hookspath[ \t]*=([^\n]*)$/im
      .exec(text)?.[1]
      ?.replace(/[#;].*$|"/g, "")
      .trim()
    if (value === undefined || value === "") return undefined
    const hooks = paths.resolve(folder, value)
    return yield* Effect.orElseSucceed(files.realPath(hooks), () => hooks)
  },
  Effect.orElseSucceed(() => undefined)
)
