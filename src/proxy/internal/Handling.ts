/**
 * A route that answers a JSON body with server-sent events.
 */
import * as ByteSize from "effect/ByteSize"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as ProblemDetails from "effect/http/ProblemDetails"
import { InvalidBody, type ModelForbidden } from "./Admission.ts"
import * as Json from "../../internal/json.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { type ModelRequest, Provider } from "../../Provider.ts"
import { ProviderError, ServerError } from "../../ProviderError.ts"

// ───────────────────────── Requests

export interface Options {
  readonly maxBody?: number | undefined
}

type Refused = InvalidBody | ModelForbidden

export const decoded = <A>(result: Result.Result<A, Schema.SchemaError>): Effect.Effect<A, InvalidBody> =>
  Effect.fromResult(
    Result.mapError(result, ({ message }) => new InvalidBody({ detail: message.slice(0, 1000) }))
  )

const handle = <R>(
  { maxBody = 10 * 1024 * 1024 }: Options,
  answer: (body: Schema.Json) => Effect.Effect<Stream.Stream<Uint8Array>, Refused, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const mediaType = (request.headers["content-type"] ?? "").split(";", 1).join("").trim().toLowerCase()
    if (mediaType !== "application/json")
      return problem(415, `The body is ${mediaType === "" ? "of no type" : mediaType.slice(0, 100)}`)
    if (Number(request.headers["content-length"]) > maxBody) return problem(413, tooLarge(maxBody))
    const text = yield* Effect.option(
      Effect.provideService(request.text, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBody))
    )
    if (text._tag === "None") return problem(413, tooLarge(maxBody))
    const body = Json.parse(text.value)
    if (body === undefined) return problem(400, "The body is not JSON")
    const events = yield* answer(body)
    return HttpServerResponse.stream(keptAlive(events), { contentType: "text/event-stream", headers })
  }).pipe(
    Effect.catch(({ _tag, message }) =>
      Effect.succeed(problem(_tag === "ModelForbidden" ? 403 : 400, message))
    )
  )

/** Answers a body with the provider of the application. */
export const ask = <O extends Options>(
  options: O,
  decode: (body: Schema.Json, options: O) => Effect.Effect<ModelRequest, Refused>,
  encode: (events: Stream.Stream<ModelEvent, ProviderError>) => Stream.Stream<Uint8Array>
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  Provider | HttpServerRequest.HttpServerRequest
> =>
  handle(options, (body) =>
    Effect.gen(function* () {
      const provider = yield* Provider
      return encode(provider.stream(yield* decode(body, options)))
    })
  )

const tooLarge = (maxBody: number): string => `The body is larger than ${maxBody} bytes`

const problems: ReadonlyMap<number, readonly [name: string, title: string]> = new Map([
  [400, ["invalid-request", "The request is not valid"]],
  [403, ["model-forbidden", "The server does not ask this model"]],
  [413, ["body-too-large", "The body is too large"]],
  [415, ["unsupported-media-type", "The body must be application/json"]]
])

/** A problem of RFC 9457, by the names of the server's. pi's client shows the member `error`. */
const problem = (status: number, detail: string): HttpServerResponse.HttpServerResponse => {
  const [name = "", title = ""] = problems.get(status) ?? []
  const type = `urn:effect-agent:problem:${name}`
  return ProblemDetails.toResponse({ type, status, title, detail, error: detail })
}

const headers = { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }

// ───────────────────────── Answers

/** Writes the frames of one answer. */
export interface Writer {
  readonly write: (event: ModelEvent) => Result.Result<string, ProviderError>
  /** The frames of a failure, which ends the answer. */
  readonly fail: (error: ProviderError) => string
  /** The frames at the end of an answer that did not fail. */
  readonly end: () => string
}

/** The frames of an answer as bytes, those of events that came together in one piece. */
export const frames = <R>(
  events: Stream.Stream<ModelEvent, ProviderError, R>,
  make: () => Writer
): Stream.Stream<Uint8Array, never, R> =>
  Stream.suspend(() => {
    const line = new Line(make())
    const text = Stream.mapArray(events, (events) => [line.next(events)]).pipe(
      Stream.takeUntil(() => line.hasFailed),
      Stream.concat(Stream.suspend(() => Stream.fromIterable(line.end())))
    )
    return Stream.catchCause(text, (cause) => failure(line, cause)).pipe(
      Stream.filter((text) => text !== ""),
      Stream.map((text) => utf8.encode(text))
    )
  })

/** The texts of one answer. */
class Line {
  hasFailed = false
  private readonly writer: Writer

  constructor(writer: Writer) {
    this.writer = writer
  }

  next(events: ReadonlyArray<ModelEvent>): string {
    let text = ""
    for (const event of events) {
      const frame = this.writer.write(event)
      if (Result.isFailure(frame)) return text + this.fail(frame.failure)
      text += frame.success
    }
    return text
  }

  fail(error: ProviderError): string {
    this.hasFailed = true
    return this.writer.fail(error)
  }

  end(): ReadonlyArray<string> {
    return this.hasFailed ? [] : [this.writer.end()]
  }
}

const utf8 = new TextEncoder()

const failure = (line: Line, cause: Cause.Cause<ProviderError>): Stream.Stream<string> => {
  const error = Cause.findError(cause)
  if (Result.isSuccess(error)) return Stream.succeed(line.fail(error.success))
  if (Cause.hasInterruptsOnly(cause)) return Stream.fromEffect(Effect.interrupt)
  const reason = new ServerError({ detail: "The server failed" })
  return Stream.fromEffect(
    Effect.as(
      Effect.logError("A provider of the proxy failed with a defect", cause),
      line.fail(new ProviderError({ provider: "proxy", reason }))
    )
  )
}

/** Adds a comment for every 15 seconds, which proxies and clients take as a sign of life. */
const keptAlive = (events: Stream.Stream<Uint8Array>): Stream.Stream<Uint8Array> =>
  Stream.merge(events, pings, { haltStrategy: "left" })

const ping = utf8.encode(": ping\n\n")
const pings = Stream.drop(Stream.as(Stream.tick("15 seconds"), ping), 1)
