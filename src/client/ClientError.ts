/**
 * The errors of a client that are not problems of the server: see `Problem` of `effect-agent/api` for those.
 *
 * @since 0.2.0
 */
import * as Schema from "effect/Schema"
import type { InvalidContinuation } from "../internal/continuation.ts"
import type { InvalidInput } from "../internal/invalidInput.ts"
import type * as Problem from "../api/Problem.ts"
import { type RunFailed, RunResult } from "../Run.ts"
import { type AgentBusy, type AgentClosed, TaggedError } from "../internal/errors.ts"

/**
 * The server does not answer: there is no connection, it broke, or it was silent for too long.
 *
 * @category errors
 * @since 0.2.0
 */
export class ServerUnreachable extends TaggedError<ServerUnreachable>()("ServerUnreachable", {
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return `The server does not answer: ${this.detail}`
  }
}

/**
 * The response is not one of this API: the address is that of another server, or the server has another version.
 *
 * @category errors
 * @since 0.2.0
 */
export class UnexpectedResponse extends TaggedError<UnexpectedResponse>()("UnexpectedResponse", {
  /** The status of the response; absent for a part of a stream of events. */
  status: Schema.optionalKey(Schema.Int),
  /** The fault in words. */
  detail: Schema.String
}) {
  override get message(): string {
    const status = this.status === undefined ? "" : ` (status ${this.status})`
    return `The response of the server is not one of this API${status}: ${this.detail}`
  }
}

/**
 * A run died at the server: it met a defect.
 *
 * @category errors
 * @since 0.2.0
 */
export class RunDied extends TaggedError<RunDied>()("RunDied", {
  /** The defect in words. */
  detail: Schema.String,
  /** The run until its death. */
  result: RunResult
}) {
  override get message(): string {
    return `The run died at the server: ${this.detail}`
  }
}

/**
 * The session has no run that can take the message.
 *
 * @category errors
 * @since 0.2.0
 */
export class NoRun extends TaggedError<NoRun>()("NoRun", {
  /** The id of the session. */
  sessionId: Schema.String
}) {
  override get message(): string {
    return "The session has no run. Use prompt, which begins one."
  }
}

/**
 * The errors that each request may have.
 *
 * @category errors
 * @since 0.2.0
 */
export type Refused =
  | ServerUnreachable
  | UnexpectedResponse
  | Problem.Misdirected
  | Problem.OriginForbidden
  | Problem.TokenRefused
  | Problem.TooManyRequests
  | Problem.UnsupportedMediaType
  | Problem.BodyTooLarge
  | Problem.BodyTimeout
  | Problem.TooManyBodies
  | Problem.MalformedRequest
  | Problem.KeyReused
  | Problem.StorageUnavailable

/**
 * The errors of a request for a run.
 *
 * @category errors
 * @since 0.2.0
 */
export type CannotBegin =
  | Refused
  | Problem.SessionNotFound
  | Problem.MessageNotFound
  | Problem.MessageExists
  | Problem.SessionLocked
  | Problem.RunGoesOn
  | Problem.KeyReused
  | Problem.Draining

/**
 * The failures of a run, and the errors of its stream of events.
 *
 * @category errors
 * @since 0.2.0
 */
export type RunError =
  | RunFailed
  | RunDied
  | AgentBusy
  | AgentClosed
  | InvalidInput
  | InvalidContinuation
  | Refused
  | Problem.RunNotFound
