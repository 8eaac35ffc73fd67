/** The HTTP client, loaded with the first request, so that an answer without network starts faster. */
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"

export const layer: Layer.Layer<HttpClient.HttpClient> = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("../../node/NodeHttp.ts")),
    (module) => module.layer
  )
)
