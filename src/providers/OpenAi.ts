/**
 * OpenAI's models, by the Responses API: their thinking goes back to them sealed, and searches and code can run at the
 * vendor. `OpenAiCompatible` with the preset `openAi` speaks Chat Completions instead.
 */
import * as Config from "effect/Config"
import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { Provider } from "../Provider.ts"
import * as Retry from "../Retry.ts"
import * as Address from "./internal/address.ts"
import * as Environment from "./internal/environment.ts"
import { given } from "./internal/given.ts"
import { openAiResponses } from "./internal/openAiResponses.ts"
import * as SecretKey from "./internal/secretKey.ts"
import type { Timeouts } from "./internal/silence.ts"
import * as transport from "./internal/transport.ts"
import * as Models from "./Models.ts"
import { openAi } from "./presets.ts"

export type { Timeouts }

export interface Options {
  /** Names the server in messages, in errors, in `modelOptions.vendor` and to `Credentials`. Default "openai". */
  readonly id?: string
  /** Whose models the server has: the rules of the model table that hold. Default: `id` if the table knows it, else "openai". */
  readonly vendor?: string
  /** `Redacted`, or plain text, which no error and no log shows either. Default none; `Credentials` wins over it. */
  readonly apiKey?: Redacted.Redacted | string
  /**
   * Default "https://api.openai.com/v1". It must speak the Responses API, whatever its address. A query stays:
   * "https://name.openai.azure.com/openai?api-version=…", whose key goes into the header "api-key".
   */
  readonly baseUrl?: string
  /** Such as "openai-organization". Those whose name speaks of a key or a token are kept out of every error. */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Timeouts
}

/**
 * A provider for all of OpenAI's models. It asks once; nothing is retried.
 *
 * The vendor keeps nothing, unless `vendor: { openai: { store: true } }` asks for it. Options that a model does not accept
 * are left out or changed by the rules of `Models`, and reported in `ModelCallEnd.adjusted`. The vendor's own tools, given
 * as `vendor: { openai: { tools } }`, stand beside the tools of the agent. A tool without a schema (`custom`, one of them)
 * is called with its text as it is for `rawArguments`.
 */
export const make = (options: Options): Effect.Effect<Provider["Service"], never, HttpClient.HttpClient> => {
  const id = options.id ?? "openai"
  const url = urlOf(options.baseUrl ?? openAi.baseUrl)
  return transport.make({
    id,
    protocol: openAiResponses(id),
    serves: {
      endpoint: "responses",
      vendor: options.vendor ?? Models.vendorOf(id, "openai"),
      keepsPrompts: true
    },
    url: () => url,
    otherwise: options.baseUrl === undefined || options.baseUrl === openAi.baseUrl ? undefined : otherwise,
    authorize: (key) => ({ authorization: `Bearer ${key}` }),
    apiKey: SecretKey.of(options.apiKey),
    headers: options.headers,
    timeouts: options.timeouts
  })
}

const otherwise =
  "If the server speaks Chat Completions alone, use OpenAiCompatible.layer({ id, baseUrl }) in place of OpenAi."

/** What `layerConfig` does not read, and how it asks again. */
export interface ConfigOptions extends Omit<Options, "apiKey"> {
  readonly retry?: Retry.Options
}

/** `make` as a layer. */
export const layer = (options: Options): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(options))

/**
 * Reads the key from `OPENAI_API_KEY`, and, if they are there, the address from `OPENAI_BASE_URL` and whom to charge from
 * `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`. Inside `Retry.layer(retry)`.
 */
export const layerConfig = ({ retry, ...options }: ConfigOptions = {}): Layer.Layer<
  Provider,
  Config.ConfigError,
  HttpClient.HttpClient
> =>
  Layer.unwrap(
    Config.map(Environment.of(openAi), (read) =>
      Retry.layer(retry)(
        layer({ ...read, ...given(options), headers: { ...read.headers, ...options.headers } })
      )
    )
  )

const urlOf = (baseUrl: string): string => {
  const [base, query] = Address.parts(baseUrl)
  return `${Address.without("/responses", base)}/responses${query}`
}
