/** Chooses the sandbox of shell commands. The program always shows the choice. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as ChildEnvironment from "../../tools/ChildEnvironment.ts"
import * as Sandbox from "../../tools/Sandbox.ts"
import type * as ShellTool from "../../tools/ShellTool.ts"
import { UsageError } from "../ExitCode.ts"
import type { Settings } from "../settings/Settings.ts"
import type { StoreAddress } from "../settings/Values.ts"
import { companies } from "./Vendors.ts"

export interface Choice {
  readonly options: Omit<ShellTool.Options, "root">
  /** The choice for people, `undefined` if the model may not call `shell`. */
  readonly remark: string | undefined
}

type Given = Pick<
  Settings,
  "cwd" | "mcpConfig" | "network" | "passEnv" | "sandbox" | "store" | "tools" | "writable"
>

/**
 * Looks whether the sandbox works. Fails with `UsageError` if the command line requires one and there is none. Commands cannot read the
 * files of tokens.
 */
export const choose = Effect.fnUntraced(function* (given: Given, tokenFile = Option.none<string>()) {
  const { cwd, network, passEnv, sandbox, tools, writable } = given
  const hidden = yield* secretsOf(given, tokenFile)
  const choice = (mode: Sandbox.Mode, remark?: string): Choice => ({
    options: { sandbox: mode, network, writable, hidden, passEnvironment: passEnv },
    remark: remark === undefined ? undefined : `${remark}${withheld(passEnv)}`
  })
  if (!tools.includes("shell")) return choice("off")
  if (sandbox === "off") return choice("off", "Commands run without a sandbox (--sandbox off)")
  const found = yield* Effect.result(Sandbox.probe({ root: cwd, network, writable, hidden }))
  if (Result.isSuccess(found))
    return choice("require", `Commands run in ${found.success}, ${network ? "with" : "without"} network`)
  if (sandbox === "require") return yield* new UsageError({ detail: found.failure.message })
  return choice("off", `Commands run without a sandbox (${found.failure.detail})`)
})

/** The files that the program knows to have secrets: tokens of a server, keys of MCP servers, and conversations. */
const secretsOf = Effect.fnUntraced(function* (
  { cwd, mcpConfig, store }: Given,
  tokenFile: Option.Option<string>
): Effect.fn.Return<ReadonlyArray<string>, never, Path.Path> {
  const path = yield* Path.Path
  const root = path.resolve(cwd)
  const servers = Option.toArray(mcpConfig)
    .map((file) => path.resolve(file))
    // A project commits its own: git would take a hidden file for a removed one.
    .filter((file) => path.relative(root, file).startsWith(`..${path.sep}`))
  const files = [...Option.toArray(tokenFile), ...(Option.isSome(store) ? placesOf(store.value) : [])]
  return [...servers, ...files.map((file) => path.resolve(file))]
})

const placesOf = (store: StoreAddress): ReadonlyArray<string> => {
  switch (store._tag) {
    case "Files":
      return [store.directory]
    case "Sqlite":
      return ["", "-wal", "-shm", "-journal"].map((end) => `${store.filename}${end}`)
    case "Postgres":
      return []
  }
}

/** The variables that commands do not get, for people. The keys of models are left out: commands do not need those. */
const withheld = (passed: ReadonlyArray<string>): string => {
  const keys = companies.flatMap(({ keyNames }) => keyNames)
  const names = ChildEnvironment.withheld(process.env, [...passed, ...keys])
  if (names.length === 0) return ""
  const more = names.length > 5 ? ` and ${names.length - 5} more` : ""
  return `. They do not get ${names.slice(0, 5).join(", ")}${more} (--pass-env NAME)`
}
