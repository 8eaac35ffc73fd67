/**
 * The runs and conversations of this process.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import * as Problem from "../../api/Problem.ts"
import type { LiveRun } from "./LiveRun.ts"
import { Conversation, type Parts } from "./Conversation.ts"
import { History, linesOf, type Stores } from "../History.ts"
import { Holders } from "../Watchers.ts"
import { type RunKey, type StoredRun, isStartable, type RunLogError } from "../RunLogStore.ts"
import * as SessionProblem from "../SessionProblem.ts"
import * as Clock from "effect/Clock"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Ending from "./Ending.ts"
import * as LogLine from "./LogLine.ts"
import { RunLog } from "./RunLog.ts"

/** The time that a cancelled run gets to come to its end, and that sessions get to be closed. */
const patience = "10 seconds"

export class Host {
  readonly parts: Parts
  readonly history: History
  /** The runs that have not ended, by their ids. */
  readonly runs = new Map<string, LiveRun>()
  /** Those that are open, or in use. */
  readonly conversations = new Map<string, Conversation>()
  readonly holders = new Holders()
  isDraining = false
  /** The runs whose arrival in this process watchers wait for. */
  readonly arrivals = new Map<string, { readonly latch: Latch.Latch; watchers: number }>()

  constructor(parts: Parts) {
    this.parts = parts
    this.history = new History(parts, (runId) => this.runs.get(runId)?.known)
  }

  /** Fails while the server is about to end. */
  readonly ready = Effect.suspend(() => (this.isDraining ? new Problem.Draining({}) : Effect.void))

  /** The conversation of a session, open or not. */
  conversation(sessionId: string): Conversation {
    const known = this.conversations.get(sessionId)
    if (known !== undefined) return known
    const made = new Conversation(sessionId, this)
    this.conversations.set(sessionId, made)
    return made
  }

  /** Whether this process has a run. */
  readonly has = (runId: string): boolean => this.runs.has(runId)

  /** Notes that this process has a run. */
  readonly add = (run: LiveRun): void => {
    this.runs.set(run.runId, run)
    this.arrivals.get(run.runId)?.latch.openUnsafe()
  }

  /** Notes that the log of a run is whole, or that this process has let go of it. */
  remove(run: LiveRun): void {
    // The host may have the run again.
    if (this.runs.get(run.runId) === run) this.runs.delete(run.runId)
  }

  /** Waits until this process takes a run that it does not have. */
  arrival(runId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.runs.has(runId)) return Effect.void
      const arrival = this.arrivals.get(runId) ?? { latch: Latch.makeUnsafe(false), watchers: 0 }
      this.arrivals.set(runId, arrival)
      arrival.watchers++
      const left = Effect.sync(() => {
        if (--arrival.watchers === 0) this.arrivals.delete(runId)
      })
      return Effect.ensuring(arrival.latch.await, left)
    })
  }

  /** Takes a place for a run, if there is one. */
  hasPlace(runId: string): boolean {
    return this.parts.places?.reserve(runId) ?? true
  }

  /** Runs a command of a session in its turn, to its end. A run that has shown its end has ended before. */
  ask<A, E, R>(sessionId: string, command: (conversation: Conversation) => Effect.Effect<A, E, R>) {
    return this.using(
      () => this.conversation(sessionId),
      (conversation) =>
        conversation.ask(
          Effect.andThen(
            conversation.settled,
            Effect.suspend(() => command(conversation))
          )
        )
    ).pipe(Effect.annotateLogs({ sessionId }))
  }

  /** Runs an effect that may wait for its turn in a conversation, which all that wait share. */
  private using<A, E, R>(
    find: () => Conversation,
    use: (conversation: Conversation) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> {
    const used = Effect.sync(() => {
      const conversation = find()
      conversation.users++
      return conversation
    })
    const left = (conversation: Conversation) =>
      Effect.sync(() => {
        conversation.users--
        this.forget(conversation)
      })
    return Effect.acquireUseRelease(used, use, left)
  }

  /** Forgets a conversation with which nothing would be lost. */
  forget(conversation: Conversation): void {
    const { sessionId } = conversation
    if (conversation.isUnused && this.conversations.get(sessionId) === conversation)
      this.conversations.delete(sessionId)
  }

  /** A session as it stands in this process. */
  state(sessionId: string) {
    const { current, first, state } = this.conversations.get(sessionId) ?? {}
    const idle = state?._tag === "Idle" && first === undefined ? state.left.await : undefined
    return { current, first, idle }
  }

  /** The run that a session has. */
  active(sessionId: string): LiveRun | undefined {
    return this.conversations.get(sessionId)?.current
  }

  /** Waits for the end of a run that has shown it. */
  settled(runId: string): Effect.Effect<void> {
    return Effect.suspend(() => this.runs.get(runId)?.ended ?? Effect.void)
  }

  /**
   * Continues a run that has not ended, or begins it if it is queued, and succeeds when it is over, when this process has let go of it, or
   * when it rests: a person is to act first. A run that this process has is only awaited.
   */
  adopt(run: RunKey) {
    return Effect.gen({ self: this }, function* () {
      yield* this.ask(run.sessionId, (conversation) => this.take(conversation, run))
      const live = this.runs.get(run.runId)
      if (live === undefined) {
        const { ended, isResting, parked } = yield* this.stored(run.runId)
        if (isResting) return "resting"
        if (parked !== undefined)
          return yield* new Problem.RunNotReady({
            runId: run.runId,
            detail: `The run waits for resume: ${parked}`
          })
        return ended === undefined ? "left" : "over"
      }
      yield* Deferred.await(live.done)
      if (live.isResting) return "resting"
      return live.isLeft ? "left" : "over"
    })
  }

  private take(conversation: Conversation, { runId }: RunKey) {
    return Effect.gen({ self: this }, function* () {
      if (this.isDraining) return
      if (!this.runs.has(runId)) {
        if ((yield* this.stored(runId)).ended !== undefined) return
        // The session was opened before the run was there.
        if (conversation.first === undefined) yield* conversation.close
        yield* conversation.open
      }
      yield* conversation.beginAdopted
    })
  }

  /**
   * Lets go of a session at once, without an end of its runs: its writes are refused from now on, then its run is interrupted, and its
   * watchers end. Succeeds when another process may open it.
   */
  leave(sessionId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const conversation = this.conversations.get(sessionId)
      return conversation === undefined ? Effect.void : this.letGo(conversation)
    })
  }

  /** Lets go of a session and its runs. */
  letGo(conversation: Conversation): Effect.Effect<void> {
    return Effect.suspend(() => {
      conversation.release()
      return this.using(
        () => conversation,
        (conversation) => conversation.ask(conversation.leave)
      )
    })
  }

  /** Waits until no tool call of the run of a session is at work. */
  called(sessionId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const conversation = this.conversations.get(sessionId)
      const agent = conversation?.current && conversation.agent
      if (agent === undefined || agent.state.getUnsafe().pendingToolCalls.size === 0) return Effect.void
      const quiet = Stream.filter(agent.state.changes, ({ pendingToolCalls }) => pendingToolCalls.size === 0)
      return Effect.asVoid(Stream.runHead(quiet))
    })
  }

  /** A run as the store has it. */
  stored(runId: string): Effect.Effect<StoredRun, Problem.RunNotFound | Problem.StorageUnavailable> {
    return Effect.flatMap(SessionProblem.logging(this.parts.logs.find(runId)), (run) =>
      run === undefined ? new Problem.RunNotFound({ runId }) : Effect.succeed(run)
    )
  }

  /**
   * Takes no more runs, and lets go of those that have not ended, which continue elsewhere or later: of those that wait at once, of those
   * that work after the time. Runs that were cancelled come to their end.
   */
  drain(grace: Duration.Input): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      this.isDraining = true
      const leave = (sessionId: string) => this.leave(sessionId)
      const all = { concurrency: "unbounded", discard: true } as const
      const begun = [...this.runs.values()].filter(({ isUnbegun }) => !isUnbegun)
      const resting = (runs: ReadonlyArray<LiveRun>) =>
        Effect.forEach(
          runs,
          (run) =>
            Effect.andThen(
              run.rested,
              Effect.suspend(() => leave(run.sessionId))
            ),
          all
        )
      yield* Effect.timeoutOption(resting(begun), grace)
      yield* Effect.timeoutOption(resting(begun.filter(({ isCancelled }) => isCancelled)), patience)
      yield* Effect.timeoutOption(Effect.forEach([...this.conversations.keys()], leave, all), patience)
    })
  }
}

// ───────────────────────── Runs that no process has
//
// Those of a process that has ended, or let go of them.

/** The time between two looks for runs: other processes of the store may end, and this one may have lost a session. */
const between = "5 seconds"

/** Takes the runs that no process has, now and from time to time until the scope closes. */
export const attend = Effect.fnUntraced(function* (
  host: Host
): Effect.fn.Return<void, RunLogError, Scope.Scope> {
  const failed = new Set<string>()
  yield* takeLost(host, failed)
  const again = Effect.ignore(takeLost(host, failed), { log: "Debug" })
  yield* Effect.forkScoped(Effect.repeat(Effect.delay(again, between), Schedule.forever))
})

/**
 * Continues the runs that no process has, and begins those that were queued. Those of a session that another process has open have one.
 * `failed`: the sessions that could not be opened, of which the log has a line.
 */
const takeLost = Effect.fnUntraced(function* (host: Host, failed: Set<string>) {
  const { logs } = host.parts
  const runs = (yield* logs.unended).filter((run) => isStartable(run) && !host.runs.has(run.runId))
  const taken = Effect.fnUntraced(function* (sessionId: string) {
    if (host.isDraining) return
    const open = yield* Effect.result(host.ask(sessionId, ({ open }) => open))
    if (open._tag === "Success") return void failed.delete(sessionId)
    if (open.failure._tag === "SessionLocked" || open.failure._tag === "RunNotReady") return
    if (!failed.has(sessionId))
      yield* Effect.logError(`The runs of the session cannot continue: ${open.failure.message}`)
    failed.add(sessionId)
    if (open.failure._tag !== "SessionNotFound") return
    // Another process may have ended them.
    for (const run of runs)
      if (run.sessionId === sessionId)
        yield* Effect.ignore(Effect.scoped(endLost(host.parts, run)), { log: "Warn" })
  })
  const named = (sessionId: string) => Effect.annotateLogs(taken(sessionId), { sessionId })
  yield* Effect.forEach(new Set(runs.map(({ sessionId }) => sessionId)), named, {
    concurrency: 8,
    discard: true
  })
})

const endLost = Effect.fnUntraced(function* (stores: Stores, run: StoredRun) {
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
