/**
 * The provider of Azure OpenAI: models of OpenAI and others, in a resource of Microsoft Foundry.
 *
 * @since 0.2.0
 */
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as SynchronizedRef from "effect/SynchronizedRef"
import { type Reason, Unauthenticated } from "../ProviderError.ts"
import * as Auth from "./Auth.ts"
import {
  addressParts,
  credentialFailure,
  explained,
  keyIn,
  layerConfigOf,
  layerOf,
  maker,
  type Retried,
  type ServerOptions,
  withoutPath
} from "./internal/vendor.ts"
import { given } from "./internal/json.ts"
import { among } from "./internal/models/rule.ts"
import { openai } from "./internal/models/openai.ts"
import type { Timeouts } from "./internal/connection.ts"
import { common } from "./internal/openAiChat/compat.ts"
import { openAiChat } from "./internal/openAiChat/protocol.ts"
import { openAiResponses } from "./internal/openAiResponses/protocol.ts"
import { presets } from "./presets.ts"

export type { Timeouts }

/**
 * A token of Microsoft Entra, and the time at which it expires.
 *
 * @since 0.2.0
 * @category models
 */
export interface AccessToken {
  /** The token. */
  readonly token: string
  /** The time at which it expires, in milliseconds since 1970. */
  readonly expiresOnTimestamp: number
}

/**
 * A source of tokens of Microsoft Entra: a credential of `@azure/identity`, such as `DefaultAzureCredential`, or an object of
 * one's own.
 *
 * @since 0.2.0
 * @category models
 */
export interface TokenCredential {
  /** Returns a token for a scope. Rejects, or returns `null`, if there is none. */
  getToken(scope: string): Promise<AccessToken | null>
}

/**
 * Options of the provider.
 *
 * @since 0.2.0
 * @category options
 */
export interface Options extends ServerOptions {
  /** The id of the provider in messages, errors, `modelOptions.vendor` and `Credentials` (default: `"azure"`). */
  readonly id?: string
  /**
   * The address of the resource, such as `https://my-resource.openai.azure.com`, or of a gateway before it.
   *
   * The provider adds `/openai/v1` if the address does not end so, and keeps a query, such as `?api-version=preview`.
   */
  readonly baseUrl: string
  /**
   * The API key, as `Redacted` or plain text, which the provider sends as `api-key` (default: none).
   *
   * Errors and logs never contain it. A key from `Credentials` wins over it.
   */
  readonly apiKey?: Redacted.Redacted | string | undefined
  /**
   * The source of tokens, to send as `Authorization: Bearer` instead of a key (default: none).
   *
   * The provider requests a token when it has none, when the last one expires within five minutes, and after a refusal. The provider
   * then sends keys from `Credentials` as bearer tokens too.
   */
  readonly credential?: TokenCredential
  /** The scope of the tokens (default: `"https://cognitiveservices.azure.com/.default"`). Other clouds have others. */
  readonly scope?: string
  /**
   * The API (default: `"responses"`).
   *
   * Models of other vendors than OpenAI may support `"chat"`, Chat Completions, only.
   */
  readonly api?: "responses" | "chat"
  /** The vendor whose rules of `Models` apply (default: `"openai"`). */
  readonly vendor?: string
}

/**
 * Makes the provider.
 *
 * **Details**
 *
 * The model of a request is the name of a deployment. The rules of `Models` know a deployment that has the name of its model, such as
 * `gpt-5.5`. A deployment with another name takes the newest models of OpenAI as its example, unless the application adds a rule for it with
 * `Models.layer`.
 *
 * **Example** (Using a credential)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { AzureOpenAi } from "effect-agent/providers"
 *
 * // In an application: new DefaultAzureCredential() of @azure/identity.
 * const credential: AzureOpenAi.TokenCredential = {
 *   getToken: () => Promise.resolve({ token: "eyJ...", expiresOnTimestamp: Date.now() + 3_600_000 })
 * }
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* AzureOpenAi.make({ baseUrl: "https://my-resource.openai.azure.com", credential })
 *   console.log(provider.id, provider.server?.address) // => azure my-resource.openai.azure.com
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(FetchHttpClient.layer)))
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const make = /* @__PURE__ */ maker((options: Options) => {
  const { api = "responses", credential, id = "azure", scope = usualScope, vendor = "openai" } = options
  const isChat = api === "chat"
  const url = (route: string) => urlOf(options.baseUrl, route)
  return {
    protocol: isChat ? openAiChat(id, { ...common, ...presets.openAi.compat }) : openAiResponses(id),
    deployment: {
      url: () => url(isChat ? "chat/completions" : "responses"),
      ...(isChat ? {} : { countingUrl: () => url("responses/input_tokens") }),
      auth: credential === undefined ? Auth.header("api-key") : entra(credential, scope),
      serves: {
        vendor,
        rules: vendor === "openai" ? among(openai) : undefined,
        keepsPrompts: true,
        ...(isChat ? { takesSchema: true } : {})
      }
    }
  }
})

const usualScope = "https://cognitiveservices.azure.com/.default"

const urlOf = (baseUrl: string, route: string): string => {
  const [base, query] = addressParts(baseUrl)
  const resource = withoutPath("/openai", withoutPath("/v1", base))
  return `${resource}/openai/v1/${route}${query}`
}

// ───────────────────────── Tokens

/** Keeps the token, because some credentials start a program for each. */
const entra = (credential: TokenCredential, scope: string): Auth.Auth => {
  const held = SynchronizedRef.makeUnsafe<AccessToken | undefined>(undefined)
  return Auth.token((isRefused) =>
    SynchronizedRef.modifyEffect(
      held,
      Effect.fnUntraced(function* (last) {
        const now = yield* Clock.currentTimeMillis
        const isValid = last !== undefined && !isRefused && now < last.expiresOnTimestamp - early
        const token = isValid ? last : yield* requested(credential, scope)
        return [Redacted.make(token.token), token]
      })
    )
  )
}

/** The time before the end of a token at which the provider requests the next one, in milliseconds. */
const early = 5 * 60_000

const requested = (credential: TokenCredential, scope: string): Effect.Effect<AccessToken, Reason> =>
  Effect.tryPromise({
    try: () => credential.getToken(scope),
    catch: (cause) => credentialFailure("The credential gives no token for Azure OpenAI", cause)
  }).pipe(
    Effect.flatMap((token) =>
      token === null
        ? Effect.fail(new Unauthenticated({ detail: "The credential gives no token for Azure OpenAI" }))
        : Effect.succeed(token)
    )
  )

// ───────────────────────── Layers

/**
 * Makes the `Provider` layer.
 *
 * **Example** (Giving an agent a provider)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { AzureOpenAi } from "effect-agent/providers"
 *
 * const provider = AzureOpenAi.layer({
 *   baseUrl: "https://my-resource.openai.azure.com",
 *   apiKey: "0123456789abcdef"
 * }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.scoped(Agent.make({ model: "gpt-5.5" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layer = /* @__PURE__ */ layerOf(make)

/**
 * Options of `layerConfig`: those of `make` without the key, and those of `Retry`.
 *
 * @since 0.2.0
 * @category options
 */
export interface ConfigOptions extends Omit<Partial<Options>, "apiKey">, Retried {}

/**
 * Makes the `Provider` layer from environment variables, wrapped in `Retry.layer`.
 *
 * **Details**
 *
 * Reads the address from `AZURE_OPENAI_ENDPOINT`, and without a `credential` the key from `AZURE_OPENAI_API_KEY` or `AZURE_API_KEY`. Fails with a
 * `ConfigError` if one of them is not set. `options` win over the environment.
 *
 * **Example** (Reading the address and the key from the environment)
 *
 * ```ts
 * import { ConfigProvider, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { AzureOpenAi } from "effect-agent/providers"
 *
 * // Leave this out to read the environment of the process.
 * const environment = ConfigProvider.layer(
 *   ConfigProvider.fromUnknown({
 *     AZURE_OPENAI_ENDPOINT: "https://my-resource.openai.azure.com",
 *     AZURE_OPENAI_API_KEY: "0123456789abcdef"
 *   })
 * )
 *
 * const provider = AzureOpenAi.layerConfig().pipe(Layer.provide([FetchHttpClient.layer, environment]))
 *
 * const program = Effect.scoped(Agent.make({ model: "gpt-5.5" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layerConfig = /* @__PURE__ */ layerConfigOf(make, (options: ConfigOptions = {}) => {
  const { baseUrl, credential } = options
  const read = Config.all({
    baseUrl: baseUrl === undefined ? endpoint : Config.succeed(baseUrl),
    apiKey: credential === undefined ? key : Config.succeed(undefined)
  })
  return Config.map(read, (read) => ({ ...given(options), ...read }))
})

const key = keyIn("AZURE_OPENAI_API_KEY", "AZURE_API_KEY")

const endpoint = explained(["AZURE_OPENAI_ENDPOINT"], Config.NonEmptyString("AZURE_OPENAI_ENDPOINT"), {
  value: "the address of the resource",
  option: "a baseUrl"
})
