/**
 * Whether the store of a server takes writes at this moment.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Problem from "../api/Problem.ts"
import type { RunLogError, Service as Logs } from "./RunLogStore.ts"
import * as SessionProblem from "./SessionProblem.ts"

/** The time that the store has to answer. */
const limit = "2 seconds"

/**
 * Makes the probe of a store, which writes a line and removes it. All that ask at one time share one write, also where a database that does
 * not answer holds it for long.
 */
export const probe = (logs: Logs): Effect.Effect<void, Problem.StorageUnavailable> => {
  // No session has this id, whatever ids clients choose: its removal would take the runs of a session.
  const sessionId = `_health-${crypto.randomUUID()}`
  const write = Effect.andThen(logs.addKey(sessionId, "{}"), logs.remove(sessionId))
  let running: Deferred.Deferred<void, RunLogError> | undefined
  const shared = Effect.suspend(() => {
    if (running !== undefined) return Deferred.await(running)
    const made = Deferred.makeUnsafe<void, RunLogError>()
    running = made
    const done = Effect.onExit(write, (exit) => {
      running = undefined
      return Deferred.done(made, exit)
    })
    return Effect.andThen(
      Effect.forkDetach(Effect.ignore(done), { startImmediately: true }),
      Deferred.await(made)
    )
  })
  return Effect.timeoutOrElse(SessionProblem.logging(shared), {
    duration: limit,
    orElse: () => new Problem.StorageUnavailable({ detail: `The store has not answered within ${limit}.` })
  })
}
