/**
 * What the environment tells of a server, under the names of its preset. What is empty is as good as not there.
 */
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Redacted from "effect/Redacted"
import * as Inspection from "../../internal/inspection.ts"
import type { Preset } from "../presets.ts"

export interface Environment {
  readonly apiKey?: Redacted.Redacted
  readonly baseUrl?: string
  readonly headers: Readonly<Record<string, string>>
}

export const of = ({ apiKeyName, baseUrlName, headerNames = {} }: Preset): Config.Config<Environment> =>
  Config.all({
    apiKey: apiKeyName === undefined ? Config.succeed(undefined) : key(apiKeyName),
    baseUrl: baseUrlName === undefined ? Config.succeed("") : optional(baseUrlName),
    headers: Config.all(
      Object.fromEntries(Object.entries(headerNames).map(([header, name]) => [header, optional(name)]))
    )
  }).pipe(
    Config.map(({ apiKey, baseUrl, headers }) => ({
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(baseUrl === "" ? {} : { baseUrl }),
      headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ""))
    }))
  )

type Names = readonly [string, ...ReadonlyArray<string>]

/** The value of the first of these variables that is set. */
export const first = ([name, ...others]: Names): Config.Config<string> =>
  others.reduce(
    (config, other) => Config.orElse(config, () => Config.NonEmptyString(other)),
    Config.NonEmptyString(name)
  )

/** The key under the first of these names that is set. Fails in words when none is. */
export const key = (...names: Names): Config.Config<Redacted.Redacted> =>
  explained(
    names,
    Config.map(first(names), (key) => Redacted.make(key))
  )

/** Replaces the failure of a schema, which is a page of its parts, by a sentence with the names that were looked for. */
export const explained = <A>(names: Names, config: Config.Config<A>): Config.Config<A> =>
  Config.orElse(config, ({ cause }) => {
    if (cause._tag === "SourceError") return Config.fail(cause)
    const missing = new ConfigProvider.SourceError({ message: missingText(names) })
    Inspection.strip(missing)
    return Config.fail(missing)
  })

const missingText = ([name, ...others]: Names): string =>
  others.length === 0
    ? `${name} is not set. Set it to the key, or give the layer an apiKey`
    : `${name} is not set, nor is ${others.join(" or ")}. Set one of them to the key, or give the layer an apiKey`

const optional = (name: string) => Config.withDefault(Config.String(name), "")
