/**
 * The provider of the models on Amazon Bedrock, by its Converse API.
 *
 * @since 0.2.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { type Reason, Unauthenticated } from "../ProviderError.ts"
import * as Auth from "./Auth.ts"
import { bedrockConverse } from "./internal/bedrock/protocol.ts"
import * as Framing from "./Framing.ts"
import {
  address,
  addressParts,
  credentialFailure,
  explained,
  first,
  layerConfigOf,
  layerOf,
  maker,
  type Retried,
  type ServerOptions
} from "./internal/vendor.ts"
import { given } from "./internal/json.ts"
import type { Timeouts } from "./internal/connection.ts"
import { vendorAtBedrock } from "./internal/models/rule.ts"

export type { Timeouts }

/**
 * Gives the current credentials of an AWS account, such as `fromNodeProviderChain()` or `defaultProvider()` of
 * `@aws-sdk/credential-provider-node`.
 *
 * **Details**
 *
 * The provider calls the function for each request, with `forceRefresh: true` after Bedrock has refused the last credentials. A
 * rejected promise fails the request with `Unauthenticated`.
 *
 * @since 0.2.0
 * @category models
 */
export type CredentialSource = (options: { readonly forceRefresh: boolean }) => Promise<Auth.AwsCredentials>

/**
 * Options of the Amazon Bedrock provider.
 *
 * @since 0.2.0
 * @category options
 */
export interface Options extends ServerOptions {
  /**
   * The id of the provider in messages, errors, `modelOptions.vendor` and `Credentials` (default: `"amazon-bedrock"`).
   */
  readonly id?: string
  /** The region, such as `"us-east-1"`. */
  readonly region: string
  /**
   * The credentials of an AWS account, or a function or an effect that gives them for each request (default: none).
   *
   * The provider signs requests with them. Errors and logs never contain the secrets.
   */
  readonly credentials?: Auth.AwsCredentials | CredentialSource | Effect.Effect<Auth.AwsCredentials, Reason>
  /**
   * An API key of Bedrock, as `Redacted` or plain text, to send instead of a signature (default: none).
   *
   * Errors and logs never contain it. A key from `Credentials` wins over it.
   */
  readonly apiKey?: Redacted.Redacted | string | undefined
  /**
   * The address of the server, such as a VPC endpoint or `https://bedrock-runtime-fips.us-east-1.amazonaws.com` (default:
   * `https://bedrock-runtime.{region}.amazonaws.com`).
   */
  readonly baseUrl?: string
}

/**
 * Makes a provider for the models on Amazon Bedrock.
 *
 * **Details**
 *
 * A model is a model id, the id of an inference profile such as `us.anthropic.claude-opus-4-6-v1`, or an ARN. Its vendor is
 * the part of the id before the name, whose rules of `Models` apply.
 *
 * Bedrock caches prompts of Claude and Nova unless `cacheRetention` is `"none"`. The provider leaves out or changes options
 * that the model does not accept, and reports each change in `ModelCallEnd.adjusted`.
 *
 * Members in `vendor: { "amazon-bedrock": { … } }` go into the body: `guardrailConfig`, `requestMetadata`,
 * `performanceConfig`, `additionalModelRequestFields`.
 *
 * The provider sends one request for each call, and a second one if Bedrock refuses its credentials and there are new ones. It
 * does not retry failed requests: wrap it in `Retry.layer`, as `layerConfig` does.
 *
 * **Gotchas**
 *
 * The ARN of an application inference profile names no vendor: the provider then sends no cache marks and no thinking level. Add
 * the fields of the model in `vendor`.
 *
 * **Example** (Making a provider)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { AmazonBedrock } from "effect-agent/providers"
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* AmazonBedrock.make({
 *     region: "us-east-1",
 *     credentials: { accessKeyId: "AKIA...", secretAccessKey: "..." }
 *   })
 *   console.log(provider.id) // => amazon-bedrock
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(FetchHttpClient.layer)))
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const make = /* @__PURE__ */ maker((options: Options) => {
  const { credentials, id = "amazon-bedrock", region } = options
  const [base, query] = addressParts(options.baseUrl ?? serverOf(region))
  const route = (model: string, name: string) => `${base}/model/${encodeURIComponent(model)}/${name}${query}`
  return {
    protocol: bedrockConverse(id),
    framing: Framing.awsEventStream,
    deployment: {
      url: (model) => route(model, "converse-stream"),
      countingUrl: (model) => route(model.replace(geography, ""), "count-tokens"),
      auth: authOf(region, credentials),
      serves: { vendor: vendorAtBedrock }
    }
  }
})

/** The geography of an inference profile, such as `us.`: the vendor counts tokens by the id of the model only. */
const geography = /^[a-z-]+\.(?=[a-z\d]+\.)/

/** https://docs.aws.amazon.com/general/latest/gr/bedrock.html */
const serverOf = (region: string): string => {
  const [, suffix = "amazonaws.com"] = partitions.find(([prefix]) => region.startsWith(prefix)) ?? []
  return `https://bedrock-runtime.${region}.${suffix}`
}

const partitions: ReadonlyArray<readonly [prefix: string, suffix: string]> = [
  ["cn-", "amazonaws.com.cn"],
  ["us-iso-", "c2s.ic.gov"],
  ["us-isob-", "sc2s.sgov.gov"],
  ["us-isof-", "csp.hci.ic.gov"],
  ["eu-isoe-", "cloud.adc-e.uk"],
  ["eusc-", "amazonaws.eu"]
]

// ───────────────────────── Credentials

const authOf =
  (region: string, source: Options["credentials"]): Auth.Auth =>
  (request) =>
    Auth.sigV4({ service: "bedrock", region, credentials: current(source, request.isRefused) })(request)

const current = (
  source: Options["credentials"],
  isRefused: boolean
): Effect.Effect<Auth.AwsCredentials, Reason> => {
  if (source === undefined) return Effect.fail(new Unauthenticated({ detail: noCredentials }))
  if (Effect.isEffect(source)) return source
  if (typeof source !== "function") return Effect.succeed(source)
  return Effect.tryPromise({
    try: () => source({ forceRefresh: isRefused }),
    catch: (cause) => credentialFailure("The AWS credentials cannot be read", cause)
  })
}

const noCredentials =
  "Amazon Bedrock has no credentials. Give AmazonBedrock an apiKey, or credentials such as fromNodeProviderChain() of " +
  "@aws-sdk/credential-providers"

// ───────────────────────── Layers

/**
 * Makes the `Provider` layer of the models on Amazon Bedrock.
 *
 * See `make` for its behaviour.
 *
 * **Example** (Giving an agent the credentials of a profile, a container or a machine)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { AmazonBedrock } from "effect-agent/providers"
 *
 * // In place of: import { defaultProvider } from "@aws-sdk/credential-provider-node"
 * const defaultProvider = () => async () => ({ accessKeyId: "AKIA...", secretAccessKey: "..." })
 *
 * const provider = AmazonBedrock.layer({ region: "us-east-1", credentials: defaultProvider() }).pipe(
 *   Layer.provide(FetchHttpClient.layer)
 * )
 *
 * const program = Effect.scoped(Agent.make({ model: "us.anthropic.claude-opus-4-6-v1" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layer = /* @__PURE__ */ layerOf(make)

/**
 * Options of `layerConfig`: those of `make`, without the key, and those of `Retry`.
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
 * - `AWS_REGION`, or else `AWS_DEFAULT_REGION`: the region. Fails with a `ConfigError` if neither is set.
 * - `AWS_BEARER_TOKEN_BEDROCK`: an API key of Bedrock, or else
 * - `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, if it is set, `AWS_SESSION_TOKEN`: the account. Fails with a `ConfigError` if
 *   neither these nor the key are set, and `options` have no `credentials`.
 * - `AWS_ENDPOINT_URL_BEDROCK_RUNTIME`, or else `AWS_ENDPOINT_URL`: the address, if it is set.
 *
 * `options` win over the environment. `credentials` in them win over the API key too.
 *
 * **Example** (Reading the account from the environment)
 *
 * ```ts
 * import { ConfigProvider, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { AmazonBedrock } from "effect-agent/providers"
 *
 * // Leave this out to read the environment of the process.
 * const environment = ConfigProvider.layer(
 *   ConfigProvider.fromUnknown({ AWS_REGION: "eu-central-1", AWS_BEARER_TOKEN_BEDROCK: "bedrock-api-key-..." })
 * )
 *
 * const provider = AmazonBedrock.layerConfig().pipe(Layer.provide([FetchHttpClient.layer, environment]))
 *
 * const program = Effect.scoped(Agent.make({ model: "eu.amazon.nova-2-lite-v1:0" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layerConfig = /* @__PURE__ */ layerConfigOf(make, (options: ConfigOptions = {}) => {
  const { credentials, region } = options
  const read = Config.all({
    region: region === undefined ? regionOfEnvironment : Config.succeed(region),
    access: credentials === undefined ? access : Config.succeed({ credentials }),
    server: address("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
  })
  return Config.map(read, ({ access, region, server }) => ({
    ...access,
    ...server,
    ...given(options),
    region
  }))
})

const regionOfEnvironment = explained(
  ["AWS_REGION", "AWS_DEFAULT_REGION"],
  first(["AWS_REGION", "AWS_DEFAULT_REGION"]),
  { value: "the region", option: "a region" }
)

type Access = Pick<Options, "apiKey" | "credentials">

const account: Config.Config<Access> = Config.map(
  Config.all({
    accessKeyId: Config.NonEmptyString("AWS_ACCESS_KEY_ID"),
    secretAccessKey: Config.NonEmptyString("AWS_SECRET_ACCESS_KEY"),
    sessionToken: Config.withDefault(Config.String("AWS_SESSION_TOKEN"), "")
  }),
  ({ sessionToken, ...key }) => ({
    credentials: { ...key, ...(sessionToken === "" ? {} : { sessionToken }) }
  })
)

const access: Config.Config<Access> = explained(
  ["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"],
  Config.NonEmptyString("AWS_BEARER_TOKEN_BEDROCK").pipe(
    Config.map((key): Access => ({ apiKey: Redacted.make(key) })),
    Config.orElse(() => account)
  ),
  { value: "the key", option: "credentials" }
)
