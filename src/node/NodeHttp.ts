/**
 * An HTTP client over undici that costs less per request than `NodeHttpClient.layerUndici`: the bytes go from undici's
 * parser to their reader, with no stream of Node between them. All that is not a plain request is left to that client.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type * as Undici from "@effect/platform-node/Undici"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import * as ByteSource from "../internal/byteSource.ts"
import { NodeCrowd } from "./internal/NodeCrowd.ts"
import * as NodeProxy from "./NodeProxy.ts"
import { type Headers as Incoming, NodeExchange, type Waiting } from "./internal/NodeExchange.ts"
import { NodeResponse } from "./internal/NodeResponse.ts"

const make = Effect.gen(function* () {
  const dispatcher = yield* NodeHttpClient.Dispatcher
  const other = yield* NodeHttpClient.makeUndici
  const line: Line = { dispatcher, crowd: new NodeCrowd() }
  const direct = HttpClient.make((request, url, signal) =>
    Effect.callback<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>((resume) => {
      const href = url.href.split("#", 1).join("")
      const waiting: Waiting = {
        head: (status, headers) =>
          resume(Effect.succeed(new NodeResponse(request, href, status, headers, exchange))),
        failed: (cause) =>
          resume(
            Effect.fail(
              new HttpClientError.HttpClientError({
                reason: new HttpClientError.TransportError({ request, cause })
              })
            )
          )
      }
      const exchange = new NodeExchange(waiting, line.crowd)
      // The signal is of this request alone, and gone with it.
      signal.addEventListener("abort", () => exchange.abort(signal.reason), { once: true })
      const { body, headers, method } = request
      dispatch(line, exchange, {
        ...addressOf(url),
        method,
        headers,
        body: body._tag === "Uint8Array" ? body.body : null,
        // The callers time, as with the other client.
        headersTimeout: 60 * 60 * 1000,
        bodyTimeout: 0
      })
      return Effect.sync(() => exchange.abort(new Error("The request was interrupted")))
    })
  )
  const send = sending(line)
  const built = yield* Effect.context<never>()
  const client = HttpClient.makeWith<
    HttpClientError.HttpClientError,
    never,
    HttpClientError.HttpClientError,
    never
  >((asked) => {
    const answered = Effect.flatMap(asked, (request) =>
      Effect.contextWith((services: Context.Context<never>) =>
        (isPlain(request) && !hasOptions(services) ? direct : other).postprocess(Effect.succeed(request))
      )
    )
    return Effect.updateContext(answered, (services: Context.Context<never>) =>
      Context.merge(built, services)
    )
  }, Effect.succeed)
  const sender: ByteSource.Sender = {
    // A tracer wants to know of every request, and options are for the other client.
    [ByteSource.key]: (services) => (isWatched(services) || isWatched(built) ? undefined : send)
  }
  return Object.assign(client, sender)
})

/** A request with nothing to it that this client leaves to the other. */
const isPlain = ({ body, headers }: HttpClientRequest.HttpClientRequest): boolean =>
  (body._tag === "Uint8Array" || body._tag === "Empty") && headers["upgrade"] === undefined

const hasOptions = (services: Context.Context<never>): boolean => {
  const options = Context.getOrUndefined(services, NodeHttpClient.UndiciOptions)
  return options !== undefined && Object.keys(options).length > 0
}

const isWatched = (services: Context.Context<never>): boolean =>
  hasOptions(services) || Context.getOrUndefined(services, Tracer.Tracer) !== undefined

/** What requests go out by. */
interface Line {
  readonly dispatcher: NodeHttpClient.Dispatcher["Service"]
  readonly crowd: NodeCrowd
}

const sending = (line: Line): ByteSource.Send => {
  // One conversation goes to one address.
  let last: { readonly url: string; readonly address: Address | undefined } | undefined
  return ({ body, headers, method, url }, answered, failed) => {
    const waiting: Waiting = {
      head: (status, headers) =>
        answered({
          status,
          headers: isSingle(headers) ? headers : Headers.fromInput(headers),
          bytes: exchange
        }),
      failed
    }
    const exchange = new NodeExchange(waiting, line.crowd)
    if (last?.url !== url) last = { url, address: URL.canParse(url) ? addressOf(new URL(url)) : undefined }
    const { address } = last
    if (address === undefined) exchange.onResponseError(undefined, new InvalidUrl())
    // Who sends times it.
    else dispatch(line, exchange, { ...address, method, headers, body, headersTimeout: 0, bodyTimeout: 0 })
    return () => exchange.cancel()
  }
}

/** Whether none came twice. Their names are in lower case. */
const isSingle = (headers: Incoming): headers is Readonly<Record<string, string>> =>
  Object.values(headers).every((value) => typeof value === "string")

type Address = Pick<Undici.Dispatcher.DispatchOptions, "origin" | "path">

const addressOf = (url: URL): Address => ({ origin: url.origin, path: url.pathname + url.search })

/** As `HttpClientError` names it, too. */
class InvalidUrl extends Error {
  readonly _tag = "InvalidUrlError"
  override readonly message = "The URL is not valid"
}

const dispatch = (
  { crowd, dispatcher }: Line,
  exchange: NodeExchange,
  request: Undici.Dispatcher.DispatchOptions
): void =>
  crowd.send(exchange, () => {
    try {
      dispatcher.dispatch(request, exchange)
    } catch (cause) {
      exchange.onResponseError(undefined, cause)
    }
  })

/** Sends with the given dispatcher. */
export const layerNoDispatcher: Layer.Layer<HttpClient.HttpClient, never, NodeHttpClient.Dispatcher> =
  Layer.effect(HttpClient.HttpClient, make)

/**
 * Has connections of its own, which are closed with it. They go through the proxy that the environment of the process
 * names, if it names one (see `NodeProxy`).
 */
export const layer: Layer.Layer<HttpClient.HttpClient> = Layer.suspend(() =>
  Layer.provide(layerNoDispatcher, NodeProxy.layerDispatcher())
)
