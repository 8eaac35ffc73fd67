/** The folder of the user's configuration: `effect-agent` in `XDG_CONFIG_HOME`, else in `.config` of the home. */
import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import { homedir } from "node:os"
import type { Environment } from "../agent/Vendors.ts"

export const of = (env: Environment): Effect.Effect<string, never, Path.Path> =>
  Effect.map(Path.Path, (path) => {
    const set = env["XDG_CONFIG_HOME"] ?? ""
    const base = path.isAbsolute(set) ? set : path.join(env["HOME"] ?? homedir(), ".config")
    return path.join(base, "effect-agent")
  })
