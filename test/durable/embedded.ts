/** Runs of a cluster in this process, over one database. */
import { Layer } from "effect"
import { Agent, Approval } from "effect-agent"
import { Cluster, DurableRuns } from "effect-agent/durable"
import { Agents, SqlRunLogStore } from "effect-agent/server"
import { SqlSessionStore } from "effect-agent/sessions"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { ScriptedProvider } from "effect-agent/testing"
import type { Setup } from "../server/host.ts"
import type * as Contract from "../server/runsContract.ts"

/** A database that goes with its layer. */
export const database = NodeSqlite.layer({ filename: ":memory:" })

export const cluster = Cluster.embedded().pipe(Layer.provide(database))

const stores = () =>
  SqlRunLogStore.layer().pipe(
    Layer.provideMerge(SqlSessionStore.layer({ takeOver: true })),
    Layer.provide(database),
    Layer.orDie
  )

interface OfWorker extends Setup {
  /** The number of runs that work at a time. Default: that of the library. */
  readonly concurrency?: number
}

export const make = (
  script: Parameters<Contract.Make>[0],
  { agent = {}, asked = "wait", concurrency, needsApproval = [], options = {}, tools = [] }: OfWorker = {},
  places: Parameters<Contract.Make>[2] = stores(),
  ofCluster = cluster
) => {
  const policy = Approval.layer({
    rules: needsApproval.map((name) => Approval.ask(name)),
    otherwise: "allow",
    asked
  })
  const agents = Agents.layer(({ session }) => Agent.make({ model: "any", tools, ...agent, session })).pipe(
    Layer.provide([ScriptedProvider.layer(script), policy])
  )
  const own = { ...options, ...(concurrency && { concurrency }) }
  return DurableRuns.layer().pipe(
    Layer.provideMerge(DurableRuns.worker({ flush: 0, ...own })),
    Layer.provide([agents, ofCluster, places])
  )
}
