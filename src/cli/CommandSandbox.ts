/** Chooses the sandbox of shell commands. The program always shows the choice. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as ChildEnvironment from "../tools/ChildEnvironment.ts"
import * as Sandbox from "../tools/Sandbox.ts"
import type * as ShellTool from "../tools/ShellTool.ts"
import { UsageError } from "./ExitCode.ts"
import type { Settings } from "./Settings.ts"
import { companies } from "./Vendors.ts"

export interface Choice {
  readonly options: Omit<ShellTool.Options, "root">
  /** The choice for people, `undefined` if the model may not call `shell`. */
  readonly remark: string | undefined
}

/** Looks whether the sandbox works. Fails with `UsageError` if the command line requires one and there is none. */
export const choose = Effect.fnUntraced(function* ({
  cwd,
  network,
  passEnv,
  sandbox,
  tools,
  writable
}: Pick<Settings, "cwd" | "network" | "passEnv" | "sandbox" | "tools" | "writable">) {
  const choice = (mode: Sandbox.Mode, remark?: string): Choice => ({
    options: { sandbox: mode, network, writable, passEnvironment: passEnv },
    remark: remark === undefined ? undefined : `${remark}${withheld(passEnv)}`
  })
  if (!tools.includes("shell")) return choice("off")
  if (sandbox === "off") return choice("off", "Commands run without a sandbox (--sandbox off)")
  const found = yield* Effect.result(Sandbox.probe({ root: cwd, network, writable }))
  if (Result.isSuccess(found))
    return choice("require", `Commands run in ${found.success}, ${network ? "with" : "without"} network`)
  if (sandbox === "require") return yield* new UsageError({ detail: found.failure.message })
  return choice("off", `Commands run without a sandbox (${found.failure.detail})`)
})

/** The variables that commands do not get, for people. The keys of models are left out: commands do not need those. */
const withheld = (passed: ReadonlyArray<string>): string => {
  const keys = companies.flatMap(({ keyNames }) => keyNames)
  const names = ChildEnvironment.withheld(process.env, [...passed, ...keys])
  if (names.length === 0) return ""
  const more = names.length > 5 ? ` and ${names.length - 5} more` : ""
  return `. They do not get ${names.slice(0, 5).join(", ")}${more} (--pass-env NAME)`
}
