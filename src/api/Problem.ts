/**
 * The errors of the server: each is a problem of RFC 9457, with the content type `application/problem+json`.
 *
 * **Details**
 *
 * A problem has `type`, `status` and `title`, often a `detail` in words, and the ids that it is about.
 *
 * @since 0.2.0
 */
import * as ProblemDetails from "effect/http/ProblemDetails"
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Errors from "../internal/errors.ts"

const urn = <const Name extends string>(name: Name) => `urn:effect-agent:problem:${name}` as const

const session = { sessionId: Schema.String }
const run = { runId: Schema.String }

/**
 * The `Host` of the request is not one that the server answers to.
 *
 * @category errors
 * @since 0.2.0
 */
export class Misdirected extends HttpApiError.Problem<Misdirected>()("Misdirected", {
  type: urn("misdirected"),
  status: 421,
  title: "The server does not answer to this host"
}) {}

/**
 * The `Origin` of the request is not one that the server allows.
 *
 * @category errors
 * @since 0.2.0
 */
export class OriginForbidden extends HttpApiError.Problem<OriginForbidden>()("OriginForbidden", {
  type: urn("origin-forbidden"),
  status: 403,
  title: "The server does not allow this origin"
}) {}

/**
 * The server has no such path.
 *
 * @category errors
 * @since 0.2.0
 */
export class NoRoute extends HttpApiError.Problem<NoRoute>()("NoRoute", {
  type: urn("no-route"),
  status: 404,
  title: "There is no such path"
}) {}

/**
 * The path has no such method.
 *
 * **Details**
 *
 * The header `Allow` has those that it has.
 *
 * @category errors
 * @since 0.2.0
 */
export class MethodNotAllowed extends HttpApiError.Problem<MethodNotAllowed>()("MethodNotAllowed", {
  type: urn("method-not-allowed"),
  status: 405,
  title: "The path does not have this method"
}) {}

/**
 * The request has no token, or one that the server does not know.
 *
 * @category errors
 * @since 0.2.0
 */
export class TokenRefused extends HttpApiError.Problem<TokenRefused>()("TokenRefused", {
  type: urn("unauthorized"),
  status: 401,
  title: "The request needs a valid token"
}) {}

/**
 * The token has made too many requests.
 *
 * **Details**
 *
 * The header `Retry-After` has the seconds to wait.
 *
 * @category errors
 * @since 0.2.0
 */
export class TooManyRequests extends HttpApiError.Problem<TooManyRequests>()("TooManyRequests", {
  type: urn("too-many-requests"),
  status: 429,
  title: "The token has made too many requests"
}) {}

/**
 * The body of the request is not `application/json`.
 *
 * @category errors
 * @since 0.2.0
 */
export class UnsupportedMediaType extends HttpApiError.Problem<UnsupportedMediaType>()(
  "UnsupportedMediaType",
  { type: urn("unsupported-media-type"), status: 415, title: "The body must be application/json" }
) {}

/**
 * The body of the request is larger than the server reads.
 *
 * @category errors
 * @since 0.2.0
 */
export class BodyTooLarge extends HttpApiError.Problem<BodyTooLarge>()("BodyTooLarge", {
  type: urn("body-too-large"),
  status: 413,
  title: "The body is too large"
}) {}

/**
 * The body of the request did not come in time.
 *
 * @category errors
 * @since 0.2.0
 */
export class BodyTimeout extends HttpApiError.Problem<BodyTimeout>()("BodyTimeout", {
  type: urn("body-timeout"),
  status: 408,
  title: "The body did not come in time"
}) {}

/**
 * The server reads as many bodies as it has room for.
 *
 * **Details**
 *
 * The header `Retry-After` has the seconds to wait.
 *
 * @category errors
 * @since 0.2.0
 */
export class TooManyBodies extends HttpApiError.Problem<TooManyBodies>()("TooManyBodies", {
  type: urn("too-many-bodies"),
  status: 503,
  title: "The server reads too many bodies at this time"
}) {}

/**
 * The request is not valid: its body is no JSON, a member is missing or has another type, or a value is not possible.
 *
 * @category errors
 * @since 0.2.0
 */
export class MalformedRequest extends HttpApiError.Problem<MalformedRequest>()("MalformedRequest", {
  type: urn("invalid-request"),
  status: 400,
  title: "The request is not valid"
}) {}

/**
 * There is no session with the id.
 *
 * @category errors
 * @since 0.2.0
 */
export class SessionNotFound extends HttpApiError.Problem<SessionNotFound>()(
  "SessionNotFound",
  { type: urn("session-not-found"), status: 404, title: "There is no such session" },
  session
) {}

/**
 * The conversation of the session has no message with the id, or only another branch of the session has it.
 *
 * @category errors
 * @since 0.2.0
 */
export class MessageNotFound extends HttpApiError.Problem<MessageNotFound>()(
  "MessageNotFound",
  { type: urn("message-not-found"), status: 404, title: "The conversation has no such message" },
  { ...session, messageId: Schema.String }
) {}

/**
 * The conversation of the session has a message with the id of the prompt already.
 *
 * @category errors
 * @since 0.2.0
 */
export class MessageExists extends HttpApiError.Problem<MessageExists>()(
  "MessageExists",
  { type: urn("message-exists"), status: 409, title: "The conversation has the message already" },
  { ...session, messageId: Schema.String }
) {}

/**
 * There is a session with the id already.
 *
 * @category errors
 * @since 0.2.0
 */
export class SessionExists extends HttpApiError.Problem<SessionExists>()(
  "SessionExists",
  { type: urn("session-exists"), status: 409, title: "The id of the session is taken" },
  session
) {}

/**
 * Another process has the session open.
 *
 * @category errors
 * @since 0.2.0
 */
export class SessionLocked extends HttpApiError.Problem<SessionLocked>()(
  "SessionLocked",
  { type: urn("session-locked"), status: 409, title: "Another process has the session open" },
  session
) {}

/**
 * There is no run with the id.
 *
 * @category errors
 * @since 0.2.0
 */
export class RunNotFound extends HttpApiError.Problem<RunNotFound>()(
  "RunNotFound",
  { type: urn("run-not-found"), status: 404, title: "There is no such run" },
  run
) {}

/**
 * The session has a run that has not ended: the one with this `runId`.
 *
 * @category errors
 * @since 0.2.0
 */
export class RunGoesOn extends HttpApiError.Problem<RunGoesOn>()(
  "RunGoesOn",
  { type: urn("run-goes-on"), status: 409, title: "The session has a run that has not ended" },
  run
) {}

/**
 * The run has ended.
 *
 * @category errors
 * @since 0.2.0
 */
export class RunOver extends HttpApiError.Problem<RunOver>()(
  "RunOver",
  { type: urn("run-over"), status: 409, title: "The run has ended" },
  run
) {}

/**
 * The run cannot do this in its present state: it is not paused, it has not begun, or it is parked.
 *
 * @category errors
 * @since 0.2.0
 */
export class RunNotReady extends HttpApiError.Problem<RunNotReady>()(
  "RunNotReady",
  { type: urn("run-not-ready"), status: 409, title: "The run is not in a state for this" },
  run
) {}

/**
 * The `Idempotency-Key` belongs to another request.
 *
 * **Details**
 *
 * `runId` is the run that the other request started, if it was a prompt.
 *
 * @category errors
 * @since 0.2.0
 */
export class KeyReused extends HttpApiError.Problem<KeyReused>()(
  "KeyReused",
  { type: urn("key-reused"), status: 409, title: "The idempotency key belongs to another request" },
  { runId: Schema.optionalKey(Schema.String) }
) {}

/** An error of an answer as a problem: its class is that of the core, which knows nothing of HTTP. */
const ofAnswer = <E extends Errors.CannotAnswer>(
  Class: Schema.Schema<E> & (new (fields: { id: string; detail: string; runId?: string }) => E),
  { status, title, type }: HttpApiError.ProblemDeclaration<string, number>
) =>
  Schema.Struct({
    type: Schema.tag(type),
    status: Schema.Int,
    title: Schema.String,
    detail: Schema.optionalKey(Schema.String),
    requestId: Schema.optionalKey(Schema.String),
    runId: Schema.optionalKey(Schema.String)
  }).pipe(
    Schema.decodeTo(
      Schema.toType(Class),
      SchemaTransformation.transform({
        decode: ({ detail = title, requestId = "", runId }) =>
          new Class({ id: requestId, detail, ...(runId === undefined ? {} : { runId }) }),
        encode: ({ detail, id, runId }) => ({
          type,
          status,
          title,
          requestId: id,
          ...(detail === undefined ? {} : { detail }),
          ...(runId === undefined ? {} : { runId })
        })
      })
    ),
    HttpApiSchema.asJson({ contentType: ProblemDetails.contentType }),
    HttpApiSchema.status(status)
  )

/**
 * The run has no approval and no question with the id: the error of `Approval` as a problem.
 *
 * @category errors
 * @since 0.2.0
 */
export const RequestNotFound = ofAnswer(Errors.RequestNotFound, {
  type: urn("request-not-found"),
  status: 404,
  title: "The run has no such approval or question"
})
export type RequestNotFound = Errors.RequestNotFound

/**
 * The answer contradicts the request or its first answer: the error of `Approval` as a problem.
 *
 * @category errors
 * @since 0.2.0
 */
export const AnswerConflict = ofAnswer(Errors.AnswerConflict, {
  type: urn("answer-conflict"),
  status: 409,
  title: "The answer contradicts the request"
})
export type AnswerConflict = Errors.AnswerConflict

/**
 * The tool does not take the params of the answer, or the answer does not match the schema of the question: the error of `Approval` as a
 * problem.
 *
 * @category errors
 * @since 0.2.0
 */
export const InvalidAnswer = ofAnswer(Errors.InvalidAnswer, {
  type: urn("answer-invalid"),
  status: 422,
  title: "The answer is not valid"
})
export type InvalidAnswer = Errors.InvalidAnswer

/**
 * The errors of an answer to an approval or a question, as problems.
 *
 * @category errors
 * @since 0.2.0
 */
export const CannotAnswer = Schema.Union([RequestNotFound, AnswerConflict, InvalidAnswer])
export type CannotAnswer = Errors.CannotAnswer

/**
 * The server takes no new run: it is about to end.
 *
 * @category errors
 * @since 0.2.0
 */
export class Draining extends HttpApiError.Problem<Draining>()("Draining", {
  type: urn("draining"),
  status: 503,
  title: "The server is about to end"
}) {}

/**
 * The server cannot write or read its storage.
 *
 * @category errors
 * @since 0.2.0
 */
export class StorageUnavailable extends HttpApiError.Problem<StorageUnavailable>()("StorageUnavailable", {
  type: urn("storage-unavailable"),
  status: 503,
  title: "The server cannot use its storage"
}) {}

/**
 * The server has a bug.
 *
 * **Details**
 *
 * The log of the server has the cause.
 *
 * @category errors
 * @since 0.2.0
 */
export class InternalError extends HttpApiError.Problem<InternalError>()("InternalError", {
  type: urn("internal-error"),
  status: 500,
  title: "The server has a bug"
}) {}

/** @internal The reasons why a request to a person gets no answer. */
export const unanswered = [
  RunNotFound,
  RunNotReady,
  RequestNotFound,
  AnswerConflict,
  InvalidAnswer,
  SessionLocked,
  Draining
] as const
