/** Readers of the flags of servers and workers, each of which has a variable. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { UsageError } from "./ExitCode.ts"
import * as Values from "./Values.ts"
import type { Environment } from "./Vendors.ts"

/** The text of a flag, else that of its variable. */
export const one = (flag: Option.Option<string>, name: string, env: Environment): Option.Option<string> =>
  Option.orElse(flag, () => Option.filter(Option.fromUndefinedOr(env[name]?.trim()), (text) => text !== ""))

/** The texts of a flag, else the items of its variable. */
export const many = (flags: ReadonlyArray<string>, name: string, env: Environment): ReadonlyArray<string> =>
  flags.length > 0 ? flags : Values.items(env[name] ?? "")

/** A port. */
export const port = (flag: string, text: string): Effect.Effect<number, UsageError> => {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN
  return port <= 65_535
    ? Effect.succeed(port)
    : Effect.fail(new UsageError({ detail: `--${flag}: ${text} is no port.` }))
}

/** The time of `--grace`. */
export const grace = (
  flag: Option.Option<string>,
  env: Environment
): Effect.Effect<Duration.Duration, UsageError> => {
  const text = Option.getOrElse(one(flag, "EFFECT_AGENT_GRACE", env), () => "10s")
  return Option.match(Values.duration(text), {
    onNone: () => Effect.fail(new UsageError({ detail: `--grace: ${text} is no time such as 10s.` })),
    onSome: Effect.succeed
  })
}

/** The file with the tokens. */
export const tokenFile = (flag: Option.Option<string>, env: Environment) =>
  one(flag, "EFFECT_AGENT_TOKEN_FILE", env)

/** The tokens of a file, one on each line that is neither empty nor begins with `#`, else that of `EFFECT_AGENT_TOKEN`, else none. */
export const tokens = Effect.fnUntraced(function* (flag: Option.Option<string>, env: Environment) {
  const file = tokenFile(flag, env)
  if (Option.isNone(file)) {
    const given = one(Option.none(), "EFFECT_AGENT_TOKEN", env)
    return Option.toArray(given).map((token) => Redacted.make(token))
  }
  const text = yield* Effect.option(FileSystem.FileSystem.use((files) => files.readFileString(file.value)))
  if (Option.isNone(text)) {
    return yield* new UsageError({ detail: `--token-file: the file ${file.value} cannot be read.` })
  }
  const found: Array<Redacted.Redacted> = []
  for (const [index, each] of text.value.split("\n").entries()) {
    const line = each.trim()
    if (line === "" || line.startsWith("#")) continue
    const fault = /\s/.test(line)
      ? "has white space inside"
      : line.length < minToken
        ? `has fewer than ${minToken} characters`
        : undefined
    if (fault !== undefined) {
      const detail = `--token-file: ${file.value}: line ${index + 1} is no token, because it ${fault}.`
      return yield* new UsageError({ detail })
    }
    found.push(Redacted.make(line))
  }
  if (found.length > 0) return found
  return yield* new UsageError({ detail: `--token-file: the file ${file.value} has no token.` })
})

/** Fewer characters can be guessed. */
const minToken = 16

/** An origin as browsers send it. */
export const origin = (text: string): Effect.Effect<string, UsageError> => {
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && `${url.pathname}${url.search}${url.hash}` === "/"
    ? Effect.succeed(url.origin)
    : Effect.fail(
        new UsageError({ detail: `--allow-origin: ${text} is no origin such as https://chat.example.` })
      )
}

/** The name of a host, in lower case and without its port. */
export const hostName = (text: string): Effect.Effect<string, UsageError> => {
  const url = !text.includes("/") && URL.canParse(`http://${text}`) ? new URL(`http://${text}`) : undefined
  return url !== undefined &&
    url.hostname !== "" &&
    url.username === "" &&
    url.search === "" &&
    url.hash === ""
    ? Effect.succeed(url.hostname)
    : Effect.fail(new UsageError({ detail: `--allow-host: ${text} is no host such as agent.example.` }))
}
