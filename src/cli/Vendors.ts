/**
 * The vendors and local servers, as data. Vendors have the order in which the program searches the environment
 * for their keys. The module of a provider is loaded when it is chosen.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
import type { Provider } from "../Provider.ts"
import type { Preset } from "../providers/presets.ts"
import * as presets from "../providers/presets.ts"
import type * as Retry from "../Retry.ts"

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
  /** The model to use if the user names none. */
  readonly model: string
  readonly load: (address: Address) => Effect.Effect<ProviderLayer>
}

/** A server on this machine, without a key. */
export interface Local {
  readonly id: string
  /** The address, including the version. */
  readonly baseUrl: (env: Environment) => string
  readonly load: (address: Address) => Effect.Effect<ProviderLayer>
}

const hosted = (preset: Preset, model: string): Hosted => ({
  id: preset.id,
  keyNames: preset.apiKeyName === undefined ? [] : [preset.apiKeyName],
  model,
  load: (address) => compatible(preset, address)
})

const local = (preset: Preset, hostName?: string): Local => {
  const baseUrl = (env: Environment) => addressOf(preset.baseUrl, hostName === undefined ? "" : env[hostName])
  return { id: preset.id, baseUrl, load: (address) => compatible(preset, address) }
}

const compatible = (preset: Preset, address: Address): Effect.Effect<ProviderLayer> =>
  Effect.map(
    Effect.promise(() => import("../providers/OpenAiCompatible.ts")),
    (module) => module.layerConfig(preset, { ...address, retry })
  )

/** A vendor with its own module. */
const own =
  (
    module: () => Promise<{
      readonly layerConfig: (options: Address & { readonly retry: Retry.Options }) => ProviderLayer
    }>
  ): Hosted["load"] =>
  (address) =>
    Effect.map(Effect.promise(module), ({ layerConfig }) => layerConfig({ ...address, retry }))

/** Retries an answer that broke off. Reading a part of it twice is better for a person than starting over. */
const retry: Retry.Options = { retryTurn: true }

/** Vendors with a key, in order of preference. */
export const companies: ReadonlyArray<Hosted> = [
  {
    id: "anthropic",
    keyNames: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
    model: "claude-sonnet-5",
    load: own(() => import("../providers/Anthropic.ts"))
  },
  {
    id: presets.openAi.id,
    keyNames: ["OPENAI_API_KEY"],
    model: "gpt-5.5",
    load: own(() => import("../providers/OpenAi.ts"))
  },
  {
    id: "google",
    keyNames: ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
    model: "gemini-3.1-pro-preview",
    load: own(() => import("../providers/Google.ts"))
  },
  hosted(presets.openRouter, "moonshotai/kimi-k2.6"),
  hosted(presets.mistral, "devstral-medium-latest"),
  hosted(presets.groq, "openai/gpt-oss-120b"),
  hosted(presets.xai, "grok-4.5"),
  hosted(presets.deepSeek, "deepseek-v4-pro"),
  hosted(presets.kimi, "kimi-k2.6"),
  hosted(presets.zai, "glm-5.1"),
  hosted(presets.cerebras, "zai-glm-4.7"),
  hosted(presets.together, "moonshotai/Kimi-K2.6"),
  hosted(presets.fireworks, "accounts/fireworks/models/kimi-k2p6"),
  hosted(presets.nvidia, "openai/gpt-oss-120b"),
  // OpenAI over Chat Completions, for servers at OPENAI_BASE_URL that support nothing else.
  { ...hosted(presets.openAi, "gpt-4.1"), id: "openai-chat" }
]

const jan: Preset = { ...presets.lmStudio, id: "jan", baseUrl: "http://127.0.0.1:1337/v1" }

/** Servers on this machine without a key. */
export const servers: ReadonlyArray<Local> = [
  local(presets.ollama, "OLLAMA_HOST"),
  local(presets.lmStudio),
  local(presets.llamaCpp),
  local(presets.vllm),
  local(jan)
]

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
