/**
 * Any server that speaks OpenAI's Chat Completions: vendors, gateways, and what runs on this machine. `presets` knows the
 * common ones.
 */
import * as Config from "effect/Config"
import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { Provider } from "../Provider.ts"
import * as Retry from "../Retry.ts"
import * as Address from "./internal/address.ts"
import { common, type Compat, thinkingOf } from "./internal/compat.ts"
import * as Environment from "./internal/environment.ts"
import { openAiChat } from "./internal/openAiChat.ts"
import * as SecretKey from "./internal/secretKey.ts"
import type { Timeouts } from "./internal/silence.ts"
import * as transport from "./internal/transport.ts"
import { given } from "./internal/given.ts"
import * as Models from "./Models.ts"
import type { Preset } from "./presets.ts"

export * as presets from "./presets.ts"
export type { Rule as CallIdRule } from "./internal/callId.ts"
export type { Compat, Preset, Timeouts }

export interface Options {
  /** Names the server in messages, in errors, and to `Credentials`. */
  readonly id: string
  /** Up to and with the version: "http://127.0.0.1:11434/v1". A query stays. */
  readonly baseUrl: string
  /** `Redacted`, or plain text, which no error and no log shows either. Default none; `Credentials` wins over it. */
  readonly apiKey?: Redacted.Redacted | string
  /** Sent with each request. Those whose name speaks of a key or a token are kept out of every error. */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Timeouts
  /** Where the server differs from most. */
  readonly compat?: Partial<Compat>
}

/** A provider of one server. It asks once; nothing is retried. */
export const make = (options: Options): Effect.Effect<Provider["Service"], never, HttpClient.HttpClient> => {
  const [address, query] = Address.parts(options.baseUrl)
  const base = Address.without("/chat/completions", address)
  const compat = { ...common, ...given(options.compat ?? {}) }
  const vendor = compat.vendor ?? Models.vendorOf(options.id, undefined)
  const isToldHow = options.compat?.thinking !== undefined || vendor === undefined
  return transport.make({
    id: options.id,
    protocol: openAiChat(options.id, compat),
    serves: {
      endpoint: "chat",
      vendor,
      isGateway: compat.gateway,
      thinking: isToldHow ? thinkingOf(compat) : undefined,
      keepsPrompts: compat.cacheKey
    },
    url: () => `${base}/chat/completions${query}`,
    authorize: (key) => ({ authorization: `Bearer ${key}` }),
    apiKey: SecretKey.of(options.apiKey),
    headers: options.headers,
    timeouts: options.timeouts
  })
}

/** What `layerConfig` does not read, and how it asks again. */
export interface ConfigOptions extends Partial<Omit<Options, "id" | "apiKey">> {
  readonly retry?: Retry.Options
}

/** `make` as a layer. */
export const layer = (options: Options): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(options))

/**
 * Reads the key, and the address and headers where such may be set, from the environment names of the preset. Inside
 * `Retry.layer(retry)`.
 */
export const layerConfig = (
  preset: Preset,
  { retry, ...options }: ConfigOptions = {}
): Layer.Layer<Provider, Config.ConfigError, HttpClient.HttpClient> =>
  Layer.unwrap(
    Config.map(Environment.of(preset), (read) =>
      Retry.layer(retry)(
        layer({
          id: preset.id,
          baseUrl: preset.baseUrl,
          ...read,
          ...given(options),
          headers: { ...read.headers, ...options.headers },
          compat: { ...preset.compat, ...given(options.compat ?? {}) }
        })
      )
    )
  )
