/** The layers of a worker, as an application composes them. */
import { Effect, Layer } from "effect"
import { Agent, Approval } from "effect-agent"
import { Cluster, DurableRuns } from "effect-agent/durable"
import * as NodeCluster from "effect-agent/node/NodeCluster"
import { Agents, LiveRuns, RunLogStore, type Runs } from "effect-agent/server"
import { MemorySessionStore } from "effect-agent/sessions"
import * as Beside from "./beside.ts"
import * as Cast from "./cast.ts"
import * as Stores from "./stores.ts"
import * as World from "./world.ts"

export interface Settings {
  /** The database: `sqlite:FILE` or `postgres://…`. */
  readonly url: string
  /** The file of the world. */
  readonly world: string
  readonly turns: number
  readonly pace: number
  readonly isChecked: boolean
  /** Whether calls of \`once\` tools wait for an approval, and pure tools ask a question. Default: none does. */
  readonly asks?: boolean
  /** Whether the model has three calls in the background, in place of its turns with two tools. Default: it has none. */
  readonly background?: boolean
  /** The worker in a cluster; `undefined` for the only process of its database. */
  readonly cluster?: { readonly port: number; readonly lease: number }
  /** The most runs at a time. Default: that of the library. */
  readonly gate?: number
  /**
   * What runs the runs: `cluster` (the default) and `live` are durable, `stored` ends a run with its process, and `memory` keeps nothing.
   */
  readonly engine?: "cluster" | "live" | "stored" | "memory"
}

const policy = Approval.layer({ rules: [Approval.ask("once")], otherwise: "allow", asked: "wait" })

const agents = ({ asks = false, background = false, isChecked, pace, turns, world }: Settings) => {
  const append = World.appender(world)
  return Agents.layer(({ session, sessionId }) => {
    const cast: Cast.Settings = { sessionId, turns, pace, isChecked, asks, append }
    if (background)
      return Agent.make({ model: "m", tools: Beside.tools(cast), session, limits: { maxTurns: 9 } }).pipe(
        Effect.provide(Beside.model(cast))
      )
    return Agent.make({
      model: "m",
      tools: Cast.tools(cast),
      session,
      limits: { maxTurns: turns + 3, maxToolCalls: 2 * turns }
    }).pipe(Effect.provide(asks ? Layer.merge(Cast.model(cast), policy) : Cast.model(cast)))
  })
}

const cluster = ({ cluster, url }: Settings) => {
  const own =
    cluster === undefined
      ? Cluster.embedded()
      : NodeCluster.worker({ port: cluster.port, lease: cluster.lease })
  return Layer.provideMerge(own, Stores.layer(url))
}

/** The runs of a worker. */
export const runs = (settings: Settings): Layer.Layer<Runs.Runs, unknown> => {
  const { engine = "cluster", gate, url } = settings
  const own = agents(settings)
  switch (engine) {
    case "memory":
      return LiveRuns.layer().pipe(Layer.provide([own, MemorySessionStore.layer(), RunLogStore.layerMemory]))
    case "stored":
      return LiveRuns.layer().pipe(Layer.provide([own, Stores.layer(url)]))
    case "live":
      return LiveRuns.layer().pipe(Layer.provide([own, Stores.layer(url)]))
    case "cluster":
      return DurableRuns.layer().pipe(
        Layer.provideMerge(DurableRuns.worker(gate === undefined ? {} : { concurrency: gate })),
        Layer.provide([own, cluster(settings)])
      )
  }
}
