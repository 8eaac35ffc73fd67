/**
 * An HTTP client over undici that costs less per request than `NodeHttpClient.layerUndici`: the bytes go from undici's
 * parser to their reader, with no stream of Node between them. All that is not a plain request is left to that client.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as ByteSource from "../ByteSource.ts"
import { NodeExchange } from "./internal/NodeExchange.ts"
import { NodeResponse } from "./internal/NodeResponse.ts"

const make = Effect.gen(function* () {
  const dispatcher = yield* NodeHttpClient.Dispatcher
  const other = yield* NodeHttpClient.makeUndici
  const direct = HttpClient.make((request, url, signal) =>
    dispatch(dispatcher, request, url, (exchange) => {
      // The signal is of this request alone, and gone with it.
      signal.addEventListener("abort", () => exchange.abort(signal.reason), { once: true })
    })
  )
  return HttpClient.makeWith<HttpClientError.HttpClientError, never, HttpClientError.HttpClientError, never>(
    Effect.flatMap((request) =>
      Effect.withFiber((fiber) => {
        if (!isPlain(request, fiber)) return other.postprocess(Effect.succeed(request))
        const own = fiber.getRef(ByteSource.Owner)
        const url = own === undefined ? Option.none() : HttpClientRequest.toUrl(request)
        return own === undefined || Option.isNone(url)
          ? direct.postprocess(Effect.succeed(request))
          : dispatch(dispatcher, request, url.value, (exchange) => own(exchange.close))
      })
    ),
    Effect.succeed
  )
})

/** A request with nothing to it that this client leaves to the other. */
const isPlain = (
  { body, headers }: HttpClientRequest.HttpClientRequest,
  fiber: Fiber.Fiber<unknown, unknown>
): boolean =>
  (body._tag === "Uint8Array" || body._tag === "Empty") &&
  headers["upgrade"] === undefined &&
  Object.keys(fiber.getRef(NodeHttpClient.UndiciOptions)).length === 0

const dispatch = (
  dispatcher: NodeHttpClient.Dispatcher["Service"],
  request: HttpClientRequest.HttpClientRequest,
  url: URL,
  watch: (exchange: NodeExchange) => void
) =>
  Effect.callback<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>((resume) => {
    const exchange: NodeExchange = new NodeExchange({
      head: (status, headers) => {
        const { href } = url
        const at = href.indexOf("#")
        resume(
          Effect.succeed(
            new NodeResponse(request, at === -1 ? href : href.slice(0, at), status, headers, exchange)
          )
        )
      },
      failed: (cause) =>
        resume(
          Effect.fail(
            new HttpClientError.HttpClientError({
              reason: new HttpClientError.TransportError({ request, cause })
            })
          )
        )
    })
    watch(exchange)
    try {
      dispatcher.dispatch(
        {
          method: request.method,
          headers: request.headers,
          origin: url.origin,
          path: url.pathname + url.search,
          body: request.body._tag === "Uint8Array" ? request.body.body : null,
          // The callers time, as with the other client.
          headersTimeout: 60 * 60 * 1000,
          bodyTimeout: 0
        },
        exchange
      )
    } catch (cause) {
      exchange.onResponseError(undefined, cause)
    }
    return Effect.sync(() => exchange.abort(new Error("The request was interrupted")))
  })

/** Sends with the given dispatcher. */
export const layerNoDispatcher: Layer.Layer<HttpClient.HttpClient, never, NodeHttpClient.Dispatcher> =
  HttpClient.layerMergedContext(make)

/** Has connections of its own, which are closed with it. */
export const layer: Layer.Layer<HttpClient.HttpClient> = Layer.provide(
  layerNoDispatcher,
  NodeHttpClient.layerDispatcher
)
