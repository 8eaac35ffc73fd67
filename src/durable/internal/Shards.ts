/**
 * The shards of sessions that the cluster has given to this process.
 */
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import type { ShardId } from "effect/cluster/ShardId"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"

/**
 * The shards that this process has taken, as they come.
 *
 * **Details**
 *
 * The layers of `Cluster` provide it. One worker reads them: it continues the runs of the sessions in them.
 *
 * **Example** (Waiting for the first shards)
 *
 * ```ts
 * import { Effect, Layer, Queue } from "effect"
 * import { Cluster } from "effect-agent/durable"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 *
 * const cluster = Cluster.embedded().pipe(Layer.provide(NodeSqlite.layer({ filename: ":memory:" })))
 * const first = Cluster.Shards.use(({ taken }) => Queue.take(taken))
 *
 * console.log((await Effect.runPromise(Effect.provide(first, cluster))).length > 0) // => true
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class Shards extends Context.Service<
  Shards,
  {
    /** The ids of the shards that were taken at one time. */
    readonly taken: Queue.Dequeue<ReadonlyArray<ShardId>>
  }
>()("effect-agent/durable/Shards") {}

/** Tells of the shards whose locks a storage gives. */
export const layer = <E, R>(
  storage: Layer.Layer<RunnerStorage, E, R>
): Layer.Layer<RunnerStorage | Shards, E, R> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const own = yield* RunnerStorage
      const taken = yield* Queue.unbounded<ReadonlyArray<ShardId>>()
      const acquire: typeof own.acquire = (address, shards) =>
        Effect.tap(own.acquire(address, shards), (acquired) =>
          acquired.length > 0 ? Queue.offer(taken, acquired) : Effect.void
        )
      return Context.make(RunnerStorage, { ...own, acquire }).pipe(Context.add(Shards, { taken }))
    })
  ).pipe(Layer.provide(storage))
