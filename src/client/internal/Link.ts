/**
 * The connection of a client: the calls of the API, with errors of this package in place of those of HTTP.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClientError from "effect/http/HttpClientError"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import type { Client } from "effect/http-api/HttpApiClient"
import type * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type { Api } from "../../api/Api.ts"
import * as Problem from "../../api/Problem.ts"
import * as HttpConnection from "../../http/HttpConnection.ts"
import { ServerUnreachable, UnexpectedResponse } from "../ClientError.ts"

type Groups = typeof Api extends HttpApi.HttpApi<infer _, infer G> ? G : never

/** A connection to a server. */
export interface Link {
  readonly api: Client<Groups>
  /** The repetition of requests that may be sent twice. */
  readonly retry: Schedule.Schedule<unknown, unknown>
  /** The repetition of requests for the events of a run. */
  readonly reconnect: Schedule.Schedule<unknown, unknown>
  /** The time without a byte after which a stream of events counts as broken. */
  readonly silence: Duration.Input
}

type OfHttp =
  | HttpClientError.HttpClientError
  | Schema.SchemaError
  | HttpApiError.BadRequestProblem
  | HttpApiError.InternalServerErrorProblem

const isOfHttp = (error: unknown): error is OfHttp =>
  HttpClientError.isHttpClientError(error) ||
  Schema.isSchemaError(error) ||
  error instanceof HttpApiError.BadRequestProblem ||
  error instanceof HttpApiError.InternalServerErrorProblem

/** A request whose errors are those of this package and of the API. */
export const called = <A, E, R>(request: Effect.Effect<A, E, R>) =>
  Effect.catchIf(
    request,
    (error: E): error is Extract<E, OfHttp> => isOfHttp(error),
    (error) => failure(error)
  )

const failure = (
  error: OfHttp
): Effect.Effect<never, ServerUnreachable | UnexpectedResponse | Problem.MalformedRequest> => {
  if (error instanceof HttpApiError.BadRequestProblem) {
    const faults = error.errors?.map(({ message, path }) => `${path.join(".")}: ${message}`) ?? []
    return Effect.fail(new Problem.MalformedRequest({ detail: faults.join("; ") }))
  }
  if (error instanceof HttpApiError.InternalServerErrorProblem) {
    return Effect.fail(new UnexpectedResponse({ status: 500, detail: error.message }))
  }
  if (Schema.isSchemaError(error)) return Effect.fail(new UnexpectedResponse({ detail: error.message }))
  const { reason, response } = error
  return response === undefined || isBroken(reason)
    ? Effect.fail(unreachable(error))
    : Effect.flatMap(describe(response, reason.message), Effect.fail)
}

/** Whether the body of a response broke off. */
const isBroken = (reason: HttpClientError.HttpClientErrorReason): boolean =>
  reason._tag === "DecodeError" && reason.cause !== undefined && !(reason.cause instanceof SyntaxError)

/** The error of a connection. */
export const unreachable = ({ reason }: HttpClientError.HttpClientError): ServerUnreachable =>
  new ServerUnreachable({
    detail: HttpConnection.reason(reason, reason.request.url, (text) => text).detail
  })

const Titled = Schema.Struct({ title: Schema.String, detail: Schema.optionalKey(Schema.String) })
const decodeTitled = Schema.decodeUnknownOption(Titled)

/** A response that the endpoint does not declare, with the title that a problem has. */
const describe = (response: HttpClientResponse, message: string): Effect.Effect<UnexpectedResponse> =>
  Effect.map(Effect.option(response.json), (json) => {
    const titled = Option.getOrUndefined(Option.flatMap(json, decodeTitled))
    const detail = titled === undefined ? message : [titled.title, titled.detail].filter(Boolean).join(": ")
    return new UnexpectedResponse({ status: response.status, detail })
  })

const transient: ReadonlySet<unknown> = new Set([
  "ServerUnreachable",
  "TooManyRequests",
  "TooManyBodies",
  "StorageUnavailable"
])

/** Whether another attempt may succeed. */
export const isTransient = (error: unknown): boolean =>
  Predicate.hasProperty(error, "_tag") &&
  (transient.has(error._tag) || (error instanceof UnexpectedResponse && (error.status ?? 0) >= 500))

/** The schedule, for errors that may pass. */
export const whileTransient = (
  schedule: Schedule.Schedule<unknown, unknown>
): Schedule.Schedule<unknown, unknown> =>
  Schedule.while(schedule, ({ input }) => Effect.succeed(isTransient(input)))

/** A request that may be sent twice. */
export const repeated = <A, E, R>(link: Link, request: Effect.Effect<A, E, R>) =>
  Effect.retry(called(request), whileTransient(link.retry))

/** A new idempotency key. */
export const makeKey = Effect.sync(() =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    ""
  )
)

/** A request that changes something, with a key of its own: the server does it once, however often it comes. */
export const once = <A, E, R>(
  request: (key: { readonly headers: { readonly "idempotency-key": string } }) => Effect.Effect<A, E, R>
) => Effect.flatMap(makeKey, (key) => request({ headers: { "idempotency-key": key } }))
