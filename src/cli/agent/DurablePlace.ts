/** The database of runs that survive the process, and the cluster of its workers. Loaded when it is used. */
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { SocketServer, type SocketServerError } from "effect/socket/SocketServer"
import { ArtifactStore } from "../../artifacts/ArtifactStore.ts"
import * as SqlArtifactStore from "../../artifacts/SqlArtifactStore.ts"
import * as Cluster from "../../durable/Cluster.ts"
import * as DurableRuns from "../../durable/DurableRuns.ts"
import * as Retention from "../../durable/Retention.ts"
import * as NodeCluster from "../../node/NodeCluster.ts"
import type { Agents } from "../../runs/Agents.ts"
import * as SqlRunLogStore from "../../runs/SqlRunLogStore.ts"
import * as SessionHome from "../../sessions/SessionHome.ts"
import { SessionStore } from "../../sessions/SessionStore.ts"
import * as SqlSessionStore from "../../sessions/SqlSessionStore.ts"
import { UsageError } from "../ExitCode.ts"
import type { Settings } from "../settings/Settings.ts"
import * as DatabaseStore from "./DatabaseStore.ts"
import * as Sessions from "./Sessions.ts"
import * as Values from "../settings/Values.ts"

/** The options of a process of the cluster. */
export interface Options {
  readonly lease: Option.Option<Duration.Duration>
  readonly retain: Option.Option<Duration.Duration>
  /** The address for the other processes. */
  readonly clusterHost: string
  /** Its port. Default, and 0: a free one. */
  readonly clusterPort: Option.Option<number>
}

/** The time for which writes wait for a database that is away. */
const patience = "10 minutes"

/** Opens the database, whose connections the scope holds. */
export const open = Effect.fnUntraced(function* (settings: Settings, options: Options) {
  const address = yield* databaseOf(settings)
  const path = yield* Path.Path
  const failureOf = DatabaseStore.failureOf(
    address._tag === "Sqlite" ? address.filename : Values.withoutPassword(address.url)
  )
  const database = yield* Effect.mapError(Effect.flatMap(clientOf(address), Layer.build), failureOf)
  const lease = Option.match(options.lease, { onNone: () => ({}), onSome: (lease) => ({ lease }) })
  const socket = address._tag === "Sqlite" ? undefined : yield* socketOf(options)
  const provided = Layer.succeedContext(database)
  // The lock of the file comes before the first write.
  const cluster =
    socket === undefined
      ? Layer.succeedContext(yield* Layer.build(Layer.provide(Cluster.embedded(lease), provided)))
      : Layer.provide(workerAt({ ...lease, ...socket }), provided)
  const stores = yield* SqlRunLogStore.layer({ patience }).pipe(
    Layer.provideMerge(SqlSessionStore.layer({ takeOver: true, patience })),
    Layer.merge(SqlArtifactStore.layer),
    Layer.provideMerge(provided),
    Layer.build,
    Effect.mapError(failureOf)
  )
  const artifacts = Context.get(stores, ArtifactStore)
  const sessions = Sessions.withArtifacts(Context.get(stores, SessionStore), artifacts)
  const cwd = path.resolve(settings.cwd)
  const runs = <R>(agents: Layer.Layer<Agents, never, R>) =>
    DurableRuns.layer({ cwd }).pipe(
      Layer.provide(Layer.provide(DurableRuns.worker({ cwd }), agents)),
      Layer.provide(cluster),
      Layer.merge(kept(options.retain)),
      Layer.provide(Layer.succeedContext(Context.add(stores, SessionStore, sessions)))
    )
  return { socket, artifacts, runs }
})

/** Removes what is old. */
const kept = (retain: Option.Option<Duration.Duration>) =>
  Option.match(retain, { onNone: () => Layer.empty, onSome: Retention.layer })

type Database = Exclude<Values.StoreAddress, { readonly _tag: "Files" }>

/** The database of `--store`, else a file in the home of the program. */
const databaseOf = Effect.fnUntraced(function* ({ cwd, store }: Settings) {
  const path = yield* Path.Path
  const address = Option.getOrUndefined(store)
  if (address?._tag === "Files") {
    const detail =
      "--durable keeps runs in a database: give --store sqlite:FILE or --store postgres://USER@HOST/DATABASE."
    return yield* new UsageError({ detail })
  }
  if (address?._tag === "Postgres") return address
  const home = yield* Effect.orDie(SessionHome.home)
  const filename =
    address === undefined
      ? path.join(home, "sessions", yield* SessionHome.folderOf(cwd), "durable.db")
      : path.resolve(address.filename)
  return { _tag: "Sqlite", filename } satisfies Database
})

/** The client of a database, which is loaded with it. */
const clientOf = Effect.fnUntraced(function* (address: Database) {
  if (address._tag === "Sqlite") {
    const { layer } = yield* Effect.promise(() => import("../../node/NodeSqlite.ts"))
    const folder = (yield* Path.Path).dirname(address.filename)
    yield* FileSystem.FileSystem.use((files) => files.makeDirectory(folder, { recursive: true, mode: 0o700 }))
    return layer({ filename: address.filename })
  }
  const { layer } = yield* Effect.promise(() => import("@effect/sql-pg/PgClient"))
  return layer({
    url: Redacted.make(address.url),
    maxConnections: 10,
    startupParameters: { timezone: "UTC" }
  })
})

const socketOf = Effect.fnUntraced(function* ({ clusterHost: host, clusterPort }: Options) {
  if (host === "0.0.0.0" || host === "::") {
    const detail = `Others reach a worker by its address, and ${host} is none: give the address of this machine in the private network.`
    return yield* new UsageError({ detail })
  }
  return yield* listenAt(host, Option.getOrUndefined(Option.filter(clusterPort, (port) => port !== 0)))
})

// ───────────────────────── The socket of a worker

/** The first port that is tried. It is below those that systems give to outgoing connections. */
const first = 4112
const last = first + 99

/** A socket that listens. */
interface Bound {
  readonly host: string
  readonly port: number
  readonly server: SocketServer["Service"]
}

/** Listens at the port, else at the first that is free. Processes that start at once get a port each. */
export const listenAt = (
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
const workerAt = ({ server, ...options }: Bound & Cluster.Options) =>
  Layer.provide(Cluster.worker(options), [NodeCluster.layerSockets, Layer.succeed(SocketServer, server)])
