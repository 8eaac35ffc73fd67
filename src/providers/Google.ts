/**
 * The provider of Google's Gemini models, over the `generateContent` API.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Auth from "./Auth.ts"
import {
  address,
  addressParts,
  keyIn,
  layerConfigOf,
  layerOf,
  maker,
  type Retried,
  type ServerOptions
} from "./internal/vendor.ts"
import { given } from "./internal/json.ts"
import { googleGenerate } from "./internal/gemini/protocol.ts"
import { among } from "./internal/models/rule.ts"
import { google } from "./internal/models/google.ts"
import type { Timeouts } from "./internal/connection.ts"

export type { Timeouts }

/**
 * Options of the Google provider.
 *
 * @since 0.1.0
 * @category options
 */
export interface Options extends ServerOptions {
  /**
   * The address of the server (default: `https://generativelanguage.googleapis.com/v1beta`).
   *
   * The provider adds `/v1beta` to an address without a version. Vertex AI in express mode is
   * `https://aiplatform.googleapis.com/v1/publishers/google`.
   */
  readonly baseUrl?: string
}

/**
 * Makes a provider for all of Google's models.
 *
 * **Details**
 *
 * The provider sends one request for each call. It does not retry failed requests: wrap it in `Retry.layer`, as
 * `layerConfig` does. The provider leaves out or changes options that the model does not accept, by the rules
 * of `Models`, and reports each change in `ModelCallEnd.adjusted`.
 *
 * Searches and code that Google ran are blocks `hostedTool` of an answer, pages and documents behind it blocks `source`, and
 * images and recordings of the model blocks `media`. Google names the passages of the answer that rely on a web page, rather
 * than those of the page: they are the `citedText` of its source. Gemini takes no file names, so the provider leaves out the
 * `name` of a file.
 *
 * With the hosted tool `computerUse`, each action of the model is a call of the agent's tool `computer`, with the name of Google's function
 * as the parameter `action`: `{ action: "click_at", x: 500, y: 20 }`. Coordinates go from 0 to 999. Google wants a screenshot back, and
 * a text that is a JSON object with the address of the page, such as `{"url": "https://example.com"}`.
 *
 * **Example** (Making a provider)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Google } from "effect-agent/providers"
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* Google.make({ apiKey: "AIza..." })
 *   console.log(provider.id) // => google
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(FetchHttpClient.layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = /* @__PURE__ */ maker((options: Options) => {
  const [base, query] = addressParts(options.baseUrl ?? origin)
  const rest = query === "" ? "" : `&${query.slice(1)}`
  return {
    protocol: googleGenerate(id),
    deployment: {
      url: (model) => `${versioned(base)}/${pathOf(model)}:streamGenerateContent?alt=sse${rest}`,
      countingUrl: (model) => `${versioned(base)}/${pathOf(model)}:countTokens${query}`,
      auth: Auth.header("x-goog-api-key"),
      serves: { vendor: id, rules: among(google) }
    }
  }
})

const id = "google"
const origin = "https://generativelanguage.googleapis.com"

const versioned = (url: string): string => (/\/v\d\w*(?:\/|$)/.test(url) ? url : `${url}/v1beta`)

/** Ids of tuned models and of models of other publishers include their path. */
const pathOf = (model: string): string => (model.includes("/") ? model : `models/${model}`)

/**
 * Options of `layerConfig`: those of `make`, without the key, and those of `Retry`.
 *
 * @since 0.1.0
 * @category options
 */
export interface ConfigOptions extends Omit<Options, "apiKey">, Retried {}

/**
 * Makes the `Provider` layer of Google's models.
 *
 * See `make` for its behaviour.
 *
 * **Example** (Giving an agent a provider)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { Google } from "effect-agent/providers"
 *
 * const provider = Google.layer({ apiKey: "AIza..." }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.scoped(Agent.make({ model: "gemini-3-pro" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = /* @__PURE__ */ layerOf(make)

/**
 * Makes the `Provider` layer from environment variables, wrapped in `Retry.layer`.
 *
 * **Details**
 *
 * - `GEMINI_API_KEY`, `GOOGLE_API_KEY` or `GOOGLE_GENERATIVE_AI_API_KEY`: the key, the first of them that is
 *   set. Fails with a `ConfigError` if none is.
 * - `GEMINI_BASE_URL` or `GOOGLE_GEMINI_BASE_URL`: the address, if one is set.
 *
 * `options` win over the environment.
 *
 * **Example** (Reading the key from the environment)
 *
 * ```ts
 * import { ConfigProvider, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { Google } from "effect-agent/providers"
 *
 * // Leave this out to read the environment of the process.
 * const environment = ConfigProvider.layer(ConfigProvider.fromUnknown({ GEMINI_API_KEY: "AIza..." }))
 *
 * const provider = Google.layerConfig().pipe(Layer.provide([FetchHttpClient.layer, environment]))
 *
 * const program = Effect.scoped(Agent.make({ model: "gemini-3-pro" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = /* @__PURE__ */ layerConfigOf(make, (options: ConfigOptions = {}) =>
  Config.map(Config.all({ apiKey: key, server }), ({ apiKey, server }) => ({
    ...server,
    ...given(options),
    apiKey
  }))
)

const key = keyIn("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY")
const server = address("GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
