/**
 * Skills: folders with a `SKILL.md`, whose instructions a model loads when it needs them.
 *
 * **Details**
 *
 * The format is that of Agent Skills (agentskills.io): front matter in YAML with `name` and `description`, then the instructions.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Yaml from "effect/encoding/Yaml"
import * as Tool from "../Tool.ts"
import { TaggedError } from "../internal/errors.ts"
import * as FailureText from "../internal/failureText.ts"
import * as Folders from "./Folders.ts"

/**
 * A skill, without its instructions.
 *
 * @category models
 * @since 0.2.0
 */
export interface Skill {
  /** The name: 1 to 64 lower-case letters, digits and single hyphens. It is the name of the folder. */
  readonly name: string
  /** The purpose and the use, in at most 1,024 characters, which the model always reads. */
  readonly description: string
  /** The absolute path of the folder. */
  readonly folder: string
}

/**
 * A folder does not hold a skill.
 *
 * @category errors
 * @since 0.2.0
 */
export class InvalidSkill extends TaggedError<InvalidSkill>()("InvalidSkill", {
  /** The path of the `SKILL.md`. */
  path: Schema.String,
  /** The line of the fault, from 1. Absent if the fault has none. */
  line: Schema.optionalKey(Schema.Int),
  /** The fault in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.path}${this.line === undefined ? "" : `:${this.line}`}: ${this.detail}`
  }
}

/** The bytes that are read of a `SKILL.md`, and of a file beside it. */
const maxBytes = 100_000
const maxFiles = 200

/**
 * Reads the front matter of the skill in a folder.
 *
 * **Example** (Reading a skill)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { Skills } from "effect-agent/skills"
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   const folder = `${yield* files.makeTempDirectoryScoped()}/pdf`
 *   yield* files.makeDirectory(folder)
 *   yield* files.writeFileString(`${folder}/SKILL.md`, "---\nname: pdf\ndescription: Reads PDFs\nname: again\n---\n")
 *   const error = yield* Effect.flip(Skills.read(folder))
 *   console.log(error.line, error.detail)
 * }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
 *
 * await Effect.runPromise(program) // => 4 Duplicate key 'name'
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const read = (folder: string): Effect.Effect<Skill, InvalidSkill, FileSystem.FileSystem | Path.Path> =>
  Effect.map(content(folder), ({ description, name }) => ({ name, description, folder }))

const content = Effect.fnUntraced(function* (folder: string) {
  const path = yield* Path.Path
  const file = path.join(folder, "SKILL.md")
  const found = yield* Folders.read(file, folder, maxBytes).pipe(
    Effect.mapError((error) => new InvalidSkill({ path: file, detail: error.message }))
  )
  if (found === undefined) {
    return yield* new InvalidSkill({ path: file, detail: "it is no file within the folder of the skill" })
  }
  const parsed = parse(found.text, path.basename(folder))
  return "detail" in parsed
    ? yield* new InvalidSkill({ path: file, ...parsed })
    : { ...parsed, isCut: found.isCut, bytes: found.bytes }
})

/**
 * The skills of some folders, and the faults of those that are none.
 *
 * @category models
 * @since 0.2.0
 */
export interface Found {
  /** The skills, in the order of the folders, and by name within each. */
  readonly skills: ReadonlyArray<Skill>
  /** The faults of the others. */
  readonly problems: ReadonlyArray<InvalidSkill>
}

/**
 * Finds the skills in the folders within some folders, such as `.agents/skills`.
 *
 * **Details**
 *
 * A folder without a `SKILL.md` is no skill. Of skills with one name the first counts, and the others are problems. A folder that is
 * not there has none. A skill in `within`, such as the root of a repository, from which a link leads out is a problem.
 *
 * **Example** (Finding no skills)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { Skills } from "effect-agent/skills"
 *
 * const program = Skills.find(["/nowhere/.agents/skills"]).pipe(Effect.provide(NodeServices.layer))
 * console.log(await Effect.runPromise(program)) // => { skills: [], problems: [] }
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const find = Effect.fnUntraced(function* (
  folders: ReadonlyArray<string>,
  within?: string
): Effect.fn.Return<Found, never, FileSystem.FileSystem | Path.Path> {
  const skills = new Map<string, Skill>()
  const problems: Array<InvalidSkill> = []
  for (const folder of (yield* Effect.forEach(folders, skillFolders)).flat()) {
    const real = within === undefined ? undefined : yield* Folders.outside(folder, within)
    const reading = real === undefined ? read(folder) : Effect.fail(leadingOut(folder, real))
    const skill = yield* Effect.catch(reading, (problem) =>
      Effect.sync(() => {
        problems.push(problem)
        return undefined
      })
    )
    if (skill === undefined) continue
    const first = skills.get(skill.name)
    if (first === undefined) skills.set(skill.name, skill)
    else if (first.folder !== folder) problems.push(duplicate(skill, first))
  }
  return { skills: [...skills.values()], problems }
})

const leadingOut = (folder: string, real: string) =>
  new InvalidSkill({ path: folder, detail: `it leads out of the project, to ${real}` })

const duplicate = ({ folder, name }: Skill, first: Skill) =>
  new InvalidSkill({ path: folder, detail: `the skill ${name} of ${first.folder} comes first` })

const skillFolders = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = yield* Effect.orElseSucceed(files.readDirectory(folder), (): Array<string> => [])
  return yield* Effect.filter(
    names.toSorted().map((name) => path.join(path.resolve(folder), name)),
    (folder) => Effect.orElseSucceed(files.exists(path.join(folder, "SKILL.md")), () => false)
  )
})

/**
 * Returns the names and descriptions of skills for a system prompt.
 *
 * **Example** (Writing a system prompt)
 *
 * ```ts
 * import { Skills } from "effect-agent/skills"
 *
 * const skills = [{ name: "pdf", description: "Reads and fills PDF forms.", folder: "/project/.agents/skills/pdf" }]
 * console.log(Skills.render(skills).split("\n").at(-1)) // => - pdf: Reads and fills PDF forms.
 * ```
 *
 * @category formatting
 * @since 0.2.0
 */
export const render = (skills: ReadonlyArray<Skill>): string =>
  skills.length === 0
    ? ""
    : [
        "Skills have instructions for some tasks. Before you do such a task, load its instructions with the tool `skill`:",
        ...skills.map(({ description, name }) => `- ${name}: ${description.trim().replaceAll(/\s+/g, " ")}`)
      ].join("\n")

const Params = Schema.Struct({
  name: Schema.String.annotate({ description: "The name of the skill" }),
  file: Schema.optionalKey(Schema.String).annotate({
    description: "A file of the skill, relative to its folder. Default: its instructions"
  })
})

/**
 * Makes the tool `skill`, which loads the instructions of a skill and reads its files.
 *
 * **Details**
 *
 * It returns the instructions with the paths of the files of the skill, at most 200. With `file` it returns a text file of
 * the skill; links that lead out of its folder are refused. Both have at most 100,000 bytes. It reads the files when it is called.
 *
 * **Example** (Offering skills)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { Skills } from "effect-agent/skills"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const { skills } = yield* Skills.find([".agents/skills"])
 *   const agent = yield* Agent.make({ model: "any", system: Skills.render(skills), tools: [Skills.tool(skills)] })
 *   return (yield* agent.prompt("Fill the form.")).text
 * }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, ScriptedProvider.layer([ScriptedProvider.text("Filled.")])]))
 *
 * console.log(await Effect.runPromise(program)) // => Filled.
 * ```
 *
 * @category tools
 * @since 0.2.0
 */
export const tool = (skills: ReadonlyArray<Skill>) =>
  Tool.make({
    name: "skill",
    label: "Skill",
    effect: "pure",
    description: "Loads the instructions of a skill, or reads a file of it.",
    params: Params,
    failure: InvalidSkill,
    execute: Effect.fnUntraced(function* ({ file, name }: typeof Params.Type) {
      const skill = skills.find((skill) => skill.name === name)
      if (skill === undefined) {
        return Tool.failure(
          `There is no skill ${JSON.stringify(name)}. Skills: ${skills.map(({ name }) => name).join(", ")}`
        )
      }
      return file === undefined ? yield* instructions(skill) : yield* fileOf(skill, file)
    })
  })

const instructions = Effect.fnUntraced(function* ({ folder, name }: Skill) {
  const { body, bytes, isCut } = yield* content(folder)
  const files = yield* listed(folder)
  return [
    body.trim(),
    ...(isCut ? [`[cut: SKILL.md has ${bytes} bytes]`] : []),
    ...(files.length === 0
      ? []
      : ["", `Files of the skill ${name}, in the folder ${folder}:`, ...files.map((file) => `- ${file}`)])
  ].join("\n")
})

const listed = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = yield* Effect.orElseSucceed(
    files.readDirectory(folder, { recursive: true }),
    (): Array<string> => []
  )
  const isFile = (name: string) =>
    files.stat(path.join(folder, name)).pipe(
      Effect.map(({ type }) => type === "File"),
      Effect.orElseSucceed(() => false)
    )
  const candidates = names
    .filter((name) => name !== "SKILL.md" && !/(^|[\\/])(\.git|node_modules)[\\/]/.test(name))
    .toSorted()
    .slice(0, 10 * maxFiles)
  const found = yield* Effect.filter(candidates, isFile)
  const more = found.length - maxFiles
  return more > 0 ? [...found.slice(0, maxFiles), `(${more} more)`] : found
})

const fileOf = Effect.fnUntraced(function* ({ folder, name }: Skill, file: string) {
  const path = yield* Path.Path
  const found = yield* Effect.option(Folders.read(path.resolve(folder, file), folder, maxBytes))
  const read = found._tag === "None" ? undefined : found.value
  if (read === undefined) return Tool.failure(`The skill ${name} has no file ${JSON.stringify(file)}`)
  if (read.text.includes("\0")) return Tool.failure(`${JSON.stringify(file)} is no text file`)
  return `${read.text}${read.isCut ? `\n[cut: the file has ${read.bytes} bytes]` : ""}`
})

// ───────────────────────── Front matter

/** A fault, and its line in the file, from 1. */
interface Fault {
  readonly detail: string
  readonly line?: number
}

interface Parsed {
  readonly name: string
  readonly description: string
  /** The instructions. */
  readonly body: string
}

/** Parses the text of a `SKILL.md` in a folder of this name. */
const parse = (source: string, folderName: string): Parsed | Fault => {
  const text = source.replace(/^\ufeff/, "").replaceAll("\r\n", "\n")
  const found = /^---[ \t]*\n(?:([^]*?)\n)?---[ \t]*(?:\n([^]*))?$/.exec(text)
  if (found === null) {
    return /^---[ \t]*\n/.test(text)
      ? { line: 1, detail: "the front matter does not end: a line of three hyphens is missing" }
      : { line: 1, detail: "there is no front matter: the first line must be three hyphens" }
  }
  const [, yaml = "", body = ""] = found
  const parsed = Result.orElse(frontMatterOf(yaml), (fault) => byEntry(yaml, fault))
  if (Result.isFailure(parsed)) return parsed.failure
  const { success: fields } = parsed
  if (!Predicate.isObject(fields) || Array.isArray(fields)) {
    return { line: 1, detail: "the front matter has no `name` and `description`" }
  }
  const { description, name } = fields
  const lineOf = (key: string) => {
    const at = yaml.split("\n").findIndex((line) => line.startsWith(`${key}:`))
    return at < 0 ? 1 : at + 2
  }
  const fault = nameFault(name, folderName)
  if (fault !== undefined || !Predicate.isString(name)) {
    return { line: lineOf("name"), detail: fault ?? "`name` is missing" }
  }
  const second = descriptionFault(description)
  if (second !== undefined || !Predicate.isString(description)) {
    return { line: lineOf("description"), detail: second ?? "`description` is missing" }
  }
  return { name, description, body }
}

const frontMatterOf = (yaml: string): Result.Result<unknown, Fault> =>
  Result.try({ try: () => Yaml.parse(yaml), catch: faultOf })

/**
 * The entries of front matter that is no YAML, each read alone. Many writers do not know that `description: Use when: x` and
 * `description: [beta] y` want quotes. Fails with the fault if `name` or `description` cannot be read.
 */
const byEntry = (yaml: string, fault: Fault): Result.Result<object, Fault> => {
  const entries = yaml
    .split(/\n(?=[\w-]+:)/)
    .map((entry) => ({ entry, key: entry.slice(0, entry.indexOf(":")) }))
  if (new Set(entries.map(({ key }) => key)).size < entries.length) return Result.fail(fault)
  const found = entries.map(({ entry, key }) => {
    const value = entry.slice(key.length + 1).trim()
    const lines = value.split("\n").map((line) => line.trim())
    const text = lines.filter((line) => line !== "").join(" ")
    const plain = isMarked(value) ? entry : `${key}: ${JSON.stringify(text)}`
    return Result.getOrElse(
      Result.orElse(frontMatterOf(entry), () => frontMatterOf(plain)),
      () => ({})
    )
  })
  const fields = Object.assign({}, ...found)
  return "name" in fields && "description" in fields ? Result.succeed(fields) : Result.fail(fault)
}

/** Whether a value is a block, a list, a map or in quotes. */
const isMarked = (value: string): boolean =>
  /^[|>][+\-\d]*(?:\s|$)|^(["']).*\1$|^\[.*\]$|^\{.*\}$/s.test(value)

/** The parser counts lines from the front matter, which begins in line 2. */
const faultOf = (thrown: unknown): Fault => {
  const message = FailureText.of(thrown)
  const [, detail = message, line] = /^(.*) at line (\d+)$/s.exec(message) ?? []
  return { line: line === undefined ? 1 : Number(line) + 1, detail }
}

const nameFault = (name: unknown, folderName: string): string | undefined => {
  if (name === undefined || name === null) return "`name` is missing"
  if (!Predicate.isString(name)) return "`name` must be a text: write it in quotes"
  if (name.length > 64 || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) {
    return "`name` must have 1 to 64 lower-case letters, digits and single hyphens between them"
  }
  return name === folderName
    ? undefined
    : `\`name\` must be the name of the folder, ${JSON.stringify(folderName)}, and is ${JSON.stringify(name)}`
}

const descriptionFault = (description: unknown): string | undefined => {
  if (description === undefined || description === null) return "`description` is missing"
  if (!Predicate.isString(description)) return "`description` must be a text: write it in quotes"
  if (description.trim() === "") return "`description` is empty"
  return description.length > 1024
    ? `\`description\` has ${description.length} characters, and 1,024 are allowed`
    : undefined
}
