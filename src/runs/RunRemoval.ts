/**
 * Removes runs from the store.
 */
import * as Effect from "effect/Effect"
import * as Problem from "../api/Problem.ts"
import type { RunKey, Service as Logs } from "./RunLogStore.ts"
import * as SessionProblem from "./SessionProblem.ts"

/** Removes the log of a run that has ended, and succeeds with the run. */
export const remove = (
  logs: Logs,
  runId: string
): Effect.Effect<RunKey, Problem.RunNotFound | Problem.RunGoesOn | Problem.StorageUnavailable> =>
  Effect.gen(function* () {
    const run = yield* SessionProblem.logging(logs.find(runId))
    if (run === undefined) return yield* new Problem.RunNotFound({ runId })
    if (run.ended === undefined) return yield* new Problem.RunGoesOn({ runId })
    yield* SessionProblem.logging(logs.delete(run))
    return run
  })
