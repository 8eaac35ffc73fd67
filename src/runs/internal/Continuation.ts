/**
 * Continues a run whose process ended before it did: the run keeps its id, its log and its positions.
 *
 * The log reads like that of a run that was never interrupted. Its session is written before the log, so that the log first gets the
 * events that only the session has. The agent then publishes the events of the open turn again, and those that the log has are left out.
 */
import type { AgentEvent } from "../../AgentEvent.ts"
import type { Interrupted, InterruptedTurn, OpenTurn } from "../../internal/openTurn.ts"
import * as Message from "../../Message.ts"
import type { RunOptions } from "../../RunOptions.ts"
import type { Restored, Session } from "../../Session.ts"
import type { SessionEntry } from "../../sessions/SessionEntry.ts"
import * as Transcript from "../../Transcript.ts"
import * as Usage from "../../Usage.ts"
import { Completion, spliced } from "./Completion.ts"
import * as Facts from "./Facts.ts"
import type { StoredLog } from "./LogLine.ts"
import { LogProgress, type RunProgress } from "./RunProgress.ts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Problem from "../../api/Problem.ts"
import { defect } from "../../internal/failureReason.ts"
import type * as SessionStore from "../../sessions/SessionStore.ts"
import * as Ending from "./Ending.ts"
import * as History from "../History.ts"
import type { Place } from "./Hold.ts"
import { LiveRun } from "./LiveRun.ts"
import * as LogLine from "./LogLine.ts"
import * as Request from "./Request.ts"
import type { StoredRun } from "../RunLogStore.ts"
import * as SessionProblem from "../SessionProblem.ts"

/** The next step for a run that has not ended. */
export type Plan =
  | { readonly _tag: "Over"; readonly append: ReadonlyArray<AgentEvent>; readonly isCancelled?: boolean }
  | { readonly _tag: "Begin" }
  | { readonly _tag: "Continue"; readonly append: ReadonlyArray<AgentEvent>; readonly continuing: Continuing }

/** The log of a run, as it was stored, and the entries of its session. */
export interface Found {
  readonly runId: string
  readonly stored: StoredLog
  readonly entries: ReadonlyArray<SessionEntry>
}

export const plan = ({ entries, runId, stored }: Found, now: number): Plan => {
  const events = stored.entries.flatMap(({ event }) => event ?? [])
  const log = new LogProgress(events)
  if (log.runs.get(runId)?.end !== undefined) return { _tag: "Over", append: [] }
  const facts = Facts.of(entries, runId)
  const isBegun = log.runs.has(runId) || facts.some(({ _tag }) => _tag !== "RunStart")
  const { requested } = stored
  const isCancelled = requested?.what === "cancel"
  if (!isBegun) return isCancelled ? { _tag: "Over", append: [], isCancelled } : { _tag: "Begin" }
  const completion = new Completion(log, now, reasonOf(isCancelled ? requested : undefined))
  skipShown(log, stored)
  for (const fact of facts) completion.addFact(fact)
  const run = log.runs.get(runId)
  if (run === undefined) return { _tag: "Begin" }
  const append = completion.added
  if (run.end !== undefined) return { _tag: "Over", append }
  if (run.isCancelled || run.error !== undefined || isCancelled) {
    const isFailed = run.error !== undefined && !run.isCancelled
    const failure = run.error === undefined ? {} : { error: run.error.error }
    completion.endRun(run, { status: isFailed ? "failed" : "cancelled", ...failure })
    return { _tag: "Over", append }
  }
  for (const open of log.runs.values()) {
    if (open.end !== undefined) continue
    completion.retract(open)
    completion.endModelCall(open)
    completion.endCompaction(open)
    if (open.answer !== undefined && Transcript.isFailed(open.answer)) completion.endTurn(open)
    if (open.paused !== undefined && requested?.what === "resume")
      completion.add({ ...open.base(now), _tag: "RunResumed", ...reasonOf(requested) })
  }
  return { _tag: "Continue", append, continuing: new Continuing(runId, log, stored, now) }
}

const reasonOf = ({ reason }: { readonly reason?: string } = {}) => (reason === undefined ? {} : { reason })

/** Watchers may have seen deltas, which no log keeps: later events have higher numbers. */
const skipShown = (log: LogProgress, { last }: StoredLog): void => {
  for (const run of log.runs.values())
    if (run.streaming !== undefined) run.lastSeq = Math.max(run.lastSeq, last)
}

export class Continuing {
  /** Milliseconds of the run that count for its limit. */
  readonly countedMs: number
  readonly runId: string
  readonly log: LogProgress
  private readonly now: number
  private readonly requested: StoredLog["requested"]
  /** The turns of the runs when they were interrupted. */
  private readonly turns: ReadonlyMap<string, number>

  constructor(runId: string, log: LogProgress, { continued, requested }: StoredLog, now: number) {
    this.requested = requested
    this.runId = runId
    this.log = log
    this.now = now
    this.turns = new Map(Array.from(log.runs, ([id, { turn }]) => [id, turn]))
    const run = log.runs.get(runId)
    const from = continued?.at ?? run?.start.timestamp ?? now
    this.countedMs = (continued?.countedMs ?? 0) + log.counted(from, Math.max(from, run?.lastTime ?? from))
  }

  /** The state of the session, with the run that its agent continues. */
  restored(restored: Restored): Restored {
    const run = this.log.runs.get(this.runId)
    return run === undefined ? restored : this.withInterrupted(run, restored)
  }

  /** The run that a call of the turn started last. */
  inside(runId: string, toolCallId: string): RunProgress | undefined {
    // Turns that the run has taken since have calls of their own.
    const isBeside = this.log.runs.get(runId)?.background.has(toolCallId) === true
    return isBeside || this.isAtTurnOf(runId) ? this.log.inside(runId, toolCallId).at(-1) : undefined
  }

  /** Whether a run has not come further than the turn that it continues with. */
  private isAtTurnOf(runId: string): boolean {
    return this.log.runs.get(runId)?.turn === this.turns.get(runId)
  }

  /** The state of the part of the session that belongs to a call, with the run that its agent continues. */
  restoredInside(run: RunProgress, restored: Restored): Restored {
    const { end } = run
    if (end?.status === "suspended") return restored
    const state = this.withInterrupted(run, restored)
    const { interrupted } = state
    if (interrupted === undefined || (end?.status !== "failed" && end?.status !== "cancelled")) return state
    const failure = end.error?.message ?? "the run was cancelled"
    return { ...state, interrupted: { ...interrupted, failure } }
  }

  private withInterrupted(run: RunProgress, state: Restored): Restored {
    const { lostRun: _, queues, ...restored } = state
    const interrupted = this.interruptedOf(run, restored)
    const taken = new Set(interrupted.prompts.map(({ id }) => id))
    const left = (messages: ReadonlyArray<Message.Message>) => messages.filter(({ id }) => !taken.has(id))
    const background = restored.background?.map((call) => {
      const { start } = run.background.get(call.call.id) ?? run.calls.get(call.call.id) ?? {}
      return { ...call, ...(start?.turn === undefined ? {} : { turn: start.turn }) }
    })
    return {
      ...restored,
      ...(background === undefined ? {} : { background }),
      queues: { steering: left(queues.steering), followUp: left(queues.followUp) },
      interrupted
    }
  }

  private interruptedOf(run: RunProgress, restored: Omit<Restored, "queues">): Interrupted {
    const { answeredTurn, messages, report, start } = run
    const open = this.openOf(run, restored)
    const known = new Set(restored.messages.map(({ id }) => id))
    const isRoot = start.runId === this.runId
    // The runs inside are paused with it.
    const paused = isRoot && this.requested?.what === "pause" ? reasonOf(this.requested) : run.paused
    const durationMs = Math.max(0, this.now - start.timestamp)
    const ended = run.ended
    const answered = new Set(run.results.map(({ toolCallId }) => toolCallId))
    const unanswered = [...run.calls].filter(([id, { end }]) => end !== undefined && !answered.has(id)).length
    return {
      runId: start.runId,
      options: optionsOf(start.options, restored.handedOff !== undefined),
      prompts: start.prompts.filter(({ id }) => !known.has(id)),
      newMessages: [...messages],
      turns: open === undefined ? answeredTurn : answeredTurn - 1,
      ...(open === undefined ? {} : { open }),
      spent: run.spent,
      calls: ended,
      toolCalls: ended.length + (open === undefined ? 0 : unanswered),
      durationMs,
      countedMs: isRoot ? this.countedMs : Math.min(durationMs, this.countedMs),
      ...(paused === undefined ? {} : { paused }),
      report
    }
  }

  /** The turn that has its answer, and whose end the run has not come to; also one that is over, since what follows it is not done. */
  private openOf(
    run: RunProgress,
    { messages, open }: Omit<Restored, "queues">
  ): InterruptedTurn | undefined {
    const { runId } = run.start
    const at = messages.findLastIndex(({ role }) => role === "assistant")
    const message = messages[at]
    const isOwn = run.messages.some(({ id }) => id === message?.id) || run.start.resumes !== undefined
    const isHandedOff = run.handedOffIn > 0 && run.handedOffIn === run.answeredTurn
    const isOver = isHandedOff || messages.slice(at + 1).some(({ role }) => role !== "toolResult")
    if (message?.role !== "assistant" || !isOwn || isOver || Transcript.isFailed(message)) return undefined
    const ended = [...run.calls.values()].flatMap(({ end }) =>
      end === undefined ? [] : [{ toolCallId: end.toolCallId, outcome: end.outcome, output: end.result }]
    )
    const rest = { ended, begun: [], approvals: [], questions: [] }
    const turn: OpenTurn = { ...rest, ...open, runId, message, isSuspended: false }
    const inner = Message.toolCalls(message).flatMap(({ id }) =>
      this.log.inside(runId, id).length > 0 ? [id] : []
    )
    const isCurrent = run.answer?.id === message.id && run.turn === run.answeredTurn
    const isReviewed = !isCurrent || run.isDetected || !run.isTurnOpen
    return {
      turn,
      isReviewed,
      inner: new Set(inner),
      spent: run.isTurnOpen && isCurrent ? run.ofTurn : nothing
    }
  }
}

const nothing = { usage: Usage.zero }

/** The options of a run that count before those of its agent. After a hand-off the options are those of another agent. */
const optionsOf = (options: RunOptions | undefined, isHandedOff: boolean): Partial<RunOptions> => {
  const { agent: _, limits, modelOptions, ...others } = options ?? { model: "" }
  const bounds = limits === undefined ? {} : { limits }
  if (isHandedOff || options === undefined) return bounds
  // Without the members for vendors, which are in no event.
  const { hostedTools: __, ...ofModel } = modelOptions ?? {}
  return { ...others, ...bounds, ...(modelOptions === undefined ? {} : { modelOptions: ofModel }) }
}

// ───────────────────────── Taking
//
// Takes the runs of a session that have not ended: one continues, and the others wait for it.

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

interface Lost extends Pick<Found, "entries"> {
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
  const planned = plan({ runId: run.runId, stored, entries }, now)
  // A crash came before it had begun, and before its beginning was stored: its client has no answer.
  if (planned._tag === "Begin" && stored.request === undefined)
    return yield* Effect.as(SessionProblem.logging(logs.delete(run)), taken)
  if (run.parked !== undefined && planned._tag === "Begin") return taken
  const live = new LiveRun(run, stored.created, logs, log, stored)
  const task = Request.decode(stored.request)
  live.trace = task?.trace
  opened.push(live)
  yield* SessionProblem.logging(live.reopen)
  if (planned._tag === "Begin") {
    if (task !== undefined) return { ...taken, waiting: [...taken.waiting, [live, task] as const] }
    yield* live.finish({ status: "failed", error: cannotBegin(stored) })
    return { ...taken, over: [...taken.over, live] }
  }
  if (planned._tag === "Over") {
    yield* SessionProblem.logging(live.log.append(planned.append))
    yield* live.finish(
      planned.isCancelled === true
        ? { status: "cancelled" }
        : { status: "failed", error: Ending.processEnded }
    )
    return { ...taken, over: [...taken.over, live] }
  }
  const { append, continuing } = planned
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
const continued = (session: Session, continuing: Continuing): Session => ({
  ...as(session, continuing.restored(session.restored)),
  child: childOf(session, continuing, continuing.runId)
})

/** The agent inside of a call continues too, once: a hook may have the call run again from its start. */
const childOf = (session: Session, continuing: Continuing, runId: string): Session["child"] => {
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
