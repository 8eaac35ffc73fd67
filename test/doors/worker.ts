/** A worker of a cluster for the application: `worker.ts URL PORT ROOT`. Prints `ready`. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { DurableRuns } from "effect-agent/durable"
import * as NodeCluster from "effect-agent/node/NodeCluster"
import { SqlRunLogStore } from "effect-agent/server"
import { SqlSessionStore } from "effect-agent/sessions"
import { agents } from "./application.ts"

const [url = "", port = "", root = ""] = process.argv.slice(2)

const worker = DurableRuns.worker({ flush: 0 }).pipe(
  Layer.provide([agents(root), NodeCluster.worker({ port: Number(port) })]),
  Layer.provide(SqlRunLogStore.layer().pipe(Layer.provideMerge(SqlSessionStore.layer({ takeOver: true })))),
  Layer.provide(PgClient.layer({ url: Redacted.make(url), startupParameters: { timezone: "UTC" } }))
)
const ready = Layer.effectDiscard(Effect.sync(() => console.log("ready")))
await Effect.runPromise(Layer.launch(Layer.provideMerge(ready, worker)))
