/**
 * A session in this process: its agent while it is open, the run it has, and the runs that wait. It alone owns that state.
 *
 * The commands of a session come one at a time, in the order of their callers (`ask`): a lock that serves its callers in order does what a
 * mailbox does, and leaves a command in the fiber of its caller, with the logger and the spans of that. A command that has begun is done,
 * whether its caller waits or not, and never waits for the work of a run. `Commands` has the table of states and commands. Beside them come
 * the requests to a run at work, which its agent takes, the events of the run (`holding`), its end (`ended`), for which the next command
 * waits, and the loss of the session (`lose`).
 */
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
import { type Session, SessionError, StorageFailed } from "../../Session.ts"
import type * as SessionStore from "../../sessions/SessionStore.ts"
import type { Service as Agents } from "../Agents.ts"
import { leaving, type Places } from "../Gate.ts"
import * as Ending from "./Ending.ts"
import { Hold, type Place } from "./Hold.ts"
import { IdempotencyKeys } from "../IdempotencyKeys.ts"
import { LiveRun, type Task } from "./LiveRun.ts"
import * as Request from "./Request.ts"
import type { RunLogError, Service as Logs } from "../RunLogStore.ts"
import { makeRunId } from "../../internal/run.ts"
import type * as Payload from "../../api/Payload.ts"
import type { Pace } from "../Watchers.ts"
import * as Clock from "effect/Clock"
import * as Latch from "effect/Latch"
import * as SessionProblem from "../SessionProblem.ts"
import * as Continuation from "./Continuation.ts"
import type { Waiting } from "./Continuation.ts"
import * as Trace from "../Trace.ts"

/** The services and options of the sessions of a process. */
export interface Parts {
  readonly agents: Agents
  readonly logs: Logs
  readonly sessions: SessionStore.Service
  readonly scope: Scope.Scope
  /** The time without a run after which a conversation lets go of its session. */
  readonly idle: Duration.Input
  readonly pace: Pace
  readonly cwd: string | undefined
  /** Whether the process takes runs of others only when they are named. Else it looks for them itself. */
  readonly adopts: boolean
  /** The places of runs. Runs that are adopted begin without one. Default: there are enough. */
  readonly places: Places | undefined
}

/** The process of a conversation. */
interface Process {
  readonly parts: Parts
  readonly isDraining: boolean
  /** Whether this process has a run. */
  readonly has: (runId: string) => boolean
  /** Notes that this process has a run. */
  readonly add: (run: LiveRun) => void
  /** Notes that the log of a run is whole, or that this process has let go of it. */
  readonly remove: (run: LiveRun) => void
  /** Takes a place for a run, if there is one. */
  readonly hasPlace: (runId: string) => boolean
  /** Lets go of the session and its runs. */
  readonly letGo: (conversation: Conversation) => Effect.Effect<void>
  /** Forgets the conversation if nothing would be lost with it. */
  readonly forget: (conversation: Conversation) => void
}

/** A session that is open, and its agent. */
interface Opened {
  readonly session: SessionStore.OpenSession
  readonly agent: Agent.Agent
  /** The scope of the agent, inside of that of the session. */
  readonly ofAgent: Scope.Closeable
  readonly scope: Scope.Closeable
}

/** Where a session stands in this process: not open, open without a run that has begun, or open with one that has not ended. */
type Standing =
  | { readonly _tag: "Closed" }
  | { readonly _tag: "Idle"; readonly opened: Opened }
  | { readonly _tag: "Running"; readonly opened: Opened; readonly run: LiveRun }

/** The state of a session in this process. */
type State = Standing & {
  /** The runs that have not begun, the oldest first. An open session has all of its runs. */
  readonly waiting: ReadonlyArray<Waiting>
  /** Opened when this is the state no longer. */
  readonly left: Latch.Latch
}

/** The time for which a process keeps a run that waits for a person. */
const patience = "1 second"

/** The time for which a session that was just made stays open. */
const moment = "2 seconds"

export class Conversation {
  readonly sessionId: string
  state: State = { _tag: "Closed", waiting: [], left: Latch.makeUnsafe() }
  /** Counts the commands that wait for their turn or have it. */
  users = 0
  private readonly turn = Semaphore.makeUnsafe(1)
  /** The run that has begun last. */
  private last: LiveRun | undefined
  private hold: Hold | undefined
  private idempotency: IdempotencyKeys | undefined
  private readonly host: Process

  constructor(sessionId: string, host: Process) {
    this.sessionId = sessionId
    this.host = host
  }

  private get parts(): Parts {
    return this.host.parts
  }

  /** Runs a command once those before it are done, and to its end. A command that asked another one would wait for ever. */
  ask<A, E, R>(command: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return this.turn.withPermit(Effect.uninterruptible(command))
  }

  private become(standing: Standing, waiting = this.state.waiting): void {
    const { left } = this.state
    this.state = { ...standing, waiting, left: Latch.makeUnsafe() }
    left.openUnsafe()
  }

  private get withoutRun(): Standing {
    const { opened } = this
    return opened === undefined ? { _tag: "Closed" } : { _tag: "Idle", opened }
  }

  get opened(): Opened | undefined {
    return this.state._tag === "Closed" ? undefined : this.state.opened
  }

  /** The run that has begun and not ended. */
  get current(): LiveRun | undefined {
    return this.state._tag === "Running" ? this.state.run : undefined
  }

  /** The run that has not ended, or the first one that waits; `undefined` if there is none. */
  get first(): LiveRun | undefined {
    return this.current ?? this.state.waiting[0]?.[0]
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
    if (current?.isOwed !== true) return this.isSpent && current !== undefined ? held(current) : Effect.void
    return Effect.andThen(SessionProblem.logging(current.settle), this.over(current))
  })

  /** Whether nothing of it would be lost with it. */
  get isUnused(): boolean {
    const { _tag, waiting } = this.state
    return this.users === 0 && _tag === "Closed" && waiting.length === 0
  }

  /** The agent, while the session is open. */
  get agent(): Agent.Agent | undefined {
    return this.opened?.agent
  }

  /** Opens the session and makes its agent, unless they are. Fails with `RunNotReady` while a run of it is parked. A step of a command. */
  readonly open: Effect.Effect<Agent.Agent, Continuation.CannotOpen> = Effect.gen(
    { self: this },
    function* () {
      yield* this.kept
      if (this.opened !== undefined && !this.isSpent) return this.opened.agent
      yield* this.close
      const { idle, scope: all, sessions } = this.parts
      const scope = yield* Scope.fork(all)
      const opened = Scope.provide(sessions.open(this.sessionId), scope)
      const { agent } = yield* SessionProblem.opening(opened).pipe(
        Effect.map((session) => this.holding(session)),
        Effect.flatMap((session) =>
          Effect.flatMap(Continuation.take(this.parts, session, this.log, this.host.has), (taken) =>
            this.takeOver(session, scope, taken)
          )
        ),
        closedOnFailure(scope)
      )
      yield* this.restLater(idle)
      const refusal = this.current === undefined ? this.hold?.refusal : undefined
      // The session has refused what the agent wrote about the run before: those that wait begin later.
      if (refusal !== undefined) return yield* Effect.andThen(this.leave, SessionProblem.unavailable(refusal))
      return agent
    }
  )

  /**
   * Opens a session that was just made, and keeps it for a moment: a prompt follows as a rule. Where its agent cannot be made, that prompt
   * fails. A step of a command.
   */
  openNew<E>(made: Effect.Effect<SessionStore.OpenSession, E, Scope.Scope>): Effect.Effect<void, E> {
    return Effect.gen({ self: this }, function* () {
      const scope = yield* Scope.fork(this.parts.scope)
      const session = this.holding(yield* closedOnFailure(scope)(Scope.provide(made, scope)))
      const taken = { session, waiting: [], over: [] }
      yield* Effect.ignore(closedOnFailure(scope)(this.takeOver(session, scope, taken)))
      yield* this.restLater(moment)
    })
  }

  /** The session while this process holds it. */
  private holding(session: SessionStore.OpenSession): SessionStore.OpenSession {
    this.hold = new Hold(session, {
      run: () => this.current,
      hasLines: this.parts.logs.inSessions === true,
      onLost: Effect.suspend(() => this.lose)
    })
    return this.hold.session
  }

  /** The session, for the logs of its runs. */
  readonly log: Place = {
    record: (records) => Effect.suspend(() => this.hold?.place.record(records) ?? this.notOpen),
    keep: (lines) => Effect.suspend(() => this.hold?.place.keep(lines) ?? this.notOpen),
    write: (lines) => Effect.suspend(() => this.hold?.place.write(lines) ?? this.notOpen)
  }

  private readonly notOpen = Effect.suspend(
    () =>
      new SessionError({
        sessionId: this.sessionId,
        reason: new StorageFailed({ operation: "write", detail: "the session is not open" })
      })
  )

  /** Makes the agent of a session, and continues the runs of the session that have not ended. */
  private takeOver(session: SessionStore.OpenSession, scope: Scope.Closeable, taken: Continuation.Taken) {
    return Effect.gen({ self: this }, function* () {
      const made = yield* Effect.onError(this.make(session, scope, taken.session), () =>
        Continuation.giveBack(taken)
      )
      for (const run of taken.over) yield* this.ended(run)
      this.become(this.state, [...this.state.waiting, ...taken.waiting])
      for (const [run] of taken.waiting) this.host.add(run)
      if (taken.current !== undefined) {
        this.host.add(taken.current)
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

  /** Begins the oldest run that waits, if there is no other one, and a place for it. A step of a command. */
  readonly beginWaiting: Effect.Effect<void> = Effect.suspend(() => this.nextBegun() ?? Effect.void)

  /** Begins the oldest run that waits, if there is no other one. A step of a command. */
  readonly beginAdopted: Effect.Effect<void> = Effect.suspend(() => this.nextBegun(true) ?? Effect.void)

  /** Takes the oldest run that waits as the current one, in one step. */
  private nextBegun(isAdopted = false): Effect.Effect<void> | undefined {
    const { state } = this
    const [next, ...waiting] = state.waiting
    if (state._tag !== "Idle" || this.isSpent || next === undefined) return undefined
    const [run, task] = next
    const { host } = this
    if (!isAdopted && (host.isDraining || !host.hasPlace(run.runId))) return undefined
    this.become({ _tag: "Running", opened: state.opened, run }, waiting)
    return this.beginNext(state.opened.agent, run, task)
  }

  /** Gives up the hold of this process, at once. */
  release(): void {
    if (this.hold !== undefined) this.hold.isOver = true
    const { current } = this
    current?.leave()
    if (current !== undefined) this.parts.places?.leave(current.runId)
    for (const [run] of this.state.waiting) run.leave()
  }

  /** Lets go of the session and its runs. A step of a command. */
  readonly leave: Effect.Effect<void> = Effect.suspend(() => {
    this.release()
    const { current } = this
    const waiting = this.state.waiting.map(([run]) => run)
    this.become(this.withoutRun, [])
    for (const run of current === undefined ? waiting : [current, ...waiting]) this.host.remove(run)
    const left = Effect.forEach(waiting, (run) => run.letGo, { discard: true })
    return Effect.andThen(left, this.close)
  })

  /** Lets go of the session in a fiber of its own: the store refuses a write. */
  private readonly lose: Effect.Effect<void> = Effect.suspend(() => {
    this.release()
    return this.forked(
      Effect.andThen(Effect.logWarning("This process no longer has the session"), this.host.letGo(this))
    )
  })

  /** Makes the agent of a session where the session stands. `continued`: the session as the agent continues it. */
  private make(session: SessionStore.OpenSession, scope: Scope.Closeable, continued: Session = session) {
    return Effect.gen({ self: this }, function* () {
      const { model } = session.restored.options
      const { sessionId } = this
      const given = { sessionId, session: continued, ...(model === undefined ? {} : { model }) }
      const ofAgent = yield* Scope.fork(scope)
      const agent = yield* Effect.mapError(
        Scope.provide(Effect.provideService(this.parts.agents.make(given), Served, true), ofAgent),
        refused
      )
      const opened = { session, agent, ofAgent, scope }
      this.become(this.state._tag === "Running" ? { ...this.state, opened } : { _tag: "Idle", opened })
      return opened
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

  /** The idempotency keys. A step of a command. */
  readonly keys = Effect.gen({ self: this }, function* () {
    const { logs } = this.parts
    if (this.idempotency !== undefined) return this.idempotency
    const lines = yield* SessionProblem.logging(logs.keys(this.sessionId))
    return (this.idempotency ??= new IdempotencyKeys(this.sessionId, logs, lines))
  })

  /** Begins a run. A step of a command, for an open session without a run. Succeeds when the run has its first event. */
  private begin(run: LiveRun, agent: Agent.Agent, { options, prompt }: Task) {
    return Effect.suspend(() => {
      const own = agent.state.getUnsafe().options
      const { runId } = run
      return this.follow(run, agent.stream(prompt, { ...Request.narrow(own, options), runId }))
    })
  }

  /** Begins the run that continues a suspended one, under the conditions of `begin`. */
  resume(run: LiveRun, agent: Agent.Agent) {
    return this.follow(run, agent.continueStream)
  }

  private follow(run: LiveRun, events: Stream.Stream<AgentEvent, unknown>) {
    const { opened } = this
    if (opened !== undefined && !run.isLeft) this.become({ _tag: "Running", opened, run })
    this.last = run
    const { places } = this.parts
    if (places !== undefined) run.onWaiting = leaving(places, run, () => this.agent)
    const onRefused = (error: RunLogError) => this.refused(run, error)
    const task = Effect.onExit(run.follow(events, this.host.add, onRefused), (exit) =>
      Effect.andThen(run.finish(Ending.ofExit(exit)), this.ended(run))
    )
    const traced = Trace.joined(run.trace, Effect.exit(task))
    const names = { runId: run.runId }
    const forked = Effect.andThen(this.forked(traced, names), this.forked(this.resting(run), names))
    return Effect.andThen(forked, run.begun.await)
  }

  /** Lets go of a run that has waited for a person for a while, and of its session: the answer takes both up again. */
  private resting(run: LiveRun): Effect.Effect<void> {
    const rest = Effect.suspend(() =>
      this.current === run && run.canRest && this.state.waiting.length === 0
        ? Effect.andThen(run.rest, this.leave)
        : Effect.void
    )
    const rested = this.ask(rest)
    return run.still.await.pipe(
      Effect.andThen(Effect.sync(() => run.still.closeUnsafe())),
      Effect.andThen(Effect.sleep(patience)),
      Effect.andThen(Effect.ignore(rested, { log: "Debug" })),
      Effect.forever,
      Effect.raceFirst(Deferred.await(run.done)),
      Effect.andThen(Effect.sync(() => this.host.forget(this)))
    )
  }

  /** Runs an effect in a fiber of its own, whose lines in the log name the session. */
  private forked<A>(effect: Effect.Effect<A>, names: { readonly runId?: string } = {}): Effect.Effect<void> {
    const named = Effect.annotateLogs(effect, { sessionId: this.sessionId, ...names })
    return Effect.asVoid(Effect.forkIn(named, this.parts.scope))
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
      this.host.remove(run)
      this.parts.places?.leave(run.runId)
      if (Deferred.isDoneUnsafe(run.done)) return Effect.void
      if (this.current === run) this.become(this.withoutRun)
      const next = this.nextBegun()
      const rest = Effect.andThen(this.restLater(this.parts.idle), this.afterSuspended(run))
      const isToOpen = this.isSpent || this.state._tag === "Closed"
      return Effect.andThen(run.close, isToOpen ? this.renewed : (next ?? rest))
    })
  }

  /**
   * Opens the session again for the runs that wait, from what the store has: the session has taken nothing of the end of its last run, or
   * was closed because it could not be rewound for it.
   */
  private readonly renewed: Effect.Effect<void> = Effect.suspend(() => {
    const opened = Effect.suspend(() => (this.first === undefined ? this.close : Effect.asVoid(this.open)))
    const renewed = Effect.catch(opened, () => this.lose)
    return this.forked(this.ask(renewed))
  })

  /** Continues a suspended run if an answer came that it no longer took, unless another run has begun. */
  private afterSuspended(run: LiveRun): Effect.Effect<void> {
    if (!run.log.state.isSuspended) return Effect.void
    const after = Effect.gen({ self: this }, function* () {
      const { state } = this
      if (state._tag !== "Idle" || this.last !== run || this.host.isDraining) return
      const { agent } = state.opened
      const open = yield* asking(agent)
      if (idsOf(run.info.pending).some((id) => !open.includes(id)))
        yield* Effect.ignore(this.resume(yield* this.newRun, agent), { log: "Warn" })
    })
    return this.forked(this.ask(after))
  }

  /** A run that has not begun. */
  readonly newRun = Effect.gen({ self: this }, function* () {
    const { adopts, logs } = this.parts
    const { log, sessionId } = this
    const run = new LiveRun({ runId: makeRunId(), sessionId }, yield* Clock.currentTimeMillis, logs, log)
    // The spans of a cluster are those of its messages.
    if (!adopts) run.trace = yield* Trace.current
    return run
  })

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
    this.become(this.state, [...this.state.waiting, [run, task]])
  }

  /** Ends runs that wait, without beginning them. Returns whether there was one. */
  cancelQueued(isMeant: (run: LiveRun) => boolean): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const { waiting } = this.state
      const meant = waiting.map(([run]) => run).filter(isMeant)
      if (meant.length > 0)
        this.become(
          this.state,
          waiting.filter(([run]) => !isMeant(run))
        )
      const end = (run: LiveRun) => Effect.andThen(run.finish({ status: "cancelled" }), this.ended(run))
      return Effect.as(Effect.forEach(meant, end, { discard: true }), meant.length > 0)
    })
  }

  /** Lets go of the session after a while in which nothing has happened to it. */
  private restLater(idle: Duration.Input): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { state } = this
      if (state._tag !== "Idle" || state.waiting.length > 0) return Effect.void
      const rest = this.ask(Effect.suspend(() => (this.state === state ? this.close : Effect.void)))
      const rested = Effect.raceFirst(Effect.andThen(Effect.sleep(idle), rest), state.left.await)
      return this.forked(
        Effect.ensuring(
          rested,
          Effect.sync(() => this.host.forget(this))
        )
      )
    })
  }

  /** Closes the agent and the session. A step of a command, without a run. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    const { opened } = this
    this.idempotency = undefined
    if (opened === undefined) return Effect.void
    this.become({ _tag: "Closed" })
    return Scope.close(opened.scope, Exit.void)
  })
}

const closedOnFailure =
  (scope: Scope.Closeable) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.onExit(effect, (exit) => (Exit.isFailure(exit) ? Scope.close(scope, exit) : Effect.void))

const refused = ({ message }: { readonly message: string }) =>
  new Problem.MalformedRequest({ detail: message })

/** Fails if the session has refused what the agent of a run wrote: the run fails. */
export const held = (run: LiveRun): Effect.Effect<void, Problem.StorageUnavailable> =>
  Effect.suspend(() =>
    run.isRefused
      ? new Problem.StorageUnavailable({ detail: "The store has refused a write of the run, which fails." })
      : Effect.void
  )

/** The ids of requests. */
const idsOf = ({ approvals, questions }: Payload.Run["pending"]): ReadonlyArray<string> => [
  ...approvals.map(({ approvalId }) => approvalId),
  ...questions.map(({ questionId }) => questionId)
]

/** The requests of an agent to a person that wait. */
export const asking = (agent: Agent.Agent): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(agent.requests, idsOf)
