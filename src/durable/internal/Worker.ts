/**
 * A worker: it brings the runs of the sessions that the cluster gives it to their ends.
 */
import * as EntityId from "effect/cluster/EntityId"
import type * as ShardId from "effect/cluster/ShardId"
import type { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { isStartable, RunLogStore, type Service as Logs } from "../../runs/RunLogStore.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import type { Client } from "./Calls.ts"
import type { Gate } from "../../runs/Gate.ts"
import { LocalRuns, type Service } from "./LocalRuns.ts"
import { SessionEntity } from "./SessionEntity.ts"
import { Shards } from "./Shards.ts"

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

export class Worker {
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
export const make = (gate: Gate) =>
  Effect.gen(function* () {
    const local = yield* LocalRuns
    const logs = yield* RunLogStore
    const client = yield* SessionEntity.client
    return new Worker({ local, logs, gate, client, scope: yield* Effect.scope })
  })
