/**
 * Reads the key, address and headers of a preset from environment variables. An empty variable counts as not
 * set.
 */
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Redacted from "effect/Redacted"
import { strip } from "../../internal/errors.ts"
import { given } from "./given.ts"
import type { Preset } from "../presets.ts"

interface Given {
  readonly baseUrl?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Environment {
  readonly apiKey?: Redacted.Redacted
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
}

/** The options of a provider: those of the application, which win, and those of the environment. */
export const of = <Options extends Given>(
  preset: Preset,
  options: Options
): Config.Config<Environment & Options> => {
  const { apiKeyName, headerNames = {}, headers: fixed } = preset
  return Config.all({
    apiKey: apiKeyName === undefined ? Config.succeed(undefined) : key(apiKeyName),
    baseUrl: options.baseUrl === undefined ? addressOf(preset) : Config.succeed(options.baseUrl),
    headers: Config.all(
      Object.fromEntries(Object.entries(headerNames).map(([header, name]) => [header, optional(name)]))
    )
  }).pipe(
    Config.map(({ apiKey, baseUrl, headers }) => ({
      ...(apiKey === undefined ? {} : { apiKey }),
      ...given(options),
      baseUrl,
      headers: {
        ...fixed,
        ...Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== "")),
        ...options.headers
      }
    }))
  )
}

const addressOf = ({ baseUrl, baseUrlName }: Preset): Config.Config<string> => {
  const names = Array.from(baseUrl.matchAll(placeholder), ([, name = ""]) => name)
  const usual = Config.map(Config.all(names.map(part)), (values) =>
    names.reduce((url, name, index) => url.replace(`{${name}}`, values[index] ?? ""), baseUrl)
  )
  return baseUrlName === undefined ? usual : Config.orElse(Config.NonEmptyString(baseUrlName), () => usual)
}

const placeholder = /\{([A-Z_]+)\}/g

type Names = readonly [string, ...ReadonlyArray<string>]

/** The value of the first of these variables that is set. */
export const first = ([name, ...others]: Names): Config.Config<string> =>
  others.reduce(
    (config, other) => Config.orElse(config, () => Config.NonEmptyString(other)),
    Config.NonEmptyString(name)
  )

/** The key in the first of these variables that is set. Fails with a sentence if none is. */
export const key = (...names: Names): Config.Config<Redacted.Redacted> =>
  explained(
    names,
    Config.map(first(names), (key) => Redacted.make(key))
  )

/** The value of a variable that is part of an address. Fails with a sentence if it is not set. */
export const part = (name: string): Config.Config<string> =>
  explained([name], Config.NonEmptyString(name), { value: "that part of the address", option: "a baseUrl" })

/**
 * Replaces the error of a `Config`, which lists all parts of its schema, by a sentence that names the
 * variables.
 */
export const explained = <A>(
  names: Names,
  config: Config.Config<A>,
  wanted: Wanted = { value: "the key", option: "an apiKey" }
): Config.Config<A> =>
  Config.orElse(config, ({ cause }) => {
    if (cause._tag === "SourceError") return Config.fail(cause)
    const missing = new ConfigProvider.SourceError({ message: missingText(names, wanted) })
    strip(missing)
    return Config.fail(missing)
  })

/** The value of a variable, and the option in its place. */
interface Wanted {
  readonly value: string
  readonly option: string
}

const missingText = ([name, ...others]: Names, { option, value }: Wanted): string =>
  others.length === 0
    ? `${name} is not set. Set it to ${value}, or give the layer ${option}`
    : `${name} is not set, nor is ${others.join(" or ")}. Set one of them to ${value}, or give the layer ${option}`

const optional = (name: string) => Config.withDefault(Config.String(name), "")
