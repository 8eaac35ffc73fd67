/**
 * The five languages as they are spoken: each without a network, fed with bytes, and each over HTTP.
 */
import { type Layer, Redacted } from "effect"
import type { HttpClient } from "effect/http"
import type { Provider } from "effect-agent"
import {
  AmazonBedrock,
  Anthropic,
  Framing,
  Google,
  OpenAi,
  OpenAiCompatible,
  ReplyWriter
} from "effect-agent/providers"
import { Answer } from "../../src/providers/internal/answer.ts"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { bedrockConverse } from "../../src/providers/internal/bedrock/protocol.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { openAiChat as chat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses as responses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import type { Protocol } from "../../src/providers/Protocol.ts"

export interface Api {
  /** An answer of this model that takes bytes and gives events. */
  readonly open: (
    model: string,
    isLenient?: boolean
  ) => Pick<Answer, "push" | "end" | "cut" | "take" | "outcome">
  readonly layer: (baseUrl: string) => Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>
}

/** In place of the part of an id that is new with each call. */
export const seed = "seed"

const opening =
  (protocol: Protocol, framing = Framing.sse): Api["open"] =>
  (model, isLenient = false) => {
    const call = { model, seed }
    const reply = new ReplyWriter.ReplyWriter(protocol, call)
    const begun = { call, reply, decoder: protocol.decoder(call, reply) }
    return new Answer({ protocol, framing, redact: (text) => text, isLenient }, begun)
  }

const apiKey = Redacted.make("a key of these tests")

export const openAiChat: Api = {
  open: opening(chat("vendor", common)),
  layer: (baseUrl) => OpenAiCompatible.layer({ id: "vendor", baseUrl, apiKey, wire: "strict" })
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

export const bedrock: Api = {
  open: opening(bedrockConverse("amazon-bedrock"), Framing.awsEventStream),
  layer: (baseUrl) => AmazonBedrock.layer({ region: "us-east-1", baseUrl, apiKey })
}

/** By the names of the folders of recordings. */
export const byName: Readonly<Record<string, Api>> = {
  "openai-chat": openAiChat,
  "openai-responses": openAiResponses,
  "anthropic-messages": anthropic,
  "google-generative": google,
  "bedrock-converse": bedrock
}
