/**
 * Providers for servers that implement OpenAI's Chat Completions API: vendors, gateways and local servers.
 *
 * `presets` has the options of the common ones.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Auth from "./Auth.ts"
import {
  addressParts,
  environmentOf,
  layerConfigOf,
  layerOf,
  maker,
  type Retried,
  type ServerOptions,
  withoutPath
} from "./internal/vendor.ts"
import { type Compat, complete, thinkingOf } from "./internal/openAiChat/compat.ts"
import { openAiChat } from "./internal/openAiChat/protocol.ts"
import type { Timeouts } from "./internal/connection.ts"
import { given } from "./internal/json.ts"
import { vendorOf } from "./internal/models/rule.ts"
import { type Preset, presets } from "./presets.ts"

export { presets } from "./presets.ts"
export type { Rule as CallIdRule } from "./internal/writing.ts"
export type { Compat, Preset, Timeouts }

/**
 * Options of a provider for one server.
 *
 * @since 0.1.0
 * @category options
 */
export interface Options extends ServerOptions {
  /** The id of the provider in messages, errors, `modelOptions.vendor` and `Credentials`. */
  readonly id: string
  /**
   * The address of the server, including the version: `http://127.0.0.1:11434/v1`.
   *
   * The provider keeps a query.
   */
  readonly baseUrl: string
  /** The differences of the server from the defaults of `Compat` (default: none). */
  readonly compat?: Partial<Compat>
}

/**
 * Makes a provider for one server.
 *
 * **Details**
 *
 * The provider sends one request for each call. It does not retry failed requests: wrap it in `Retry.layer`, as
 * `layerConfig` does. The provider leaves out or changes options that the model does not accept, by the rules
 * of `Models`, and reports each change in `ModelCallEnd.adjusted`. Dies with `InvalidInput` for an unknown member of `compat`.
 *
 * **Example** (Making a provider)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { OpenAiCompatible } from "effect-agent/providers"
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* OpenAiCompatible.make({
 *     id: "ollama",
 *     baseUrl: "http://127.0.0.1:11434/v1"
 *   })
 *   console.log(provider.id) // => ollama
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(FetchHttpClient.layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = /* @__PURE__ */ maker((options: Options) => {
  const [address, query] = addressParts(options.baseUrl)
  const base = withoutPath("/chat/completions", address)
  const compat = complete(options.compat)
  const vendor = compat.vendor ?? vendorOf(options.id, undefined)
  const isKnown = vendor !== undefined || Object.values(presets).some(({ id }) => id === options.id)
  const schemas = compat.schemas ?? (isKnown ? "jsonSchema" : "openApi")
  const usesCompat = options.compat?.thinking !== undefined || vendor === undefined
  return {
    protocol: openAiChat(options.id, { ...compat, schemas }),
    deployment: {
      url: () => `${base}/chat/completions${query}`,
      auth: Auth.bearer,
      serves: {
        vendor,
        isGateway: compat.gateway,
        thinking: usesCompat ? thinkingOf(compat) : undefined,
        hostedTools: compat.webSearch === "none" ? [] : ["webSearch"],
        searchLacks: [compat.webSearch === "plugin" ? "location" : "allowedDomains"],
        keepsPrompts: compat.cacheKey,
        takesSchema: compat.output === "json_schema"
      }
    },
    wire: options.wire ?? (vendor === undefined && !compat.gateway ? "lenient" : "strict")
  }
})

/**
 * Options of `layerConfig`: those of `make`, without id and key, and those of `Retry`.
 *
 * @since 0.1.0
 * @category options
 */
export interface ConfigOptions extends Partial<Omit<Options, "id" | "apiKey">>, Retried {}

/**
 * Makes the `Provider` layer of one server.
 *
 * See `make` for its behaviour.
 *
 * **Example** (Giving an agent a provider)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { OpenAiCompatible } from "effect-agent/providers"
 *
 * const provider = OpenAiCompatible.layer({
 *   id: "ollama",
 *   baseUrl: "http://127.0.0.1:11434/v1"
 * }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.scoped(Agent.make({ model: "qwen3" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = /* @__PURE__ */ layerOf(make)

/**
 * Makes the `Provider` layer of a preset from environment variables, wrapped in `Retry.layer`.
 *
 * **Details**
 *
 * Reads the variables that the preset names: the key, and the address and headers if they are set. Fails with a
 * `ConfigError` if the preset requires a key that is not set. `options` win over the environment.
 *
 * **Example** (Reading the key from the environment)
 *
 * ```ts
 * import { ConfigProvider, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { OpenAiCompatible } from "effect-agent/providers"
 *
 * // Leave this out to read the environment of the process.
 * const environment = ConfigProvider.layer(ConfigProvider.fromUnknown({ GROQ_API_KEY: "gsk_..." }))
 *
 * const provider = OpenAiCompatible.layerConfig(OpenAiCompatible.presets.groq).pipe(Layer.provide([FetchHttpClient.layer, environment]))
 *
 * const program = Effect.scoped(Agent.make({ model: "llama-3.3-70b-versatile" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = /* @__PURE__ */ layerConfigOf(
  make,
  (preset: Preset, options: ConfigOptions = {}) =>
    Config.map(environmentOf(preset, options), (read) => ({
      id: preset.id,
      ...read,
      compat: { ...preset.compat, ...given(options.compat ?? {}) }
    }))
)
