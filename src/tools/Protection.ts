/**
 * Files inside the roots that `write` and `edit` refuse to change, because other programs run code from them as
 * soon as they read them.
 *
 * Without this check, a model that may write a file could run a command.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as SandboxLimits from "./internal/SandboxLimits.ts"
import { PathRefused } from "./PathFailure.ts"
import * as Root from "./Root.ts"

/**
 * Names of files and folders that are protected by default, at any depth, with everything in them.
 *
 * **Gotchas**
 *
 * The list leaves out files that run only when a person runs the project: scripts, tests, build files and CI
 * workflows.
 *
 * @since 0.2.0
 * @category constants
 */
export const names: ReadonlyArray<string> = [
  // Git runs hooks, and programs that its configuration names, with most of its commands.
  ".git",
  ".gitconfig",
  ".githooks",
  ".husky",
  // Agents start the servers and hooks that these files name, and read permissions from them.
  ".effect-agent",
  ".aider.conf.yml",
  ".amazonq",
  ".claude",
  ".codex",
  ".continue",
  ".crush.json",
  ".cursor",
  ".factory",
  ".gemini",
  ".kilocode",
  ".kiro",
  ".mcp.json",
  ".opencode",
  ".qwen",
  ".roo",
  "crush.json",
  "opencode.json",
  "opencode.jsonc",
  ".windsurf",
  // Editors run tasks, and programs that settings name, when a person opens the folder.
  ".devcontainer",
  ".devcontainer.json",
  ".exrc",
  ".helix",
  ".idea",
  ".nvim.lua",
  ".vimrc",
  ".vscode",
  ".zed",
  // Shells read these files when they start, end or enter a folder, and so do interpreters.
  ".Rprofile",
  ".bash_login",
  ".bash_logout",
  ".bash_profile",
  ".bashrc",
  ".envrc",
  ".irbrc",
  ".profile",
  ".pryrc",
  ".ssh",
  ".zprofile",
  ".zshenv",
  ".zshrc",
  // Package managers load the code that these files name, with any of their commands.
  ".cargo",
  ".npmrc",
  ".pnpmfile.cjs",
  ".yarnrc",
  ".yarnrc.yml"
]

/**
 * Returns the protected name that an absolute path contains, `undefined` if there is none.
 *
 * **Details**
 *
 * The function compares the names of the path below each root that contains it. The path is free if one of
 * these roots has no protected name above it.
 *
 * **Example** (Checking a path)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Path } from "effect"
 * import { Protection } from "effect-agent/tools"
 *
 * const program = Effect.map(Path.Path, (paths) =>
 *   Protection.nameIn(paths, { root: "/work" }, ["/work"], "/work/.git/config")
 * )
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(NodeServices.layer)))) // => .git
 * ```
 *
 * @since 0.2.0
 * @category getters
 */
export const nameIn = (
  paths: Path.Path,
  { protect = names }: Root.Options,
  roots: ReadonlyArray<string>,
  path: string
): string | undefined => {
  const wanted = new Map(protect.map((name) => [plain(name), name]))
  const found = roots
    .filter((root) => Root.contains(paths, root, path))
    .map((root) => {
      const parts = paths.relative(root, path).split(paths.sep)
      return parts.flatMap((part) => wanted.get(plain(part)) ?? wanted.get(longName(part, protect)) ?? [])[0]
    })
  return found.includes(undefined) ? undefined : found[0]
}

/**
 * Fails with `PathRefused` if writing to a place would change a protected file.
 *
 * **Details**
 *
 * `path` is the text that the model gave. The function checks it besides the real path, because a protected
 * name may be a link.
 *
 * **Example** (Checking before writing)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { Protection, Root } from "effect-agent/tools"
 *
 * const options = { root: "." }
 * const path = ".vscode/tasks.json"
 * const program = Effect.gen(function* () {
 *   const place = yield* Root.resolve(options, "write", path)
 *   const failure = yield* Effect.flip(Protection.check(options, place, path))
 *   console.log(failure.message)
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(NodeServices.layer)))
 * ```
 *
 * @since 0.2.0
 * @category guards
 */
export const check = Effect.fnUntraced(function* (
  options: Root.Options,
  place: Root.Place,
  path: string
): Effect.fn.Return<void, PathRefused, FileSystem.FileSystem | Path.Path> {
  const paths = yield* Path.Path
  const where = paths.join(place.existing, ...place.missing)
  const spelled = paths.resolve(options.root, path)
  const spelledRoots = [paths.resolve(options.root), ...place.roots]
  const name = nameIn(paths, options, place.roots, where) ?? nameIn(paths, options, spelledRoots, spelled)
  if (name !== undefined) return yield* refused(path, `${name} is protected`)
  if (!(options.protect ?? names).includes(".git")) return
  for (const folder of foldersAbove(paths, place.roots, where)) {
    if (yield* SandboxLimits.isGitFolder(folder)) return yield* refused(path, "it is in a folder of git")
    const hooks = yield* SandboxLimits.hooksOf(folder)
    if (hooks !== undefined && hooks !== folder && Root.contains(paths, hooks, where)) {
      return yield* refused(path, "it is in the folder of git's hooks")
    }
  }
})

/**
 * Makes the failure of a call that would change a protected file.
 *
 * `reason` says which one: `.git is protected`.
 *
 * **Example** (Refusing a path)
 *
 * ```ts
 * import { Protection } from "effect-agent/tools"
 *
 * console.log(Protection.refused("a/.git/config", ".git is protected").message)
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const refused = (path: string, reason: string): PathRefused =>
  new PathRefused({
    path,
    detail: `${reason}, because other programs run code from it. Leave it unchanged, or ask the user to change it`
  })

/** The form in which file systems compare names: some ignore case, some characters, or the end of a name. */
const plain = (name: string): string =>
  name
    .toUpperCase()
    .toLowerCase()
    .replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, "")
    .replace(/:.*$/s, "")
    .replace(/(?<![. ])[. ]+$/, "")

/** Windows has a second name for each file: `GIT~1` for `.git`. */
const longName = (name: string, protect: ReadonlyArray<string>): string => {
  const short = /^([^~]{1,6})~\d$/.exec(plain(name))?.[1]
  const long = protect.map(plain).find((other) => other.replace(/^\./, "").slice(0, 6) === short)
  return short === undefined ? "" : (long ?? "")
}

/** The folders above `path`, starting with the outermost root. */
const foldersAbove = (
  paths: Path.Path,
  roots: ReadonlyArray<string>,
  path: string
): ReadonlyArray<string> => {
  const folders: Array<string> = []
  let at = paths.dirname(path)
  while (roots.some((root) => Root.contains(paths, root, at))) {
    folders.unshift(at)
    if (paths.dirname(at) === at) break
    at = paths.dirname(at)
  }
  return folders
}
