/**
 * The provider of Anthropic's models, and of servers that implement the Messages API.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Auth from "./Auth.ts"
import {
  address,
  addressParts,
  explained,
  isAt,
  layerConfigOf,
  layerOf,
  maker,
  redacted,
  type Retried,
  type ServerOptions,
  withoutPath
} from "./internal/vendor.ts"
import { anthropicMessages } from "./internal/anthropic/protocol.ts"
import { given } from "./internal/json.ts"
import type { Timeouts } from "./internal/connection.ts"
import { among, vendorOf } from "./internal/models/rule.ts"
import { anthropic } from "./internal/models/anthropic.ts"

export type { Timeouts }

/**
 * Options of the Anthropic provider.
 *
 * @since 0.1.0
 * @category options
 */
export interface Options extends ServerOptions {
  /**
   * The id of the provider in messages, errors, `modelOptions.vendor` and `Credentials` (default:
   * `"anthropic"`).
   */
  readonly id?: string
  /**
   * The vendor whose rules of `Models` apply (default: `id` if the table has rules for it, else `"anthropic"`).
   */
  readonly vendor?: string
  /**
   * A token to send as `Authorization: Bearer`, instead of `apiKey` (default: none).
   *
   * The provider then sends keys from `Credentials` as bearer tokens too.
   */
  readonly authToken?: Redacted.Redacted | string
  /** The address of the server, with or without `/v1` (default: `https://api.anthropic.com`). */
  readonly baseUrl?: string
  /** Whether the server lets models search for tools that a request defers (default: at `api.anthropic.com`, if the model can). */
  readonly toolSearch?: boolean
  /** Whether the server takes changes of a prompt within a conversation (default: at `api.anthropic.com`, if the model does). */
  readonly promptChanges?: boolean
}

/**
 * Makes a provider for all of Anthropic's models.
 *
 * **Details**
 *
 * The provider sends one request for each call. It does not retry failed requests: wrap it in `Retry.layer`, as
 * `layerConfig` does. If the vendor pauses an answer, the provider requests its continuation and returns one
 * answer.
 *
 * The vendor caches prompts unless `cacheRetention` is `"none"`. `maxTokens` is by default the maximum of the
 * model. The provider leaves out or changes options that the model does not accept, by the rules of `Models`,
 * and reports each change in `ModelCallEnd.adjusted`.
 *
 * The vendor's tools in `hostedTools` and in `vendor: { anthropic: { tools } }` are added to the tools of the agent. An answer has
 * each of their calls and each of their results as a block `hostedTool`. A block `source` follows the text for each of its
 * citations, and the result of a search for each page that it found. The text of a page, and files of the vendor's containers,
 * stay in the result. The model calls the tool `computer` of the agent with the actions of `computerUse`.
 *
 * **Gotchas**
 *
 * The server sends nothing while the vendor's tools work, so `timeouts.idle` may have to be longer.
 *
 * Requests have the API version `2023-06-01`, in which models before Opus 4.7 take `temperature` and `topP`. With the header
 * `anthropic-version: 2026-10-21` no model takes them, so the provider leaves them out and reports it.
 *
 * Since Opus 4.8 an answer may have several actions on the screen: give the tool `computer` the `executionMode` `"sequential"`.
 *
 * **Example** (Making a provider)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Anthropic } from "effect-agent/providers"
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* Anthropic.make({ apiKey: "sk-ant-..." })
 *   console.log(provider.id) // => anthropic
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(FetchHttpClient.layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = /* @__PURE__ */ maker((options: Options) => {
  const { authToken, baseUrl = "https://api.anthropic.com", headers, id = "anthropic" } = options
  const [base, query] = addressParts(baseUrl)
  const url = `${withoutPath("/v1", withoutPath("/messages", base))}/v1/messages`
  const vendor = options.vendor ?? vendorOf(id, "anthropic")
  const sent = { "anthropic-version": "2023-06-01", ...lowerCased(headers) }
  return {
    protocol: anthropicMessages(id, { keepsUnsigned: !isAt("anthropic.com", baseUrl) }),
    deployment: {
      url: () => `${url}${query}`,
      countingUrl: () => `${url}/count_tokens${query}`,
      ...(authToken === undefined ? { auth } : { auth: Auth.bearer, apiKey: redacted(authToken) }),
      headers: sent,
      serves: {
        withoutSampling: sent["anthropic-version"] >= "2026-10-21",
        vendor,
        rules: vendor === "anthropic" ? among(anthropic) : undefined,
        toolSearch: options.toolSearch ?? isAt("api.anthropic.com", baseUrl),
        promptChanges: options.promptChanges ?? isAt("api.anthropic.com", baseUrl)
      }
    }
  }
})

/** A header of the application in another spelling would not win over the one here. */
const lowerCased = (headers: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

/** The server rejects the token of a subscription as `x-api-key`. */
const auth: Auth.Auth = (request) =>
  request.key !== undefined && Redacted.value(request.key).trim().startsWith("sk-ant-oat")
    ? Effect.map(Auth.bearer(request), ({ headers, secrets }) => ({
        headers: { ...headers, "anthropic-beta": withBeta(request.headers["anthropic-beta"]) },
        secrets
      }))
    : Auth.header("x-api-key")(request)

const withBeta = (betas: string | undefined): string => (betas === undefined ? oauth : `${betas},${oauth}`)

const oauth = "oauth-2025-04-20"

/**
 * Options of `layerConfig`: those of `make`, without the key, and those of `Retry`.
 *
 * @since 0.1.0
 * @category options
 */
export interface ConfigOptions extends Omit<Options, "apiKey" | "authToken">, Retried {}

/**
 * Makes the `Provider` layer of Anthropic's models.
 *
 * See `make` for its behaviour.
 *
 * **Example** (Giving an agent a provider)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { Anthropic } from "effect-agent/providers"
 *
 * const provider = Anthropic.layer({ apiKey: "sk-ant-..." }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.scoped(Agent.make({ model: "claude-opus-5" }))
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
 * - `ANTHROPIC_AUTH_TOKEN`, sent as a bearer token, or else `ANTHROPIC_API_KEY`: the key. Fails with a
 *   `ConfigError` if neither is set.
 * - `ANTHROPIC_BASE_URL`: the address, if it is set.
 * - `ANTHROPIC_CUSTOM_HEADERS`: further headers, one `Name: value` on each line, if it is set.
 *
 * `options` win over the environment.
 *
 * **Example** (Reading the key from the environment)
 *
 * ```ts
 * import { ConfigProvider, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { Anthropic } from "effect-agent/providers"
 *
 * // Leave this out to read the environment of the process.
 * const environment = ConfigProvider.layer(ConfigProvider.fromUnknown({ ANTHROPIC_API_KEY: "sk-ant-..." }))
 *
 * const provider = Anthropic.layerConfig().pipe(Layer.provide([FetchHttpClient.layer, environment]))
 *
 * const program = Effect.scoped(Agent.make({ model: "claude-opus-5" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = /* @__PURE__ */ layerConfigOf(make, (options: ConfigOptions = {}) =>
  Config.map(Config.all({ key, server, headers }), (read) => ({
    ...read.key,
    ...read.server,
    ...given(options),
    headers: { ...read.headers, ...options.headers }
  }))
)

const headersOf = (lines: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    lines.split("\n").flatMap((line) => {
      const colon = line.indexOf(":")
      const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase()
      return name === "" || /\s/.test(name) ? [] : [[name, line.slice(colon + 1).trim()]]
    })
  )

type Key = Pick<Options, "apiKey" | "authToken">

const key: Config.Config<Key> = explained(
  ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
  Config.NonEmptyString("ANTHROPIC_AUTH_TOKEN").pipe(
    Config.map((token): Key => ({ authToken: Redacted.make(token) })),
    Config.orElse(() => Config.map(Config.Redacted("ANTHROPIC_API_KEY"), (apiKey) => ({ apiKey })))
  )
)

const server = address("ANTHROPIC_BASE_URL")

const headers = Config.String("ANTHROPIC_CUSTOM_HEADERS").pipe(Config.withDefault(""), Config.map(headersOf))
