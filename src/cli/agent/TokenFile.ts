/** The tokens of a server, of a file or the environment. */
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import type * as Scope from "effect/Scope"
import { randomBytes } from "node:crypto"
import * as ExitCode from "../ExitCode.ts"
import { UsageError } from "../ExitCode.ts"
import type { Environment } from "./Vendors.ts"

type Tokens = ReadonlyArray<Redacted.Redacted>

/** The tokens of a file, one on each line that is neither empty nor begins with `#`, else that of `EFFECT_AGENT_TOKEN`, else none. */
export const tokens = Effect.fnUntraced(function* (file: Option.Option<string>, env: Environment) {
  if (Option.isSome(file)) return yield* Effect.flatMap(textOf(file.value), (text) => parse(file.value, text))
  const given = env["EFFECT_AGENT_TOKEN"]?.trim() ?? ""
  return given === "" ? [] : [Redacted.make(given)]
})

/** The token with which a client reaches a server. */
export const first = Effect.fnUntraced(function* (file: Option.Option<string>, env: Environment) {
  const [token] = yield* tokens(file, env)
  if (token !== undefined) return token
  return yield* new UsageError({
    detail: "Give the token of the server: --token-file or EFFECT_AGENT_TOKEN."
  })
})

const textOf = (file: string): Effect.Effect<string, UsageError, FileSystem.FileSystem> =>
  Effect.mapError(
    FileSystem.FileSystem.use((files) => files.readFileString(file)),
    () => new UsageError({ detail: `--token-file: the file ${file} cannot be read.` })
  )

const parse = Effect.fnUntraced(function* (file: string, text: string): Effect.fn.Return<Tokens, UsageError> {
  const found: Array<Redacted.Redacted> = []
  for (const [index, each] of text.split("\n").entries()) {
    const line = each.trim()
    if (line === "" || line.startsWith("#")) continue
    const fault = /\s/.test(line)
      ? "has white space inside"
      : line.length < minToken
        ? `has fewer than ${minToken} characters`
        : undefined
    if (fault !== undefined) {
      const detail = `--token-file: ${file}: line ${index + 1} is no token, because it ${fault}.`
      return yield* new UsageError({ detail })
    }
    found.push(Redacted.make(line))
  }
  if (found.length > 0) return found
  return yield* new UsageError({ detail: `--token-file: the file ${file} has no token.` })
})

/** Fewer characters can be guessed. */
const minToken = 16

/** The tokens that a server takes at the moment, and the one that was made for lack of others. */
interface Current {
  readonly tokens: Effect.Effect<Tokens>
  readonly made?: Redacted.Redacted
}

/**
 * The tokens of a server. A file is read again each second and at SIGHUP, which no longer ends the process: the server takes the tokens of a
 * new text at once. One that cannot be read leaves the tokens as they are.
 */
export const watched = Effect.fnUntraced(function* (
  file: Option.Option<string>,
  env: Environment
): Effect.fn.Return<Current, UsageError, FileSystem.FileSystem | Scope.Scope | ExitCode.Signals> {
  const first = yield* tokens(file, env)
  if (Option.isNone(file)) {
    if (first.length > 0) return { tokens: Effect.succeed(first) }
    const made = Redacted.make(randomBytes(24).toString("base64url"))
    return { tokens: Effect.succeed([made]), made }
  }
  const current = yield* Ref.make<Tokens>(first)
  const hangUps = yield* ExitCode.Signals.use(({ hangUps }) => hangUps)
  let fault = ""
  const again = Effect.gen(function* () {
    const next = yield* tokens(file, env)
    const before = yield* Ref.getAndSet(current, next)
    fault = ""
    if (!Equal.equals(before, next))
      yield* Effect.logInfo(`The server has read ${file.value} again, and takes ${next.length} tokens.`)
  }).pipe(
    Effect.catch(({ message }) => {
      if (message === fault) return Effect.void
      fault = message
      return Effect.logWarning(`${message} The server takes the tokens that it had.`)
    })
  )
  const change = Effect.race(Effect.sleep("1 second"), Queue.take(hangUps))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(change, again)))
  return { tokens: Ref.get(current) }
})
