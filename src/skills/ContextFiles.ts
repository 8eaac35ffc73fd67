/**
 * Finds `AGENTS.md` and `CLAUDE.md`, the instructions of a project for agents.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Folders from "./Folders.ts"

/**
 * A context file.
 *
 * @category models
 * @since 0.2.0
 */
export interface ContextFile {
  /** The absolute path. */
  readonly path: string
  /** The text, of at most `maxBytes` bytes. */
  readonly text: string
  /** The size of the file in bytes. */
  readonly bytes: number
  /** Whether the text is cut. */
  readonly isCut: boolean
  /** The path of a `CLAUDE.md` in the same folder, which is not read because an `AGENTS.md` is there. */
  readonly insteadOf?: string
}

/**
 * Options of `find`.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The current folder. */
  readonly cwd: string
  /** The outermost folder. Default: the next folder upwards that has a `.git`, or `cwd` if none has one. */
  readonly root?: string
  /** The bytes that are read of one file. Default 32,768. */
  readonly maxBytes?: number
}

/** In one folder, the first of these that is there counts. */
const names = ["AGENTS.md", "CLAUDE.md"]

/**
 * Finds the context files from the root of the repository to the current folder, in this order.
 *
 * **Details**
 *
 * Of each folder it reads `AGENTS.md`, or `CLAUDE.md` where there is no `AGENTS.md`: if both are there, `AGENTS.md` wins. It skips
 * a file that is empty, that it cannot read, or that is a link to a place outside the root, and logs a warning for the last two.
 *
 * **Example** (Finding the files of a project)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { ContextFiles } from "effect-agent/skills"
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   const root = yield* files.makeTempDirectoryScoped()
 *   yield* files.makeDirectory(`${root}/src`)
 *   yield* files.writeFileString(`${root}/AGENTS.md`, "Use tabs.")
 *   yield* files.writeFileString(`${root}/src/CLAUDE.md`, "Use Effect.")
 *   const found = yield* ContextFiles.find({ cwd: `${root}/src`, root })
 *   console.log(found.map(({ text }) => text))
 * }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
 *
 * await Effect.runPromise(program) // => [ 'Use tabs.', 'Use Effect.' ]
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const find = Effect.fnUntraced(function* ({
  cwd,
  maxBytes = 32_768,
  root
}: Options): Effect.fn.Return<ReadonlyArray<ContextFile>, never, FileSystem.FileSystem | Path.Path> {
  const { files, leftOut } = yield* search({ cwd, maxBytes, ...(root === undefined ? {} : { root }) })
  yield* Effect.forEach(leftOut, ({ detail, path }) => Effect.logWarning(`${path} is left out: ${detail}`))
  return files
})

/**
 * A context file that is left out.
 *
 * @category models
 * @since 0.2.0
 */
export interface LeftOut {
  /** The absolute path. */
  readonly path: string
  /** The reason in words. */
  readonly detail: string
}

/**
 * Finds the context files as `find` does, and returns those that it left out in place of logging them.
 *
 * **Example** (Naming what is left out)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { ContextFiles } from "effect-agent/skills"
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   const root = yield* files.makeTempDirectoryScoped()
 *   yield* files.symlink("/nowhere", `${root}/AGENTS.md`)
 *   const { leftOut } = yield* ContextFiles.search({ cwd: root, root })
 *   console.log(leftOut.map(({ detail }) => detail))
 * }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
 *
 * await Effect.runPromise(program) // => [ 'it is a link to nothing' ]
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const search = Effect.fnUntraced(function* ({
  cwd,
  maxBytes = 32_768,
  root
}: Options): Effect.fn.Return<
  { readonly files: ReadonlyArray<ContextFile>; readonly leftOut: ReadonlyArray<LeftOut> },
  never,
  FileSystem.FileSystem | Path.Path
> {
  const folders = yield* Folders.from(cwd, root)
  const within = folders[0] ?? cwd
  const leftOut: Array<LeftOut> = []
  const found = yield* Effect.forEach(folders, (folder) => inFolder(folder, within, maxBytes, leftOut))
  return { files: found.filter((file) => file !== undefined), leftOut }
})

const inFolder = Effect.fnUntraced(function* (
  folder: string,
  within: string,
  maxBytes: number,
  leftOut: Array<LeftOut>
) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const present = yield* Effect.filter(
    names.map((name) => path.join(folder, name)),
    (file) => Effect.isSuccess(files.lstat(file))
  )
  for (const [index, file] of present.entries()) {
    const read = yield* Folders.read(file, within, maxBytes).pipe(
      Effect.catch(({ message, reason }) =>
        Effect.succeed(reason._tag === "NotFound" ? "it is a link to nothing" : message)
      ),
      Effect.map((read) => read ?? `it is no file within ${within}`)
    )
    if (typeof read === "string") {
      leftOut.push({ path: file, detail: read })
      continue
    }
    const insteadOf = present[index + 1]
    return read.text.trim() === ""
      ? undefined
      : { path: file, ...read, ...(insteadOf === undefined ? {} : { insteadOf }) }
  }
  return undefined
})

/**
 * Returns the text of context files for a system prompt, each marked with its path.
 *
 * **Example** (Writing a system prompt)
 *
 * ```ts
 * import { ContextFiles } from "effect-agent/skills"
 *
 * const files = [{ path: "/project/AGENTS.md", text: "Use tabs.", bytes: 9, isCut: false }]
 * console.log(ContextFiles.render(files).split("\n").slice(-3).join(" "))
 * // => <context_file path="/project/AGENTS.md"> Use tabs. </context_file>
 * ```
 *
 * @category formatting
 * @since 0.2.0
 */
export const render = (files: ReadonlyArray<ContextFile>): string =>
  files.length === 0
    ? ""
    : [
        "Instructions of this project. Of instructions that contradict each other, the later ones count.",
        ...files.map(
          ({ bytes, isCut, path, text }) =>
            `<context_file path=${JSON.stringify(path)}>\n${text.trim()}${isCut ? `\n[cut: the file has ${bytes} bytes]` : ""}\n</context_file>`
        )
      ].join("\n")
