/** Reads lines that a person types. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"

export class Keyboard extends Context.Service<
  Keyboard,
  {
    /**
     * Drops everything typed so far, including incomplete lines, so that it does not answer a later question.
     */
    readonly forget: Effect.Effect<void>
    /** Drops everything typed so far, which else goes to the shell, and returns whether there was something. */
    readonly leave: Effect.Effect<boolean>
    /** Waits for a line. `undefined` at the end of the input. */
    readonly line: Effect.Effect<string | undefined>
  }
>()("effect-agent/cli/Keyboard") {}

/** The keyboard of the process. */
export const layer: Layer.Layer<Keyboard> = Layer.sync(Keyboard, () => {
  const { stdin } = process
  const leave = Effect.suspend(() => (isInFront() ? forget(stdin) : Effect.succeed(false)))
  return { forget: Effect.asVoid(forget(stdin)), leave, line: line(stdin) }
})

/** Whether the process is that of the terminal now. The system stops one in the background that reads from it. */
const isInFront = (): boolean => {
  if (process.stdin.isTTY !== true) return false
  const [own, front] = Option.getOrElse(fromSystem(), fromProgram)
  return own !== undefined && own === front
}

/** The ids of the process group, and of the group in front of the terminal. */
type Groups = readonly [own?: string | undefined, front?: string | undefined]

const fromSystem = Option.liftThrowable((): Groups => {
  // The name of the program, in brackets, may hold spaces.
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ")
  return [fields[2], fields[5]]
})

const fromProgram = (): Groups => {
  const { stdout } = spawnSync("ps", ["-o", "pgid=,tpgid=", "-p", String(process.pid)], { encoding: "utf8" })
  const [own, front] = (stdout ?? "").trim().split(/\s+/)
  return [own, front]
}

/** After this time without input, in milliseconds, `forget` has read everything. */
const quiet = 50
/** Maximum time of `forget` in milliseconds, for input that does not end, such as that of a key held down. */
const patience = 1_000

/**
 * Raw mode makes the system deliver incomplete lines too, and reading drops them. Does nothing if the input is
 * not a terminal. Returns whether there was something.
 */
const forget = (stdin: NodeJS.ReadStream): Effect.Effect<boolean> =>
  Effect.callback<boolean>((resume) => {
    if (!stdin.isTTY || stdin.readableEnded) return resume(Effect.succeed(false))
    let isTyped = false
    const drop = (typed: Buffer) => {
      isTyped = true
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
      resume(Effect.succeed(isTyped))
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
