/**
 * A worker of a cluster: `agentWorker.ts URL PORT LEASE EFFECTS`. Its model calls the tool `count` until it has ten results, and then ends.
 * Each call of the tool, which is not to be repeated, writes a line to the file EFFECTS. It prints `ready`.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import { DurableRuns } from "effect-agent/durable"
import { NodeCluster } from "effect-agent/durable-node"
import { Agents, SqlRunLogStore } from "effect-agent/server"
import { SqlSessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { appendFileSync, writeSync } from "node:fs"

export const calls = 10

const [url = "", port = "", lease = "", effects = ""] = process.argv.slice(2)

const count = Tool.make({
  name: "count",
  description: "Counts.",
  params: Schema.Struct({ n: Schema.Int }),
  execute: ({ n }) =>
    Effect.gen(function* () {
      appendFileSync(effects, `${n} ${process.pid}\n`)
      yield* Effect.sleep(200)
      return `counted ${n}`
    })
})

const script: ScriptedProvider.Script = Array.from({ length: 100 }, () => ({ messages }) => {
  const n = messages.filter(({ role }) => role === "toolResult").length
  return n < calls ? ScriptedProvider.toolCall("count", { n }) : ScriptedProvider.text("done")
})

const agents = Agents.layer(({ session }) => Agent.make({ model: "any", tools: [count], session })).pipe(
  Layer.provide([
    ScriptedProvider.layer(script),
    Approval.layer({ rules: [], otherwise: "allow", asked: "wait" })
  ])
)

const patience = "1 minute"
const stores = SqlRunLogStore.layer({ patience }).pipe(
  Layer.provideMerge(SqlSessionStore.layer({ takeOver: true, patience }))
)

const database = PgClient.layer({
  url: Redacted.make(url),
  maxConnections: 8,
  startupParameters: { timezone: "UTC" }
})

const worker = DurableRuns.worker({ flush: 0 }).pipe(
  Layer.provide([agents, NodeCluster.worker({ port: Number(port), lease: Number(lease) })]),
  Layer.provide(stores),
  Layer.provide(database)
)

if (import.meta.main) {
  const ended = new AbortController()
  process.once("SIGTERM", () => ended.abort())
  const main = Layer.launch(
    Layer.effectDiscard(Effect.sync(() => writeSync(1, "ready\n"))).pipe(Layer.provideMerge(worker))
  )
  await Effect.runPromise(main, { signal: ended.signal }).catch((error: unknown) => {
    if (!ended.signal.aborted) console.error(error)
  })
  process.exit()
}
