/**
 * The sockets over which the processes of a cluster reach one another.
 *
 * @since 0.2.0
 */
import type * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Socket from "effect/socket/Socket"

/**
 * The functions of the service.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** Makes a socket to a worker, which connects when it is first read. */
  readonly to: (address: RunnerAddress.RunnerAddress) => Effect.Effect<Socket.Socket>
}

/**
 * The sockets to the workers of a cluster.
 *
 * **Details**
 *
 * `effect-agent/node/NodeCluster` provides those of Node.
 *
 * **Example** (Setting options of the sockets of Node)
 *
 * ```ts
 * import { NodeSocket } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { Cluster, PeerSockets } from "effect-agent/durable"
 *
 * const sockets = Layer.succeed(PeerSockets.PeerSockets, {
 *   to: ({ host, port }) => NodeSocket.makeNet({ host, port, noDelay: true, family: 6 })
 * })
 *
 * export const client = Cluster.client().pipe(Layer.provide(sockets))
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class PeerSockets extends Context.Service<PeerSockets, Service>()(
  "effect-agent/durable/PeerSockets"
) {}
