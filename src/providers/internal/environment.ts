/**
 * What the environment tells of a server, under the names of its preset. What is empty is as good as not there.
 */
import * as Config from "effect/Config"
import type * as Redacted from "effect/Redacted"
import type { Preset } from "../presets.ts"

export interface Environment {
  readonly apiKey?: Redacted.Redacted
  readonly baseUrl?: string
  readonly headers: Readonly<Record<string, string>>
}

export const of = ({ apiKeyName, baseUrlName, headerNames = {} }: Preset): Config.Config<Environment> =>
  Config.all({
    apiKey: apiKeyName === undefined ? Config.succeed(undefined) : Config.Redacted(apiKeyName),
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

const optional = (name: string) => Config.withDefault(Config.String(name), "")
