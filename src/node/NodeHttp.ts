/**
 * The `HttpClient` for Node: the undici client of Effect, with the proxy of the environment and a shorter path for requests of
 * providers.
 *
 * @since 0.1.0
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Inspectable from "effect/Inspectable"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { pipeArguments } from "effect/Pipeable"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Cookies from "effect/http/Cookies"
import * as Headers from "effect/http/Headers"
import * as HttpClient from "effect/http/HttpClient"
import { DecodeError, HttpClientError, TransportError } from "effect/http/HttpClientError"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as Url from "effect/http/Url"
import { AsyncLocalStorage } from "node:async_hooks"
import * as HttpConnection from "../http/HttpConnection.ts"
import { Handoff, opened } from "../internal/reader.ts"
import * as NodeProxy from "./NodeProxy.ts"

// The path of an answer from the socket to its reader: one request of a provider and its response, straight over `dispatch` of
// undici.
//
// No Node stream and no abort controller stand on this path, and the reader continues once for each read of the socket. A turn
// with a tool call takes a tenth less CPU with it, two fibers less, and no wait for the scheduler.

type Undici = Context.Service.Shape<typeof NodeHttpClient.Dispatcher>
type Options = Parameters<Undici["dispatch"]>[0]
type Handler = Parameters<Undici["dispatch"]>[1]
type Controller = Parameters<NonNullable<Handler["onRequestStart"]>>[0]
type Head = Parameters<NonNullable<Handler["onResponseStart"]>>[2]
type Response = HttpClientResponse.HttpClientResponse
type Body = Stream.Stream<Uint8Array, HttpClientError>

/** Bytes that may wait for the reader before the socket pauses. */
const readAhead = 128 * 1024
/** The time limit of undici for a head. Callers set shorter ones. */
const headersTimeout = 60 * 60 * 1000

/** Makes a client send requests of providers over this path, and all others as before. */
const direct = (client: HttpClient.HttpClient, dispatcher: Undici): HttpClient.HttpClient =>
  HttpClient.transform(client, (response, request) =>
    Effect.contextWith((context: Context.Context<never>) => {
      const scope = scopeOf(request, context)
      const url = scope && Url.make(request.url, request.urlParams, undefined)
      if (scope === undefined || url?._tag !== "Success") return response
      const exchange = new Exchange(request, url.success)
      return Effect.andThen(Scope.addFinalizer(scope, exchange.leave), exchange.sent(dispatcher))
    })
  )

/** The scope of a request of a provider that has its body in memory, and needs no span and no options. */
const scopeOf = (request: HttpClientRequest, context: Context.Context<never>): Scope.Scope | undefined => {
  const own = Context.get(context, HttpConnection.Current)
  const isPlain =
    own?.request === request &&
    request.body._tag === "Uint8Array" &&
    request.headers["upgrade"] === undefined &&
    Context.getOrUndefined(context, NodeHttpClient.UndiciOptions) === undefined &&
    Context.get(context, HttpClient.TracerDisabledWhen)(request)
  return isPlain ? own.scope : undefined
}

/** A request and its response. undici calls its methods. */
class Exchange implements Handler {
  private readonly request: HttpClientRequest
  private readonly url: URL
  /** undici calls in the asynchronous context of the request that opened the socket. */
  private readonly inContext = AsyncLocalStorage.snapshot()
  private readonly chunks = new Handoff<Uint8Array, HttpClientError>(Infinity)
  private controller: Controller | undefined
  private response: Response | undefined
  private respond: ((response: Effect.Effect<Response, HttpClientError>) => void) | undefined
  /** Handed to `chunks` with the first of them. Those of one read of the socket follow, and wait there without a step of their own. */
  private waiting: Array<Uint8Array> = []
  /** The bytes of `waiting`. */
  private size = 0
  /** Whether the body has ended, or its reader has left. */
  private isOver = false

  constructor(request: HttpClientRequest, url: URL) {
    this.request = request
    this.url = url
  }

  /** Sends the request, and waits for the head of its response. */
  sent(dispatcher: Undici): Effect.Effect<Response, HttpClientError> {
    return Effect.callback((resume) => {
      this.respond = resume
      try {
        dispatcher.dispatch(this.options, this)
      } catch (cause) {
        this.fail(cause)
      }
      return this.leave
    })
  }

  /** Closes the socket, unless the whole body has come. */
  readonly leave = Effect.sync(() => {
    if (this.isOver) return
    this.isOver = true
    this.controller?.abort(new Error("The reader left"))
  })

  /** The next chunks: all that wait, in one array. */
  private readonly pull = Effect.map(this.chunks.pull, (batch) => {
    this.waiting = []
    this.size = 0
    this.controller?.resume()
    return batch
  })

  private readonly hand = () => this.chunks.add(this.waiting)

  private get options(): Options {
    const { body, headers, method } = this.request
    const { origin, pathname, search } = this.url
    return {
      method,
      headers,
      origin,
      path: pathname + search,
      body: body._tag === "Uint8Array" ? body.body : null,
      headersTimeout,
      bodyTimeout: 0
    }
  }

  onRequestStart(controller: Controller): void {
    this.controller = controller
    if (this.isOver) controller.abort(new Error("The reader left"))
  }

  onResponseStart(_: Controller, status: number, headers: Head): void {
    if (status < 200) return
    const body = opened(() => Effect.succeed(this.pull))
    const url = this.url.href.split("#", 1)[0] ?? ""
    const response = new Answer({ request: this.request, url, status, head: headers, body })
    this.response = response
    this.inContext(() => this.respond?.(Effect.succeed(response)))
  }

  onResponseData(controller: Controller, chunk: Uint8Array): void {
    this.size += chunk.length
    if (this.size > readAhead) controller.pause()
    if (this.waiting.push(chunk) === 1) this.inContext(this.hand)
  }

  onResponseEnd(): void {
    this.isOver = true
    this.inContext(() => this.chunks.end(Exit.void))
  }

  onResponseError(_: Controller, cause: unknown): void {
    this.inContext(() => this.fail(cause))
  }

  private fail(cause: unknown): void {
    const { request, response } = this
    this.isOver = true
    if (response === undefined) {
      this.respond?.(Effect.fail(new HttpClientError({ reason: new TransportError({ request, cause }) })))
    } else {
      this.chunks.end(
        Exit.fail(new HttpClientError({ reason: new DecodeError({ request, response, cause }) }))
      )
    }
  }
}

interface Parts {
  readonly request: HttpClientRequest
  readonly url: string
  readonly status: number
  readonly head: Head
  readonly body: Body
}

/** A response whose `stream` comes from the socket. Other readings of its body go through a web response. */
class Answer extends Inspectable.Class implements Response {
  readonly [HttpIncomingMessage.TypeId] = HttpIncomingMessage.TypeId
  readonly [HttpClientResponse.TypeId] = HttpClientResponse.TypeId
  readonly request: HttpClientRequest
  readonly url: string
  readonly status: number
  readonly headers: Headers.Headers
  readonly stream: Body
  readonly remoteAddress = Option.none<string>()
  private readonly head: Head
  private made: Response | undefined

  constructor({ body, head, request, status, url }: Parts) {
    super()
    this.request = request
    this.url = url
    this.status = status
    this.headers = Headers.fromInput(head)
    this.stream = body
    this.head = head
  }

  /** Made only if it is needed. A web response permits no body with some statuses, so this one has the usual status. */
  private get web(): Response {
    const { headers, request, stream } = this
    return (this.made ??= HttpClientResponse.fromWeb(
      request,
      new globalThis.Response(Stream.toReadableStream(stream), { headers })
    ))
  }

  get cookies() {
    return Cookies.fromSetCookie(this.head["set-cookie"] ?? [])
  }
  get json() {
    return this.web.json
  }
  get text() {
    return this.web.text
  }
  get urlParamsBody() {
    return this.web.urlParamsBody
  }
  get arrayBuffer() {
    return this.web.arrayBuffer
  }
  get formData() {
    return this.web.formData
  }
  get upgrade() {
    return this.web.upgrade
  }
  toJSON() {
    const { request, status } = this
    return HttpIncomingMessage.inspect(this, {
      _id: "effect/http/HttpClientResponse",
      request: request.toJSON(),
      status
    })
  }
  pipe() {
    return pipeArguments(this, arguments)
  }
}

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
  HttpClient.layerMergedContext(Effect.zipWith(NodeHttpClient.makeUndici, NodeHttpClient.Dispatcher, direct))

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
