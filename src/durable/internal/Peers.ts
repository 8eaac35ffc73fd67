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
import type { RunnerAddress } from "effect/cluster/RunnerAddress"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import * as FiberMap from "effect/FiberMap"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import type { SocketError } from "effect/socket/Socket"

/** The pings notice a frozen worker in 1 to 3 seconds, those of Effect in 5 to 10. */
const pings = { pingInterval: "1 second", pingTimeout: "2 seconds" } as const

/** The calls to other workers over the sockets of the context. */
export const calls: Layer.Layer<
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

// ───────────────────────── Dead peers

// The workers whose process ended: each worker holds a connection to each other one, and asks for their sessions at once if the system
// refuses the next connection.
//
// Effect 4.1 checks the others in a singleton, at intervals. The cluster waits a whole lease if the worker that has the singleton is the
// one that ended.

const keyOf = ({ host, port }: RunnerAddress) => `${host}:${port}`

/** Whether the system of the other host says that no process listens there. Silence and a lost network say nothing. */
const isRefused = ({ reason }: SocketError): boolean =>
  reason._tag === "SocketOpenError" &&
  Predicate.hasProperty(reason.cause, "code") &&
  reason.cause.code === "ECONNREFUSED"

const make = (self: RunnerAddress) =>
  Effect.gen(function* () {
    const storage = yield* RunnerStorage
    const sockets = yield* PeerSockets
    const watches = yield* FiberMap.make<string>()
    /** Fails when the connection ends, or cannot be made. */
    const connection = (address: RunnerAddress) =>
      Effect.scoped(
        Effect.gen(function* () {
          const socket = yield* sockets.to(address)
          const { pull } = yield* socket.reader
          return yield* Effect.forever(pull)
        })
      )
    /** Succeeds when the system has refused two connections in a row: a process that starts listens before it is registered. */
    const gone = (address: RunnerAddress) =>
      Effect.gen(function* () {
        let refused = 0
        while (refused < 2) {
          const error = yield* Effect.flip(connection(address))
          refused = isRefused(error) ? refused + 1 : 0
          yield* Effect.sleep("50 millis")
        }
      })
    const watch = (address: RunnerAddress) =>
      Effect.flatMap(gone(address), () =>
        Effect.logWarning(`The worker at ${keyOf(address)} is gone`).pipe(
          Effect.andThen(Effect.ignore(storage.setRunnerHealth(address, false)))
        )
      )
    return yield* Effect.flatMap(storage.getRunners, (runners) =>
      Effect.forEach(
        runners.filter(([{ address }, isHealthy]) => isHealthy && keyOf(address) !== keyOf(self)),
        ([{ address }]) => FiberMap.run(watches, keyOf(address), watch(address), { onlyIfMissing: true }),
        { discard: true }
      )
    ).pipe(Effect.ignore, Effect.repeat(Schedule.spaced("500 millis")))
  })

/** Watches the other workers of the cluster for the worker at an address. */
export const dead = (self: RunnerAddress): Layer.Layer<never, never, RunnerStorage | PeerSockets> =>
  Layer.effectDiscard(Effect.forkScoped(Effect.scoped(make(self))))
