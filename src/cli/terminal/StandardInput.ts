/** The standard input: the lines that a person types, and the prompt, which may be piped. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { UsageError } from "../ExitCode.ts"
import { Screen } from "./Screen.ts"

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
const drained = 50
/** Maximum time of `forget` in milliseconds, for input that does not end, such as that of a key held down. */
const mostDrained = 1_000

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
    let last: NodeJS.Immediate | undefined
    const stop = () => {
      clearTimeout(rest)
      clearTimeout(most)
      clearImmediate(last)
      stdin.off("data", drop).off("end", done).off("error", done).pause()
      // Drops input between the last event and the pause.
      while (stdin.read() !== null);
      stdin.setRawMode(false)
    }
    const done = () => {
      stop()
      resume(Effect.succeed(isTyped))
    }
    // A process that waited for the processor finds the time over before it has looked for input: an immediate comes behind that look.
    const rest = setTimeout(() => void (last = setImmediate(done)), drained)
    const most = setTimeout(done, mostDrained)
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

/**
 * Time limit for the first byte of a socket. Node and editors connect a child process by a socket and often leave it
 * open without writing. The shell connects commands by pipes, which are read to their end.
 */
const patience = "3 seconds"
/** Time after which the program says that it waits. */
const quiet = "1 second"
/** Maximum bytes of stdin. No model reads more. */
const maxBytes = 8 * 1024 * 1024

const howTo = 'Give a prompt: effect-agent "read package.json", or pipe it in. More with --help.'

/**
 * The prompt. `-` reads all of stdin as the prompt. Other words get piped text as a block after them. `isOptional`: without a prompt
 * the result is `undefined`, not a failure. A line on stderr names a wait, and a stdin that was left out.
 */
export const promptOf = Effect.fnUntraced(function* (
  words: string,
  isOptional = false
): Effect.fn.Return<string | undefined, UsageError, Stdio.Stdio | FileSystem.FileSystem | Screen> {
  const { stdinIsTerminal } = yield* Stdio.Stdio
  const isEmpty = words.trim() === ""
  if (words === "-") return yield* alone(yield* read(Effect.succeed(false)))
  if (yield* stdinIsTerminal) return isEmpty && isOptional ? undefined : yield* alone(words)
  const piped = yield* read(isSocket)
  if (isEmpty && isOptional && piped.trim() === "") return undefined
  if (isEmpty || piped.trim() === "") return yield* alone(isEmpty ? piped : words)
  return `${words}\n\n<stdin>\n${piped.trimEnd()}\n</stdin>`
})

const alone = (text: string): Effect.Effect<string, UsageError> =>
  text.trim() === "" ? new UsageError({ detail: `No prompt. ${howTo}` }) : Effect.succeed(text.trim())

const isSocket = Effect.gen(function* () {
  const { stat } = yield* FileSystem.FileSystem
  return yield* stat("/dev/stdin").pipe(
    Effect.map(({ type }) => type === "Socket"),
    Effect.orElseSucceed(() => false)
  )
})

const say = (text: string) => Effect.flatMap(Screen, ({ err, paint }) => err(`${paint.dim(text)}\n`))

/** All of stdin. If it `mayBeSilent`, an empty text when the first byte does not come in time. */
const read = Effect.fnUntraced(
  function* (mayBeSilent: Effect.Effect<boolean, never, FileSystem.FileSystem>) {
    const { stdin } = yield* Stdio.Stdio
    const pull = yield* Stream.toPull(stdin)
    const chunks: Array<Uint8Array> = []
    let size = 0
    const next = Effect.flatMap(pull, (more) => {
      chunks.push(...more)
      size += sizeOf(more)
      return size > maxBytes ? tooMuch : Effect.void
    })
    const begun = (yield* mayBeSilent) ? Effect.timeoutOption(next, patience) : Effect.asSome(next)
    yield* Effect.forkScoped(
      Effect.delay(say("Waiting for the end of stdin. Without piped text: < /dev/null"), quiet)
    )
    yield* Effect.flatMap(begun, (first) =>
      Option.isSome(first)
        ? Effect.forever(next)
        : say("stdin was left out: it stayed open, and nothing came.")
    ).pipe(Pull.catchDone(() => Effect.void))
    return yield* decode(chunks)
  },
  Effect.scoped,
  Effect.catchTag("PlatformError", (error) =>
    Effect.fail(new UsageError({ detail: `stdin cannot be read: ${error.message}` }))
  )
)

const tooMuch = Effect.fail(
  new UsageError({
    detail: `stdin has more than ${maxBytes / 1024 / 1024} MB, more than any model reads. Pipe in less.`
  })
)

const sizeOf = (chunks: ReadonlyArray<Uint8Array>): number =>
  chunks.reduce((sum, { length }) => sum + length, 0)

const decode = (chunks: ReadonlyArray<Uint8Array>): Effect.Effect<string, UsageError> => {
  const text = new TextDecoder().decode(Buffer.concat(chunks))
  return text.includes("\0")
    ? Effect.fail(new UsageError({ detail: "stdin is not text. Name the file in the prompt instead." }))
    : Effect.succeed(text)
}
