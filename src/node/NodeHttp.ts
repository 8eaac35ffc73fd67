/**
 * The `HttpClient` for Node: the undici client of Effect, with the proxy of the environment and a shorter path for requests of
 * providers.
 *
 * @since 0.1.0
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as NodeExchange from "./internal/NodeExchange.ts"
import * as NodeProxy from "./NodeProxy.ts"

/**
 * Provides an `HttpClient` that sends requests with the `Dispatcher` of its environment.
 *
 * **When to use**
 *
 * Use with `NodeProxy.layerDispatcher` or `NodeHttpClient.layerDispatcherOptions`, for example to set a certificate
 * authority. `NodeHttp.layer` has a dispatcher.
 *
 * **Details**
 *
 * This is `NodeHttpClient.layerUndiciNoDispatcher`, with a shorter path for requests of providers. Requests fail with `HttpClientError`. The client sets no time limit. It
 * does not follow redirects.
 *
 * **Example** (Setting options of undici)
 *
 * ```ts
 * import { NodeHttpClient } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { HttpClient } from "effect/http"
 * import { NodeHttp } from "effect-agent/node"
 *
 * const http = NodeHttp.layerNoDispatcher.pipe(
 *   Layer.provide(NodeHttpClient.layerDispatcherOptions({ connect: { timeout: 5_000 } }))
 * )
 *
 * const program = Effect.map(HttpClient.HttpClient, (client) => typeof client.execute)
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(http)))) // => function
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDispatcher: Layer.Layer<HttpClient.HttpClient, never, NodeHttpClient.Dispatcher> =
  HttpClient.layerMergedContext(
    Effect.zipWith(NodeHttpClient.makeUndici, NodeHttpClient.Dispatcher, NodeExchange.direct)
  )

/**
 * Provides an `HttpClient` with a connection pool that closes with the layer.
 *
 * **Details**
 *
 * This is `NodeHttpClient.layerUndici` with the proxy that the environment variables of the process specify: see
 * `NodeProxy`. Requests fail with `HttpClientError`. The client sets no time limit. It does not follow redirects.
 *
 * **Example** (Providing HTTP to a provider)
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import { Provider } from "effect-agent"
 * import { NodeHttp } from "effect-agent/node"
 * import { OpenAiCompatible } from "effect-agent/providers"
 *
 * const provider = OpenAiCompatible.layer({
 *   id: "local",
 *   baseUrl: "http://127.0.0.1:11434/v1",
 *   apiKey: Redacted.make("none")
 * }).pipe(Layer.provide(NodeHttp.layer))
 *
 * const program = Effect.map(Provider.Provider, ({ id }) => id)
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(provider)))) // => local
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<HttpClient.HttpClient> = Layer.suspend(() =>
  Layer.provide(layerNoDispatcher, NodeProxy.layerDispatcher())
)
