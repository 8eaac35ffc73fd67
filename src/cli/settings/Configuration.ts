/**
 * The configuration files: that of the user, `$XDG_CONFIG_HOME/effect-agent/config.json`, and that of the project,
 * `.effect-agent/config.json` in the folder of the run or in the next one above it, up to the root of the repository.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import { homedir } from "node:os"
import * as Folders from "../../skills/Folders.ts"
import * as NearestName from "../../internal/nearestName.ts"
import { UsageError } from "../ExitCode.ts"
import * as ServerSettings from "./ServerSettings.ts"
import * as SettingTable from "./SettingTable.ts"
import type { File, Member } from "./Source.ts"
import type { Environment } from "../agent/Vendors.ts"

const settings = Object.fromEntries(
  Object.values({ ...SettingTable.all, ...ServerSettings.settings }).flatMap(({ json, key }) =>
    json === undefined ? [] : [[key, Schema.optionalKey(json)] as const]
  )
)

/** The schema of the settings in a file. */
const Members = Schema.Struct(settings)

const beside = {
  $schema: Schema.optionalKey(Schema.String.annotate({ description: "The address of this schema." })),
  trusted: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.String).annotate({
      description:
        "Folders of projects whose configuration may widen what the agent may do, with the SHA-256 of that file. Only in the configuration of the user."
    })
  )
}

/** The schema of a configuration file. */
export const Content = Schema.Struct({ ...settings, ...beside }).annotate({
  title: "Configuration of effect-agent"
})

const Beside = Schema.Struct(beside)

export interface Configuration {
  readonly user: File | undefined
  readonly project: File | undefined
  readonly paths: Paths
}

export interface Paths {
  /** The file of the user, which may not exist. */
  readonly user: string
  /** The file of the project, which may not exist. */
  readonly project: string
  /** The folder of the project. */
  readonly folder: string
  /** The folder that a link in place of the project's file must not leave: the root of the repository. */
  readonly within: string
}

/** Reads both files. Fails with `UsageError` for a file that is not valid; the error names the file and the fault. */
export const load = Effect.fnUntraced(function* (env: Environment, cwd: string) {
  const paths = yield* locate(env, cwd)
  const ofUser = yield* read(paths.user)
  const ofProject = yield* read(paths.project, paths.within)
  const trusted = ofUser?.beside.trusted ?? {}
  if (ofProject?.beside.trusted !== undefined)
    return yield* new UsageError({
      detail: `${paths.project}: "trusted" belongs into ${paths.user}, where only the user writes.`
    })
  const configuration: Configuration = {
    paths,
    user: ofUser && { path: paths.user, members: ofUser.members, isTrusted: true },
    project: ofProject && {
      path: paths.project,
      members: ofProject.members,
      isTrusted: Object.hasOwn(trusted, paths.folder) && trusted[paths.folder] === ofProject.hash
    }
  }
  return configuration
})

const locate = Effect.fnUntraced(function* (
  env: Environment,
  cwd: string
): Effect.fn.Return<Paths, never, FileSystem.FileSystem | Path.Path> {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const set = env["XDG_CONFIG_HOME"] ?? ""
  const base = path.isAbsolute(set) ? set : path.join(env["HOME"] ?? homedir(), ".config")
  const start = yield* Effect.orElseSucceed(files.realPath(cwd), () => path.resolve(cwd))
  const inFolder = (folder: string) => path.join(folder, ".effect-agent", "config.json")
  const there = (file: string) => Effect.orElseSucceed(files.exists(file), () => false)
  // Without a repository the files of folders above belong to no project.
  const folders = yield* Folders.from(start)
  const found = yield* Effect.findFirst(folders.toReversed(), (folder) => there(inFolder(folder)))
  const folder = Option.getOrElse(found, () => start)
  const user = path.join(base, "effect-agent", "config.json")
  return { user, project: inFolder(folder), folder, within: folders[0] ?? start }
})

/** Maximum bytes of a file. */
const maxBytes = 256 * 1024

/** A file, `undefined` if there is none. Fails for one that is no regular file `within` the folder, and for a large one. */
const read = Effect.fnUntraced(function* (path: string, within?: string) {
  const refused = (why: string) => new UsageError({ detail: `${path} cannot be read: ${why}` })
  const found = yield* Folders.read(path, within, maxBytes).pipe(
    Effect.map(Option.some),
    Effect.catchTag("PlatformError", (error) =>
      error.reason._tag === "NotFound" ? Effect.succeedNone : Effect.fail(refused(error.message))
    )
  )
  if (Option.isNone(found)) return undefined
  if (found.value === undefined)
    return yield* refused(`it is no file${within === undefined ? "" : ` within ${within}`}.`)
  const { bytes, isCut, text } = found.value
  if (isCut) return yield* refused(`it has ${bytes} bytes, and at most ${maxBytes} are read.`)
  return yield* Effect.fromResult(parse(path, text))
})

interface Content {
  readonly members: Readonly<Record<string, Member | undefined>>
  readonly beside: typeof Beside.Type
  readonly hash: string
}

const parse = (path: string, text: string): Result.Result<Content, UsageError> =>
  Result.gen(function* () {
    const refused = (fault: string) => new UsageError({ detail: `${path}: ${fault}` })
    const json: unknown = yield* Result.try({
      try: () => JSON.parse(text),
      catch: (thrown) => refused(`not JSON: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
    })
    const names = typeof json === "object" && json !== null ? Object.keys(json) : []
    const unknown = names.find((name) => !known.includes(name))
    if (unknown !== undefined) return yield* Result.fail(refused(misspelt(unknown)))
    const decode = <A>(schema: Schema.Codec<A, unknown>) =>
      Result.mapError(Schema.decodeUnknownResult(schema)(json), ({ message }) =>
        refused(message.replaceAll(/\s+/g, " "))
      )
    return { members: yield* decode(Members), beside: yield* decode(Beside), hash: hashOf(text) }
  })

const known = [...Object.keys(settings), ...Object.keys(beside)]

const misspelt = (name: string): string => {
  const nearest = NearestName.of(name, known)
  const advice = nearest === undefined ? `Settings: ${known.join(", ")}.` : `Did you mean "${nearest}"?`
  return `${JSON.stringify(name)} is no setting. ${advice}`
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Writes down that the user trusts the file of the project as it is now, or no longer. */
export const trust = Effect.fnUntraced(function* (paths: Paths, isTrusted: boolean) {
  const project = yield* read(paths.project, paths.within)
  if (project === undefined)
    return yield* new UsageError({ detail: `There is no ${paths.project} to trust.` })
  const before = yield* read(paths.user)
  const text = yield* Effect.option(FileSystem.FileSystem.use((files) => files.readFileString(paths.user)))
  const { [paths.folder]: _, ...others } = before?.beside.trusted ?? {}
  const trusted = isTrusted ? { ...others, [paths.folder]: project.hash } : others
  const content: object = Option.match(text, { onNone: () => ({}), onSome: (text) => JSON.parse(text) })
  yield* Effect.mapError(
    write(paths.user, { ...content, trusted }),
    ({ message }) => new UsageError({ detail: `${paths.user} cannot be written: ${message}` })
  )
})

/** Writes a file of the user, which no other user may read. */
const write = Effect.fnUntraced(function* (file: string, content: object) {
  const files = yield* FileSystem.FileSystem
  yield* files.makeDirectory((yield* Path.Path).dirname(file), { recursive: true })
  const next = `${file}.${process.pid}`
  yield* files.writeFileString(next, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 })
  yield* files.rename(next, file)
})
