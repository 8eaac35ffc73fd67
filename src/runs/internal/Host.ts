/**
 * The runs and conversations of this process.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { Agent } from "../../Agent.ts"
import * as Stream from "effect/Stream"
import * as Problem from "../../api/Problem.ts"
import { makeRunId } from "../../internal/run.ts"
import type * as SessionStore from "../../sessions/SessionStore.ts"
import type { Service as Agents } from "../Agents.ts"
import { Conversation } from "./Conversation.ts"
import type { Places } from "../Gate.ts"
import { History } from "../History.ts"
import { Holders } from "../Holders.ts"
import { LiveRun } from "./LiveRun.ts"
import type { Pace } from "../Pace.ts"
import * as Resuming from "./Resuming.ts"
import type { RunKey, Service as Logs, StoredRun } from "../RunLogStore.ts"
import * as SessionProblem from "../SessionProblem.ts"
import * as Trace from "../Trace.ts"

export interface Parts {
  readonly agents: Agents
  readonly logs: Logs
  readonly sessions: SessionStore.Service
  readonly scope: Scope.Scope
  readonly idle: Duration.Input
  readonly pace: Pace
  readonly cwd: string | undefined
  /** Whether the process takes runs of others only when they are named. Else it looks for them itself. */
  readonly adopts: boolean
  /** The places of runs. Runs that are adopted begin without one. Default: there are enough. */
  readonly places: Places | undefined
}

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
    const onEnd = (run: LiveRun) => {
      // The host may have the run again.
      if (this.runs.get(run.runId) === run) this.runs.delete(run.runId)
    }
    const onSuspended = (agent: Agent, run: LiveRun) => Resuming.resumeAnswered(this, made, agent, run)
    const onId = (run: LiveRun) => this.has(run)
    const mayBegin = (runId: string) => !this.isDraining && this.hasPlace(runId)
    const isLive = (runId: string) => this.runs.has(runId)
    const leave = Effect.suspend(() => this.letGo(made))
    const onRested = () => this.forgetUnused(made)
    const called = { onId, onEnd, onSuspended, onRested }
    const made: Conversation = new Conversation(sessionId, {
      ...this.parts,
      mayBegin,
      isLive,
      leave,
      ...called
    })
    this.conversations.set(sessionId, made)
    return made
  }

  /** Notes that this process has a run. */
  has(run: LiveRun): void {
    this.runs.set(run.runId, run)
    this.arrivals.get(run.runId)?.latch.openUnsafe()
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

  /** Runs an effect while no other one opens, starts or closes in a session, to its end. */
  locked<A, E, R>(sessionId: string, use: (conversation: Conversation) => Effect.Effect<A, E, R>) {
    return this.using(
      () => this.conversation(sessionId),
      (conversation) =>
        conversation.lock.withPermit(
          Effect.uninterruptible(
            Effect.andThen(
              conversation.settled,
              Effect.suspend(() => use(conversation))
            )
          )
        )
    ).pipe(Effect.annotateLogs({ sessionId }))
  }

  /** Runs an effect that may wait for the lock of a conversation, which all that wait share. */
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
        this.forgetUnused(conversation)
      })
    return Effect.acquireUseRelease(used, use, left)
  }

  private forgetUnused(conversation: Conversation): void {
    const { sessionId } = conversation
    if (conversation.isUnused && this.conversations.get(sessionId) === conversation)
      this.conversations.delete(sessionId)
  }

  /** The run that a session has. */
  active(sessionId: string): LiveRun | undefined {
    return this.conversations.get(sessionId)?.current
  }

  /** Waits for the end of a run that has shown it. */
  settled(runId: string): Effect.Effect<void> {
    return Effect.suspend(() => this.runs.get(runId)?.ended ?? Effect.void)
  }

  /** A run that has not begun. */
  newRun(sessionId: string) {
    const { adopts, logs } = this.parts
    const conversation = this.conversation(sessionId)
    // The spans of a cluster are those of its messages.
    const around = adopts ? Effect.undefined : Trace.current
    return Effect.gen(function* () {
      const { log } = conversation
      const run = new LiveRun({ runId: makeRunId(), sessionId }, yield* Clock.currentTimeMillis, logs, log)
      run.trace = yield* around
      return run
    })
  }

  /**
   * Continues a run that has not ended, or begins it if it is queued, and succeeds when it is over, when this process has let go of it, or
   * when it rests: a person is to act first. A run that this process has is only awaited.
   */
  adopt(run: RunKey) {
    return Effect.gen({ self: this }, function* () {
      yield* this.locked(run.sessionId, (conversation) => this.take(conversation, run))
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

  private letGo(conversation: Conversation): Effect.Effect<void> {
    return Effect.suspend(() => {
      conversation.release()
      return this.using(
        () => conversation,
        ({ leave, lock }) => lock.withPermit(Effect.uninterruptible(leave))
      )
    })
  }

  /** Waits until no tool call of the run of a session is at work. */
  called(sessionId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const agent = this.active(sessionId) && this.conversations.get(sessionId)?.agent
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
