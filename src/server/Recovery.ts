/**
 * The logs of runs whose process ended before they did: each gets the end that it lacks, when the server starts again.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { SessionError } from "../Session.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"
import * as Ending from "./Ending.ts"
import type { Host } from "./Host.ts"
import * as LogLine from "./LogLine.ts"
import { RunLog } from "./RunLog.ts"
import type { RunKey, RunLogError, Service as Logs } from "./RunLogStore.ts"

/**
 * Ends the logs of lost runs. Those of a session that another process has open are not lost. The session stays open meanwhile: its owner
 * alone may write to the log in a database.
 */
export const recover = Effect.fnUntraced(function* (
  logs: Logs,
  sessions: SessionStore.Service
): Effect.fn.Return<void, RunLogError> {
  for (const run of yield* logs.unended) {
    const recovered = Effect.gen(function* () {
      const open = yield* Effect.result(openTurnOf(sessions, run))
      if (open._tag === "Failure" && open.failure.reason._tag === "Locked") return
      yield* end(logs, run, open._tag === "Success" && open.success)
    })
    // The log of a session that cannot be opened has an owner in a database, and stays as it is. Another process may have ended it.
    yield* Effect.catchIf(
      Effect.scoped(recovered),
      ({ reason }) => reason === "taken" || reason === "ended",
      (error) => Effect.logWarning(error.message)
    )
  }
})

/** Continues the lost runs, and begins those that were queued. Those of a session that another process has open are not lost. */
export const resume = Effect.fnUntraced(function* (host: Host): Effect.fn.Return<void, RunLogError> {
  const { logs } = host.parts
  const runs = yield* logs.unended
  const opened = (sessionId: string) => Effect.result(host.locked(sessionId, ({ open }) => open))
  yield* Effect.forEach(
    new Set(runs.map(({ sessionId }) => sessionId)),
    Effect.fnUntraced(function* (sessionId) {
      const open = yield* opened(sessionId)
      if (open._tag === "Success") return
      if (open.failure._tag === "SessionLocked" || open.failure._tag === "RunNotReady") return
      yield* Effect.logError(`The runs of session ${sessionId} cannot continue: ${open.failure.message}`)
      if (open.failure._tag !== "SessionNotFound") return
      for (const run of runs) if (run.sessionId === sessionId) yield* Effect.scoped(end(logs, run, false))
    }),
    { concurrency: 8, discard: true }
  )
})

/** Whether the turn that a run left open waits for a person. */
const openTurnOf = (sessions: SessionStore.Service, { runId, sessionId }: RunKey) =>
  Effect.map(sessions.open(sessionId), ({ restored: { open } }) => {
    if (open === undefined || open.runId !== runId) return false
    return [...open.approvals, ...open.questions].some(({ answer }) => answer === undefined)
  }) satisfies Effect.Effect<boolean, SessionError, unknown>

const end = Effect.fnUntraced(function* (logs: Logs, run: RunKey, waits: boolean) {
  const stored = LogLine.read(yield* logs.read(run))
  const log = new RunLog(yield* logs.open(run), stored)
  if (!log.state.isOver) {
    const how: Ending.End = waits
      ? { status: "suspended", resume: { sessionId: run.sessionId, runId: run.runId } }
      : { status: "failed", error: Ending.processEnded }
    yield* log.append(Ending.of(run, log.events, how, yield* Clock.currentTimeMillis, stored.last))
  }
  yield* logs.end(run)
})
