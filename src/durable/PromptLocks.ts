/**
 * The locks of a worker on its shards, taken as soon as the worker before it has let go of them.
 *
 * Effect 4.1 asks again after a second for the locks that it did not get. PostgreSQL needs some milliseconds to end the session of a killed
 * process, so that a worker which hears of its death at once asks too early.
 */
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"

/** Asks for locks again for up to 0.8 seconds while it gets none. */
const often = Schedule.max([Schedule.spaced("80 millis"), Schedule.recurs(10)])

/** Decorates a storage. */
export const prompt = (storage: RunnerStorage["Service"]): RunnerStorage["Service"] => ({
  ...storage,
  acquire: (address, shards) => {
    const wanted = [...shards]
    return Effect.repeat(
      Effect.suspend(() => storage.acquire(address, wanted)),
      { schedule: often, until: (acquired) => acquired.length > 0 || wanted.length === 0 }
    )
  }
})

/** Provides the storage in the database of the context, in which it makes its tables. */
export const layer = Layer.effect(RunnerStorage, Effect.map(RunnerStorage, prompt)).pipe(
  Layer.provide(Layer.orDie(SqlRunnerStorage.layer))
)
