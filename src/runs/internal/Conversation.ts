/**
 * The conversation of a session in this process: its agent while it is open, the run it has, and the runs that wait.
 */
import * as Arr from "effect/Array"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type * as Agent from "../../Agent.ts"
import type { AgentEvent } from "../../AgentEvent.ts"
import * as Problem from "../../api/Problem.ts"
import * as FailureReason from "../../internal/failureReason.ts"
import { Served } from "../../internal/openAgent.ts"
import { type Record, type Session, SessionError, StorageFailed } from "../../Session.ts"
import type * as SessionStore from "../../sessions/SessionStore.ts"
import type { Service as Agents } from "../Agents.ts"
import type { Places } from "../Gate.ts"
import * as Ending from "./Ending.ts"
import { Hold, type Place } from "./Hold.ts"
import { IdempotencyKeys } from "../IdempotencyKeys.ts"
import type { LiveRun, Task } from "./LiveRun.ts"
import * as Narrowing from "./Narrowing.ts"
import type { RunLogError, Service as Logs } from "../RunLogStore.ts"
import * as Requesting from "./Requesting.ts"
import * as SessionProblem from "../SessionProblem.ts"
import * as Taking from "./Taking.ts"
import * as Trace from "../Trace.ts"
import { WaitingRuns } from "./WaitingRuns.ts"

/** The services and options of a conversation. */
export interface ConversationHost {
  readonly agents: Agents
  readonly logs: Logs
  readonly sessions: SessionStore.Service
  readonly scope: Scope.Scope
  /** The time without a run after which a conversation lets go of its session. */
  readonly idle: Duration.Input
  /** The places of runs. Default: there are enough. */
  readonly places: Places | undefined
  /** Whether a run that waits may begin when the one before it has ended. */
  readonly mayBegin: (runId: string) => boolean
  /** Lets go of the session. */
  readonly leave: Effect.Effect<void>
  /** Whether the process has a run. */
  readonly isLive: (runId: string) => boolean
  /** Called when a run has its first event. */
  readonly onId: (run: LiveRun) => void
  /** Called when the log of a run is whole, or this process has let go of it. */
  readonly onEnd: (run: LiveRun) => void
  /** Called when the session was closed after a while without a run. */
  readonly onRested: () => void
  /** Run after a run that ended suspended, with the lock, unless another run has begun. */
  readonly onSuspended: (agent: Agent.Agent, run: LiveRun) => Effect.Effect<void>
}

interface Opened {
  readonly session: SessionStore.OpenSession
  readonly agent: Agent.Agent
  /** The scope of the agent, inside of that of the session. */
  readonly ofAgent: Scope.Closeable
  readonly scope: Scope.Closeable
  /** Completes when the session closes. */
  readonly closed: Deferred.Deferred<void>
}

/** The time for which a process keeps a run that waits for a person. */
const patience = "1 second"

/** The time for which a session that was just made stays open. */
const moment = "2 seconds"

/** Records of an agent that runs by itself. */
const noRun = ({ record }: Session, records: ReadonlyArray<Record>) =>
  Arr.isReadonlyArrayNonEmpty(records) ? record(records) : Effect.void

export class Conversation {
  readonly sessionId: string
  /** Held by who opens, starts or closes. */
  readonly lock = Semaphore.makeUnsafe(1)
  /** The run that has not ended. */
  current: LiveRun | undefined
  /** Counts the effects that wait for the lock or have it. */
  users = 0
  private readonly waiting = new WaitingRuns()
  private hold: Hold | undefined
  private place: Place | undefined
  private opened: Opened | undefined
  private idempotency: IdempotencyKeys | undefined
  /** Counts the runs, so that only the last of several timers closes. */
  private count = 0
  private readonly host: ConversationHost

  constructor(sessionId: string, host: ConversationHost) {
    this.sessionId = sessionId
    this.host = host
  }

  /** Waits for the end of a run that has shown it, so that the session takes the next one. */
  readonly settled: Effect.Effect<void> = Effect.suspend(() => this.current?.ended ?? Effect.void)

  /** Whether the session takes no more of its run. */
  private get isSpent(): boolean {
    return this.hold?.refusal !== undefined
  }

  /** Fails while the store refuses what the session is to keep. */
  readonly kept: Effect.Effect<void, Problem.StorageUnavailable> = Effect.suspend(() => {
    const { current } = this
    if (current?.isOwed !== true)
      return this.isSpent && current !== undefined ? Requesting.held(current) : Effect.void
    return Effect.andThen(SessionProblem.logging(current.settle), this.over(current))
  })

  /** Whether nothing of it would be lost with it. */
  get isUnused(): boolean {
    return this.users === 0 && this.opened === undefined && this.first === undefined
  }

  /** The agent, while the session is open. */
  get agent(): Agent.Agent | undefined {
    return this.opened?.agent
  }

  /** Waits until the session is not open. */
  readonly closed: Effect.Effect<void> = Effect.suspend(() =>
    this.opened === undefined ? Effect.void : Deferred.await(this.opened.closed)
  )

  /** The session, while it is open. */
  get session(): SessionStore.OpenSession | undefined {
    return this.opened?.session
  }

  /** Opens the session and makes its agent, unless they are. Fails with `RunNotReady` while a run of it is parked. Needs the lock. */
  readonly open: Effect.Effect<Agent.Agent, Taking.CannotOpen> = Effect.gen({ self: this }, function* () {
    yield* this.kept
    if (this.opened !== undefined && !this.isSpent) return this.opened.agent
    yield* this.close
    const scope = yield* Scope.fork(this.host.scope)
    const opened = Scope.provide(this.host.sessions.open(this.sessionId), scope)
    const { agent } = yield* SessionProblem.opening(opened).pipe(
      Effect.map((session) => this.held(session)),
      Effect.flatMap((session) =>
        Effect.flatMap(Taking.take(this.host, session, this.log, this.host.isLive), (taken) =>
          this.takeOver(session, scope, taken)
        )
      ),
      closedOnFailure(scope)
    )
    yield* this.restLater(this.host.idle)
    const refusal = this.current === undefined ? this.hold?.refusal : undefined
    // The session has refused what the agent wrote about the run before: those that wait begin later.
    if (refusal !== undefined) return yield* Effect.andThen(this.leave, SessionProblem.unavailable(refusal))
    return agent
  })

  /**
   * Opens a session that was just made, and keeps it for a moment: a prompt follows as a rule. Where its agent cannot be made, that prompt
   * fails. Needs the lock.
   */
  openNew<E>(made: Effect.Effect<SessionStore.OpenSession, E, Scope.Scope>): Effect.Effect<void, E> {
    return Effect.gen({ self: this }, function* () {
      const scope = yield* Scope.fork(this.host.scope)
      const session = this.held(yield* closedOnFailure(scope)(Scope.provide(made, scope)))
      const taken = { session, waiting: [], over: [] }
      yield* Effect.ignore(closedOnFailure(scope)(this.takeOver(session, scope, taken)))
      yield* this.restLater(moment)
    })
  }

  /** The session while this process holds it. */
  private held(session: SessionStore.OpenSession): SessionStore.OpenSession {
    const hold = new Hold(
      Effect.suspend(() => this.lose),
      (error) => this.current?.refuse(error)
    )
    const held = hold.of(session, {
      isInSession: () => this.host.logs.inSessions === true && this.current?.isRecorded === true,
      keep: (records, events) => this.current?.keep(records, events) ?? noRun(held, records),
      show: (deltas) => this.current?.show(deltas) ?? true,
      flush: Effect.suspend(() => this.current?.flush ?? Effect.void),
      note: (records) => this.current?.note(records)
    })
    this.hold = hold
    this.place = hold.placeOf(session)
    return held
  }

  /** The session, for the logs of its runs. */
  readonly log: Place = {
    record: (records) => Effect.suspend(() => this.place?.record(records) ?? this.notOpen),
    keep: (lines) => Effect.suspend(() => this.place?.keep(lines) ?? this.notOpen),
    write: (lines) => Effect.suspend(() => this.place?.write(lines) ?? this.notOpen)
  }

  private readonly notOpen = Effect.suspend(
    () =>
      new SessionError({
        sessionId: this.sessionId,
        reason: new StorageFailed({ operation: "write", detail: "the session is not open" })
      })
  )

  /** Makes the agent of a session, and continues the runs of the session that have not ended. */
  private takeOver(session: SessionStore.OpenSession, scope: Scope.Closeable, taken: Taking.Taken) {
    return Effect.gen({ self: this }, function* () {
      const made = yield* Effect.onError(this.make(session, scope, taken.session), () =>
        Taking.giveBack(taken)
      )
      for (const run of taken.over) yield* this.ended(run)
      this.waiting.add(...taken.waiting)
      for (const [run] of taken.waiting) this.host.onId(run)
      if (taken.current !== undefined) {
        this.host.onId(taken.current)
        taken.current.isCounted = true
        taken.current.begun.openUnsafe()
        const { runId } = taken.current
        yield* Effect.annotateLogs(Effect.logInfo("The run continues in this process"), { runId })
        yield* this.resume(taken.current, made.agent)
      }
      yield* this.beginWaiting
      return made
    })
  }

  /** Begins the oldest run that waits, if there is no other one, and a place for it. Needs the lock. */
  readonly beginWaiting: Effect.Effect<void> = Effect.suspend(() => this.nextBegun() ?? Effect.void)

  /** Begins the oldest run that waits, if there is no other one. Needs the lock. */
  readonly beginAdopted: Effect.Effect<void> = Effect.suspend(() => this.nextBegun(true) ?? Effect.void)

  /** Takes the oldest run that waits as the current one, in one step. */
  private nextBegun(isAdopted = false): Effect.Effect<void> | undefined {
    if (this.opened === undefined || this.isSpent || this.current !== undefined) return undefined
    const { first } = this.waiting
    if (first === undefined || !(isAdopted || this.host.mayBegin(first.runId))) return undefined
    const next = this.waiting.takeFirst()
    if (next === undefined) return undefined
    this.current = next[0]
    return this.beginNext(this.opened.agent, ...next)
  }

  /** The run that has not ended, or the first one that waits; `undefined` if there is none. */
  get first(): LiveRun | undefined {
    return this.current ?? this.waiting.first
  }

  /** Gives up the hold of this process, at once. */
  release(): void {
    if (this.hold !== undefined) this.hold.isOver = true
    this.current?.leave()
    if (this.current !== undefined) this.host.places?.leave(this.current.runId)
    this.waiting.leave()
  }

  /** Lets go of the session and its runs. Needs the lock. */
  readonly leave: Effect.Effect<void> = Effect.suspend(() => {
    this.release()
    const { current } = this
    this.current = undefined
    if (current !== undefined) this.host.onEnd(current)
    const left = Effect.forEach(
      this.waiting.take(() => true),
      (run) =>
        Effect.andThen(
          run.letGo,
          Effect.sync(() => this.host.onEnd(run))
        ),
      { discard: true }
    )
    return Effect.andThen(left, this.close)
  })

  /** Lets go of the session in a fiber of its own: the store refuses a write. */
  private readonly lose: Effect.Effect<void> = Effect.suspend(() => {
    this.release()
    return this.forked(
      Effect.andThen(Effect.logWarning("This process no longer has the session"), this.host.leave)
    )
  })

  /** Makes the agent of a session where the session stands. `state`: the session as the agent continues it. */
  private make(session: SessionStore.OpenSession, scope: Scope.Closeable, state: Session = session) {
    return Effect.gen({ self: this }, function* () {
      const { model } = session.restored.options
      const given = { sessionId: this.sessionId, session: state, ...(model === undefined ? {} : { model }) }
      const ofAgent = yield* Scope.fork(scope)
      const agent = yield* Effect.mapError(
        Scope.provide(Effect.provideService(this.host.agents.make(given), Served, true), ofAgent),
        refused
      )
      this.opened = { session, agent, ofAgent, scope, closed: this.opened?.closed ?? Deferred.makeUnsafe() }
      return this.opened
    })
  }

  /** Continues the conversation before a message, and begins a run there. Needs the conditions of `begin`. */
  private before(messageId: string, begin: (agent: Agent.Agent) => Effect.Effect<void>) {
    return Effect.suspend(() =>
      this.opened === undefined
        ? Effect.void
        : Effect.flatMap(this.move(this.opened, this.opened.session.rewindBefore(messageId)), begin)
    )
  }

  /** Moves the session to another entry, where another agent continues. */
  private move({ ofAgent, scope, session }: Opened, rewound: Effect.Effect<unknown, SessionError>) {
    return Effect.gen({ self: this }, function* () {
      yield* Scope.close(ofAgent, Exit.void)
      yield* Effect.mapError(rewound, SessionProblem.unavailable)
      return (yield* this.make(session, scope)).agent
    }).pipe(Effect.onError(() => this.close))
  }

  /** The idempotency keys. Needs the lock. */
  readonly keys = Effect.gen({ self: this }, function* () {
    const { logs } = this.host
    if (this.idempotency !== undefined) return this.idempotency
    const lines = yield* SessionProblem.logging(logs.keys(this.sessionId))
    return (this.idempotency ??= new IdempotencyKeys(this.sessionId, logs, lines))
  })

  /** Begins a run. Needs the lock, an open session, and that there is no run. Succeeds when the run has its first event. */
  private begin(run: LiveRun, agent: Agent.Agent, { options, prompt }: Task) {
    return Effect.suspend(() => {
      const own = agent.state.getUnsafe().options
      const { runId } = run
      return this.follow(run, agent.stream(prompt, { ...Narrowing.of(own, options), runId }))
    })
  }

  /** Begins the run that continues a suspended one, under the conditions of `begin`. */
  resume(run: LiveRun, agent: Agent.Agent) {
    return this.follow(run, agent.continueStream)
  }

  private follow(run: LiveRun, events: Stream.Stream<AgentEvent, unknown>) {
    this.current = run
    this.count++
    run.onWaiting = this.leavingPlace(run)
    const onRefused = (error: RunLogError) => this.refused(run, error)
    const task = Effect.onExit(run.follow(events, this.host.onId, onRefused), (exit) =>
      Effect.andThen(run.finish(Ending.ofExit(exit)), this.ended(run))
    )
    const traced = Trace.joined(run.trace, Effect.exit(task))
    const names = { runId: run.runId }
    const forked = Effect.andThen(this.forked(traced, names), this.forked(this.resting(run), names))
    return Effect.andThen(forked, run.begun.await)
  }

  /**
   * Gives the place of a run that waits for a person to another one. From then on the run waits for a place before it works: until its
   * first wait, no subscriber slows its deltas down.
   */
  private leavingPlace(run: LiveRun): Effect.Effect<void> {
    const { places } = this.host
    if (places === undefined) return Effect.void
    const { state } = run.log
    const listen = ({ _tag }: AgentEvent) => {
      if (_tag === "MessageDelta" || _tag === "PartialValue") return Effect.void
      const isAtWork = !state.isWaiting && !state.isOver
      return isAtWork ? places.enter(run.runId) : Effect.sync(() => places.leave(run.runId))
    }
    let isHeard = false
    return Effect.suspend(() => {
      places.leave(run.runId)
      if (isHeard || this.agent === undefined) return Effect.void
      isHeard = true
      return run.during(this.agent.subscribe(listen, { name: "places", timeout: Infinity }))
    })
  }

  /** Lets go of a run that has waited for a person for a while, and of its session: the answer takes both up again. */
  private resting(run: LiveRun): Effect.Effect<void> {
    const rest = Effect.suspend(() =>
      this.current === run && run.canRest && this.waiting.first === undefined
        ? Effect.andThen(run.rest, this.leave)
        : Effect.void
    )
    const rested = this.lock.withPermit(Effect.uninterruptible(rest))
    return run.still.await.pipe(
      Effect.andThen(Effect.sync(() => run.still.closeUnsafe())),
      Effect.andThen(Effect.sleep(patience)),
      Effect.andThen(Effect.ignore(rested, { log: "Debug" })),
      Effect.forever,
      Effect.raceFirst(Deferred.await(run.done)),
      Effect.andThen(Effect.sync(this.host.onRested))
    )
  }

  /** Runs an effect in a fiber of its own, whose lines in the log name the session. */
  private forked<A>(effect: Effect.Effect<A>, names: { readonly runId?: string } = {}): Effect.Effect<void> {
    const named = Effect.annotateLogs(effect, { sessionId: this.sessionId, ...names })
    return Effect.asVoid(Effect.forkIn(named, this.host.scope))
  }

  /** The store has refused a write of the log of a run: the run fails, or continues where another writer has it. */
  private refused(run: LiveRun, error: RunLogError): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (error.reason !== "storage") return this.lose
      const refusal = Ending.refused(this.sessionId, error)
      if (this.hold !== undefined) this.hold.refusal ??= refusal
      run.refuse(refusal)
      return Effect.void
    })
  }

  /** A run has shown its end. One whose end the store has refused keeps its place until the store takes it. */
  private ended(run: LiveRun): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!run.isOwed) return this.over(run)
      const settled = Effect.andThen(run.settled, this.over(run))
      return Effect.andThen(run.closeLog, this.forked(settled, { runId: run.runId }))
    })
  }

  private over(run: LiveRun): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.host.onEnd(run)
      this.host.places?.leave(run.runId)
      if (Deferred.isDoneUnsafe(run.done)) return Effect.void
      if (this.current === run) this.current = undefined
      const next = this.nextBegun()
      const rest = Effect.andThen(this.restLater(this.host.idle), this.afterSuspended(run))
      return Effect.andThen(run.close, this.isSpent ? this.renewed : (next ?? rest))
    })
  }

  /** Opens the session again for the runs that wait, from what the store has: the session has taken nothing of the end of its last run. */
  private readonly renewed: Effect.Effect<void> = Effect.suspend(() => {
    const opened = Effect.suspend(() => (this.first === undefined ? this.close : Effect.asVoid(this.open)))
    const renewed = Effect.catch(opened, () => this.lose)
    return this.forked(this.lock.withPermit(Effect.uninterruptible(renewed)))
  })

  private afterSuspended(run: LiveRun): Effect.Effect<void> {
    if (!run.log.state.isSuspended) return Effect.void
    const { count } = this
    const after = Effect.suspend(() =>
      this.count === count && this.opened !== undefined
        ? this.host.onSuspended(this.opened.agent, run)
        : Effect.void
    )
    return this.forked(this.lock.withPermit(Effect.uninterruptible(after)))
  }

  /** Begins a run that waited. One that is refused fails, since its client has its id. */
  private beginNext(agent: Agent.Agent, run: LiveRun, task: Task): Effect.Effect<void> {
    const ended = (error: FailureReason.EventError) =>
      run.log.isClosed
        ? Effect.void
        : Effect.andThen(run.finish({ status: "failed", error }), this.ended(run))
    const failed = ({ message }: { readonly message: string }) => ended(FailureReason.defect(message))
    const { replaces } = task
    const begin = (agent: Agent.Agent) => this.begin(run, agent, task)
    const isThere = agent.state.getUnsafe().messages.some(({ id }) => id === replaces)
    const begun = Effect.catch(
      replaces !== undefined && isThere ? this.before(replaces, begin) : begin(agent),
      failed
    )
    const lost = Effect.suspend(() => Effect.andThen(this.lose, run.finish({ status: "cancelled" })))
    const counted = Effect.matchEffect(run.count, {
      onFailure: (error) =>
        error.reason === "storage" ? ended(Ending.refused(this.sessionId, error)) : lost,
      onSuccess: (mayBegin) => (mayBegin ? begun : lost)
    })
    return this.forked(counted, { runId: run.runId })
  }

  /** Keeps a run until the one before it has ended. */
  queue(run: LiveRun, task: Task): void {
    this.waiting.add([run, task])
  }

  /** Ends runs that wait, without beginning them. Returns whether there was one. */
  cancelQueued(isMeant: (run: LiveRun) => boolean): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const meant = this.waiting.take(isMeant)
      const end = (run: LiveRun) => Effect.andThen(run.finish({ status: "cancelled" }), this.ended(run))
      return Effect.as(Effect.forEach(meant, end, { discard: true }), meant.length > 0)
    })
  }

  /** Lets go of the session after a while without a run. */
  private restLater(idle: Duration.Input): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { count, opened } = this
      if (opened === undefined) return Effect.void
      const isDue = () => this.count === count && this.first === undefined
      const rest = Effect.suspend(() => (isDue() ? this.close : Effect.void))
      const later = Effect.raceFirst(Effect.sleep(idle), Deferred.await(opened.closed))
      const rested = Effect.andThen(this.lock.withPermit(rest), Effect.sync(this.host.onRested))
      return this.forked(Effect.andThen(later, rested))
    })
  }

  /** Closes the agent and the session. Needs the lock, and that there is no run. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    const { opened } = this
    this.opened = undefined
    this.idempotency = undefined
    if (opened === undefined) return Effect.void
    Deferred.doneUnsafe(opened.closed, Effect.void)
    return Scope.close(opened.scope, Exit.void)
  })
}

const closedOnFailure =
  (scope: Scope.Closeable) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.onExit(effect, (exit) => (Exit.isFailure(exit) ? Scope.close(scope, exit) : Effect.void))

const refused = ({ message }: { readonly message: string }) =>
  new Problem.MalformedRequest({ detail: message })
