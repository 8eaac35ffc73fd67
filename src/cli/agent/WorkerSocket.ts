/** The socket by which the other processes of a cluster reach a worker. */
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { SocketServer, type SocketServerError } from "effect/socket/SocketServer"
import * as Cluster from "../../durable/Cluster.ts"
import * as NodeCluster from "../../node/NodeCluster.ts"
import { UsageError } from "../ExitCode.ts"

/** The first port that is tried. It is below those that systems give to outgoing connections. */
const first = 4112
const last = first + 99

/** A socket that listens. */
export interface Bound {
  readonly host: string
  readonly port: number
  readonly server: SocketServer["Service"]
}

/** Listens at the port, else at the first that is free. Processes that start at once get a port each. */
export const listen = (
  host: string,
  port: number | undefined
): Effect.Effect<Bound, UsageError | SocketServerError, Scope.Scope> => {
  const at = (port: number) =>
    Effect.map(NodeSocketServer.make({ host, port, noDelay: true }), (server) => ({ host, port, server }))
  const from = (port: number): Effect.Effect<Bound, UsageError | SocketServerError, Scope.Scope> =>
    Effect.catchIf(at(port), isTaken, () =>
      port < last
        ? from(port + 1)
        : Effect.fail(new UsageError({ detail: `No port from ${first} to ${last} of ${host} is free.` }))
    )
  return port === undefined ? from(first) : at(port)
}

const isTaken = ({ reason: { cause } }: SocketServerError): boolean =>
  typeof cause === "object" && cause !== null && "code" in cause && cause.code === "EADDRINUSE"

/** The cluster for a worker with the socket. */
export const worker = ({ server, ...options }: Bound & Cluster.Options) =>
  Layer.provide(Cluster.worker(options), [NodeCluster.layerSockets, Layer.succeed(SocketServer, server)])
