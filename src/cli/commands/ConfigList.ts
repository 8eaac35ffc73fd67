/** Lists the settings that apply, and where each value comes from. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Settings from "../settings/Settings.ts"
import * as ExitCode from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import { table as limits } from "../../internal/limitTable.ts"
import * as ModelChoice from "../agent/ModelChoice.ts"
import { say, Screen } from "../terminal/Screen.ts"
import * as ServerSettings from "../settings/ServerSettings.ts"
import type * as SettingTable from "../settings/SettingTable.ts"
import type { From, Picked } from "../settings/Setting.ts"
import * as Values from "../settings/Values.ts"
import type { Environment } from "../agent/Vendors.ts"

/** The arguments of `effect-agent config`. */
export interface Request extends Omit<SettingTable.Flags, "json">, ServerSettings.Flags {
  readonly json: boolean
  readonly trust: boolean
  readonly untrust: boolean
}

/** A setting as it is shown. */
interface Row {
  readonly value: string | number | boolean | ReadonlyArray<string> | null
  readonly source: From["kind"]
  /** The flag, the variable or the file. */
  readonly from?: string
}

/** Writes the settings to stdout, or changes the trust in the file of the project. */
export const show = Effect.fnUntraced(function* (request: Request, env: Environment) {
  const { json, trust, untrust, ...flags } = request
  const none = {
    pick: () => Effect.succeed({ key: "json", isList: false, found: Option.none(), ignored: [] })
  }
  const read = yield* Settings.read({ ...flags, json: none }, env)
  const { err, out } = yield* Screen
  if (trust || untrust) {
    const { trust: trustHooks } = yield* Effect.promise(() => import("../hooks/HookSources.ts"))
    const count = yield* trustHooks(read.settings, trust)
    if (count === 0 || read.sources.project !== undefined) yield* Settings.trust(read.paths, trust)
    yield* err(`${read.paths.project} is ${trust ? "trusted as it is now" : "no longer trusted"}.\n`)
    return ExitCode.answered
  }
  const { json: _, ...ofRuns } = read.picks
  const shown = { ...ofRuns, ...(yield* ServerSettings.pick(flags, read.sources)) }
  const model = Option.isSome(shown.model.found) ? {} : { model: yield* chosen(read.settings, env) }
  const rows = {
    ...Object.fromEntries(Object.values(shown).map((pick) => [pick.key, rowOf(pick)])),
    ...model
  }
  yield* say(Settings.remarksOn(shown))
  const files = yield* Effect.all({ user: there(read.paths.user), project: there(read.paths.project) })
  yield* out(json ? `${JSON.stringify({ settings: rows, files })}\n` : table(rows))
  return ExitCode.answered
})

/** The model that a run would choose. */
const chosen = (
  settings: Settings.Settings,
  env: Environment
): Effect.Effect<Row, never, ModelChoice.Services> =>
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
  bodyTime: "1m",
  headTime: "30s",
  keepAlive: "75s",
  maxBodies: 256,
  maxConnections: 10_000,
  port: 4111,
  sandbox: "auto",
  tools: "all",
  url: "http://127.0.0.1:4111"
}

const rowOf = ({ found, isList, key }: Picked<unknown>): Row =>
  Option.match(found, {
    onNone: () => ({ value: usual[key] ?? null, source: "default" }),
    onSome: ({ from, texts, value }) => ({
      value: isPlain(value) ? value : isList ? texts : Values.withoutPassword(texts.join()),
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
