/**
 * Secrets that are planted where a program has them, and how a trace of one is found.
 */
import { ConfigProvider, Effect, Layer, Option, Redacted, Schedule } from "effect"
import type { HttpClient } from "effect/http"
import { type Provider } from "effect-agent"
import { Anthropic, Credentials, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { Retry } from "effect-agent/resilience"

export interface Secret {
  readonly name: string
  readonly value: string
}

/** The letters no text has by chance, and what encodings change around and between them. */
const secret = (name: string, odd = "-"): Secret => {
  const letters = (salt: string) =>
    Array.from(`${salt}${name}`.repeat(3), (char, at) => alphabet[(char.charCodeAt(0) * 7 + at * 13) % 62])
      .join("")
      .slice(0, 18)
  return { name, value: `${letters("a")}${odd}${letters("b")}` }
}
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/** Characters that JSON, URLs and HTML each write in another way, and that a header may hold. */
const odd = `/+=&<>"\\%`

const key = secret("key", odd)
const configured = secret("environment", "+/")
const refused = secret("refused key")
const replaced = secret("replaced key", odd)
const token = secret("token")
const subscription = { name: "subscription", value: `sk-ant-oat01-${secret("subscription").value}` }
const custom = secret("custom headers")
const team = secret("team token", odd)
const proxy = secret("proxy authorization", "=")
const session = secret("session cookie")
const other = secret("other cookie")
const client = secret("client secret", odd)
const password = secret("password")
const second = secret("second key")
const cloud = secret("security token", "/")
const inQuery = secret("key in the query")
const signature = secret("signature in the query", "+/=")
const bare = secret("bare query")
const user = secret("user in the address")
const userPassword = secret("password in the address", "+@:")
const inFile = secret(".env file")
const inEnvironment = secret("other vendor's key")

export const secrets: ReadonlyArray<Secret> = [
  [key, configured, refused, replaced, token, subscription, custom, team, proxy, session, other, client],
  [password, second, cloud, inQuery, signature, bare, user, userPassword, inFile, inEnvironment]
].flat()

const headers = {
  "x-team-token": team.value,
  "proxy-authorization": `Basic ${proxy.value}`,
  cookie: `sid=${session.value}; theme=dark; other=${other.value}`,
  "x-client-secret": client.value,
  "x-password": password.value,
  "x-second-api-key": second.value,
  "x-amz-security-token": cloud.value
}

const query = `?key=${inQuery.value}&sig=${encodeURIComponent(signature.value)}&${bare.value}`

/** The environment of a program: its own key and address, and the keys of everybody else. */
export const environment = (names: ReadonlyArray<string>, origin: string) => ({
  ...Object.fromEntries(names.map((name) => [name, inEnvironment.value])),
  OPENAI_API_KEY: key.value,
  OPENAI_BASE_URL: `${origin}/v1${query}`
})

/** What the file `.env` of a workspace holds. */
export const dotEnv = `# mine\nPASSWORD=${inFile.value}\n`

/** Those of which a piece of twelve letters is in the text, be they small or capital, however the rest is written. */
export const found = (text: string): ReadonlyArray<string> => {
  const small = text.toLowerCase()
  return secrets.flatMap(({ name, value }) =>
    pieces(value.toLowerCase()).some((piece) => small.includes(piece)) ? [name] : []
  )
}

const pieces = (value: string): ReadonlyArray<string> =>
  (value.match(/[a-z0-9]{12,}/g) ?? []).flatMap((run) => [run.slice(0, 12), run.slice(3, 15), run.slice(-12)])

export const languages = ["chat", "responses", "anthropic", "google"] as const
export type Language = (typeof languages)[number]

/** How a provider comes by its key. */
export const ways = ["options", "environment", "vault", "token", "address"] as const
export type Way = (typeof ways)[number]

type ProviderLayer = Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>

/** A provider with all of these secrets, but for those of other ways. Asks twice. */
export const provider = (language: Language, way: Way, origin: string): ProviderLayer => {
  const baseUrl = `${origin}${language === "anthropic" ? "" : "/v1"}${query}`
  const from =
    way === "address"
      ? baseUrl.replace("//", `//${user.value}:${encodeURIComponent(userPassword.value)}@`)
      : baseUrl
  const made = layers[language](way, { baseUrl: from, headers })
  const asked = Retry.layer({ schedule: Schedule.recurs(1) })(made)
  return way === "vault" ? Layer.provide(asked, vault()) : asked
}

interface Common {
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
}

const apiKey = Redacted.make(key.value)

const layers: Readonly<Record<Language, (way: Way, common: Common) => ProviderLayer>> = {
  chat: (way, common) =>
    way === "environment"
      ? configuredBy(
          OpenAiCompatible.layerConfig(OpenAiCompatible.presets.openAi, { ...common, retry: once })
        )
      : OpenAiCompatible.layer({ id: "chat", ...common, apiKey }),
  responses: (way, common) =>
    way === "environment"
      ? configuredBy(OpenAi.layerConfig({ ...common, retry: once }))
      : OpenAi.layer({ ...common, apiKey }),
  anthropic: (way, common) =>
    way === "environment"
      ? configuredBy(Anthropic.layerConfig({ ...common, retry: once }))
      : way === "token"
        ? Anthropic.layer({ ...common, authToken: Redacted.make(token.value) })
        : way === "address"
          ? Anthropic.layer({ ...common, apiKey: Redacted.make(subscription.value) })
          : Anthropic.layer({ ...common, apiKey }),
  google: (way, common) =>
    way === "environment"
      ? configuredBy(Google.layerConfig({ ...common, retry: once }))
      : Google.layer({ ...common, apiKey })
}

const once = { schedule: Schedule.recurs(0) }

const configuredBy = <E>(layer: Layer.Layer<Provider.Provider, E, HttpClient.HttpClient>): ProviderLayer =>
  layer.pipe(
    Layer.provide(
      ConfigProvider.layer(
        ConfigProvider.fromUnknown({
          OPENAI_API_KEY: configured.value,
          ANTHROPIC_API_KEY: configured.value,
          ANTHROPIC_CUSTOM_HEADERS: `X-Custom-Token: ${custom.value}`,
          GEMINI_API_KEY: configured.value
        })
      )
    ),
    Layer.orDie
  )

/** A key that may have been replaced each time it is asked for. */
const vault = () => {
  let asked = 0
  return Credentials.layer(() =>
    Effect.sync(() => Option.some(Redacted.make(asked++ % 2 === 0 ? refused.value : replaced.value)))
  )
}
