/**
 * Brings runs to their ends without a request that drives them: their worker ended after it began them, or they are from
 * a server without a cluster. One worker of the cluster looks for them.
 */
import type { Sharding } from "effect/cluster/Sharding"
import * as Singleton from "effect/cluster/Singleton"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { RunLogStore } from "../../runs/RunLogStore.ts"
import { SessionEntity } from "./SessionEntity.ts"

/** A run that is driven has the request already: to store it again changes nothing. */
const sweep = Effect.gen(function* () {
  const client = yield* SessionEntity.client
  const logs = yield* RunLogStore
  const runs = yield* logs.unended
  yield* Effect.forEach(
    runs.filter(({ parked }) => parked === undefined),
    ({ runId, sessionId }) => Effect.ignore(client(sessionId).Drive({ id: runId, runId }, { discard: true })),
    { concurrency: 8, discard: true }
  )
})

/** Looks at the start, and every five minutes. */
export const layer: Layer.Layer<never, never, Sharding | RunLogStore> = Singleton.make(
  "effect-agent/durable/Sweeping",
  Effect.repeat(Effect.ignore(sweep, { log: "Warn" }), Schedule.spaced("5 minutes"))
)
