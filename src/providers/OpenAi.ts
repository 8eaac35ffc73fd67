/**
 * OpenAI, by its Chat Completions.
 */
import type * as Config from "effect/Config"
import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { Provider } from "../Provider.ts"
import type { Timeouts } from "./internal/silence.ts"
import * as OpenAiCompatible from "./OpenAiCompatible.ts"
import { openAi } from "./presets.ts"

export type { Timeouts }

export interface Options {
  /** `Credentials` wins over it. */
  readonly apiKey?: Redacted.Redacted
  /** Default "https://api.openai.com/v1". */
  readonly baseUrl?: string
  /** Such as "openai-organization". */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Timeouts
}

/** A provider for all of OpenAI's models. It asks once; nothing is retried. */
export const make = (options: Options): Effect.Effect<Provider["Service"], never, HttpClient.HttpClient> =>
  OpenAiCompatible.make({ ...openAi, ...options })

/** `make` as a layer. */
export const layer = (options: Options): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(options))

/**
 * Reads the key from `OPENAI_API_KEY`, and, if they are there, the address from `OPENAI_BASE_URL` and whom to charge from
 * `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`. Inside `Retry.layer(retry)`.
 */
export const layerConfig = (
  options?: Omit<Options, "apiKey"> & Pick<OpenAiCompatible.ConfigOptions, "retry">
): Layer.Layer<Provider, Config.ConfigError, HttpClient.HttpClient> =>
  OpenAiCompatible.layerConfig(openAi, options)
