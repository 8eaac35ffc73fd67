/**
 * The HTTP client, loaded when something is sent: an answer that needs no network does not wait for it.
 */
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"

export const layer: Layer.Layer<HttpClient.HttpClient> = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("../node/NodeHttp.ts")),
    (module) => module.layer
  )
)
