/** The clipboard of the system, else that of the terminal. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"

const tools: ReadonlyArray<readonly [command: string, ...args: ReadonlyArray<string>]> =
  process.platform === "darwin"
    ? [["pbcopy"]]
    : process.platform === "win32"
      ? [["clip.exe"]]
      : [
          ...(process.env["WAYLAND_DISPLAY"] === undefined ? [] : [["wl-copy"] as const]),
          ...(process.env["DISPLAY"] === undefined
            ? []
            : ([
                ["xclip", "-selection", "clipboard"],
                ["xsel", "--clipboard", "--input"]
              ] as const))
        ]

/** The most bytes that a terminal gets. */
const most = 100_000

/** Copies a text; returns whether it did. */
export const write = Effect.fnUntraced(function* (text: string) {
  for (const tool of tools) if (yield* by(tool, text)) return true
  const encoded = Buffer.from(text).toString("base64")
  if (encoded.length > most) return false
  process.stdout.write(`\u001b]52;c;${encoded}\u0007`)
  return true
})

const by = ([command, ...args]: (typeof tools)[number], text: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const child = spawn(command, args, { stdio: ["pipe", "ignore", "ignore"] })
    child.once("error", () => resume(Effect.succeed(false)))
    child.once("exit", (code) => resume(Effect.succeed(code === 0)))
    child.stdin.on("error", () => {})
    child.stdin.end(text)
  })
