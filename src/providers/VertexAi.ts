/**
 * The provider of Vertex AI: Google's Gemini models and Anthropic's Claude models in a project of Google Cloud.
 *
 * @since 0.2.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { CountingUnsupported, type ModelRequest, Provider } from "../Provider.ts"
import { Unauthenticated } from "../ProviderError.ts"
import { anthropicMessages } from "./internal/anthropic/protocol.ts"
import * as Auth from "./Auth.ts"
import type { Deployment } from "./Deployment.ts"
import { googleGenerate } from "./internal/gemini/protocol.ts"
import {
  addressParts,
  credentialFailure,
  layerConfigOf,
  layerOf,
  redacted,
  type Retried,
  type ServerOptions
} from "./internal/vendor.ts"
import { given } from "./internal/json.ts"
import { anthropic as claude } from "./internal/models/anthropic.ts"
import { google as gemini } from "./internal/models/google.ts"
import { among } from "./internal/models/rule.ts"
import type { Timeouts } from "./internal/connection.ts"
import * as Transport from "./Transport.ts"

export type { Timeouts }

/**
 * A client of `google-auth-library`, as far as the provider renews its token.
 *
 * @since 0.2.0
 * @category models
 */
export interface AuthClient {
  /** The current token, and the time at which it expires. */
  readonly credentials: object
  /** Replaces them. */
  setCredentials(credentials: object): void
}

/**
 * A source of access tokens that renews them before they expire: a `GoogleAuth` of `google-auth-library`, or an object of one's
 * own.
 *
 * **Details**
 *
 * `GoogleAuth` finds the application default credentials: the key file or the federated identity that
 * `GOOGLE_APPLICATION_CREDENTIALS` names, the user of `gcloud auth application-default login`, or the metadata server of the
 * machine.
 *
 * @since 0.2.0
 * @category models
 */
export interface TokenSource {
  /** Returns the current access token. Rejects, or returns none, if there are no credentials. */
  getAccessToken(): Promise<string | null | undefined>
  /** Returns the client whose token expires at once after Vertex AI has refused it (default: `getAccessToken` alone renews it). */
  getClient?(): Promise<AuthClient>
}

/**
 * Options of the Vertex AI provider.
 *
 * @since 0.2.0
 * @category options
 */
export interface Options extends ServerOptions {
  /** The id of the project (default: none, as for an API key in express mode, which has Gemini models only). */
  readonly project?: string | undefined
  /**
   * The location (default: `"global"`).
   *
   * It is `"global"`, a region such as `"europe-west4"`, or `"us"` or `"eu"` for the regions of a continent.
   */
  readonly location?: string | undefined
  /**
   * The source of access tokens (default: none).
   *
   * It is `new GoogleAuth({ scopes: "https://www.googleapis.com/auth/cloud-platform" })` of `google-auth-library` for the
   * application default credentials. A key from `Credentials` wins over it, as an access token, or as an API key beside `apiKey`.
   */
  readonly auth?: TokenSource | undefined
  /** An access token, as `Redacted` or plain text (default: none). It expires, mostly after an hour. */
  readonly accessToken?: Redacted.Redacted | string | undefined
  /** An API key, as `Redacted` or plain text (default: none). `auth` and `accessToken` win over it. */
  readonly apiKey?: Redacted.Redacted | string | undefined
  /**
   * The address of the server (default: that of the location, such as `https://europe-west4-aiplatform.googleapis.com`).
   *
   * The provider adds `/v1` to an address without a version.
   */
  readonly baseUrl?: string | undefined
  /** Returns the publisher of a model (default: `"anthropic"` for ids with `claude`, `"google"` for all others). */
  readonly publisher?: ((model: string) => "google" | "anthropic") | undefined
}

/**
 * Makes a provider for the models of Google and of Anthropic on Vertex AI.
 *
 * **Details**
 *
 * The provider speaks Gemini's API with Google's models, under the id `google-vertex`, and Anthropic's Messages API with Claude models,
 * under the id `google-vertex-anthropic`. These ids name its members of `modelOptions.vendor` and its keys in `Credentials`. The rules of
 * `Models` apply for each vendor, to ids with a date such as `claude-sonnet-4-5@20250929` too.
 *
 * A request whose token Vertex AI refuses goes out once more, with a token that the source renews. The provider does not retry
 * other failures: wrap it in `Retry.layer`, as `layerConfig` does. Without credentials, each call fails with `Unauthenticated`.
 *
 * Claude models answer with typed output by a tool, because Google Cloud disables output schemas for them by default.
 *
 * **Example** (Using application default credentials)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { VertexAi } from "effect-agent/providers"
 * import { GoogleAuth } from "google-auth-library"
 *
 * const auth = new GoogleAuth({ scopes: "https://www.googleapis.com/auth/cloud-platform" })
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* VertexAi.make({ project: "my-project", location: "europe-west4", auth })
 *   console.log(provider.server?.address) // => europe-west4-aiplatform.googleapis.com
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(FetchHttpClient.layer)))
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Provider["Service"], never, HttpClient.HttpClient> {
  const { publisher = publisherOf, timeouts, wire } = options
  const google = yield* Transport.make({
    protocol: googleGenerate("google-vertex", { isVertexAi: true }),
    deployment: {
      ...credentials(options),
      url: (model) => `${address(options, "google", model)}:streamGenerateContent?alt=sse`,
      countingUrl: (model) => `${address(options, "google", model)}:countTokens`,
      serves: { vendor: "google", rules: among(gemini), withoutHostedTools: ["fileSearch"] }
    },
    timeouts,
    wire
  })
  const anthropic = yield* Transport.make({
    protocol: anthropicMessages("google-vertex-anthropic", { version: "vertex-2023-10-16" }),
    deployment: {
      ...credentials(options),
      url: (model) => `${address(options, "anthropic", model)}:streamRawPredict`,
      countingUrl: () => `${address(options, "anthropic", "count-tokens")}:rawPredict`,
      serves: {
        vendor: "anthropic",
        rules: among(claude),
        withoutHostedTools: ["codeExecution"],
        withoutStrictTools: true
      }
    },
    timeouts,
    wire
  })
  const isGoogle = ({ model }: Pick<ModelRequest, "model">) => publisher(model) === "google"
  const of = (request: ModelRequest) => (isGoogle(request) ? google : anthropic)
  return Provider.of({
    id: google.id,
    ...(google.server === undefined ? {} : { server: google.server }),
    stream: (request) => of(request).stream(request),
    countTokens: (request) =>
      of(request).countTokens?.(request) ?? Effect.fail(new CountingUnsupported({ provider: google.id })),
    structuredOutput: (request) => isGoogle(request) && google.structuredOutput?.(request) === true
  })
})

const publisherOf = (model: string) => (/claude/i.test(model) ? "anthropic" : "google")

const credentials = ({
  accessToken,
  apiKey,
  auth,
  headers
}: Options): Pick<Deployment, "auth" | "apiKey" | "headers"> => {
  if (auth === undefined && accessToken === undefined && apiKey !== undefined)
    return { auth: Auth.header("x-goog-api-key"), apiKey: redacted(apiKey), headers }
  return {
    auth: tokens(auth),
    apiKey: auth === undefined ? redacted(accessToken) : undefined,
    headers
  }
}

// ───────────────────────── Addresses

/** The address of a model, without the method. The id of a tuned model is its path. */
const address = (
  { baseUrl, location = "global", project }: Options,
  publisher: "google" | "anthropic",
  model: string
): string => {
  const [base] = addressParts(baseUrl ?? origin(location))
  const versioned = /\/v\d\w*(?:\/|$)/.test(base) ? base : `${base}/v1`
  if (model.startsWith("projects/")) return `${versioned}/${model}`
  const within = project === undefined ? "" : `/projects/${project}/locations/${location}`
  const path = model.includes("/") ? model : `publishers/${publisher}/models/${model}`
  return `${versioned}${within}/${path}`
}

/** https://docs.cloud.google.com/vertex-ai/generative-ai/docs/learn/locations */
const origin = (location: string): string => {
  if (location === "global") return "https://aiplatform.googleapis.com"
  return location === "us" || location === "eu"
    ? `https://aiplatform.${location}.rep.googleapis.com`
    : `https://${location}-aiplatform.googleapis.com`
}

// ───────────────────────── Tokens

const tokens = (source: TokenSource | undefined): Auth.Auth =>
  Auth.token((isRefused) =>
    Effect.tryPromise({
      try: async () => {
        if (isRefused) expire(await source?.getClient?.())
        return source?.getAccessToken()
      },
      catch: (cause) => credentialFailure("There is no access token for Google Cloud", cause)
    }).pipe(
      Effect.flatMap((token) =>
        typeof token === "string" && token !== ""
          ? Effect.succeed(Redacted.make(token))
          : Effect.fail(new Unauthenticated({ detail: noToken }))
      )
    )
  )

const noToken =
  "There is no access token for Google Cloud. Set auth of VertexAi.layer to a GoogleAuth of google-auth-library"

/** Makes a client renew its token, although the token has not expired. */
const expire = (client: AuthClient | undefined): void => {
  client?.setCredentials({ ...client.credentials, expiry_date: 1 })
}

// ───────────────────────── Layers

/**
 * Makes the `Provider` layer of the models on Vertex AI.
 *
 * See `make` for its behaviour.
 *
 * **Example** (Giving an agent a Claude model with the account of the machine)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { VertexAi } from "effect-agent/providers"
 * import { GoogleAuth } from "google-auth-library"
 *
 * const auth = new GoogleAuth({ scopes: "https://www.googleapis.com/auth/cloud-platform" })
 *
 * const provider = VertexAi.layer({ project: "my-project", auth }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.scoped(Agent.make({ model: "claude-opus-4-5@20251101" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layer = /* @__PURE__ */ layerOf(make)

/**
 * Options of `layerConfig`: those of `make`, and those of `Retry`.
 *
 * @since 0.2.0
 * @category options
 */
export interface ConfigOptions extends Options, Retried {}

/**
 * Makes the `Provider` layer from environment variables, wrapped in `Retry.layer`.
 *
 * **Details**
 *
 * - `GOOGLE_CLOUD_PROJECT`: the project. Fails with a `ConfigError` if it is not set and `options` have neither a project nor an
 *   API key.
 * - `GOOGLE_CLOUD_LOCATION`: the location, if it is set.
 *
 * `options` win over the environment, and have the credentials.
 *
 * **Example** (Reading the project from the environment)
 *
 * ```ts
 * import { ConfigProvider, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { VertexAi } from "effect-agent/providers"
 * import { GoogleAuth } from "google-auth-library"
 *
 * const auth = new GoogleAuth({ scopes: "https://www.googleapis.com/auth/cloud-platform" })
 *
 * // Leave this out to read the environment of the process.
 * const environment = ConfigProvider.layer(
 *   ConfigProvider.fromUnknown({ GOOGLE_CLOUD_PROJECT: "my-project", GOOGLE_CLOUD_LOCATION: "europe-west4" })
 * )
 *
 * const provider = VertexAi.layerConfig({ auth }).pipe(Layer.provide([FetchHttpClient.layer, environment]))
 *
 * const program = Effect.scoped(Agent.make({ model: "gemini-3-flash-preview" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layerConfig = /* @__PURE__ */ layerConfigOf(make, (options: ConfigOptions = {}) => {
  const needsProject = options.project === undefined && options.apiKey === undefined
  const read = Config.all({ project: needsProject ? project : Config.succeed(undefined), location })
  return Config.map(read, (read) => ({ ...given(read), ...given(options) }))
})

const project = Config.NonEmptyString("GOOGLE_CLOUD_PROJECT")
const location = Config.map(
  Config.option(Config.NonEmptyString("GOOGLE_CLOUD_LOCATION")),
  Option.getOrUndefined
)
