/**
 * Routes beside those of the HTTP API, such as those of another protocol.
 *
 * **Details**
 *
 * They stand behind the guards of the server.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import type { ParsedSearchParams } from "effect/http/HttpServerRequest"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerRespondable from "effect/http/HttpServerRespondable"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as ProblemDetails from "effect/http/ProblemDetails"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Problem from "../api/Problem.ts"

/**
 * The services that a route has for each request.
 *
 * @category models
 * @since 0.2.0
 */
export type Provided = HttpServerRequest | HttpRouter.RouteContext | ParsedSearchParams | Scope.Scope

/**
 * The body that a route reads: JSON, JSON or none, or none.
 *
 * @category models
 * @since 0.2.0
 */
export type Body = "json" | "optional" | "none"

/**
 * The words about a route in the OpenAPI document.
 *
 * @category models
 * @since 0.2.0
 */
export interface Description {
  /** The use of the route, in one sentence. */
  readonly summary: string
  /** The media types of the responses by status, `""` for a response without a body. Default: JSON with 200. */
  readonly responses?: { readonly [status: number]: string }
  /** The names of the query parameters. Default none. */
  readonly query?: ReadonlyArray<string>
}

/**
 * A route.
 *
 * @category models
 * @since 0.2.0
 */
export interface Route {
  /** The method. */
  readonly method: "GET" | "POST" | "DELETE"
  /** The path. A segment such as `:chatId` is a parameter: see `HttpRouter.params`. */
  readonly path: `/${string}`
  /** The body that the guards let through. */
  readonly body: Body
  /** The words about the route in the OpenAPI document. Default: its method and path. */
  readonly description?: Description
  /** Answers a request. */
  readonly handler: Effect.Effect<HttpServerResponse.HttpServerResponse, never, Provided>
}

/**
 * Makes a route.
 *
 * **Details**
 *
 * The guards of the server come first: host, origin, token, type and size of the body. A failure that is one of `Problem` is the
 * response; for any other the server responds with 500. The handler gets its own services before the route is made.
 *
 * **Example** (A route that reads a body)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { HttpServerRequest, HttpServerResponse } from "effect/http"
 * import { Problem } from "effect-agent/api"
 * import { Routes } from "effect-agent/server"
 *
 * const Body = Schema.Struct({ name: Schema.String })
 *
 * export const hello = Routes.make(
 *   "POST",
 *   "/hello",
 *   HttpServerRequest.schemaBodyJson(Body).pipe(
 *     Effect.mapError(({ message }) => new Problem.MalformedRequest({ detail: message })),
 *     Effect.map(({ name }) => HttpServerResponse.text(`Hello, ${name}`))
 *   ),
 *   { body: "json", summary: "Greets a person.", responses: { 200: "text/plain" } }
 * )
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = <E>(
  method: Route["method"],
  path: Route["path"],
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, Provided>,
  { body, ...description }: { readonly body: Body } & Partial<Description>
): Route => ({
  method,
  path,
  body,
  handler: Effect.catch(handler, respond),
  ...(description.summary === undefined
    ? {}
    : { description: { ...description, summary: description.summary } })
})

const respond = (error: unknown) => {
  if (HttpServerRespondable.isRespondable(error)) return HttpServerRespondable.toResponse(error)
  const answer = ofAnswer(error)
  if (answer._tag === "Some") return Effect.succeed(ProblemDetails.toResponse(answer.value))
  return Effect.andThen(
    Effect.logError("A route failed", error),
    HttpServerRespondable.toResponse(new Problem.InternalError({}))
  )
}

const ofAnswer = Schema.encodeUnknownOption(Problem.CannotAnswer)
