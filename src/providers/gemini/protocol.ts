/**
 * Gemini's streaming `generateContent`, as Google's two APIs and gateways really send it.
 * https://ai.google.dev/api/generate-content, read in November 2026.
 */
import type { Protocol } from "../Protocol.ts"
import { GeminiDecoder } from "./decoder.ts"
import { encoder } from "./request.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const googleGenerate = (provider: string): Protocol => ({
  name: "google-generative",
  provider,
  endpoint: "generateContent",
  encode: encoder(provider),
  decoder: (call, reply) => new GeminiDecoder(call, reply)
})
