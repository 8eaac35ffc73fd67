/**
 * Gemini's streaming `generateContent`, as Google's two APIs and gateways really send it.
 * https://ai.google.dev/api/generate-content, read in November 2026.
 */
import * as Counting from "../counting.ts"
import { detailIn } from "../detailIn.ts"
import * as Json from "../json.ts"
import type { Protocol } from "../../Protocol.ts"
import { api } from "./api.ts"
import { GeminiDecoder } from "./decoder.ts"
import type { Dialect } from "./hosted.ts"
import { toImage } from "./media.ts"
import { counter, encoder } from "./request.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const googleGenerate = (provider: string, dialect: Dialect = {}): Protocol => {
  const encode = encoder(provider, dialect)
  return {
    name: "google-generative",
    provider,
    ...api,
    encode,
    refuses: (media) => (media.type === "image" ? detailIn(toImage(media)) : undefined),
    decoder: (call, reply) => new GeminiDecoder(call, reply),
    counting: {
      encode: counter(encode, dialect),
      read: (response) => Counting.tokens(Json.object(response)?.["totalTokens"])
    }
  }
}
