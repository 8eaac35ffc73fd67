/** The instructions and skills of a project. */
import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import { homedir } from "node:os"
import * as Workspace from "../../skills/Workspace.ts"
import { say } from "../terminal/Screen.ts"
import type { Settings } from "./Settings.ts"
import type { Environment } from "../agent/Vendors.ts"

/** Finds them, and names them on stderr. */
export const load = Effect.fnUntraced(function* (settings: Settings, env: Environment) {
  const path = yield* Path.Path
  const cwd = path.resolve(settings.cwd)
  const set = env["XDG_CONFIG_HOME"] ?? ""
  const base = path.isAbsolute(set) ? set : path.join(env["HOME"] ?? homedir(), ".config")
  const workspace = yield* Workspace.load({
    cwd,
    contextFiles: !settings.noContextFiles,
    skills: settings.tools.includes("skill"),
    skillFolders: [path.join(base, "effect-agent", "skills")]
  })
  const { contextFiles, leftOut, problems, skills } = workspace
  const named = [
    ...contextFiles.map(({ bytes, insteadOf, isCut, path: file, text }) =>
      [
        path.relative(cwd, file),
        isCut ? ` (cut: the model reads ${text.length} characters of ${bytes} bytes)` : "",
        insteadOf === undefined ? "" : ` (not ${path.basename(insteadOf)})`
      ].join("")
    ),
    ...skills.map(({ name }) => `the skill ${name}`)
  ]
  const lines = [
    ...(named.length === 0 ? [] : [`Instructions: ${named.join(", ")}`]),
    ...leftOut.map(({ detail, path: file }) => `${file} is left out: ${detail}`),
    ...problems.map(({ message }) => message)
  ]
  yield* say(lines)
  return workspace
})
