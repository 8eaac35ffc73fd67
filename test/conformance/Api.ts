/**
 * The four languages as they are spoken: each without a network, fed with bytes, and each over HTTP.
 */
import { type Layer, Redacted } from "effect"
import type { HttpClient } from "effect/http"
import type { Provider } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { Answer } from "../../src/providers/internal/answer.ts"
import { anthropicMessages } from "../../src/providers/anthropic/protocol.ts"
import { common } from "../../src/providers/openAiChat/compat.ts"
import { googleGenerate } from "../../src/providers/gemini/protocol.ts"
import { openAiChat as chat } from "../../src/providers/openAiChat/protocol.ts"
import { openAiResponses as responses } from "../../src/providers/openAiResponses/protocol.ts"
import type { Protocol } from "../../src/providers/internal/Protocol.ts"

export interface Api {
  /** An answer of this model that takes bytes and gives events. */
  readonly open: (model: string) => Pick<Answer<never, never>, "push" | "end" | "take" | "outcome">
  readonly layer: (baseUrl: string) => Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>
}

/** In place of the part of an id that is new with each call. */
export const seed = "seed"

const opening =
  <Wire, State>(protocol: Protocol<Wire, State>): Api["open"] =>
  (model) =>
    new Answer(protocol, { model, seed }, (text) => text)

const apiKey = Redacted.make("a key of these tests")

export const openAiChat: Api = {
  open: opening(chat("vendor", common)),
  layer: (baseUrl) => OpenAiCompatible.layer({ id: "vendor", baseUrl, apiKey })
}

export const openAiResponses: Api = {
  open: opening(responses("vendor")),
  layer: (baseUrl) => OpenAi.layer({ id: "vendor", baseUrl, apiKey })
}

export const anthropic: Api = {
  open: opening(anthropicMessages("vendor")),
  layer: (baseUrl) => Anthropic.layer({ id: "vendor", baseUrl, apiKey })
}

export const google: Api = {
  open: opening(googleGenerate("google")),
  layer: (baseUrl) => Google.layer({ baseUrl, apiKey })
}

/** By the names of the folders of recordings. */
export const byName: Readonly<Record<string, Api>> = {
  "openai-chat": openAiChat,
  "openai-responses": openAiResponses,
  "anthropic-messages": anthropic,
  "google-generative": google
}
