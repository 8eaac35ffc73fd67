/**
 * A response whose bytes are read as they come, or as any response is. What the latter needs is made when it is asked for.
 */
import * as Effect from "effect/Effect"
import * as Cookies from "effect/http/Cookies"
import * as Headers from "effect/http/Headers"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as Inspectable from "effect/Inspectable"
import * as Option from "effect/Option"
import { pipeArguments } from "effect/Pipeable"
import * as Stream from "effect/Stream"
import * as ByteSource from "../../internal/byteSource.ts"
import type * as Exchange from "./NodeExchange.ts"

export class NodeResponse extends Inspectable.Class implements HttpClientResponse.HttpClientResponse {
  readonly [HttpIncomingMessage.TypeId]: typeof HttpIncomingMessage.TypeId = HttpIncomingMessage.TypeId
  readonly [HttpClientResponse.TypeId]: typeof HttpClientResponse.TypeId = HttpClientResponse.TypeId
  readonly [ByteSource.key]: ByteSource.ByteSource
  readonly request: HttpClientRequest.HttpClientRequest
  readonly url: string
  readonly status: number
  readonly headers: Headers.Headers
  private readonly setCookie: Iterable<string> | string | undefined
  private body: ReadableStream<Uint8Array> | undefined = undefined
  private web: HttpClientResponse.HttpClientResponse | undefined = undefined

  constructor(
    request: HttpClientRequest.HttpClientRequest,
    url: string,
    status: number,
    headers: Exchange.Headers,
    bytes: ByteSource.ByteSource
  ) {
    super()
    this.request = request
    this.url = url
    this.status = status
    this.headers = Headers.fromInput(headers)
    this.setCookie = headers["set-cookie"]
    this[ByteSource.key] = bytes
  }

  get cookies(): Cookies.Cookies {
    return this.setCookie === undefined ? Cookies.empty : Cookies.fromSetCookie(this.setCookie)
  }

  get remoteAddress(): Option.Option<string> {
    return Option.none()
  }

  get stream(): HttpClientResponse.HttpClientResponse["stream"] {
    return Stream.fromReadableStream({
      evaluate: () => this.readable,
      onError: (cause) =>
        new HttpClientError.HttpClientError({
          reason: new HttpClientError.DecodeError({ request: this.request, response: this, cause })
        })
    })
  }

  get json(): HttpClientResponse.HttpClientResponse["json"] {
    return this.whole.json
  }

  get text(): HttpClientResponse.HttpClientResponse["text"] {
    return this.whole.text
  }

  get urlParamsBody(): HttpClientResponse.HttpClientResponse["urlParamsBody"] {
    return this.whole.urlParamsBody
  }

  get arrayBuffer(): HttpClientResponse.HttpClientResponse["arrayBuffer"] {
    return this.whole.arrayBuffer
  }

  get formData(): HttpClientResponse.HttpClientResponse["formData"] {
    return this.whole.formData
  }

  get upgrade(): HttpClientResponse.HttpClientResponse["upgrade"] {
    return Effect.fail(
      new HttpClientError.HttpClientError({
        reason: new HttpClientError.StatusCodeError({
          request: this.request,
          response: this,
          description: "expected 101 Switching Protocols"
        })
      })
    )
  }

  /** The same as the web knows it, for all that is of the whole body. Its status is told here: not all are allowed there. */
  private get whole(): HttpClientResponse.HttpClientResponse {
    return (this.web ??= HttpClientResponse.fromWeb(
      this.request,
      new Response(this.readable, { headers: this.headers })
    ))
  }

  private get readable(): ReadableStream<Uint8Array> {
    return (this.body ??= ByteSource.toReadable(this[ByteSource.key]))
  }

  override toJSON(): unknown {
    const { request, status } = this
    return HttpIncomingMessage.inspect(this, { _id: "HttpClientResponse", request: request.toJSON(), status })
  }

  pipe() {
    return pipeArguments(this, arguments)
  }
}
