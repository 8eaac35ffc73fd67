/**
 * The requests to a session, on the worker that has it. A worker may get a request again that the one before it has begun or done: each
 * has its effect once.
 */
import * as Entity from "effect/cluster/Entity"
import { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Driving from "./Driving.ts"
import type { Gate } from "./Gate.ts"
import { LocalRuns } from "./LocalRuns.ts"
import { Looks } from "./Looks.ts"
import { SessionEntity } from "./SessionEntity.ts"
import { SessionRequests } from "./SessionRequests.ts"
import * as Sweeping from "./Sweeping.ts"
import * as Watching from "./Watching.ts"
import { RunLogStore } from "../../runs/RunLogStore.ts"

const make = (worker: Driving.Worker) =>
  Effect.gen(function* () {
    const { local } = worker
    const { entityId: sessionId, shardId } = yield* Entity.CurrentAddress
    const sharding = yield* Sharding
    yield* Effect.addFinalizer(() => left(local, sessionId))
    const driving = new Driving.Driving(sessionId, worker, () => sharding.hasShardId(shardId))
    const drive = yield* driver(worker, sessionId)
    const requests = new SessionRequests(sessionId, worker, driving, drive)
    const named = Effect.annotateLogs({ sessionId })
    return SessionEntity.of({
      Start: ({ payload }) => named(requests.start(payload)),
      Steer: ({ payload }) => named(requests.send("steer", payload)),
      FollowUp: ({ payload }) => named(requests.send("followUp", payload)),
      Pause: ({ payload }) => named(requests.control("pause", payload)),
      Resume: ({ payload }) => named(requests.resume(payload)),
      Cancel: ({ payload }) => named(requests.control("cancel", payload)),
      Approve: ({ payload }) => named(requests.approve(payload)),
      Answer: ({ payload }) => named(requests.answer(payload)),
      Drive: ({ payload: { runId } }) => Effect.andThen(driving.drive(runId), worker.looks.wake(runId)),
      Watch: ({ payload }) => Watching.pages(worker, sessionId, payload),
      Create: ({ payload }) => named(requests.create(payload)),
      Fork: ({ payload }) => named(requests.fork(payload)),
      Update: ({ payload }) => named(requests.update(payload)),
      Remove: () => named(requests.remove())
    })
  })

/** The time that tool calls get to end when the session goes to another worker: their end is not known there. */
const grace = { schedule: Schedule.spaced("20 millis"), times: 150 }

/** Lets go of a session, between tool calls if they end in time. */
const left = ({ isCalling, leave }: Driving.Worker["local"], sessionId: string) =>
  Effect.suspend(() => (isCalling(sessionId) ? Effect.fail("calls go on") : leave(sessionId))).pipe(
    Effect.retry(grace),
    Effect.catch(() => leave(sessionId))
  )

/** Stores that the runs of a session must come to their ends, whichever worker has it. */
const driver = ({ local }: Driving.Worker, sessionId: string) =>
  Effect.gen(function* () {
    const self = (yield* SessionEntity.client)(sessionId)
    const driven = new Set<string>()
    const drive = (id: string, runId: string) =>
      Effect.suspend(() => {
        driven.add(runId)
        const request = self.Drive({ id, runId }, { discard: true })
        // A request that is stored already is the same one.
        return Effect.orDie(Effect.catchTag(request, "AlreadyProcessingMessage", () => Effect.void))
      })
    // A run may begin without a request of its own: one that an answer resumes which came too late for the run before it.
    yield* Effect.suspend(() => {
      const runId = local.active(sessionId)
      return runId === undefined || driven.has(runId) ? Effect.void : drive(runId, runId)
    }).pipe(Effect.delay("1 second"), Effect.forever, Effect.forkScoped)
    return drive
  })

/** Lets a process run the sessions that the cluster gives it. */
export const layer = (gate: Gate): Layer.Layer<never, never, LocalRuns | RunLogStore | Sharding> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const local = yield* LocalRuns
      const logs = yield* RunLogStore
      const looks = new Looks(local, logs)
      yield* looks.run
      const worker = { local, logs, gate, looks }
      return Layer.provideMerge(
        Sweeping.layer,
        SessionEntity.toLayer(make(worker), { concurrency: "unbounded" })
      )
    })
  )
