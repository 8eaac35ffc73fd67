/** A text in the editor of the person, `$VISUAL` or `$EDITOR`. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { spawn } from "node:child_process"
import { Failed } from "../ExitCode.ts"

/** Opens a text, and succeeds with what the person made of it; `undefined` if the editor failed. */
export const open = Effect.fnUntraced(function* (text: string, name: string) {
  const command = process.env["VISUAL"] ?? process.env["EDITOR"] ?? ""
  if (command.trim() === "")
    return yield* new Failed({ detail: "Neither VISUAL nor EDITOR names an editor." })
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* files.makeTempDirectoryScoped({ prefix: "effect-agent-" })
  const file = path.join(folder, name)
  yield* files.writeFileString(file, text, { mode: 0o600 })
  const code = yield* ran(command, file)
  return code === 0 ? yield* files.readFileString(file) : undefined
}, Effect.scoped)

/** Runs the command, which may have words of its own, at the terminal. */
const ran = (command: string, file: string): Effect.Effect<number | null> =>
  Effect.callback((resume) => {
    const child = spawn("sh", ["-c", `${command} "$1"`, "sh", file], { stdio: "inherit" })
    child.once("error", () => resume(Effect.succeed(null)))
    child.once("exit", (code) => resume(Effect.succeed(code)))
  })
