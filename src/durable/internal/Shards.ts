/**
 * The shards of sessions that the cluster has given to this process.
 */
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import type { ShardId } from "effect/cluster/ShardId"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type { PersistenceError } from "effect/cluster/ClusterError"
import type { RunnerAddress } from "effect/cluster/RunnerAddress"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import * as Exit from "effect/Exit"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import * as Schedule from "effect/Schedule"
import * as Semaphore from "effect/Semaphore"

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

// ───────────────────────── Locks

// The locks of a worker on its shards, taken as soon as the worker before it has let go of them, and confirmed together.
//
// Effect 4.1 asks again after a second for the locks that it did not get. PostgreSQL needs some milliseconds to end the session of a killed
// process, and a worker that ends gives its locks back one after another: a worker which hears of it at once asks too early for some.

/** Asks for locks again for up to 0.8 seconds while it gets none, or more than the time before. */
const often = Schedule.max([Schedule.spaced("80 millis"), Schedule.recurs(10)])

interface Check extends Request.Request<Array<ShardId>, PersistenceError> {
  readonly address: RunnerAddress
  readonly shard: ShardId
}

/** Asks together for the single locks whose questions wait: each stored reply has one, and all go over one connection. */
const together = (refresh: RunnerStorage["Service"]["refresh"]): RunnerStorage["Service"]["refresh"] => {
  const turn = Semaphore.makeUnsafe(1)
  const resolver = RequestResolver.make<Check>((entries) => {
    const [{ request }] = entries
    const shards = new Set(entries.map(({ request: { shard } }) => shard))
    const asked = Effect.map(refresh(request.address, shards), (held) =>
      entries.forEach((entry) => entry.completeUnsafe(Exit.succeed(held)))
    )
    return turn.withPermit(asked)
  }).pipe(RequestResolver.setDelayEffect(turn.withPermit(Effect.yieldNow)))
  const check = Request.of<Check>()
  return (address, shards) => {
    const [shard, ...others] = shards
    return shard === undefined || others.length > 0
      ? refresh(address, shard === undefined ? [] : [shard, ...others])
      : Effect.request(check({ address, shard }), resolver)
  }
}

/** Decorates a storage. */
export const prompt = (storage: RunnerStorage["Service"]): RunnerStorage["Service"] => ({
  ...storage,
  refresh: together(storage.refresh),
  acquire: (address, shards) =>
    Effect.suspend(() => {
      const wanted = [...shards]
      let before = 0
      const isAll = ({ length }: ReadonlyArray<ShardId>) => {
        const isLast = length === wanted.length || (length > 0 && length === before)
        before = length
        return isLast
      }
      return Effect.repeat(storage.acquire(address, wanted), { schedule: often, until: isAll })
    })
})

/** Provides the storage in the database of the context, in which it makes its tables. */
export const locks = Layer.effect(RunnerStorage, Effect.map(RunnerStorage, prompt)).pipe(
  Layer.provide(Layer.orDie(SqlRunnerStorage.layer))
)
