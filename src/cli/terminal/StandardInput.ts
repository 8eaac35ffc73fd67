/** The prompt: words of the command line and piped text. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { UsageError } from "../ExitCode.ts"
import { Screen } from "./Screen.ts"

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
