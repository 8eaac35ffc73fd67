/**
 * The runs that no process has: those of a process that has ended, or let go of them.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Ending from "./Ending.ts"
import type { Host } from "./Host.ts"
import * as LogLine from "./LogLine.ts"
import { RunLog } from "./RunLog.ts"
import { linesOf, type Stores } from "../History.ts"
import { isStartable, type RunLogError, type StoredRun } from "../RunLogStore.ts"

/** The time between two looks for runs: other processes of the store may end, and this one may have lost a session. */
const between = "5 seconds"

/** Takes the runs that no process has, now and from time to time until the scope closes. */
export const attend = Effect.fnUntraced(function* (
  host: Host
): Effect.fn.Return<void, RunLogError, Scope.Scope> {
  const failed = new Set<string>()
  yield* take(host, failed)
  const again = Effect.ignore(take(host, failed), { log: "Debug" })
  yield* Effect.forkScoped(Effect.repeat(Effect.delay(again, between), Schedule.forever))
})

/**
 * Continues the runs that no process has, and begins those that were queued. Those of a session that another process has open have one.
 * `failed`: the sessions that could not be opened, of which the log has a line.
 */
const take = Effect.fnUntraced(function* (host: Host, failed: Set<string>) {
  const { logs } = host.parts
  const runs = (yield* logs.unended).filter((run) => isStartable(run) && !host.runs.has(run.runId))
  const taken = Effect.fnUntraced(function* (sessionId: string) {
    if (host.isDraining) return
    const open = yield* Effect.result(host.locked(sessionId, ({ open }) => open))
    if (open._tag === "Success") return void failed.delete(sessionId)
    if (open.failure._tag === "SessionLocked" || open.failure._tag === "RunNotReady") return
    if (!failed.has(sessionId))
      yield* Effect.logError(`The runs of the session cannot continue: ${open.failure.message}`)
    failed.add(sessionId)
    if (open.failure._tag !== "SessionNotFound") return
    // Another process may have ended them.
    for (const run of runs)
      if (run.sessionId === sessionId)
        yield* Effect.ignore(Effect.scoped(end(host.parts, run)), { log: "Warn" })
  })
  const named = (sessionId: string) => Effect.annotateLogs(taken(sessionId), { sessionId })
  yield* Effect.forEach(new Set(runs.map(({ sessionId }) => sessionId)), named, {
    concurrency: 8,
    discard: true
  })
})

const end = Effect.fnUntraced(function* (stores: Stores, run: StoredRun) {
  const { logs } = stores
  // Its lines went with the session.
  if (run.range !== undefined) return yield* logs.delete(run)
  const stored = yield* linesOf(stores, run)
  const log = new RunLog(yield* logs.open(run, LogLine.run(run.runId, run.sessionId, stored.created)), stored)
  if (!log.state.isOver) {
    const how = { status: "failed", error: Ending.processEnded } as const
    yield* log.append(Ending.of(run, log.events, how, yield* Clock.currentTimeMillis, stored.last))
  }
  yield* logs.end(run)
})
