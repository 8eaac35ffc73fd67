/**
 * A route that answers a JSON body with server-sent events.
 */
import * as ByteSize from "effect/ByteSize"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as ProblemDetails from "effect/http/ProblemDetails"
import type { ModelEvent } from "../../ModelEvent.ts"
import { type ModelRequest, Provider } from "../../Provider.ts"
import { ProviderError, ServerError } from "../../ProviderError.ts"
import { TaggedError } from "../../internal/errors.ts"
import * as Json from "../../internal/json.ts"

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

// ───────────────────────── Admission

/**
 * The server does not ask the model that the request names.
 *
 * @category errors
 * @since 0.2.0
 */
export class ModelForbidden extends TaggedError<ModelForbidden>()("ModelForbidden", {
  /** The id of the model. */
  model: Schema.String,
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The body is not a request.
 *
 * @category errors
 * @since 0.2.0
 */
export class InvalidBody extends TaggedError<InvalidBody>()("InvalidBody", {
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The request for a model of the list, by the id of the list: `"gpt-5.4-mini"` stands for `"openai/gpt-5.4-mini"` if that is the only model of
 * this name. Members for vendors must name no model but those that the list has of this vendor, since they replace those of the provider.
 */
export const admit = (
  request: ModelRequest,
  models: ReadonlyArray<string>
): Result.Result<ModelRequest, ModelForbidden> => {
  const model = known(request.model, models)
  if (model === undefined) {
    const detail = `The server does not ask the model ${JSON.stringify(request.model.slice(0, 200))}`
    return Result.fail(new ModelForbidden({ model: request.model, detail }))
  }
  if (Object.keys(request.options.headers ?? {}).length > 0) {
    const detail = "The server takes no headers for its vendors from clients"
    return Result.fail(new ModelForbidden({ model: request.model, detail }))
  }
  const ofVendor = models.filter((id) => vendorOf(id) === vendorOf(model))
  const other = otherModel(request, ofVendor)
  if (other !== undefined) {
    const detail = `The server does not take ${JSON.stringify(other)} in members for vendors, which would name another model`
    return Result.fail(new ModelForbidden({ model: request.model, detail }))
  }
  return Result.succeed(model === request.model ? request : { ...request, model })
}

/** The provider in an id such as `openai/gpt-5`, which takes members for vendors. */
const vendorOf = (id: string): string => id.slice(0, id.indexOf("/") + 1)

const known = (model: string, models: ReadonlyArray<string>): string | undefined => {
  if (models.includes(model)) return model
  const found = models.filter((id) => id.endsWith(`/${model}`))
  return found.length === 1 && model !== "" ? found[0] : undefined
}

/** The name of a member for vendors that names a model which is not of the list, `undefined` if there is none. */
const otherModel = ({ options, tools }: ModelRequest, models: ReadonlyArray<string>): string | undefined => {
  const vendors = [options, ...(options.hostedTools ?? []), ...tools].map(({ vendor }) => vendor)
  return vendors.map((vendor) => naming(vendor, models)).find((name) => name !== undefined)
}

const naming = (value: unknown, models: ReadonlyArray<string>): string | undefined => {
  if (!Predicate.isObjectOrArray(value)) return undefined
  for (const [name, member] of Object.entries(value)) {
    if (names.test(name) && !(typeof member === "string" && known(member, models) !== undefined)) return name
    const inner = naming(member, models)
    if (inner !== undefined) return inner
  }
  return undefined
}

/** `model` of all vendors, `models`, `route` and `preset` of routers, `fallbacks` of Anthropic, `modelId` of Bedrock. */
const names = /^(?:\w*models?(?:[-_]?(?:ids?|names?|arn))?|\w*fallbacks?|route|preset)$/i
