/**
 * A worker: it has the sessions that the cluster gives it, on agents of this process, and brings their runs to their ends.
 */
import * as EntityId from "effect/cluster/EntityId"
import type * as ShardId from "effect/cluster/ShardId"
import { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import {
  isStartable,
  RunLogStore,
  type Service as Logs,
  type RunKey,
  type RunLogError
} from "../../runs/RunLogStore.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import type { Client } from "./Calls.ts"
import { Gate } from "../../runs/Gate.ts"
import { SessionEntity } from "./SessionEntity.ts"
import { Shards } from "./Shards.ts"
import * as Context from "effect/Context"
import type * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import type * as Runs from "../../runs/Runs.ts"
import * as Entity from "effect/cluster/Entity"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Agents } from "../../runs/Agents.ts"
import * as LiveRuns from "../../runs/LiveRuns.ts"
import { messageIds } from "../../runs/IdempotencyKeys.ts"
import { SessionStore } from "../../sessions/SessionStore.ts"
import * as Requests from "./SessionEntity.ts"

/**
 * The time before a worker takes a run again that it has lost. A worker that was frozen learns meanwhile that others have its sessions: if
 * it did not wait, it would take them back.
 */
const settling = "5 seconds"

interface Parts {
  readonly local: Service
  readonly logs: Logs
  readonly gate: Gate
  readonly client: Client
  readonly scope: Scope.Scope
}

class Worker {
  readonly local: Service
  readonly logs: Logs
  private readonly gate: Gate
  private readonly client: Client
  private readonly scope: Scope.Scope
  /** The sessions whose runs are driven. */
  private readonly driven = new Set<string>()

  constructor({ client, gate, local, logs, scope }: Parts) {
    this.local = local
    this.logs = logs
    this.gate = gate
    this.client = client
    this.scope = scope
  }

  /** Drives the runs of a session in a fiber of the worker, unless one does: the request keeps the entity of the session alive. */
  drive(sessionId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.driven.has(sessionId)) return Effect.void
      this.driven.add(sessionId)
      const isDriven = () => {
        // A run may have begun since.
        const isDone = this.local.state(sessionId).first === undefined
        if (isDone) this.driven.delete(sessionId)
        return isDone
      }
      const driving = this.client(sessionId)
        .Drive()
        .pipe(
          Effect.repeat({ until: isDriven }),
          Effect.onError(() => Effect.sync(() => this.driven.delete(sessionId))),
          Effect.ignore
        )
      return Effect.asVoid(Effect.forkIn(driving, this.scope))
    })
  }

  /**
   * Brings the runs of a session to their ends, one after another, and ends when the session is closed. It never ends while another worker
   * has the session.
   */
  bringToEnd(sessionId: string, isMine: () => boolean): Effect.Effect<void> {
    return Effect.suspend(() => this.next(sessionId, isMine)).pipe(
      Effect.tapError((error) => Effect.logWarning("The runs of the session wait", error)),
      Effect.retry(Schedule.spaced(settling)),
      Effect.orDie,
      Effect.repeat({ until: (isDone) => isDone }),
      Effect.annotateLogs({ sessionId }),
      Effect.asVoid
    )
  }

  /** Drives the oldest run of a session. Whether none is left that no person has to act on first. */
  private next(sessionId: string, isMine: () => boolean) {
    return Effect.gen({ self: this }, function* () {
      const { gate, local, logs } = this
      // The cluster has given the session to another worker, and is about to interrupt this request.
      if (!isMine()) return yield* Effect.never
      const { first, idle } = local.state(sessionId)
      // An open session has all of its runs.
      if (idle !== undefined && this.driven.has(sessionId)) return yield* Effect.as(idle, false)
      const run = first ?? (yield* SessionProblem.logging(logs.active(sessionId))).find(isStartable)
      if (run === undefined) return true
      const adopted = Effect.catchTag(local.adopt(run), "RunNotReady", () =>
        Effect.succeed("resting" as const)
      )
      const how = yield* local.state(sessionId).current?.runId === run.runId
        ? adopted
        : gate.pass(run.runId, adopted)
      if (how === "left") yield* Effect.sleep(settling)
      return how === "resting"
    })
  }

  /** Drives the runs of the sessions in some shards. */
  private arrived(shards: ReadonlyArray<ShardId.ShardId>) {
    return Effect.gen({ self: this }, function* () {
      const runs = yield* Effect.retry(this.logs.unended, Schedule.spaced("1 second"))
      for (const sessionId of new Set(runs.filter(isStartable).map(({ sessionId }) => sessionId))) {
        const shard = yield* SessionEntity.getShardId(EntityId.make(sessionId))
        if (shards.some((taken) => Equal.equals(taken, shard))) yield* this.drive(sessionId)
      }
    })
  }

  /** Drives the runs of the shards that the cluster gives to this process, until the scope closes. */
  readonly attend: Effect.Effect<void, never, Shards | Sharding | Scope.Scope> = Effect.gen(
    { self: this },
    function* () {
      const { taken } = yield* Shards
      const arriving = Effect.flatMap(Queue.takeAll(taken), (some) => this.arrived(some.flat()))
      yield* Effect.forkScoped(Effect.forever(arriving))
    }
  )
}

/** The worker of this process. */
const make = (gate: Gate) =>
  Effect.gen(function* () {
    const local = yield* LocalRuns
    const logs = yield* RunLogStore
    const client = yield* SessionEntity.client
    return new Worker({ local, logs, gate, client, scope: yield* Effect.scope })
  })

// ───────────────────────── The runs of this process
//
// The runs of a worker: those of the sessions that the cluster has given it.

/**
 * A session as it stands in a worker.
 *
 * @category models
 * @since 0.2.0
 */
export interface State {
  /** The run that has begun and not ended; `undefined` if there is none. */
  readonly current: RunKey | undefined
  /** That run, or the first one that waits; `undefined` if there is none. */
  readonly first: RunKey | undefined
  /** Waits until a session that is open and has no run stands otherwise; `undefined` for one that is not open or has a run. */
  readonly idle: Effect.Effect<void> | undefined
}

/**
 * The functions of the runs of a worker, which `DurableRuns` itself uses.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** The runs, as a server in one process has them. */
  readonly runs: Runs.Service
  /**
   * Continues or begins a run that has not ended, and succeeds when it is over, when the worker has left its session, or when the run rests:
   * it waits for a person. Fails with `RunNotReady` for one that is parked.
   */
  readonly adopt: (
    run: RunKey
  ) => Effect.Effect<
    "over" | "left" | "resting",
    | Problem.SessionNotFound
    | Problem.SessionLocked
    | Problem.StorageUnavailable
    | Problem.MalformedRequest
    | Problem.RunNotFound
    | Problem.RunNotReady
  >
  /** Lets go of a session: it takes no more writes, and its run stops without an end. */
  readonly leave: (sessionId: string) => Effect.Effect<void>
  /** A session as it stands in this process. */
  readonly state: (sessionId: string) => State
  /** The id of the session of a run that this process has. */
  readonly sessionOf: (runId: string) => string | undefined
  /** A run that has ended in this process, and whose end the store has refused so far. */
  readonly owed: (runId: string) => Payload.Run | undefined
  /** Waits until no tool call of the run of a session goes on in this process. */
  readonly called: (sessionId: string) => Effect.Effect<void>
  /** The ids of the messages of a session: those of each of its branches, and those that were put in its queues. */
  readonly messageIds: (sessionId: string) => Effect.Effect<ReadonlySet<string>, Problem.StorageUnavailable>
}

/**
 * The runs of a worker, which `DurableRuns.layer` drains where it is given them.
 *
 * **Example** (Looking for the run of a session in this process)
 *
 * ```ts
 * import { Effect } from "effect"
 * import type { DurableRuns } from "effect-agent/durable"
 *
 * export const isHere = (local: DurableRuns.LocalRunsService, sessionId: string) =>
 *   Effect.sync(() => local.state(sessionId).current !== undefined)
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class LocalRuns extends Context.Service<LocalRuns, Service>()("effect-agent/durable/LocalRuns") {}

// ───────────────────────── Sessions
//
// The sessions that the cluster gives to this process, on agents of this process.

export interface Options extends LiveRuns.Options {
  readonly concurrency: number
}

const localRuns = (options: LiveRuns.Options, gate: Gate) =>
  Layer.effect(
    LocalRuns,
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const { host, runs } = yield* LiveRuns.make({ ...options, adopts: true, places: gate })
      return LocalRuns.of({
        runs,
        adopt: (run) => host.adopt(run),
        leave: (sessionId) => host.leave(sessionId),
        state: (sessionId) => host.state(sessionId),
        sessionOf: (runId) => host.runs.get(runId)?.sessionId,
        owed: (runId) => {
          const run = host.runs.get(runId)
          return run?.isOwed === true ? run.info : undefined
        },
        called: (sessionId) => host.called(sessionId),
        messageIds: (sessionId) => messageIds(sessions, sessionId)
      })
    })
  )

/** The time that tool calls get to end when the session goes to another worker: their end is not known there. */
const grace = "3 seconds"

const handlers = (worker: Worker) =>
  Effect.gen(function* () {
    const { local } = worker
    const { entityId: sessionId, shardId } = yield* Entity.CurrentAddress
    const sharding = yield* Sharding
    yield* Effect.addFinalizer(() =>
      Effect.andThen(Effect.timeoutOption(local.called(sessionId), grace), local.leave(sessionId))
    )
    const isMine = () => sharding.hasShardId(shardId)
    const requests = new SessionRequests(sessionId, worker)
    const named = Effect.annotateLogs({ sessionId })
    return SessionEntity.of({
      Start: ({ payload }) => named(requests.start(payload)),
      Steer: ({ payload }) => named(requests.send("steer", payload)),
      FollowUp: ({ payload }) => named(requests.send("followUp", payload)),
      Pause: ({ payload }) => named(requests.control("pause", payload)),
      Resume: ({ payload }) => named(requests.control("resume", payload)),
      Cancel: ({ payload }) => named(requests.control("cancel", payload)),
      Approve: ({ payload }) => named(requests.approve(payload)),
      Answer: ({ payload }) => named(requests.answer(payload)),
      Drive: () => worker.bringToEnd(sessionId, isMine),
      Watch: ({ payload: { after, partials = false, runId } }) =>
        Stream.unwrap(
          Effect.match(local.runs.watch(runId, after, { partials }), {
            onFailure: () => Stream.empty,
            onSuccess: (pages = Stream.empty) => pages
          })
        ),
      Create: ({ payload }) => named(requests.create(payload)),
      Fork: ({ payload }) => named(requests.fork(payload)),
      Update: ({ payload }) => named(requests.update(payload)),
      Remove: () => named(requests.remove())
    })
  })

/** Lets this process run the sessions that the cluster gives it. */
export const layer = ({
  concurrency,
  ...options
}: Options): Layer.Layer<LocalRuns, RunLogError, Agents | SessionStore | RunLogStore | Sharding | Shards> =>
  Layer.suspend(() => {
    const gate = new Gate(concurrency)
    const entities = Layer.unwrap(
      Effect.map(make(gate), (worker) =>
        Layer.merge(
          SessionEntity.toLayer(handlers(worker), { concurrency: "unbounded", maxIdleTime: "1 second" }),
          Layer.effectDiscard(worker.attend)
        )
      )
    )
    return Layer.provideMerge(entities, localRuns(options, gate))
  })

// ───────────────────────── Requests

// The requests to a session, as the worker that has it does them. A request may come twice, where its reply was lost: it has its effect
// once.

class SessionRequests {
  private readonly sessionId: string
  private readonly worker: Worker
  /** Brings the runs of the session to their ends, in a fiber of the worker. */
  private readonly drive: Effect.Effect<void>
  /** The ids of the messages that the session had when this worker took it, and of those that came since. */
  private seen: Set<string> | undefined

  constructor(sessionId: string, worker: Worker) {
    this.sessionId = sessionId
    this.worker = worker
    this.drive = worker.drive(sessionId)
  }

  private get runs() {
    return this.worker.local.runs
  }

  start(request: Requests.Sent) {
    return Requests.decode(Requests.Start, request).pipe(
      Effect.flatMap((start) => this.runs.start({ ...start, sessionId: this.sessionId })),
      Effect.tap(this.drive)
    )
  }

  send(how: "steer" | "followUp", request: Requests.Sent) {
    return Effect.gen({ self: this }, function* () {
      const { messages, runId, ...options } = yield* Requests.decode(Requests.Send, request)
      const seen = (this.seen ??= new Set(yield* this.worker.local.messageIds(this.sessionId)))
      const fresh = messages.filter(({ id }) => !seen.has(id))
      if (fresh.length === 0) return
      // The session may have a message although the worker has let go of the run.
      const forgotten = Effect.sync(() => void (this.seen = undefined))
      yield* Effect.onError(this.runs[how](runId, fresh, options), () => forgotten)
      for (const { id } of fresh) seen.add(id)
      yield* this.drive
    })
  }

  control(how: "pause" | "resume" | "cancel", request: Requests.Sent) {
    return Requests.decode(Requests.Control, request).pipe(
      Effect.flatMap(({ reason, runId }) => this.runs[how](runId, reason)),
      Effect.tap(this.drive)
    )
  }

  approve(request: Requests.Sent) {
    return Requests.decode(Requests.Approve, request).pipe(
      Effect.flatMap(({ answer, approvalId, runId }) => this.runs.approve(runId, approvalId, answer)),
      Effect.tap(this.drive)
    )
  }

  answer(request: Requests.Sent) {
    return Requests.decode(Requests.Answer, request).pipe(
      Effect.flatMap(({ answer, questionId, runId }) => this.runs.answer(runId, questionId, answer)),
      Effect.tap(this.drive)
    )
  }

  create(request: Requests.Sent) {
    return Effect.flatMap(Requests.decode(Requests.Create, request), (options) =>
      Effect.tap(this.runs.sessions.create({ ...options, sessionId: this.sessionId }), this.drive)
    )
  }

  update(request: Requests.Sent) {
    return Effect.flatMap(Requests.decode(Requests.Update, request), (changes) =>
      this.runs.sessions.update(this.sessionId, changes)
    )
  }

  fork(request: Requests.Sent) {
    return Effect.flatMap(Requests.decode(Requests.Fork, request), (options) =>
      this.runs.sessions.fork(this.sessionId, options)
    )
  }

  /** Removes the session, if it has no run that is to come to its end: also none that is parked, or waits for a place. */
  remove() {
    return Effect.flatMap(SessionProblem.logging(this.worker.logs.active(this.sessionId)), ([run]) =>
      run === undefined
        ? this.runs.sessions.remove(this.sessionId)
        : Effect.fail(new Problem.RunGoesOn({ runId: run.runId }))
    )
  }
}
