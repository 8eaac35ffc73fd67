/**
 * The logs of runs whose process ended before they did: each gets the end that it lacks, when the server starts again.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { SessionError } from "../Session.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"
import * as Ending from "./Ending.ts"
import * as LogLine from "./LogLine.ts"
import { RunLog } from "./RunLog.ts"
import type { RunKey, RunLogError, Service as Logs } from "./RunLogStore.ts"

/** Ends the logs of lost runs. Those of a session that another process has open are not lost. */
export const recover = Effect.fnUntraced(function* (
  logs: Logs,
  sessions: SessionStore.Service
): Effect.fn.Return<void, RunLogError> {
  for (const run of yield* logs.unended) {
    const open = yield* Effect.result(Effect.scoped(openTurnOf(sessions, run)))
    if (open._tag === "Failure" && open.failure.reason._tag === "Locked") continue
    const waits = open._tag === "Success" && open.success
    yield* Effect.scoped(end(logs, run, waits))
  }
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
    yield* log.append(Ending.of(run, log.events, how, yield* Clock.currentTimeMillis))
  }
  yield* logs.end(run)
})
