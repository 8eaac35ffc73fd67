/**
 * The errors of stores as problems.
 */
import * as Effect from "effect/Effect"
import * as Problem from "../api/Problem.ts"
import type { SessionError } from "../Session.ts"
import type { RunLogError } from "./RunLogStore.ts"

export const unavailable = ({ message }: { readonly message: string }): Problem.StorageUnavailable =>
  new Problem.StorageUnavailable({ detail: message })

/** The problem of a session that was to be opened or read. */
export const opening = <A, R>(effect: Effect.Effect<A, SessionError, R>) =>
  Effect.mapError(effect, (error) => {
    const { reason, sessionId } = error
    if (reason._tag === "Missing") return new Problem.SessionNotFound({ sessionId })
    if (reason._tag === "Locked") return new Problem.SessionLocked({ sessionId, detail: error.message })
    return unavailable(error)
  })

/** The problem of a session that was to be read. */
export const reading = <A, R>(effect: Effect.Effect<A, SessionError, R>) =>
  Effect.mapError(effect, (error) =>
    error.reason._tag === "Missing"
      ? new Problem.SessionNotFound({ sessionId: error.sessionId })
      : unavailable(error)
  )

/** The problem of a session that was to be made. */
export const making = <A, R>(effect: Effect.Effect<A, SessionError, R>) =>
  Effect.mapError(effect, (error) => {
    const { reason, sessionId } = error
    // Another request has the session open, or makes it now.
    if (reason._tag === "Exists" || reason._tag === "Locked") return new Problem.SessionExists({ sessionId })
    if (reason._tag === "Unreadable") return new Problem.MalformedRequest({ detail: error.message })
    return unavailable(error)
  })

/** The problem of a log. */
export const logging = <A, R>(effect: Effect.Effect<A, RunLogError, R>) =>
  Effect.mapError(effect, unavailable)

const noProcess = "No process has the run at this moment."

/** The problem of a request that comes while a process lets go of the run: nothing of it is done. */
export const left = (runId: string): Problem.RunNotReady =>
  new Problem.RunNotReady({ runId, detail: noProcess })

/** Whether a request is to be sent again, to the process that has the run then. */
export const isLeft = (error: unknown): boolean =>
  error instanceof Problem.RunNotReady && error.detail === noProcess
