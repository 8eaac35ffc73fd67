/**
 * The conversation of a session in this process: its agent while it is open, the run it has, and the runs that wait.
 */
import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type * as Agent from "../Agent.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import * as Problem from "../api/Problem.ts"
import { InvalidInput } from "../internal/invalidInput.ts"
import { defect } from "../internal/failureReason.ts"
import { RunFailed } from "../RunFailed.ts"
import type { SessionError } from "../Session.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"
import type { Service as Agents } from "./Agents.ts"
import type * as Ending from "./Ending.ts"
import { IdempotencyKeys } from "./IdempotencyKeys.ts"
import type { LiveRun, Task } from "./LiveRun.ts"
import * as Narrowing from "./Narrowing.ts"
import type { Service as Logs } from "./RunLogStore.ts"
import * as SessionProblem from "./SessionProblem.ts"

/** The services and options of conversations. */
export interface Host {
  readonly agents: Agents
  readonly logs: Logs
  readonly sessions: SessionStore.Service
  readonly scope: Scope.Scope
  /** The time without a run after which a conversation lets go of its session. */
  readonly idle: Duration.Input
  /** Called when a run has its first event. */
  readonly onId: (run: LiveRun) => void
  /** Called when the log of a run is whole. */
  readonly onEnd: (run: LiveRun) => void
  /** Run after a run that ended suspended, with the lock, unless another run has begun. */
  readonly onSuspended: (conversation: Conversation, agent: Agent.Agent, run: LiveRun) => Effect.Effect<void>
}

interface Opened {
  readonly session: SessionStore.OpenSession
  readonly agent: Agent.Agent
  /** The scope of the agent, inside of that of the session. */
  readonly ofAgent: Scope.Closeable
  readonly scope: Scope.Closeable
}

export class Conversation {
  readonly sessionId: string
  /** Held by who opens, starts or closes. */
  readonly lock = Semaphore.makeUnsafe(1)
  /** The run that has not ended. */
  current: LiveRun | undefined
  private waiting: ReadonlyArray<readonly [run: LiveRun, task: Task]> = []
  private opened: Opened | undefined
  private idempotency: IdempotencyKeys | undefined
  /** Counts the runs, so that only the last of several timers closes. */
  private count = 0
  private readonly host: Host

  constructor(sessionId: string, host: Host) {
    this.sessionId = sessionId
    this.host = host
  }

  /** The agent, while the session is open. */
  get agent(): Agent.Agent | undefined {
    return this.opened?.agent
  }

  /** The session, while it is open. */
  get session(): SessionStore.OpenSession | undefined {
    return this.opened?.session
  }

  /** Opens the session and makes its agent, unless they are. Needs the lock. */
  readonly open: Effect.Effect<
    Agent.Agent,
    Problem.SessionNotFound | Problem.SessionLocked | Problem.StorageUnavailable | Problem.InvalidRequest
  > = Effect.gen({ self: this }, function* () {
    if (this.opened !== undefined) return this.opened.agent
    const { scope: outer, sessions } = this.host
    const scope = yield* Scope.fork(outer)
    const session = SessionProblem.opening(Scope.provide(sessions.open(this.sessionId), scope))
    const { agent } = yield* Effect.flatMap(session, (session) => this.make(session, scope)).pipe(
      Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(scope, exit) : Effect.void))
    )
    yield* this.restLater
    return agent
  })

  /** Makes the agent of a session where the session stands. */
  private make(session: SessionStore.OpenSession, scope: Scope.Closeable) {
    return Effect.gen({ self: this }, function* () {
      const { model } = session.restored.options
      const given = { sessionId: this.sessionId, session, ...(model === undefined ? {} : { model }) }
      const ofAgent = yield* Scope.fork(scope)
      const agent = yield* Effect.mapError(Scope.provide(this.host.agents.make(given), ofAgent), refused)
      this.opened = { session, agent, ofAgent, scope }
      return this.opened
    })
  }

  /**
   * Continues the conversation before a message, and begins a run there. A run that is refused leaves the conversation as it was. Needs the
   * conditions of `begin`, and that the conversation has the message.
   */
  before<E>(messageId: string, begin: (agent: Agent.Agent) => Effect.Effect<void, E>) {
    return Effect.gen({ self: this }, function* () {
      const { opened } = this
      if (opened === undefined) return
      const leaf = yield* opened.session.leaf
      const agent = yield* this.move(opened, opened.session.rewindBefore(messageId))
      const back = Effect.suspend(() =>
        this.opened === undefined ? Effect.void : this.move(this.opened, opened.session.rewind(leaf))
      )
      yield* Effect.tapError(begin(agent), () => back)
    })
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
  begin(run: LiveRun, agent: Agent.Agent, { options, prompt }: Task) {
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
    let refusal: Problem.InvalidRequest | undefined
    this.current = run
    this.count++
    const task = Effect.onExit(run.follow(events, this.host.onId), (exit) => {
      const end = endOf(exit)
      const isRefused = run.isUnbegun && end.status === "failed" && end.error._tag === "InvalidInput"
      if (isRefused) refusal = new Problem.InvalidRequest({ detail: end.error.message })
      return Effect.andThen(isRefused ? Effect.void : run.finish(end), this.ended(run))
    })
    return Effect.forkIn(Effect.exit(task), this.host.scope).pipe(
      Effect.andThen(run.begun.await),
      Effect.andThen(Effect.suspend(() => (refusal === undefined ? Effect.void : refusal)))
    )
  }

  private ended(run: LiveRun): Effect.Effect<void> {
    return Effect.suspend(() => {
      const [next, ...others] = this.waiting
      this.current = next?.[0]
      this.host.onEnd(run)
      this.waiting = others
      const then =
        next === undefined || this.opened === undefined
          ? Effect.andThen(this.restLater, this.afterSuspended(run))
          : this.beginNext(this.opened.agent, ...next)
      return Effect.andThen(run.close, then)
    })
  }

  private afterSuspended(run: LiveRun): Effect.Effect<void> {
    if (!run.log.state.isSuspended) return Effect.void
    const { count } = this
    const after = Effect.suspend(() =>
      this.count === count && this.opened !== undefined
        ? this.host.onSuspended(this, this.opened.agent, run)
        : Effect.void
    )
    return Effect.asVoid(Effect.forkIn(this.lock.withPermit(Effect.uninterruptible(after)), this.host.scope))
  }

  /** Begins a run that waited. One that is refused fails, since its client has its id. */
  private beginNext(agent: Agent.Agent, run: LiveRun, task: Task): Effect.Effect<void> {
    const failed = ({ message }: Problem.InvalidRequest) =>
      Effect.andThen(run.finish({ status: "failed", error: defect(message) }), run.close)
    const start = Effect.catch(this.begin(run, agent, task), failed)
    return Effect.asVoid(Effect.forkIn(start, this.host.scope))
  }

  /** Keeps a run until the one before it has ended. */
  queue(run: LiveRun, task: Task): void {
    this.waiting = [...this.waiting, [run, task]]
  }

  /** Ends runs that wait, without beginning them. Returns whether there was one. */
  cancelQueued(isMeant: (run: LiveRun) => boolean): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const meant = this.waiting.filter(([run]) => isMeant(run))
      this.waiting = this.waiting.filter(([run]) => !isMeant(run))
      const end = ([run]: (typeof meant)[number]) =>
        Effect.andThen(
          run.finish({ status: "cancelled" }),
          Effect.suspend(() => {
            this.host.onEnd(run)
            return run.close
          })
        )
      return Effect.as(Effect.forEach(meant, end, { discard: true }), meant.length > 0)
    })
  }

  /** Lets go of the session after a while without a run. */
  private readonly restLater: Effect.Effect<void> = Effect.suspend(() => {
    const { count } = this
    const rest = Effect.suspend(() =>
      this.count === count && this.current === undefined ? this.close : Effect.void
    )
    const later = Effect.delay(this.lock.withPermit(rest), this.host.idle)
    return Effect.asVoid(Effect.forkIn(later, this.host.scope))
  })

  /** Closes the agent and the session. Needs the lock, and that there is no run. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    const { opened } = this
    this.opened = undefined
    this.idempotency = undefined
    return opened === undefined ? Effect.void : Scope.close(opened.scope, Exit.void)
  })
}

const refused = ({ message }: { readonly message: string }) => new Problem.InvalidRequest({ detail: message })

/** The end of a run whose events stopped. */
const endOf = (exit: Exit.Exit<void, unknown>): Ending.End => {
  if (Exit.isSuccess(exit)) return { status: "failed", error: defect("The run ended without RunEnd") }
  if (Cause.hasInterruptsOnly(exit.cause)) return { status: "cancelled" }
  const error = Cause.squash(exit.cause)
  const expected =
    error instanceof RunFailed ? error.reason : error instanceof InvalidInput ? error : undefined
  return { status: "failed", error: expected ?? defect(error) }
}
