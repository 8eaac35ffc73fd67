/** Lists the settings that apply, and where each value comes from. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Struct from "effect/Struct"
import * as Configuration from "./Configuration.ts"
import type * as DurableSettings from "./DurableSettings.ts"
import * as ExitCode from "./ExitCode.ts"
import * as Inert from "./Inert.ts"
import { table as limits } from "../internal/limitTable.ts"
import * as ModelChoice from "./ModelChoice.ts"
import { Screen } from "./Screen.ts"
import * as ServerCommands from "./ServerCommands.ts"
import * as ServerOptions from "./ServerOptions.ts"
import * as Settings from "./Settings.ts"
import * as SettingTable from "./SettingTable.ts"
import { flagOf, type From, type Picked, variableOf } from "./Source.ts"
import * as StoreAddress from "./StoreAddress.ts"
import type { Environment } from "./Vendors.ts"

/** The arguments of `effect-agent config`. */
export interface Request
  extends Omit<SettingTable.Flags, "json">,
    DurableSettings.Flags,
    ServerCommands.Options {
  readonly json: boolean
  readonly trust: boolean
  readonly untrust: boolean
}

/** The flags that no file of configuration has. */
const served = Struct.keys(ServerCommands.options)
type Served = (typeof served)[number]

/** A setting as it is shown. */
interface Row {
  readonly value: string | number | boolean | ReadonlyArray<string> | null
  readonly source: From["kind"]
  /** The flag, the variable or the file. */
  readonly from?: string
}

/** Writes the settings to stdout, or changes the trust in the file of the project. */
export const show = Effect.fnUntraced(function* (request: Request, env: Environment) {
  const { json, trust, untrust, durable, lease, retain, unknown, ...others } = request
  const flags = Struct.omit(others, served)
  const none = {
    pick: () => Effect.succeed({ key: "json", isList: false, found: Option.none(), ignored: [] })
  }
  const read = yield* Settings.read({ ...flags, json: none }, env)
  const { err, out, paint } = yield* Screen
  if (trust || untrust) {
    yield* Configuration.trust(read.paths, trust)
    yield* err(`${read.paths.project} is ${trust ? "trusted as it is now" : "no longer trusted"}.\n`)
    return ExitCode.answered
  }
  const { json: _, ...ofRuns } = read.picks
  const shown = {
    ...ofRuns,
    durable: yield* durable.pick(read.sources),
    lease: yield* lease.pick(read.sources),
    retain: yield* retain.pick(read.sources),
    unknown: yield* unknown.pick(read.sources)
  }
  const model = Option.isSome(shown.model.found) ? {} : { model: yield* chosen(read.settings, env) }
  const rows = {
    ...Object.fromEntries(Object.values(shown).map((pick) => [pick.key, rowOf(pick)])),
    ...model,
    ...Object.fromEntries(served.map((key) => [key, optionRow(key, request[key], env)]))
  }
  yield* err(
    Settings.remarksOn(shown)
      .map((remark) => `${paint.dim(Inert.line(remark))}\n`)
      .join("")
  )
  const files = yield* Effect.all({ user: there(read.paths.user), project: there(read.paths.project) })
  yield* out(json ? `${JSON.stringify({ settings: rows, files })}\n` : table(rows))
  return ExitCode.answered
})

/** The row of a flag of servers or workers, else of its variable. */
const optionRow = (
  key: Served,
  given: Option.Option<string> | ReadonlyArray<string>,
  env: Environment
): Row => {
  const flag = flagOf(key)
  const variable = variableOf(flag.slice(2))
  const isList = !Option.isOption(given)
  const texts = (from: Environment) =>
    isList
      ? ServerOptions.many(given, variable, from)
      : Option.toArray(ServerOptions.one(given, variable, from))
  const all = texts(env)
  const [first] = all
  if (first === undefined) return { value: usual[key] ?? null, source: "default" }
  const from =
    texts({}).length > 0
      ? ({ source: "flag", from: flag } as const)
      : ({ source: "variable", from: variable } as const)
  return { value: isList ? all : first, ...from }
}

/** The model that a run would choose. */
const chosen = (settings: Settings.Settings, env: Environment): Effect.Effect<Row> =>
  Effect.match(ModelChoice.choose(settings, env), {
    onFailure: () => ({ value: null, source: "default" }),
    onSuccess: ({ model, why }) => ({ value: model, source: "default", from: why })
  })

const there = (path: string) =>
  FileSystem.FileSystem.use((files) =>
    Effect.map(
      Effect.orElseSucceed(files.exists(path), () => false),
      (exists) => ({ path, exists })
    )
  )

const usual: Readonly<Record<string, Row["value"]>> = {
  approve: "ask on a terminal, else deny",
  clusterHost: "127.0.0.1",
  cwd: ".",
  durable: false,
  grace: "10s",
  host: "127.0.0.1",
  inputFormat: "text",
  lease: "15s",
  unknown: "model",
  maxTurns: limits.maxTurns.initial,
  outputFormat: "text",
  port: "4111",
  sandbox: "auto",
  tools: "all"
}

const rowOf = ({ found, isList, key }: Picked<unknown>): Row =>
  Option.match(found, {
    onNone: () => ({ value: usual[key] ?? null, source: "default" }),
    onSome: ({ from, texts, value }) => ({
      value: isPlain(value) ? value : isList ? texts : StoreAddress.withoutPassword(texts.join()),
      source: from.kind,
      from: from.name
    })
  })

const isPlain = (value: unknown): value is number | boolean =>
  typeof value === "number" || typeof value === "boolean"

/** A line for each setting with a value. */
const table = (rows: Readonly<Record<string, Row>>): string =>
  Object.entries(rows)
    .flatMap(([key, { from, source, value }]) =>
      value === null ? [] : [`${key} = ${Inert.line(String(value))}  (${from ?? source})\n`]
    )
    .join("")
