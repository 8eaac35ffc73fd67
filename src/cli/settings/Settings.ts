/** The settings of a run: those of the flags, else of the variables, of the project, of the user. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Struct from "effect/Struct"
import * as Configuration from "./Configuration.ts"
import { UsageError } from "../ExitCode.ts"
import { flagOf, type From, type Picked, type Sources } from "./Source.ts"
import * as ServerSettings from "./ServerSettings.ts"
import * as SettingTable from "./SettingTable.ts"
import * as Values from "./Values.ts"
import type { Environment } from "../agent/Vendors.ts"

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
  const { paths, project, user } = yield* Configuration.load(env, cwd)
  const sources = { session, env, project, user }
  const picks = yield* SettingTable.pick(flags, sources)
  const writable = Option.getOrElse(valueOf(picks.writable), () => [])
  for (const path of writable)
    if (!(yield* isFolder(path)))
      return yield* new UsageError({ detail: `--writable: there is no folder ${path}.` })
  const { place, store } = yield* storeOf(picks)
  const settings = { ...settingsOf(picks), cwd, store }
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
  const { project, user } = yield* Configuration.load(env, cwd)
  const [sessionDir, store] = yield* Effect.all([
    flags.sessionDir.pick({ env, project, user }),
    flags.store.pick({ env, project, user })
  ])
  return { cwd, ...(yield* storeOf({ sessionDir, store })) }
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
    sandbox: Option.getOrElse(values.sandbox, () => "auto" as const),
    network: isOn(values.network),
    writable: Option.getOrElse(values.writable, () => []),
    passEnv: Option.getOrElse(values.passEnv, () => []),
    continue: isOn(values.continue),
    noSession: isOn(values.noSession) && (isFlag(picks.noSession) || !namesSession(picks)),
    noMcp: isOn(values.noMcp),
    noContextFiles: isOn(values.noContextFiles),
    failOnRefusal: isOn(values.failOnRefusal),
    noDetect: isOn(values.noDetect)
  }
}

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
