/** The prompt: words of the command line and piped text. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Pull from "effect/Pull"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { UsageError } from "./ExitCode.ts"

/**
 * Time limit for the first byte of a pipe if the command line has a prompt. A parent process may leave the pipe
 * open without writing.
 */
const besidePrompt = "200 millis"
/** Time limit for the first byte of a pipe that contains the prompt. `-` has none. */
const insteadOfPrompt = "5 seconds"
/** Maximum bytes of stdin. No model reads more. */
const maxBytes = 8 * 1024 * 1024

const howTo = 'Give a prompt: effect-agent "read package.json", or pipe it in. More with --help.'

/**
 * The prompt. `-` reads all of stdin as the prompt. Other words get piped text as a block after them. `isOptional`: without a prompt
 * the result is `undefined`, not a failure.
 */
export const promptOf = Effect.fnUntraced(function* (
  words: string,
  isOptional = false
): Effect.fn.Return<string | undefined, UsageError, Stdio.Stdio> {
  const { stdinIsTerminal } = yield* Stdio.Stdio
  const isEmpty = words.trim() === ""
  if (words === "-") return yield* alone(yield* read(undefined))
  if (yield* stdinIsTerminal) return isEmpty && isOptional ? undefined : yield* alone(words)
  const piped = yield* read(isEmpty && !isOptional ? insteadOfPrompt : besidePrompt)
  if (isEmpty && isOptional && piped.trim() === "") return undefined
  if (isEmpty || piped.trim() === "") return yield* alone(isEmpty ? piped : words)
  return `${words}\n\n<stdin>\n${piped.trimEnd()}\n</stdin>`
})

const alone = (text: string): Effect.Effect<string, UsageError> =>
  text.trim() === "" ? new UsageError({ detail: `No prompt. ${howTo}` }) : Effect.succeed(text.trim())

/** All of stdin, or an empty text if the first byte does not come in time. */
const read = (patience: Duration.Input | undefined): Effect.Effect<string, UsageError, Stdio.Stdio> =>
  Effect.gen(function* () {
    const { stdin } = yield* Stdio.Stdio
    const pull = yield* Stream.toPull(stdin)
    const first = yield* patience === undefined ? Effect.asSome(pull) : Effect.timeoutOption(pull, patience)
    if (Option.isNone(first)) return ""
    const chunks: Array<Uint8Array> = [...first.value]
    let size = sizeOf(first.value)
    yield* Effect.forever(
      Effect.flatMap(pull, (more) => {
        chunks.push(...more)
        size += sizeOf(more)
        return size > maxBytes ? tooMuch : Effect.void
      })
    ).pipe(Pull.catchDone(() => Effect.void))
    return yield* decode(chunks)
  }).pipe(
    Pull.catchDone(() => Effect.succeed("")),
    Effect.scoped,
    Effect.catchTag("PlatformError", (error: PlatformError) =>
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
