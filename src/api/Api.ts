/**
 * The HTTP API of the server: its routes, their bodies and their errors.
 *
 * **When to use**
 *
 * The server derives its routes from it, and the page `/openapi.json`. A client of one's own derives its calls, as
 * `HttpApiClient.make(Api.Api, { baseUrl })`.
 *
 * @since 0.2.0
 */
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { AgentEvent } from "../AgentEvent.ts"
import * as Payload from "./Payload.ts"
import * as Problem from "./Problem.ts"

/**
 * The token of a request, in the header `Authorization: Bearer`.
 *
 * **Details**
 *
 * A client provides it with `HttpApiMiddleware.layerClient`.
 *
 * **Example** (A client with a token)
 *
 * ```ts
 * import { HttpClientRequest } from "effect/http"
 * import { HttpApiMiddleware } from "effect/http-api"
 * import { Api } from "effect-agent/api"
 *
 * export const token = (secret: string) =>
 *   HttpApiMiddleware.layerClient(Api.Authorization, ({ next, request }) =>
 *     next(HttpClientRequest.bearerToken(request, secret))
 *   )
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class Authorization extends HttpApiMiddleware.Service<Authorization>()(
  "effect-agent/api/Authorization",
  {
    requiredForClient: true,
    security: { bearer: HttpApiSecurity.bearer },
    error: [
      Problem.Misdirected,
      Problem.OriginForbidden,
      Problem.TokenRefused,
      Problem.TooManyRequests,
      Problem.UnsupportedMediaType,
      Problem.BodyTooLarge,
      Problem.BodyTimeout,
      Problem.TooManyBodies,
      Problem.MalformedRequest,
      Problem.KeyReused,
      Problem.StorageUnavailable
    ]
  }
) {}

/** A whole number from 0, as text. */
const Position = Schema.String.check(Schema.isPattern(/^\d{1,15}$/)).annotate({
  expected: "a whole number from 0"
})
const Key = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(255))
const Size = Schema.String.check(Schema.isPattern(/^[1-9]\d{0,2}$/)).annotate({
  expected: "a whole number from 1 to 999"
})

/** A request that changes something is done once for each key, however often it comes. */
const once = { headers: { "idempotency-key": Schema.optional(Key) } }

const session = { params: { sessionId: Schema.String } }
const run = { params: { runId: Schema.String } }

/**
 * The events of a run as server-sent events: `id` is the position in the log of the run, `event` the tag, and `data` the event as JSON.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Events = HttpApiSchema.StreamSse({
  events: Schema.Struct({
    id: Schema.optional(Schema.String),
    event: Schema.String,
    data: Schema.fromJsonString(Schema.toCodecJson(AgentEvent))
  })
})

const health = HttpApiGroup.make("server", { topLevel: true }).add(
  HttpApiEndpoint.get("health", "/health", {
    success: Schema.Struct({ status: Schema.Literal("ok") }),
    error: [Problem.Draining, Problem.StorageUnavailable]
  }).annotate(OpenApi.Summary, "Answers whether the server can take a run.")
)

const sessions = HttpApiGroup.make("sessions")
  .add(
    HttpApiEndpoint.post("create", "/sessions", {
      ...once,
      payload: Payload.CreateSession,
      success: Payload.SessionId.pipe(HttpApiSchema.status(201)),
      error: [Problem.SessionExists, Problem.Draining]
    }).annotate(OpenApi.Summary, "Makes a session."),
    HttpApiEndpoint.get("list", "/sessions", {
      query: {
        limit: Schema.optional(Size),
        cursor: Schema.optional(Schema.String),
        query: Schema.optional(Schema.String)
      },
      success: Payload.Sessions
    }).annotate(OpenApi.Summary, "Lists the sessions, those with the newest entries first."),
    HttpApiEndpoint.get("get", "/sessions/:sessionId", {
      ...session,
      success: Payload.SessionContents,
      error: Problem.SessionNotFound
    }).annotate(OpenApi.Summary, "Reads a session with its entries and its conversation."),
    HttpApiEndpoint.patch("update", "/sessions/:sessionId", {
      ...once,
      ...session,
      payload: Payload.UpdateSession,
      success: HttpApiSchema.NoContent,
      error: [Problem.SessionNotFound, Problem.SessionLocked, Problem.RunGoesOn, Problem.Draining]
    }).annotate(OpenApi.Summary, "Changes the name or the model of a session."),
    HttpApiEndpoint.delete("remove", "/sessions/:sessionId", {
      ...once,
      ...session,
      success: HttpApiSchema.NoContent,
      error: [Problem.SessionNotFound, Problem.SessionLocked, Problem.RunGoesOn]
    }).annotate(OpenApi.Summary, "Removes a session and its runs."),
    HttpApiEndpoint.post("fork", "/sessions/:sessionId/fork", {
      ...once,
      ...session,
      payload: Payload.ForkSession,
      success: Payload.SessionId.pipe(HttpApiSchema.status(201)),
      error: [Problem.SessionNotFound, Problem.Draining]
    }).annotate(OpenApi.Summary, "Makes a session with the conversation of another one.")
  )
  .middleware(HttpApiMiddleware.ProblemDetails)
  .middleware(Authorization)

const message = {
  ...run,
  ...once,
  payload: Payload.SendMessage,
  success: HttpApiSchema.Accepted,
  error: [Problem.RunNotFound, Problem.RunOver, Problem.RunNotReady]
}
/** Requests that need no body. */
const reason = { ...message, payload: [Payload.WithReason, Schema.Null] }

const runs = HttpApiGroup.make("runs")
  .add(
    HttpApiEndpoint.post("start", "/sessions/:sessionId/runs", {
      ...session,
      ...once,
      payload: Payload.StartRun,
      success: [
        Payload.Started.pipe(HttpApiSchema.status(201)),
        Payload.Joined.pipe(HttpApiSchema.status(202))
      ],
      error: [
        Problem.SessionNotFound,
        Problem.MessageNotFound,
        Problem.MessageExists,
        Problem.SessionLocked,
        Problem.RunGoesOn,
        Problem.Draining
      ]
    }).annotate(
      OpenApi.Summary,
      "Starts a run with a prompt, joins the run that the session has, or queues one."
    ),
    HttpApiEndpoint.get("list", "/sessions/:sessionId/runs", {
      ...session,
      success: Schema.Struct({ items: Schema.Array(Payload.Run) }),
      error: Problem.SessionNotFound
    }).annotate(OpenApi.Summary, "Lists the runs of a session, the oldest first."),
    HttpApiEndpoint.get("listAll", "/runs", {
      query: {
        status: Schema.optional(Payload.ListedStatus),
        limit: Schema.optional(Size),
        cursor: Schema.optional(Schema.String)
      },
      success: Payload.Runs
    }).annotate(OpenApi.Summary, "Lists the runs of all sessions, the newest first."),
    HttpApiEndpoint.get("get", "/runs/:runId", {
      ...run,
      success: Payload.Run,
      error: Problem.RunNotFound
    }).annotate(OpenApi.Summary, "Reads the status, the usage and the open requests of a run."),
    HttpApiEndpoint.delete("remove", "/runs/:runId", {
      ...once,
      ...run,
      success: HttpApiSchema.NoContent,
      error: [Problem.RunNotFound, Problem.RunGoesOn]
    }).annotate(OpenApi.Summary, "Removes a run that has ended, and its events."),
    HttpApiEndpoint.get("events", "/runs/:runId/events", {
      ...run,
      headers: { "last-event-id": Schema.optional(Position) },
      query: {
        after: Schema.optional(Position),
        onDisconnect: Schema.optional(Schema.Literal("cancel")),
        partials: Schema.optional(Schema.Literals(["true", "false"]))
      },
      success: [Events, HttpApiSchema.NoContent],
      error: Problem.RunNotFound
    }).annotate(OpenApi.Summary, "Streams the events of a run from a position on."),
    HttpApiEndpoint.post("steer", "/runs/:runId/steer", { ...message, payload: Payload.Steer }).annotate(
      OpenApi.Summary,
      "Sends a message to a run for the time after its turn, which it may end at once."
    ),
    HttpApiEndpoint.post("followUp", "/runs/:runId/follow-up", message).annotate(
      OpenApi.Summary,
      "Sends a message to a run for the time when it would end."
    ),
    HttpApiEndpoint.post("pause", "/runs/:runId/pause", reason).annotate(
      OpenApi.Summary,
      "Holds a run before its next turn or tool call."
    ),
    HttpApiEndpoint.post("resume", "/runs/:runId/resume", reason).annotate(
      OpenApi.Summary,
      "Releases a run that is paused."
    ),
    HttpApiEndpoint.post("cancel", "/runs/:runId/cancel", reason).annotate(OpenApi.Summary, "Cancels a run."),
    HttpApiEndpoint.post("approve", "/runs/:runId/approvals/:approvalId", {
      ...once,
      params: { runId: Schema.String, approvalId: Schema.String },
      payload: Payload.AnswerApproval,
      success: Payload.Decided,
      error: Problem.unanswered
    }).annotate(OpenApi.Summary, "Approves or rejects a tool call."),
    HttpApiEndpoint.post("answer", "/runs/:runId/questions/:questionId", {
      ...once,
      params: { runId: Schema.String, questionId: Schema.String },
      payload: Payload.AnswerQuestion,
      success: Payload.Answered,
      error: Problem.unanswered
    }).annotate(OpenApi.Summary, "Answers a question of the model, or declines to.")
  )
  .middleware(HttpApiMiddleware.ProblemDetails)
  .middleware(Authorization)

/**
 * The HTTP API of the server.
 *
 * **Example** (Listing its routes)
 *
 * ```ts
 * import { OpenApi } from "effect/http-api"
 * import { Api } from "effect-agent/api"
 *
 * console.log(Object.keys(OpenApi.fromApi(Api.Api).paths).slice(0, 3))
 * // => [ '/health', '/sessions', '/sessions/{sessionId}' ]
 * ```
 *
 * @category models
 * @since 0.2.0
 */
export class Api extends HttpApi.make("effect-agent")
  .add(health, sessions, runs)
  .annotate(HttpApi.PayloadParseOptions, { onExcessProperty: "error" })
  .annotateMerge(
    OpenApi.annotations({
      title: "effect-agent",
      version: "1",
      description: "Sessions, runs and their events"
    })
  ) {}
