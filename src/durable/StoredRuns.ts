/**
 * Runs as their logs in the store show them.
 */
import * as Effect from "effect/Effect"
import type * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import * as History from "../server/History.ts"
import * as RunList from "../server/RunList.ts"
import type { RunPage } from "../server/Runs.ts"
import type { RunState } from "../server/RunState.ts"
import type { RunLogError, Service as Logs, StoredRun } from "../server/RunLogStore.ts"
import * as SessionProblem from "../server/SessionProblem.ts"

interface Read {
  readonly run: StoredRun
  readonly state: RunState
}

const read = (logs: Logs, run: StoredRun): Effect.Effect<Read, RunLogError> =>
  Effect.map(History.logOf(logs, run), ({ log }) => ({ run, state: log.state }))

const readAll = (logs: Logs, sessionId: string) =>
  Effect.flatMap(logs.list(sessionId), (runs) =>
    Effect.forEach(runs, (run) => read(logs, run), { concurrency: 4 })
  )

const shown = ({ run: { created, parked, runId, sessionId }, state }: Read): Payload.Run =>
  RunList.shown(parked, state.of(runId, sessionId, created))

/** The runs of a session, oldest first, without the requests that other runs have taken over. */
export const list = (
  logs: Logs,
  sessionId: string
): Effect.Effect<ReadonlyArray<Payload.Run>, Problem.StorageUnavailable> =>
  Effect.map(SessionProblem.logging(readAll(logs, sessionId)), (all) => {
    const resumed = new Map(
      all.flatMap(({ run, state }) =>
        state.resumes === undefined ? [] : [[state.resumes, run.runId] as const]
      )
    )
    return all
      .map((one) => History.resumedBy(shown(one), resumed.get(one.run.runId)))
      .toSorted((left, right) => left.created - right.created)
  })

/** A page of the runs of all sessions, the newest first. */
export const listAll = (
  logs: Logs,
  page: RunPage
): Effect.Effect<Payload.Runs, Problem.InvalidRequest | Problem.StorageUnavailable> =>
  RunList.page(
    logs,
    {
      live: () => undefined,
      suspended: (run) =>
        Effect.map(list(logs, run.sessionId), (all) => all.find(({ runId }) => runId === run.runId) ?? run)
    },
    page
  )

/** A run. */
export const get = (
  logs: Logs,
  runId: string
): Effect.Effect<Payload.Run, Problem.RunNotFound | Problem.StorageUnavailable> =>
  Effect.gen(function* () {
    const run = yield* SessionProblem.logging(logs.find(runId))
    if (run === undefined) return yield* new Problem.RunNotFound({ runId })
    const found = yield* SessionProblem.logging(read(logs, run))
    if (!found.state.isSuspended) return shown(found)
    const all = yield* list(logs, run.sessionId)
    return all.find((one) => one.runId === runId) ?? shown(found)
  })
