/**
 * The sessions that the cluster gives to this process, on agents of this process.
 */
import * as Entity from "effect/cluster/Entity"
import { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Agents } from "../../runs/Agents.ts"
import * as LiveRuns from "../../runs/LiveRuns.ts"
import { messageIds } from "../../runs/IdempotencyKeys.ts"
import type { RunLogError, RunLogStore } from "../../runs/RunLogStore.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import { SessionStore } from "../../sessions/SessionStore.ts"
import { Gate } from "../../runs/Gate.ts"
import { LocalRuns } from "./LocalRuns.ts"
import { SessionEntity } from "./SessionEntity.ts"
import type { Shards } from "./Shards.ts"
import * as Worker from "./Worker.ts"
import * as Problem from "../../api/Problem.ts"
import * as Requests from "./Requests.ts"

export interface Options extends LiveRuns.Options {
  readonly concurrency: number
}

const local = (options: LiveRuns.Options, gate: Gate) =>
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

const handlers = (worker: Worker.Worker) =>
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
      Effect.map(Worker.make(gate), (worker) =>
        Layer.merge(
          SessionEntity.toLayer(handlers(worker), { concurrency: "unbounded", maxIdleTime: "1 second" }),
          Layer.effectDiscard(worker.attend)
        )
      )
    )
    return Layer.provideMerge(entities, local(options, gate))
  })

// ───────────────────────── Requests

// The requests to a session, as the worker that has it does them. A request may come twice, where its reply was lost: it has its effect
// once.

class SessionRequests {
  private readonly sessionId: string
  private readonly worker: Worker.Worker
  /** Brings the runs of the session to their ends, in a fiber of the worker. */
  private readonly drive: Effect.Effect<void>
  /** The ids of the messages that the session had when this worker took it, and of those that came since. */
  private seen: Set<string> | undefined

  constructor(sessionId: string, worker: Worker.Worker) {
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
