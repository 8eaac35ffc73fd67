/**
 * The errors of JSON-RPC that answer a client.
 */
import { RequestError } from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as FailureText from "../../internal/failureText.ts"
import type { EventError } from "../../Run.ts"

interface Problem {
  readonly _tag: string
  readonly title?: string
  readonly detail?: string
}

/** The parameters of a request are not valid. */
export const invalid = (detail: string): RequestError => RequestError.invalidParams({ detail }, detail)

/** The client has not opened the session, or there is none. */
export const unknownSession = (sessionId: string): RequestError => RequestError.sessionNotFound(sessionId)

const internal = (message: string, data?: unknown): RequestError => new RequestError(-32603, message, data)

/** A run that failed. */
export const ofRun = (error: EventError | undefined): RequestError =>
  internal(error === undefined ? "The run broke off" : FailureText.of(error), { error })

/** Answers with the error that a problem of the server is. */
export const answering =
  (sessionId: string) =>
  <A, R>(effect: Effect.Effect<A, Problem, R>): Effect.Effect<A, RequestError, R> =>
    Effect.mapError(effect, (problem) => {
      const { _tag, detail, title = _tag } = problem
      if (_tag === "SessionNotFound") return unknownSession(sessionId)
      if (_tag === "MalformedRequest") return invalid(detail ?? title)
      return internal(detail === undefined ? title : `${title}: ${detail}`, { problem: _tag })
    })
