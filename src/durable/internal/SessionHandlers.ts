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
import * as MessageIds from "../../runs/MessageIds.ts"
import type { RunLogError, RunLogStore } from "../../runs/RunLogStore.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import { SessionStore, type Service as Sessions } from "../../sessions/SessionStore.ts"
import { Gate } from "./Gate.ts"
import { LocalRuns } from "./LocalRuns.ts"
import { SessionEntity } from "./SessionEntity.ts"
import { SessionRequests } from "./SessionRequests.ts"
import type { Shards } from "./Shards.ts"
import * as Worker from "./Worker.ts"

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
        active: (sessionId) => host.active(sessionId)?.runId,
        first: (sessionId) => host.conversations.get(sessionId)?.first,
        isOpen: (sessionId) => host.conversations.get(sessionId)?.agent !== undefined,
        closed: (sessionId) => host.conversations.get(sessionId)?.closed ?? Effect.void,
        has: (runId) => host.runs.get(runId),
        owed: (runId) => {
          const run = host.runs.get(runId)
          return run?.isOwed === true ? run.info : undefined
        },
        called: (sessionId) => host.called(sessionId),
        messageIds: (sessionId) => messageIds(sessions, sessionId)
      })
    })
  )

const messageIds = (sessions: Sessions, sessionId: string) =>
  Effect.mapBoth(sessions.read(sessionId), {
    onFailure: SessionProblem.unavailable,
    onSuccess: ({ entries }) => MessageIds.of(entries)
  })

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
