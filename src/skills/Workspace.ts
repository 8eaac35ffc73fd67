/**
 * The context files and skills of a project, as text for the system prompt and as tools.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type * as Tool from "../Tool.ts"
import * as ContextFiles from "./ContextFiles.ts"
import * as Folders from "./Folders.ts"
import * as Skills from "./Skills.ts"

/**
 * Options of `load`.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options extends ContextFiles.Options {
  /** Whether context files are read. Default `true`. */
  readonly contextFiles?: boolean
  /** Whether skills are offered. Default `true`. */
  readonly skills?: boolean
  /** Folders of skills beside those of the project, such as one in the home folder. Those of the project come first. Default: none. */
  readonly skillFolders?: ReadonlyArray<string>
}

/**
 * The text and the tools that a project gives an agent.
 *
 * @category models
 * @since 0.2.0
 */
export interface Workspace {
  /** The text for the system prompt; `""` if the project has neither context files nor skills. */
  readonly system: string
  /** The tool `skill`, if there are skills. */
  readonly tools: ReadonlyArray<Tool.Runnable>
  /** The context files, outermost first. */
  readonly contextFiles: ReadonlyArray<ContextFiles.ContextFile>
  /**
   * The context files that are left out, such as links out of the repository.
   *
   * @since 0.2.0
   */
  readonly leftOut: ReadonlyArray<ContextFiles.LeftOut>
  /** The skills. */
  readonly skills: ReadonlyArray<Skills.Skill>
  /** The faults of folders that look like skills and are none. */
  readonly problems: ReadonlyArray<Skills.InvalidSkill>
}

/**
 * Finds the context files and the skills of a project.
 *
 * **Details**
 *
 * The skills of a project are in `.agents/skills` and `.claude/skills` of each folder from the root of the repository to `cwd`; those
 * of the inner folders come first. The tools need no services.
 *
 * **Gotchas**
 *
 * Others may have written the files of a repository: their text reaches the model as instructions.
 *
 * **Example** (Loading the instructions of a project)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { Workspace } from "effect-agent/skills"
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   const root = yield* files.makeTempDirectoryScoped()
 *   yield* files.makeDirectory(`${root}/.agents/skills/pdf`, { recursive: true })
 *   yield* files.writeFileString(`${root}/AGENTS.md`, "Use tabs.")
 *   yield* files.writeFileString(
 *     `${root}/.agents/skills/pdf/SKILL.md`,
 *     "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse pdftotext."
 *   )
 *   const workspace = yield* Workspace.load({ cwd: root, root })
 *   console.log(workspace.system.includes("Use tabs."), workspace.system.includes("- pdf: Reads PDF files."))
 *   console.log(workspace.tools.map(({ name }) => name))
 * }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
 *
 * await Effect.runPromise(program)
 * // => true true
 * // => [ 'skill' ]
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const load = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Workspace, never, FileSystem.FileSystem | Path.Path> {
  const services = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const { files: contextFiles, leftOut } =
    options.contextFiles === false ? { files: [], leftOut: [] } : yield* ContextFiles.search(options)
  const found = options.skills === false ? { skills: [], problems: [] } : yield* findSkills(options)
  const { problems, skills } = found
  const skill = Skills.tool(skills)
  const bound: Tool.Runnable = {
    ...skill,
    execute: (params: Parameters<typeof skill.execute>[0]) =>
      Effect.provideContext(skill.execute(params), services)
  }
  return {
    system: [ContextFiles.render(contextFiles), Skills.render(skills)]
      .filter((text) => text !== "")
      .join("\n\n"),
    tools: skills.length === 0 ? [] : [bound],
    contextFiles,
    leftOut,
    skills,
    problems
  }
})

/** The skills of the project, none of which a link may lead out of, and of the other folders. */
const findSkills = Effect.fnUntraced(function* ({ cwd, root, skillFolders = [] }: Options) {
  const path = yield* Path.Path
  const folders = yield* Folders.from(cwd, root)
  const own = folders
    .toReversed()
    .flatMap((folder) => [path.join(folder, ".agents", "skills"), path.join(folder, ".claude", "skills")])
  return yield* Skills.find([...own, ...skillFolders], folders[0])
})
