/**
 * The four languages, each with the vendor's own library and with ours.
 */
import type { Layer, Redacted } from "effect"
import type { HttpClient } from "effect/http"
import type { Provider } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import * as anthropicBodies from "./bodies/anthropic.ts"
import * as googleBodies from "./bodies/google.ts"
import * as openAiChatBodies from "./bodies/openAiChat.ts"
import * as openAiResponsesBodies from "./bodies/openAiResponses.ts"
import * as Sdk from "./Sdk.ts"
import * as anthropic from "./streams/anthropic.ts"
import type { Fixture, Said } from "./streams/Fixture.ts"
import * as google from "./streams/google.ts"
import * as openAiChat from "./streams/openAiChat.ts"
import * as openAiResponses from "./streams/openAiResponses.ts"

export interface Wire {
  /** Of the vendor's library. */
  readonly name: string
  readonly model: string
  /** The first is a text, the second has three calls. */
  readonly fixtures: ReadonlyArray<Fixture>
  /** A model that accepts every option. */
  readonly plainModel: string
  readonly sdk: (address: Sdk.Address) => Promise<Said>
  readonly layer: (options: {
    readonly baseUrl: string
    readonly apiKey: Redacted.Redacted
  }) => Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>
  /** Of two requests. */
  readonly bodies: { readonly session: unknown; readonly everyOption: unknown }
}

export const wires: ReadonlyArray<Wire> = [
  {
    name: "openai, Chat Completions",
    model: "gpt-5-mini",
    plainModel: "gpt-4.1",
    fixtures: openAiChat.fixtures,
    sdk: Sdk.openAiChat,
    layer: (options) => OpenAiCompatible.layer({ ...OpenAiCompatible.presets.openAi, ...options }),
    bodies: openAiChatBodies
  },
  {
    name: "openai, Responses",
    model: "gpt-5-mini",
    plainModel: "gpt-4.1",
    fixtures: openAiResponses.fixtures,
    sdk: Sdk.openAiResponses,
    layer: OpenAi.layer,
    bodies: openAiResponsesBodies
  },
  {
    name: "@anthropic-ai/sdk",
    model: "claude-sonnet-5",
    plainModel: "claude-sonnet-4-5",
    fixtures: anthropic.fixtures,
    sdk: Sdk.anthropic,
    layer: Anthropic.layer,
    bodies: anthropicBodies
  },
  {
    name: "@google/genai",
    model: "gemini-2.5-pro",
    plainModel: "gemini-2.5-pro",
    fixtures: google.fixtures,
    sdk: Sdk.google,
    layer: (options) => Google.layer({ ...options, baseUrl: options.baseUrl.replace(/\/v1$/, "") }),
    bodies: googleBodies
  }
]
