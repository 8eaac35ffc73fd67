/**
 * The vendors and local servers, as data. Vendors have the order in which the program searches the environment
 * for their keys. The module of a provider is loaded when it is chosen.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type { Provider } from "../../Provider.ts"
import type { ProviderError } from "../../ProviderError.ts"
import { type Preset, presets, responses } from "../../providers/presets.ts"
import type * as Retry from "../../resilience/Retry.ts"

export type Environment = Readonly<Record<string, string | undefined>>

export type ProviderLayer = Layer.Layer<Provider, Config.ConfigError, HttpClient.HttpClient>

/** The address of an API, if it is not that of the vendor. */
export interface Address {
  readonly baseUrl?: string
}

/** The API of a vendor. Its layer retries. */
export interface Hosted {
  readonly id: string
  /** Environment variables of the key, of which the first that is set counts. */
  readonly keyNames: ReadonlyArray<string>
  /** The model to use if the user names none. Without it the program uses the vendor only if the user names it. */
  readonly model?: string
  /** Whether the vendor may have credentials in other places than these variables (default: `false`). */
  readonly hasAccounts?: boolean
  readonly load: (address: Address, env: Environment) => Effect.Effect<ProviderLayer>
}

/** A server on this machine, without a key. */
export interface Local {
  readonly id: string
  /** The address, including the version. */
  readonly baseUrl: (env: Environment) => string
  readonly load: (address: Address) => Effect.Effect<ProviderLayer>
}

const hosted = (preset: Preset, apiKeyName: string): Hosted => ({
  id: preset.id,
  keyNames: [apiKeyName],
  ...(preset.model === undefined ? {} : { model: preset.model }),
  // Another address is that of an unknown server.
  load: (address) =>
    compatible(
      preset === presets.openAi && address.baseUrl !== undefined ? { ...preset, wire: "lenient" } : preset,
      address
    )
})

const local = (preset: Preset): Local => ({
  id: preset.id,
  baseUrl: (env) => addressOf(preset.baseUrl, preset === presets.ollama ? env["OLLAMA_HOST"] : ""),
  load: (address) => compatible(preset, address)
})

const compatible = (preset: Preset, address: Address): Effect.Effect<ProviderLayer> =>
  Effect.map(
    Effect.promise(() => import("../../providers/OpenAiCompatible.ts")),
    (module) => module.layerConfig(preset, { ...address, retry })
  )

/** A vendor with its own module. */
const own =
  (
    module: () => Promise<{
      readonly layerConfig: (
        options: Address & { readonly retry: Retry.Options; readonly preset?: Preset }
      ) => ProviderLayer
    }>,
    preset?: Preset
  ): Hosted["load"] =>
  (address) =>
    Effect.map(Effect.promise(module), ({ layerConfig }) =>
      layerConfig({ ...address, retry, ...(preset === undefined ? {} : { preset }) })
    )

/**
 * Amazon Bedrock with the key or the account of the environment, else with the credentials that AWS's library finds where it is
 * installed: those of a profile, a container or a machine.
 */
const bedrock: Hosted["load"] = Effect.fnUntraced(function* (address, env) {
  const { layerConfig } = yield* Effect.promise(() => import("../../providers/AmazonBedrock.ts"))
  const isSet = bedrockKeys.some((name) => (env[name] ?? "").trim() !== "")
  const library = isSet ? Option.none() : yield* Effect.option(awsLibrary)
  const account = Option.match(library, {
    onNone: () => ({}),
    onSome: ({ defaultProvider }) => ({ credentials: defaultProvider() })
  })
  return layerConfig({ ...address, ...account, retry })
})

const awsLibrary = Effect.tryPromise(() => import("@aws-sdk/credential-provider-node"))

const bedrockKeys = ["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"]

/** Retries an answer that broke off. Reading a part of it twice is better for a person than starting over. */
const retry: Retry.Options = {
  retryTurn: true,
  schedule: Schedule.exponential("1 second").pipe(
    Schedule.jittered,
    Schedule.setInputType<ProviderError>(),
    Schedule.while(({ attempt, input }) => attempt <= retriesOf(input))
  )
}

/** How often a call is sent again. A vendor that is busy recovers within half a minute more often than within three seconds. */
export const retriesOf = ({ reason: { _tag } }: ProviderError): number => {
  if (_tag === "StreamStalled") return 0
  return _tag === "RateLimited" || _tag === "Overloaded" ? 5 : 2
}

/** A vendor by the Responses API, if it has it. */
const hostedBest = (preset: Preset, apiKeyName: string): Hosted => {
  const better = Object.values(responses).find(({ id }) => id === preset.id)
  return {
    ...hosted(preset, apiKeyName),
    ...(better === undefined ? {} : { load: own(() => import("../../providers/OpenAi.ts"), better) })
  }
}

const { openAi, ...rest } = presets
const others: ReadonlyArray<Preset> = Object.values(rest)

/** Vendors with a key, in order of preference. */
export const companies: ReadonlyArray<Hosted> = [
  {
    id: "anthropic",
    keyNames: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
    model: "claude-sonnet-5",
    load: own(() => import("../../providers/Anthropic.ts"))
  },
  {
    id: openAi.id,
    keyNames: ["OPENAI_API_KEY"],
    model: "gpt-5.5",
    load: own(() => import("../../providers/OpenAi.ts"))
  },
  {
    id: "google",
    keyNames: ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
    model: "gemini-3.1-pro-preview",
    load: own(() => import("../../providers/Google.ts"))
  },
  {
    id: "azure",
    keyNames: ["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
    load: own(() => import("../../providers/AzureOpenAi.ts"))
  },
  ...[...others, responses.meta].flatMap((preset) =>
    preset.apiKeyName === undefined ? [] : [hostedBest(preset, preset.apiKeyName)]
  ),
  // Its models have ids of their own in each region.
  { id: "amazon-bedrock", keyNames: bedrockKeys, hasAccounts: true, load: bedrock },
  // OpenAI over Chat Completions, for servers at OPENAI_BASE_URL that support nothing else.
  { ...hosted(openAi, "OPENAI_API_KEY"), id: "openai-chat" },
  { ...hosted(presets.xai, "XAI_API_KEY"), id: "xai-chat" }
]

/** Servers on this machine without a key. */
export const servers: ReadonlyArray<Local> = others
  .filter(({ apiKeyName }) => apiKeyName === undefined)
  .map(local)

/** How to start a server on this machine. */
export const startOf = (id: string): string =>
  id === presets.ollama.id ? "start it with `ollama serve`" : "start it"

/** The environment variable that holds the key of a vendor, if one is set. */
export const keyOf = (company: Hosted, env: Environment): string | undefined =>
  company.keyNames.find((name) => (env[name] ?? "").trim() !== "")

/**
 * `OLLAMA_HOST` may be a host, a host and port, or a URL. 0.0.0.0 is an address to listen on, so the program
 * connects to 127.0.0.1.
 */
const addressOf = (usual: string, set: string | undefined): string => {
  const host = (set ?? "").trim()
  if (host === "") return usual
  const { port, protocol } = new URL(usual)
  const isUrl = /^https?:\/\//.test(host)
  const url = URL.parse(isUrl ? host : `${protocol}//${host}`)
  if (url === null) return usual
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1"
  // Searches the text, because a `URL` drops the default port of its protocol.
  if (!isUrl && !/:\d+(?:\/|$)/.test(host)) url.port = port
  return `${url.origin}/v1`
}
