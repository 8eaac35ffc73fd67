/**
 * What `write` and `edit` leave alone although it is inside the roots: files by which other programs run code, or let
 * code run, as soon as they come across them. With them a model that may write a file could run a command.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { PathRefused } from "./PathFailure.ts"
import * as Root from "./Root.ts"

/**
 * Names of files and folders that are protected by default, at any depth, with all that is in them.
 *
 * Not among them is what runs when a person runs the project itself: scripts, tests, build files and CI workflows.
 */
export const names: ReadonlyArray<string> = [
  // Git runs hooks, and programs that its configuration names, with most of its commands.
  ".git",
  ".gitconfig",
  ".githooks",
  ".husky",
  // Agents start the servers and hooks that these name, and take permissions from them.
  ".effect-agent",
  ".aider.conf.yml",
  ".claude",
  ".codex",
  ".cursor",
  ".gemini",
  ".kiro",
  ".mcp.json",
  ".opencode",
  ".roo",
  ".windsurf",
  // Editors run tasks, and programs that settings name, when a folder is opened.
  ".devcontainer",
  ".devcontainer.json",
  ".exrc",
  ".idea",
  ".nvim.lua",
  ".vscode",
  ".zed",
  // Shells read these when they start, or enter a folder.
  ".bash_profile",
  ".bashrc",
  ".envrc",
  ".profile",
  ".ssh",
  ".zprofile",
  ".zshenv",
  ".zshrc",
  // Package managers load the code that these name, with any of their commands.
  ".npmrc",
  ".pnpmfile.cjs",
  ".yarnrc",
  ".yarnrc.yml"
]

/**
 * The protected name that a path goes through. A root is the application's own choice: a path is judged by the names
 * below the root that it is in, and free if it is free by one of them.
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
 * Fails when writing to a place would change something protected. `path` is as the model gave it, as a link may stand
 * at a protected name.
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
    if (yield* isGitFolder(folder)) return yield* refused(path, "it is in a folder of git")
    const hooks = yield* hooksOf(folder)
    if (hooks !== undefined && hooks !== folder && Root.contains(paths, hooks, where)) {
      return yield* refused(path, "it is in the folder of git's hooks")
    }
  }
})

/** The failure of a call that would change something protected. */
export const refused = (path: string, what: string): PathRefused =>
  new PathRefused({
    path,
    detail: `${what}, as other programs run what it says. Leave it as it is, or ask the user to change it`
  })

/** As file systems compare names that do not tell cases apart, that ignore some characters, or the end of a name. */
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

/** The folders that `path` is in, from the outermost root inwards. */
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

/** A repository without a working tree, or one whose folder for git is kept under another name. */
const isGitFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  for (const name of ["HEAD", "objects", "refs"]) {
    const has = yield* Effect.orElseSucceed(files.exists(paths.join(folder, name)), () => false)
    if (!has) return false
  }
  return true
})

/** A longer configuration is not looked through. In bytes. */
const maxConfig = 64 * 1024

/** Where a repository has its hooks, if its configuration says so. */
const hooksOf = Effect.fnUntraced(
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
