/**
 * Takes the runs of a session that have not ended: one continues, and the others wait for it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Problem from "../../api/Problem.ts"
import { defect } from "../../internal/failureReason.ts"
import type { Session } from "../../Session.ts"
import type * as SessionStore from "../../sessions/SessionStore.ts"
import * as Continuation from "./Continuation.ts"
import * as Ending from "./Ending.ts"
import * as History from "../History.ts"
import type { Place } from "./Hold.ts"
import { LiveRun } from "./LiveRun.ts"
import * as LogLine from "./LogLine.ts"
import * as Request from "./Request.ts"
import type { StoredRun } from "../RunLogStore.ts"
import * as SessionProblem from "../SessionProblem.ts"
import { spliced } from "./Completion.ts"

/** A run that has not begun, and its beginning. */
export type Waiting = readonly [run: LiveRun, task: Request.Task]

/** The runs of a session that have not ended. */
export interface Taken {
  /** The session as its agent continues it. */
  readonly session: Session
  /** The run that its agent continues. Default: none. */
  readonly current?: LiveRun
  /** The runs that have not begun, the oldest first. */
  readonly waiting: ReadonlyArray<Waiting>
  /** The runs that were over, and whose logs are complete now. */
  readonly over: ReadonlyArray<LiveRun>
}

/** The problems of a session that is opened to be continued. */
export type CannotOpen =
  | Problem.SessionNotFound
  | Problem.SessionLocked
  | Problem.RunNotReady
  | Problem.StorageUnavailable
  | Problem.MalformedRequest

/** Takes the runs of a session that this process has open. `isLive` says whether it has a run already. */
export const take = Effect.fnUntraced(function* (
  stores: History.Stores,
  session: SessionStore.OpenSession,
  log: Place,
  isLive: (runId: string) => boolean
) {
  const active = yield* SessionProblem.logging(stores.logs.active(session.id))
  const { lostRun: _, ...restored } = session.restored
  let taken: Taken = { session: active.length === 0 ? session : as(session, restored), waiting: [], over: [] }
  const lost = active.filter(({ runId }) => !isLive(runId))
  if (lost.length === 0) return taken
  const { entries } = yield* SessionProblem.reading(stores.sessions.read(session.id))
  const opened: Array<LiveRun> = []
  const takeAll = Effect.gen(function* () {
    for (const run of lost) taken = yield* takeOne(stores, session, taken, { run, entries, opened, log })
    return taken
  })
  return yield* Effect.onError(takeAll, () => letGo(opened))
})

interface Lost extends Pick<Continuation.Found, "entries"> {
  readonly run: StoredRun
  /** The session, for the log of the run. */
  readonly log: Place
  /** Gets the run once its log is to be opened. */
  readonly opened: Array<LiveRun>
}

const letGo = (runs: Iterable<LiveRun>) => Effect.forEach(runs, (run) => run.letGo, { discard: true })

/** Lets go of runs that were taken in vain. */
export const giveBack = ({ current, over, waiting }: Taken): Effect.Effect<void> =>
  letGo([...over, ...waiting.map(([run]) => run), ...(current === undefined ? [] : [current])])

const takeOne = Effect.fnUntraced(function* (
  stores: History.Stores,
  session: SessionStore.OpenSession,
  taken: Taken,
  { entries, log, opened, run }: Lost
) {
  const { logs } = stores
  const now = yield* Clock.currentTimeMillis
  const stored = reached(yield* SessionProblem.logging(History.linesOf(stores, run)))
  const plan = Continuation.plan({ runId: run.runId, stored, entries }, now)
  // A crash came before it had begun, and before its beginning was stored: its client has no answer.
  if (plan._tag === "Begin" && stored.request === undefined)
    return yield* Effect.as(SessionProblem.logging(logs.delete(run)), taken)
  if (run.parked !== undefined && plan._tag === "Begin") return taken
  const live = new LiveRun(run, stored.created, logs, log, stored)
  const task = Request.decode(stored.request)
  live.trace = task?.trace
  opened.push(live)
  yield* SessionProblem.logging(live.reopen)
  if (plan._tag === "Begin") {
    if (task !== undefined) return { ...taken, waiting: [...taken.waiting, [live, task] as const] }
    yield* live.finish({ status: "failed", error: cannotBegin(stored) })
    return { ...taken, over: [...taken.over, live] }
  }
  if (plan._tag === "Over") {
    yield* SessionProblem.logging(live.log.append(plan.append))
    yield* live.finish(
      plan.isCancelled === true ? { status: "cancelled" } : { status: "failed", error: Ending.processEnded }
    )
    return { ...taken, over: [...taken.over, live] }
  }
  const { append, continuing } = plan
  const { parked } = yield* SessionProblem.logging(logs.begun(run))
  if (parked !== undefined)
    return yield* new Problem.RunNotReady({
      runId: run.runId,
      detail: `The run waits for resume: ${parked}`
    })
  yield* SessionProblem.logging(Effect.andThen(live.mark(now, continuing.countedMs), live.log.append(append)))
  live.splice = (event) => spliced(continuing.log, event)
  return { ...taken, session: continued(session, continuing), current: live }
})

/** The log behind the positions that watchers of the process may have seen that had the run. */
const reached = (stored: LogLine.StoredLog): LogLine.StoredLog =>
  stored.last === 0 ? stored : { ...stored, last: stored.last + LogLine.reach }

const cannotBegin = ({ request }: LogLine.StoredLog) =>
  request === undefined
    ? Ending.processEnded
    : defect("This version of the server cannot begin the run: its request was stored by a later version")

const as = (session: Session, restored: Session["restored"]): Session => ({
  id: session.id,
  restored,
  record: session.record,
  ...(session.keep === undefined ? {} : { keep: session.keep }),
  ...(session.show === undefined ? {} : { show: session.show }),
  verify: session.verify ?? Effect.void,
  child: session.child
})

/** The session, whose agent continues the run of `continuing`. */
const continued = (session: Session, continuing: Continuation.Continuing): Session => ({
  ...as(session, continuing.restored(session.restored)),
  child: childOf(session, continuing, continuing.runId)
})

/** The agent inside of a call continues too, once: a hook may have the call run again from its start. */
const childOf = (session: Session, continuing: Continuation.Continuing, runId: string): Session["child"] => {
  const known = new Set<string>()
  return (toolCallId) =>
    Effect.map(session.child(toolCallId), (part) => {
      const inside = known.has(toolCallId) ? undefined : continuing.inside(runId, toolCallId)
      known.add(toolCallId)
      if (inside === undefined) return part
      return {
        ...as(part, continuing.restoredInside(inside, part.restored)),
        child: childOf(part, continuing, inside.start.runId)
      }
    })
}
