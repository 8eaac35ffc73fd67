/**
 * What the environment tells of a server, under the names of its preset. What is empty is as good as not there.
 */
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import type * as Redacted from "effect/Redacted"
import * as Inspection from "../../Inspection.ts"
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

/** In words: the failure of a schema is a page of its parts. */
const key = (name: string): Config.Config<Redacted.Redacted> =>
  Config.orElse(Config.Redacted(name), ({ cause }) => {
    if (cause._tag === "SourceError") return Config.fail(cause)
    const message = `${name} is not set. Set it to the key, or give the layer an apiKey`
    const missing = new ConfigProvider.SourceError({ message })
    Inspection.strip(missing)
    return Config.fail(missing)
  })

const optional = (name: string) => Config.withDefault(Config.String(name), "")
