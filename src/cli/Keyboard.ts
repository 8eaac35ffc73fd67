/** Reads lines that a person types. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createInterface } from "node:readline"

export class Keyboard extends Context.Service<
  Keyboard,
  {
    /**
     * Drops everything typed so far, including incomplete lines, so that it does not answer a later question.
     */
    readonly forget: Effect.Effect<void>
    /** Waits for a line. `undefined` at the end of the input. */
    readonly line: Effect.Effect<string | undefined>
  }
>()("effect-agent/cli/Keyboard") {}

/** The keyboard of the process. */
export const layer: Layer.Layer<Keyboard> = Layer.sync(Keyboard, () => {
  const { stdin } = process
  return { forget: forget(stdin), line: line(stdin) }
})

/** After this time without input, in milliseconds, `forget` has read everything. */
const quiet = 50
/** Maximum time of `forget` in milliseconds, for input that does not end, such as that of a key held down. */
const patience = 1_000

/**
 * Raw mode makes the system deliver incomplete lines too, and reading drops them. Does nothing if the input is
 * not a terminal.
 */
const forget = (stdin: NodeJS.ReadStream): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (!stdin.isTTY || stdin.readableEnded) return resume(Effect.void)
    const drop = (typed: Buffer) => {
      rest.refresh()
      // In raw mode the terminal does not turn Ctrl-C into a signal.
      if (typed.includes(interrupt)) process.kill(process.pid, "SIGINT")
    }
    const stop = () => {
      clearTimeout(rest)
      clearTimeout(most)
      stdin.off("data", drop).off("end", done).off("error", done).pause()
      // Drops input between the last event and the pause.
      while (stdin.read() !== null);
      stdin.setRawMode(false)
    }
    const done = () => {
      stop()
      resume(Effect.void)
    }
    const rest = setTimeout(done, quiet)
    const most = setTimeout(done, patience)
    stdin.setRawMode(true).on("data", drop).once("end", done).once("error", done).resume()
    return Effect.sync(stop)
  })

/** Ctrl-C. */
const interrupt = 3

const line = (stdin: NodeJS.ReadStream): Effect.Effect<string | undefined> =>
  Effect.callback<string | undefined>((resume) => {
    if (stdin.readableEnded) return resume(Effect.undefined)
    const reader = createInterface({ input: stdin })
    const answer = (typed?: string) => {
      resume(Effect.succeed(typed))
      reader.close()
    }
    reader.once("line", answer).once("close", () => answer())
    reader.once("error", () => answer())
    return Effect.sync(() => reader.close())
  })
