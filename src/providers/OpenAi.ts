/**
 * The provider of OpenAI's models, over the Responses API.
 *
 * The provider returns the encrypted reasoning of the models with the next request, and supports tools that run
 * at the vendor, such as web search. For the Chat Completions API, use `OpenAiCompatible` with the preset
 * `openAi`.
 *
 * @since 0.1.0
 */
import type * as Schema from "effect/Schema"
import * as Message from "../Message.ts"
import * as Auth from "./Auth.ts"
import {
  addressParts,
  environmentOf,
  isAt,
  layerConfigOf,
  layerOf,
  maker,
  type Retried,
  type ServerOptions,
  withoutPath
} from "./internal/vendor.ts"
import { keep } from "./internal/writing.ts"
import { openAiResponses } from "./internal/openAiResponses/protocol.ts"
import type { Timeouts } from "./internal/connection.ts"
import { among, vendorOf } from "./internal/models/rule.ts"
import { openai } from "./internal/models/openai.ts"
import { type Preset, responses } from "./presets.ts"

export type { Timeouts }

/**
 * Options of the OpenAI provider.
 *
 * @since 0.1.0
 * @category options
 */
export interface Options extends ServerOptions {
  /**
   * The id of the provider in messages, errors, `modelOptions.vendor` and `Credentials` (default: `"openai"`).
   */
  readonly id?: string
  /**
   * The vendor whose rules of `Models` apply (default: `id` if the table has rules for it, else `"openai"`).
   */
  readonly vendor?: string
  /**
   * The address of the server (default: `https://api.openai.com/v1`).
   *
   * The server must implement the Responses API. The provider keeps a query.
   */
  readonly baseUrl?: string
  /** Whether the server lets models search for tools that a request defers (default: at `api.openai.com`, if the model can). */
  readonly toolSearch?: boolean
  /** Whether the server takes changes of a prompt within a conversation (default: at `api.openai.com`, if the model does). */
  readonly promptChanges?: boolean
}

/**
 * Makes a provider for all of OpenAI's models.
 *
 * **Details**
 *
 * The provider sends one request for each call. It does not retry failed requests: wrap it in `Retry.layer`, as
 * `layerConfig` does. It sets `store: false`, so that the vendor does not keep answers, unless the model option `store` is set.
 * With `previousResponseId` it sends only the messages after that answer. The provider leaves out or changes options that the
 * model does not accept, by the rules of `Models`, and reports each change in `ModelCallEnd.adjusted`.
 *
 * The vendor's tools in `hostedTools` and in `vendor: { openai: { tools } }` are added to the tools of the agent. The model calls
 * the tool `computer` of the agent with the actions of `computerUse`, and reads the image of its result. A call of a tool
 * without a schema (type `custom`) has the text of the model as its `rawArguments`.
 *
 * **Example** (Making a provider)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { OpenAi } from "effect-agent/providers"
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* OpenAi.make({ apiKey: "sk-..." })
 *   console.log(provider.id) // => openai
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(FetchHttpClient.layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = /* @__PURE__ */ maker((options: Options) => {
  const id = options.id ?? "openai"
  const baseUrl = options.baseUrl ?? openAi.baseUrl
  const url = urlOf(baseUrl, "")
  const vendor = options.vendor ?? vendorOf(id, "openai")
  return {
    protocol: openAiResponses(id),
    deployment: {
      url: () => url,
      countingUrl: () => urlOf(baseUrl, "/input_tokens"),
      auth: Auth.bearer,
      serves: {
        vendor,
        rules: vendor === "openai" ? among(openai) : undefined,
        keepsPrompts: true,
        toolSearch: options.toolSearch ?? isAt("api.openai.com", baseUrl),
        promptChanges: options.promptChanges ?? isAt("api.openai.com", baseUrl)
      },
      otherwise: options.baseUrl === undefined || options.baseUrl === openAi.baseUrl ? undefined : otherwise
    }
  }
})

const openAi: Preset = {
  id: "openai",
  baseUrl: "https://api.openai.com/v1",
  apiKeyName: "OPENAI_API_KEY",
  baseUrlName: "OPENAI_BASE_URL",
  headerNames: { "openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID" }
}

const otherwise =
  "If the server supports only Chat Completions, use OpenAiCompatible.layer({ id, baseUrl }) in place of OpenAi."

/**
 * Options of `layerConfig`: those of `make`, without the key, and those of `Retry`.
 *
 * @since 0.1.0
 * @category options
 */
export interface ConfigOptions extends Omit<Options, "apiKey">, Retried {
  /** A server of another vendor, such as `OpenAi.presets.xai` (default: OpenAI). */
  readonly preset?: Preset
}

/**
 * Servers of other vendors that implement the Responses API, for `layerConfig`.
 *
 * **Example** (Using Grok)
 *
 * ```ts
 * import { OpenAi } from "effect-agent/providers"
 *
 * export const provider = OpenAi.layerConfig({ preset: OpenAi.presets.xai })
 * console.log(OpenAi.presets.xai.apiKeyName) // => XAI_API_KEY
 * ```
 *
 * @since 0.2.0
 * @category constants
 */
export const presets = responses

/**
 * Makes a message of an item of the Responses API, such as the compaction of an earlier conversation.
 *
 * **Details**
 *
 * The provider puts the item into requests as it is, at the place of the message. Other providers leave it out, and the transcript keeps
 * it. A conversation may begin with it. `id` is the id of the provider that gets it, for a provider with an `id` of its own.
 *
 * **Example** (Continuing from a compaction)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { OpenAi } from "effect-agent/providers"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const compaction = OpenAi.item({ type: "compaction", id: "cmp_1", encrypted_content: "gAAA" })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.5", messages: [compaction] })
 *   yield* agent.prompt("And then?")
 *   return agent.state.getUnsafe().messages.length
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("The rest.")])), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => 3
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const item = (item: Schema.JsonObject, id = "openai"): Message.Assistant =>
  Message.assistant([{ ...Message.text(""), opaque: keep(id, { item }) }])

/**
 * Makes the `Provider` layer of OpenAI's models.
 *
 * See `make` for its behaviour.
 *
 * **Example** (Giving an agent a provider)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { OpenAi } from "effect-agent/providers"
 *
 * const provider = OpenAi.layer({ apiKey: "sk-..." }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.scoped(Agent.make({ model: "gpt-5.4-mini" }))
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
 * - `OPENAI_API_KEY`: the key. Fails with a `ConfigError` if it is not set.
 * - `OPENAI_BASE_URL`: the address, if it is set.
 * - `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`: the organization and the project that pay, if they are set.
 *
 * A `preset` has its own variables. `options` win over the environment.
 *
 * **Example** (Reading the key from the environment)
 *
 * ```ts
 * import { ConfigProvider, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { OpenAi } from "effect-agent/providers"
 *
 * // Leave this out to read the environment of the process.
 * const environment = ConfigProvider.layer(ConfigProvider.fromUnknown({ OPENAI_API_KEY: "sk-..." }))
 *
 * const provider = OpenAi.layerConfig().pipe(Layer.provide([FetchHttpClient.layer, environment]))
 *
 * const program = Effect.scoped(Agent.make({ model: "gpt-5.4-mini" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = /* @__PURE__ */ layerConfigOf(
  make,
  ({ preset = openAi, ...options }: ConfigOptions = {}) =>
    environmentOf(preset, { ...options, id: options.id ?? preset.id })
)

const urlOf = (baseUrl: string, path: string): string => {
  const [base, query] = addressParts(baseUrl)
  return `${withoutPath("/responses", base)}/responses${path}${query}`
}
