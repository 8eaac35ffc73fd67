/**
 * Anthropic, by its Messages API, and the servers that stand in for it.
 */
import * as Config from "effect/Config"
import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Provider } from "../Provider.ts"
import * as Retry from "../Retry.ts"
import * as Address from "./internal/address.ts"
import { anthropicMessages } from "./internal/anthropicMessages.ts"
import * as Environment from "./internal/environment.ts"
import { given } from "./internal/given.ts"
import * as SecretKey from "./internal/secretKey.ts"
import type { Timeouts } from "./internal/silence.ts"
import * as Models from "./Models.ts"
import * as transport from "./internal/transport.ts"

export type { Timeouts }

export interface Options {
  /** Default "anthropic". Names the server in messages, in errors, in `modelOptions.vendor` and to `Credentials`. */
  readonly id?: string
  /**
   * Whose models the server has: the rules of the model table that hold. Default: `id` if the table knows it, else
   * "anthropic".
   */
  readonly vendor?: string
  /** `Redacted`, or plain text, which no error and no log shows either. Default none; `Credentials` wins over it. */
  readonly apiKey?: Redacted.Redacted | string
  /** Sent in place of a key, as `Authorization: Bearer`. A key from `Credentials` is then sent like it. */
  readonly authToken?: Redacted.Redacted | string
  /** With or without its "/v1". Default "https://api.anthropic.com". */
  readonly baseUrl?: string
  /** Such as "anthropic-beta". */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Timeouts
}

/**
 * A provider for all of Anthropic's models. It asks once; nothing is retried. An answer that the vendor pauses is asked
 * to go on, and is one answer.
 *
 * Prompts are cached unless `cacheRetention` is "none". `maxTokens` is by default the most that the model answers with.
 * Options that a model does not accept are left out or changed by the rules of `Models`, and reported in
 * `ModelCallEnd.adjusted`. The vendor's own tools, given as `vendor: { anthropic: { tools } }`, stand beside the tools of
 * the agent. The server is silent while they work: `timeouts.idle` may have to be longer.
 */
export const make = (options: Options): Effect.Effect<Provider["Service"], never, HttpClient.HttpClient> => {
  const {
    apiKey,
    authToken,
    baseUrl = "https://api.anthropic.com",
    headers,
    id = "anthropic",
    timeouts
  } = options
  const [base, query] = Address.parts(baseUrl)
  const url = `${Address.without("/v1", Address.without("/messages", base))}/v1/messages${query}`
  return transport.make({
    id,
    protocol: anthropicMessages(id),
    serves: { endpoint: "messages", vendor: options.vendor ?? Models.vendorOf(id, "anthropic") },
    url: () => url,
    headers: { "anthropic-version": "2023-06-01", ...headers },
    authorize: authorize(options),
    apiKey: SecretKey.of(authToken ?? apiKey),
    timeouts
  })
}

const authorize =
  ({ authToken, headers = {} }: Options) =>
  (key: string): Readonly<Record<string, string>> => {
    if (key.startsWith("sk-ant-oat")) {
      // A token of a subscription, which is refused in the place of a key.
      const beta = Object.entries(headers).find(([name]) => name.toLowerCase() === "anthropic-beta")?.[1]
      const betas = beta === undefined ? oauth : `${beta},${oauth}`
      return { authorization: `Bearer ${key}`, "anthropic-beta": betas }
    }
    return authToken === undefined ? { "x-api-key": key } : { authorization: `Bearer ${key}` }
  }

const oauth = "oauth-2025-04-20"

/** What `layerConfig` does not read, and how it asks again. */
export interface ConfigOptions extends Omit<Options, "apiKey" | "authToken"> {
  readonly retry?: Retry.Options
}

/** `make` as a layer. */
export const layer = (options: Options): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(options))

/**
 * Reads the key from `ANTHROPIC_AUTH_TOKEN`, which is sent as a bearer, or else from `ANTHROPIC_API_KEY`; the address
 * from `ANTHROPIC_BASE_URL` and more headers from `ANTHROPIC_CUSTOM_HEADERS` ("Name: value", one a line), if they are
 * there. Inside `Retry.layer(retry)`.
 */
export const layerConfig = ({ retry, ...options }: ConfigOptions = {}): Layer.Layer<
  Provider,
  Config.ConfigError,
  HttpClient.HttpClient
> =>
  Layer.unwrap(
    Config.map(Config.all({ key, baseUrl, headers }), (read) =>
      Retry.layer(retry)(
        layer({
          ...read.key,
          ...read.baseUrl,
          ...given(options),
          headers: { ...read.headers, ...options.headers }
        })
      )
    )
  )

const headersOf = (lines: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    lines.split("\n").flatMap((line) => {
      const [, name, value] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? []
      return name === undefined || value === undefined ? [] : [[name.toLowerCase(), value]]
    })
  )

type Key = Pick<Options, "apiKey" | "authToken">

const key: Config.Config<Key> = Environment.said(
  ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
  Config.NonEmptyString("ANTHROPIC_AUTH_TOKEN").pipe(
    Config.map((token): Key => ({ authToken: Redacted.make(token) })),
    Config.orElse(() => Config.map(Config.Redacted("ANTHROPIC_API_KEY"), (apiKey) => ({ apiKey })))
  )
)

const baseUrl: Config.Config<Pick<Options, "baseUrl">> = Config.NonEmptyString("ANTHROPIC_BASE_URL").pipe(
  Config.map((url): Pick<Options, "baseUrl"> => ({ baseUrl: url })),
  Config.orElse(() => Config.succeed({}))
)

const headers = Config.String("ANTHROPIC_CUSTOM_HEADERS").pipe(Config.withDefault(""), Config.map(headersOf))
