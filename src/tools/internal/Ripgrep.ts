/**
 * Runs ripgrep (`rg`), if it is installed, to find the files that contain certain words.
 *
 * The search itself does not depend on its answer being right: the caller opens the files that it names inside
 * the roots and matches their lines. So a link that another process puts in place of a file during the search
 * leads nowhere, and a search without ripgrep finds the same lines, only later.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Stream from "effect/Stream"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as ChildEnvironment from "../ChildEnvironment.ts"
import type * as LineMatcher from "./LineMatcher.ts"
import * as Root from "../Root.ts"

/**
 * Returns the files of `paths`, relative to the real path `folder`, that may contain a match. `undefined` if
 * ripgrep fails.
 */
export type Ripgrep = (
  folder: string,
  paths: ReadonlyArray<string>
) => Effect.Effect<ReadonlySet<string> | undefined>

/**
 * Makes a function that gives the search for the words of a matcher. It finds `rg` through `PATH` when it is first
 * called, and keeps the answer. `undefined` if the matcher has no words, or one that a file in another encoding hides, no process can be started, or there is
 * no `rg` outside the roots: a model that may write files must not choose the program that runs.
 */
export const finder = () => {
  let found: Option.Option<string> | undefined
  return Effect.fnUntraced(function* (roots: ReadonlyArray<string>, matcher: LineMatcher.LineMatcher) {
    const spawner = yield* Effect.serviceOption(ChildProcessSpawner.ChildProcessSpawner)
    if (Option.isNone(spawner) || matcher.words.length === 0 || !matcher.isAscii) return undefined
    found ??= yield* installed(roots)
    return Option.isNone(found) ? undefined : make(spawner.value, found.value, matcher)
  })
}

const installed = Effect.fnUntraced(function* (roots: ReadonlyArray<string>) {
  const paths = yield* Path.Path
  const isWindows = paths.sep === "\\"
  const folders = (globalThis.process.env["PATH"] ?? "").split(isWindows ? ";" : ":")
  for (const folder of folders.filter(paths.isAbsolute)) {
    const program = yield* programAt(paths.join(folder, isWindows ? "rg.exe" : "rg"))
    if (program !== undefined && !roots.some((root) => Root.contains(paths, root, program))) {
      return Option.some(program)
    }
  }
  return Option.none<string>()
})

const programAt = Effect.fnUntraced(
  function* (path: string) {
    const files = yield* FileSystem.FileSystem
    const program = yield* files.realPath(path)
    return (yield* files.stat(program)).type === "File" ? program : undefined
  },
  Effect.orElseSucceed(() => undefined)
)

const make = (
  { spawn }: ChildProcessSpawner.ChildProcessSpawner["Service"],
  program: string,
  { ignoreCase, words }: LineMatcher.LineMatcher
): Ripgrep => {
  const options = [
    ...usual,
    ...(ignoreCase ? ["--ignore-case"] : []),
    ...words.flatMap((word) => ["-e", escaped(word), ...wide(word)])
  ]
  return (folder, paths) =>
    spawn(command(program, [...options, "--", ...paths.map(named)], folder)).pipe(
      Effect.flatMap(filesOf),
      Effect.map((found) => (found !== undefined && isWithin(found, paths) ? found : undefined)),
      Effect.orElseSucceed(() => undefined),
      Effect.scoped
    )
}

const escaped = (word: string): string => word.replace(/[\\.+*?()|[\]{}^$#&~-]/g, "\\$&")

/** The word in UTF-16, which a file without a byte order mark may have. */
const wide = (word: string): ReadonlyArray<string> =>
  /^[\0-\x7f]+$/.test(word)
    ? ["-e", `(?-u:${Array.from(word.slice(0, 20), (char) => escaped(char)).join("\\x00")})`]
    : []

/** ripgrep takes the name `-` for its stdin. */
const named = (path: string): string => (path === "-" ? "./-" : path)

const isWithin = (found: ReadonlySet<string>, paths: ReadonlyArray<string>): boolean => {
  const known = new Set(paths)
  return Array.from(found).every((path) => known.has(path))
}

const usual: ReadonlyArray<string> = [
  "--no-config",
  "--no-messages",
  "--no-mmap",
  "--color=never",
  "--files-with-matches",
  "--null",
  // The caller skips files that are no texts. ripgrep decodes UTF-16 with a byte order mark, and takes other bytes
  // as they are.
  "--text"
]

const command = (program: string, options: ReadonlyArray<string>, folder: string) =>
  ChildProcess.make(program, options, {
    cwd: folder,
    env: ChildEnvironment.make(globalThis.process.env, { passed: [], added: {} }),
    stdin: "ignore",
    stderr: "ignore"
  })

/** Exit code 0: some files match. 1: none does. Others: an error, of one file or of all. */
const filesOf = Effect.fnUntraced(function* (handle: ChildProcessSpawner.ChildProcessHandle) {
  const output = yield* Stream.mkString(Stream.decodeText(handle.stdout))
  const code = yield* handle.exitCode
  if (code > 1) return undefined
  const paths = output.split("\0").filter((path) => path !== "")
  return new Set(paths.map((path) => (path === "./-" ? "-" : path)))
})
