/** A command of the person, `!COMMAND`: in their shell, without the sandbox and without an approval. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as Output from "../../tools/Output.ts"

interface Ran {
  readonly output: string
  readonly code: number | undefined
}

/** The most characters that are kept of the output. */
const most = 100_000

/** Runs a command to its end. An interruption ends its whole process group. */
export const run = (command: string, cwd: string): Effect.Effect<Ran> =>
  Effect.callback((resume) => {
    const shell = process.env["SHELL"] ?? "/bin/sh"
    const child = spawn(shell, ["-c", command], { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] })
    const output = Output.bounded(most)
    const decoder = new TextDecoder()
    const take = (bytes: Buffer) => output.append(decoder.decode(bytes, { stream: true }))
    child.stdout.on("data", take)
    child.stderr.on("data", take)
    child.once("error", (error) => resume(Effect.succeed({ output: error.message, code: undefined })))
    child.once("close", (code) => resume(Effect.succeed({ output: output.text(), code: code ?? undefined })))
    return Effect.sync(() => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL")
    })
  })
