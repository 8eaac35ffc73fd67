/** Runs of a cluster in this process, whose worker keeps them as a server does. */
import { Effect, Layer, Stream } from "effect"
import { Cluster, DurableRuns } from "effect-agent/durable"
import { NodeSqlite } from "effect-agent/sql"
import { RunLogStore, Runs } from "effect-agent/server"
import { MemorySessionStore } from "effect-agent/sessions"
import { Gate } from "../../src/durable/Gate.ts"
import { LocalRuns } from "../../src/durable/LocalRuns.ts"
import * as SessionHandlers from "../../src/durable/SessionHandlers.ts"
import { layer } from "../server/host.ts"
import type * as Contract from "../server/runsContract.ts"

export const cluster = Cluster.embedded().pipe(Layer.provide(NodeSqlite.layer({ filename: ":memory:" })))

const local = Layer.effect(
  LocalRuns,
  Effect.gen(function* () {
    const runs = yield* Runs.Runs
    return {
      runs,
      adopt: ({ runId }) =>
        Effect.as(
          Effect.flatMap(runs.events(runId, 0), (events) => Stream.runDrain(events)),
          "over" as const
        ),
      leave: () => Effect.void,
      active: (sessionId) => Effect.runSync(runs.active(sessionId)),
      messageIds: () => Effect.succeed(new Set<string>())
    }
  })
)

export const make: Contract.Make = (
  script,
  setup,
  places = Layer.mergeAll(MemorySessionStore.layer(), RunLogStore.layerMemory)
) => {
  const worker = SessionHandlers.layer(new Gate(100)).pipe(
    Layer.provide(Layer.provide(local, layer(script, setup, places)))
  )
  return DurableRuns.layer().pipe(Layer.merge(worker), Layer.provide([cluster, places]))
}
