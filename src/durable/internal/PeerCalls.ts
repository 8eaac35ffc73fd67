/**
 * The calls of the cluster over the sockets of its processes.
 */
import * as Runners from "effect/cluster/Runners"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as Socket from "effect/socket/Socket"
import { PeerSockets } from "../PeerSockets.ts"

/** The pings notice a frozen worker in 1 to 3 seconds, those of Effect in 5 to 10. */
const pings = { pingInterval: "1 second", pingTimeout: "2 seconds" } as const

/** The calls to other workers over the sockets of the context. */
export const layer: Layer.Layer<
  Runners.RpcClientProtocol,
  never,
  PeerSockets | RpcSerialization.RpcSerialization
> = Layer.effect(
  Runners.RpcClientProtocol,
  Effect.gen(function* () {
    const sockets = yield* PeerSockets
    const serialization = yield* RpcSerialization.RpcSerialization
    return {
      codecFor: serialization.codecFor,
      make: (address) =>
        Effect.flatMap(sockets.to(address), (socket) =>
          RpcClient.makeProtocolSocket(pings).pipe(
            Effect.provideService(Socket.Socket, socket),
            Effect.provideService(RpcSerialization.RpcSerialization, serialization)
          )
        )
    }
  })
)
