/**
 * Google's Gemini, by generateContent.
 */
import * as Config from "effect/Config"
import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import { Provider } from "../Provider.ts"
import * as Retry from "../Retry.ts"
import * as Address from "./internal/address.ts"
import * as Environment from "./internal/environment.ts"
import { given } from "./internal/given.ts"
import { googleGenerate } from "./internal/googleGenerate.ts"
import * as SecretKey from "./internal/secretKey.ts"
import type { Timeouts } from "./internal/silence.ts"
import * as transport from "./internal/transport.ts"

export type { Timeouts }

export interface Options {
  /** `Redacted`, or plain text, which no error and no log shows either. Default none; `Credentials` wins over it. */
  readonly apiKey?: Redacted.Redacted | string
  /**
   * Default "https://generativelanguage.googleapis.com/v1beta". Where no version is named, "/v1beta" is added. Vertex AI
   * in express mode is "https://aiplatform.googleapis.com/v1/publishers/google".
   */
  readonly baseUrl?: string
  /** Sent with each request. Those whose name speaks of a key or a token are kept out of every error. */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Timeouts
}

/**
 * A provider for all of Google's models. It asks once; nothing is retried.
 *
 * Options that a model does not accept are left out or changed by the rules of `Models`, and reported in
 * `ModelCallEnd.adjusted`. Google's own tools, given as `vendor: { google: { tools: [{ googleSearch: {} }] } }`, stand
 * beside the tools of the agent. Their results, and images that the model made, are kept in the `opaque` of a text block
 * without words; an answer that holds nothing but an image says "[image]".
 */
export const make = (options: Options): Effect.Effect<Provider["Service"], never, HttpClient.HttpClient> => {
  const [base, query] = Address.parts(options.baseUrl ?? origin)
  const rest = query === "" ? "" : `&${query.slice(1)}`
  return transport.make({
    id,
    protocol: googleGenerate(id),
    serves: { endpoint: "generateContent", vendor: id },
    url: (model) => `${versioned(base)}/${pathOf(model)}:streamGenerateContent?alt=sse${rest}`,
    authorize: (key) => ({ "x-goog-api-key": key }),
    apiKey: SecretKey.of(options.apiKey),
    headers: options.headers,
    timeouts: options.timeouts
  })
}

const id = "google"
const origin = "https://generativelanguage.googleapis.com"

const versioned = (url: string): string => (/\/v\d\w*(?:\/|$)/.test(url) ? url : `${url}/v1beta`)

/** Tuned models and those of other publishers are named with their path. */
const pathOf = (model: string): string => (model.includes("/") ? model : `models/${model}`)

/** What `layerConfig` does not read, and how it asks again. */
export interface ConfigOptions extends Omit<Options, "apiKey"> {
  readonly retry?: Retry.Options
}

/** `make` as a layer. */
export const layer = (options: Options): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(options))

/**
 * Reads the key from `GEMINI_API_KEY`, `GOOGLE_API_KEY` or `GOOGLE_GENERATIVE_AI_API_KEY`, the first that is there, and
 * the address from `GEMINI_BASE_URL` or `GOOGLE_GEMINI_BASE_URL` if it is. Inside `Retry.layer(retry)`.
 */
export const layerConfig = ({ retry, ...options }: ConfigOptions = {}): Layer.Layer<
  Provider,
  Config.ConfigError,
  HttpClient.HttpClient
> =>
  Layer.unwrap(
    Config.map(Config.all({ apiKey: key, baseUrl: Config.option(address) }), ({ apiKey, baseUrl }) =>
      Retry.layer(retry)(
        layer({
          ...Option.match(baseUrl, { onNone: () => ({}), onSome: (baseUrl) => ({ baseUrl }) }),
          ...given(options),
          apiKey
        })
      )
    )
  )

const key = Environment.key("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY")
const address = Environment.first(["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"])
