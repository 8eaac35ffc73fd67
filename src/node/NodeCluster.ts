/**
 * The cluster of `effect-agent/durable` over the sockets of Node.
 *
 * @since 0.2.0
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import * as Layer from "effect/Layer"
import * as Cluster from "../durable/Cluster.ts"
import { PeerSockets } from "../durable/PeerSockets.ts"

/**
 * Provides sockets to the workers of a cluster.
 *
 * **Details**
 *
 * They send each chunk at once. With the delay of TCP that Effect 4.1 leaves on, a chunk of a stream takes 100 milliseconds.
 *
 * **Example** (A worker whose server has other options)
 *
 * ```ts
 * import { NodeSocketServer } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { Cluster } from "effect-agent/durable"
 * import * as NodeCluster from "effect-agent/node/NodeCluster"
 *
 * const server = NodeSocketServer.layer({ host: "10.0.0.5", port: 4112, noDelay: true, backlog: 64 })
 *
 * export const worker = Cluster.worker({ host: "10.0.0.5", port: 4112 }).pipe(
 *   Layer.provide([NodeCluster.layerSockets, server])
 * )
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layerSockets: Layer.Layer<PeerSockets> = Layer.succeed(PeerSockets, {
  to: ({ host, port }) => NodeSocket.makeNet({ host, port, noDelay: true, openTimeout: 1000 })
})

/**
 * Makes a layer of a worker that listens on its port: see `Cluster.worker`.
 *
 * **Example** (Letting workers share sessions)
 *
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import { Layer, Redacted } from "effect"
 * import * as NodeCluster from "effect-agent/node/NodeCluster"
 *
 * const database = PgClient.layer({
 *   url: Redacted.make("postgres://agent@127.0.0.1/agent"),
 *   startupParameters: { timezone: "UTC" }
 * })
 *
 * export const worker = NodeCluster.worker({ port: 4112 }).pipe(Layer.provideMerge(database))
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const worker = <const O extends Cluster.WorkerOptions>(options: O) => {
  const { host = "127.0.0.1", port } = options
  return Cluster.worker(options).pipe(
    Layer.provide([layerSockets, NodeSocketServer.layer({ host, port, noDelay: true })])
  )
}

/**
 * Makes a layer of a process that runs no sessions: see `Cluster.client`.
 *
 * **Example** (Sending to workers)
 *
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import { Layer, Redacted } from "effect"
 * import * as NodeCluster from "effect-agent/node/NodeCluster"
 *
 * const database = PgClient.layer({
 *   url: Redacted.make("postgres://agent@127.0.0.1/agent"),
 *   startupParameters: { timezone: "UTC" }
 * })
 *
 * export const client = NodeCluster.client().pipe(Layer.provideMerge(database))
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const client = <const O extends Cluster.Options>(options?: O) =>
  Layer.provide(Cluster.client(options), layerSockets)
