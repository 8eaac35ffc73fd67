/** The settings of a run: those of the flags, else of the variables, of the project, of the user. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { createHash } from "node:crypto"
import { homedir } from "node:os"
import { UsageError } from "../ExitCode.ts"
import { flagOf, type From, type Picked, type Sources, type File, type Member } from "./Setting.ts"
import * as ServerSettings from "./ServerSettings.ts"
import * as SettingTable from "./SettingTable.ts"
import * as PrivateFile from "./PrivateFile.ts"
import * as UserFolder from "./UserFolder.ts"
import * as Values from "./Values.ts"
import type { Environment } from "../agent/Vendors.ts"
import * as Folders from "../../skills/Folders.ts"
import * as NearestName from "../../internal/nearestName.ts"

/** The settings that apply. */
export type Settings = Effect.Success<ReturnType<typeof read>>["settings"]

/**
 * Reads the settings, with the place of each and remarks on values that do not count. `session` has the folder and the model of the
 * session that continues.
 */
export const read = Effect.fnUntraced(function* (
  flags: SettingTable.Flags,
  env: Environment,
  session?: Sources["session"]
) {
  const cwd = yield* cwdOf(flags, env, session)
  const configuration = yield* configurationOf(env, cwd)
  const { paths, project, user } = configuration
  const sources = { session, env, project, user }
  const picks = yield* SettingTable.pick(flags, sources)
  const writable = Option.getOrElse(valueOf(picks.writable), () => [])
  for (const path of writable)
    if (!(yield* isFolder(path)))
      return yield* new UsageError({ detail: `--writable: there is no folder ${path}.` })
  const { place, store } = yield* storeOf(picks)
  const settings = { ...settingsOf(picks), cwd, store, configuration, hooksFrom: namedFiles(picks.hooksFrom) }
  const remarks = [...remarksOn(picks), ...remarksOnModel(picks, sources)]
  return { settings, picks, place, paths, remarks, sources }
})

/** Reads the settings of a server, of a worker, or of a command that reaches a server, with their defaults. */
export const ofServer = Effect.fnUntraced(function* (flags: ServerSettings.Flags, sources: Sources) {
  const picks = yield* ServerSettings.pick(flags, sources)
  const values = Struct.map(picks, Struct.lambda<ToValue>(valueOf))
  const isDurable = Option.contains(values.durable, true)
  // A variable or a configuration file also serves commands that it does not fit.
  const alone = ServerSettings.ofDurable.find((key) => !isDurable && isFlag(picks[key]))
  return {
    ...values,
    isDurable,
    /** A flag that goes with `--durable`, which is not there. */
    alone: alone === undefined ? undefined : flagOf(alone),
    host: Option.getOrElse(values.host, () => "127.0.0.1"),
    port: Option.getOrElse(values.port, () => 4111),
    clusterHost: Option.getOrElse(values.clusterHost, () => "127.0.0.1"),
    allowHost: Option.getOrElse(values.allowHost, () => []),
    allowOrigin: Option.getOrElse(values.allowOrigin, () => []),
    allowHeader: Option.getOrElse(values.allowHeader, () => []),
    exposeHeader: Option.getOrElse(values.exposeHeader, () => []),
    proxyModel: Option.getOrElse(values.proxyModel, () => []),
    sessionModel: Option.getOrElse(values.sessionModel, () => []),
    grace: Option.getOrElse(values.grace, () => Duration.seconds(10)),
    unknown: Option.getOrElse(values.unknown, () => "model" as const),
    remarks: remarksOn(picks)
  }
})

/** The settings of a server that apply. */
export type OfServer = Effect.Success<ReturnType<typeof ofServer>>

/** The flags that name the place of sessions. */
export type PlaceFlags = Pick<SettingTable.Flags, "cwd" | "sessionDir" | "store">

/** Reads the settings that name the place of sessions. */
export const place = Effect.fnUntraced(function* (flags: PlaceFlags, env: Environment) {
  const cwd = yield* cwdOf(flags, env)
  const { project, user } = yield* configurationOf(env, cwd)
  const sources = { env, project, user }
  const { keepFile, keepSession } = SettingTable.absent
  const [sessionDir, store, ofFile, ofSession] = yield* Effect.all([
    flags.sessionDir.pick(sources),
    flags.store.pick(sources),
    keepFile.pick(sources),
    keepSession.pick(sources)
  ])
  const limits = { keepFile: valueOf(ofFile), keepSession: valueOf(ofSession) }
  return { cwd, ...limits, ...(yield* storeOf({ sessionDir, store })) }
})

/** The place of sessions that counts, and its setting: of `store` and `sessionDir` the one that a stronger place has. */
const storeOf = Effect.fnUntraced(function* ({
  sessionDir,
  store
}: Pick<SettingTable.Picks, "sessionDir" | "store">): Effect.fn.Return<
  { readonly store: Option.Option<Values.StoreAddress>; readonly place: Picked<unknown> },
  UsageError
> {
  const isBoth = Option.isSome(sessionDir.found) && Option.isSome(store.found)
  if (isBoth && rankOf(sessionDir) === rankOf(store))
    return yield* new UsageError({
      detail: "--store and --session-dir exclude one another: give one of them."
    })
  if (rankOf(store) <= rankOf(sessionDir)) return { store: valueOf(store), place: store }
  const folder = Option.map(valueOf(sessionDir), (directory) => ({ _tag: "Files" as const, directory }))
  return { store: folder, place: sessionDir }
})

const cwdOf = Effect.fnUntraced(function* (
  { cwd: flag }: Pick<SettingTable.Flags, "cwd">,
  env: Environment,
  session?: Sources["session"]
) {
  const { found } = yield* flag.pick({ session, env, project: undefined, user: undefined })
  if (Option.isNone(found)) return "."
  const { from, value } = found.value
  if (yield* isFolder(value)) return value
  const detail =
    from.kind === "session"
      ? `The folder of the session, ${value}, does not exist: give another one with --cwd.`
      : `--cwd: there is no folder ${value}.`
  return yield* new UsageError({ detail })
})

const valueOf = <A>({ found }: Picked<A>): Option.Option<A> => Option.map(found, ({ value }) => value)

const isFolder = (path: string) =>
  Effect.map(
    Effect.option(FileSystem.FileSystem.use((files) => files.stat(path))),
    Option.exists(({ type }) => type === "Directory")
  )

const nothing = { tools: new Set<string>(), commands: [] }

const settingsOf = (picks: SettingTable.Picks) => {
  const values = Struct.map(picks, Struct.lambda<ToValue>(valueOf))
  const isOn = (value: Option.Option<boolean>) => Option.getOrElse(value, () => false)
  return {
    ...values,
    model: Option.map(values.model, ({ name }) => name),
    modelFrom: Option.match(picks.model.found, { onNone: () => "", onSome: ({ from }) => from.name }),
    effort: effortOf(picks),
    fallbackModel: Option.getOrElse(values.fallbackModel, () => []),
    file: Option.getOrElse(values.file, () => []),
    inputFormat: Option.getOrElse(values.inputFormat, () => "text" as const),
    outputFormat: isOn(values.json)
      ? ("stream-json" as const)
      : Option.getOrElse(values.outputFormat, () => "text" as const),
    print: isOn(values.print),
    tools: Option.getOrElse(values.tools, () => Values.tools),
    allow: Option.getOrElse(values.allow, () => nothing),
    deny: Option.getOrElse(values.deny, () => nothing),
    yes: isOn(values.yes),
    plan: isOn(values.plan),
    taskList: Option.getOrElse(values.taskList, () => true),
    sandbox: Option.getOrElse(values.sandbox, () => "auto" as const),
    network: isOn(values.network),
    writable: Option.getOrElse(values.writable, () => []),
    passEnv: Option.getOrElse(values.passEnv, () => []),
    continue: isOn(values.continue),
    noSession: isOn(values.noSession) && (isFlag(picks.noSession) || !namesSession(picks)),
    noMcp: isOn(values.noMcp),
    disableHooks: isOn(values.disableHooks),
    noContextFiles: isOn(values.noContextFiles),
    failOnRefusal: isOn(values.failOnRefusal),
    noDetect: isOn(values.noDetect),
    interactive: isOn(values.interactive),
    plain: isOn(values.plain),
    enter: Option.getOrElse(values.enter, () => "steer" as const),
    notify: Option.getOrElse(values.notify, () => "bell" as const),
    theme: Option.getOrElse(values.theme, () => "auto" as const),
    title: Option.getOrElse(values.title, () => true),
    motion: Option.getOrElse(values.motion, () => true)
  }
}

/** The files of hooks that the command line or a variable names. Those of the configuration stand in its files. */
const namedFiles = ({ found }: SettingTable.Picks["hooksFrom"]): ReadonlyArray<string> =>
  Option.match(found, {
    onNone: () => [],
    onSome: ({ from, value }) => (from.kind === "flag" || from.kind === "variable" ? value : [])
  })

const isFlag = ({ found }: Picked<unknown>): boolean =>
  Option.exists(found, ({ from }) => from.kind === "flag")

/** Whether a setting names a session that exists. It wins over `noSession` of another place than the command line. */
const namesSession = ({ continue: isContinued, fork, resume }: SettingTable.Picks): boolean =>
  Option.contains(valueOf(isContinued), true) || Option.isSome(fork.found) || Option.isSome(resume.found)

interface ToValue extends Struct.Lambda {
  <A>(picked: Picked<A>): Option.Option<A>
  readonly "~lambda.out": this["~lambda.in"] extends Picked<infer A> ? Option.Option<A> : never
}

const strength: ReadonlyArray<From["kind"]> = ["flag", "session", "variable", "project", "user", "default"]

/** The effort behind the id of the model counts, unless `effort` has a value in the same or a stronger place. */
const effortOf = ({ effort, model }: SettingTable.Picks) => {
  const ofModel = Option.flatMap(valueOf(model), (model) => Option.fromUndefinedOr(model.effort))
  if (Option.isNone(ofModel)) return valueOf(effort)
  return Option.isSome(effort.found) && rankOf(effort) <= rankOf(model) ? valueOf(effort) : ofModel
}

const rankOf = ({ found }: Picked<unknown>): number =>
  strength.indexOf(Option.match(found, { onNone: () => "default", onSome: ({ from }) => from.kind }))

/** A line about the models that a project chooses which the user does not trust: their prices are not those that the user knows. */
const remarksOnModel = (
  { effort, fallbackModel, model }: SettingTable.Picks,
  { project }: Sources
): ReadonlyArray<string> => {
  if (project === undefined || project.isTrusted) return []
  const chosen = [model, fallbackModel, effort].flatMap(({ found, key }: Picked<unknown>) =>
    Option.match(found, {
      onNone: () => [],
      onSome: ({ from, texts }) => (from.kind === "project" ? [`${key} ${texts.join(", ")}`] : [])
    })
  )
  return chosen.length === 0 ? [] : [`${project.path} of this project chooses ${chosen.join(" and ")}.`]
}

/** One line for each place whose values do not count. */
export const remarksOn = (picks: Readonly<Record<string, Picked<unknown>>>): ReadonlyArray<string> => {
  const ignored = Object.values(picks).flatMap(({ ignored, key }) => ignored.map((from) => ({ key, from })))
  const ofVariables = ignored.flatMap(({ from }) =>
    from.kind === "variable"
      ? [`${from.name} does not count: only a flag or the user's configuration may allow that.`]
      : []
  )
  const ofProject = ignored.filter(({ from }) => from.kind === "project")
  const [first] = ofProject
  if (first === undefined) return ofVariables
  const keys = ofProject.map(({ key }) => key).join(", ")
  return [
    ...ofVariables,
    `${first.from.name} does not count for ${keys} until you trust it: effect-agent config --trust.`
  ]
}

// ───────────────────────── The configuration files
//
// That of the user is `$XDG_CONFIG_HOME/effect-agent/config.json`, that of the project `.effect-agent/config.json` in the folder of the run or in
// the next one above it, up to the root of the repository.

const settings = Object.fromEntries(
  Object.values({ ...SettingTable.all, ...ServerSettings.settings }).flatMap(({ json, key }) =>
    json === undefined ? [] : [[key, Schema.optionalKey(json)] as const]
  )
)

/** The schema of the settings in a file. */
const Members = Schema.Struct(settings)

const beside = {
  hooks: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Array(Schema.Record(Schema.String, Schema.Json))).annotate({
      description:
        "Commands to run at points of a run, such as PreToolUse, in the format of the settings of Claude Code. Those of a project run once the user trusts it."
    })
  ),
  $schema: Schema.optionalKey(Schema.String.annotate({ description: "The address of this schema." })),
  trusted: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.String).annotate({
      description:
        "Folders of projects whose configuration may widen what the agent may do, with the SHA-256 of that file. Only in the configuration of the user."
    })
  )
}

/** The schema of a configuration file. */
export const ConfigurationFile = Schema.Struct({ ...settings, ...beside }).annotate({
  title: "Configuration of effect-agent"
})

const Beside = Schema.Struct(beside)

export interface Configuration {
  readonly user: File | undefined
  readonly project: File | undefined
  readonly paths: ConfigurationPaths
}

export interface ConfigurationPaths {
  /** The file of the user, which may not exist. */
  readonly user: string
  /** The file of the project, which may not exist. */
  readonly project: string
  /** The folder of the project. */
  readonly folder: string
  /** The folder that a link in place of the project's file must not leave: the root of the repository. */
  readonly within: string
  /** The folders of Karl's hooks: of the project, then of the user. They may not exist. */
  readonly karl: { readonly project: string; readonly user: string }
}

const hooksIn = ({ beside, members }: ConfigurationFile): Pick<File, "hasHooks" | "hooksFrom"> => {
  const names = members["hooksFrom"]
  return {
    hasHooks: beside.hooks !== undefined,
    hooksFrom: Array.isArray(names) ? names.map(String) : typeof names === "string" ? [names] : []
  }
}

/** Reads both files. Fails with `UsageError` for a file that is not valid; the error names the file and the fault. */
export const configurationOf = Effect.fnUntraced(function* (env: Environment, cwd: string) {
  const paths = yield* locate(env, cwd)
  const ofUser = yield* readFile(paths.user)
  const ofProject = yield* readFile(paths.project, paths.within)
  const trusted = ofUser?.beside.trusted ?? {}
  if (ofProject?.beside.trusted !== undefined)
    return yield* new UsageError({
      detail: `${paths.project}: "trusted" belongs into ${paths.user}, where only the user writes.`
    })
  const configuration: Configuration = {
    paths,
    user: ofUser && {
      path: paths.user,
      members: ofUser.members,
      ...hooksIn(ofUser),
      isTrusted: true
    },
    project: ofProject && {
      path: paths.project,
      members: ofProject.members,
      ...hooksIn(ofProject),
      isTrusted: Object.hasOwn(trusted, paths.folder) && trusted[paths.folder] === ofProject.hash
    }
  }
  return configuration
})

const locate = Effect.fnUntraced(function* (
  env: Environment,
  cwd: string
): Effect.fn.Return<ConfigurationPaths, never, FileSystem.FileSystem | Path.Path> {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const start = yield* Effect.orElseSucceed(files.realPath(cwd), () => path.resolve(cwd))
  const inFolder = (folder: string) => path.join(folder, ".effect-agent", "config.json")
  const there = (file: string) => Effect.orElseSucceed(files.exists(file), () => false)
  // Without a repository the files of folders above belong to no project.
  const folders = yield* Folders.from(start)
  const found = yield* Effect.findFirst(folders.toReversed(), (folder) => there(inFolder(folder)))
  const folder = Option.getOrElse(found, () => start)
  const user = path.join(yield* UserFolder.of(env), "config.json")
  const karl = {
    project: path.join(folder, ".karl", "hooks"),
    user: path.join(env["HOME"] ?? homedir(), ".config", "karl", "hooks")
  }
  return { user, project: inFolder(folder), folder, within: folders[0] ?? start, karl }
})

/** Maximum bytes of a file. */
const maxBytes = 256 * 1024

/** A file, `undefined` if there is none. Fails for one that is no regular file `within` the folder, and for a large one. */
const readFile = Effect.fnUntraced(function* (path: string, within?: string) {
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

interface ConfigurationFile {
  readonly members: Readonly<Record<string, Member | undefined>>
  readonly beside: typeof Beside.Type
  readonly hash: string
}

const parse = (path: string, text: string): Result.Result<ConfigurationFile, UsageError> =>
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
export const trust = Effect.fnUntraced(function* (paths: ConfigurationPaths, isTrusted: boolean) {
  const project = yield* readFile(paths.project, paths.within)
  if (project === undefined)
    return yield* new UsageError({ detail: `There is no ${paths.project} to trust.` })
  const before = yield* readFile(paths.user)
  const text = yield* Effect.option(FileSystem.FileSystem.use((files) => files.readFileString(paths.user)))
  const { [paths.folder]: _, ...others } = before?.beside.trusted ?? {}
  const trusted = isTrusted ? { ...others, [paths.folder]: project.hash } : others
  const content: object = Option.match(text, { onNone: () => ({}), onSome: (text) => JSON.parse(text) })
  yield* Effect.mapError(
    PrivateFile.write(paths.user, { ...content, trusted }),
    ({ message }) => new UsageError({ detail: `${paths.user} cannot be written: ${message}` })
  )
})
