/**
 * The processes that run the sessions of one database: Effect's cluster, set up for workers that are killed, frozen, cut off and replaced.
 *
 * **Details**
 *
 * Each session belongs to one worker at a time. When a worker ends, the other ones take its sessions over; when one comes, it gets a share.
 *
 * **Gotchas**
 *
 * Workers trust one another: their sockets ask for no password and encrypt nothing. Use them on the loopback or in a private network.
 * PostgreSQL needs version 14 or later, sessions of its own (no pooler that shares them between transactions), and the time zone UTC.
 *
 * @since 0.2.0
 */
import * as MessageStorage from "effect/cluster/MessageStorage"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as SocketRunner from "effect/cluster/SocketRunner"
import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import type { SocketServer } from "effect/socket/SocketServer"
import * as Peers from "./internal/Peers.ts"
import type { PeerSockets } from "./PeerSockets.ts"
import * as PersistentMessages from "./internal/PersistentMessages.ts"
import * as Shards from "./internal/Shards.ts"
export { Shards } from "./internal/Shards.ts"
import * as Schema from "effect/Schema"
import { TaggedError } from "../internal/errors.ts"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type * as Scope from "effect/Scope"
import * as NodeSqliteLock from "../sql/NodeSqliteLock.ts"
import * as SqlOwner from "../sql/SqlOwner.ts"

/**
 * The options that all processes of a cluster share.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /**
   * The time after which the cluster takes the sessions of a worker that does not answer, such as a frozen one, a duration. Those of a
   * worker whose process ended go to others within two seconds. Default 15 seconds, at least 5: a shorter one counts as 5 seconds.
   */
  readonly lease?: Duration.Input
  /**
   * Whether the database keeps messages for workflows, such as `AgentRun`: `ClusterWorkflowEngine` needs them. Sessions need none, and a
   * process without them does not look for any. Default false.
   */
  readonly workflows?: boolean
}

/**
 * The options of a worker.
 *
 * @category options
 * @since 0.2.0
 */
export interface WorkerOptions extends Options {
  /** The host under which the other processes of the cluster reach this one. Default `"127.0.0.1"`. */
  readonly host?: string
  /** The port. It is below 32768 as a rule: the system gives those above to outgoing connections. */
  readonly port: number
}

/** The services that a process of a cluster uses. */
type Cluster = Sharding.Sharding | Runners.Runners

/** The storage that the engine of workflows uses, with the option for them. */
type Messages<O extends Options> = O extends { readonly workflows: true }
  ? MessageStorage.MessageStorage
  : never

/** The services that a process of a cluster uses which runs sessions. */
type Worker = Cluster | Shards.Shards

/** What a process needs that reaches others. */
type Sockets = SqlClient.SqlClient | PeerSockets

/** A tool may begin up to two seconds after the last write that the database accepted: no other worker has the session by then. */
const shortest = Duration.seconds(5)

const settings = ({ lease = "15 seconds" }: Options = {}): Partial<
  ShardingConfig.ShardingConfig["Service"]
> => {
  const expiration = Duration.toMillis(Duration.max(Duration.fromInputUnsafe(lease), shortest))
  return {
    shardLockExpiration: expiration,
    shardLockRefreshInterval: expiration / 3,
    refreshAssignmentsInterval: 250,
    // Also the time after which a worker asks for its shards again when the database has refused it.
    entityMessagePollInterval: 1000,
    runnerHealthCheckInterval: 2000,
    // The requests of a session end at once when it moves. Those that do not must not keep it.
    entityTerminationTimeout: 5000,
    simulateRemoteSerialization: false
  }
}

const messages = ({ workflows = false }: Options = {}) =>
  workflows ? PersistentMessages.layer : MessageStorage.layerNoop

/**
 * Makes a layer of the cluster of one process, for a database in an SQLite file.
 *
 * **Details**
 *
 * The process holds a lock beside the file. The layer fails with `ClusterRefused` if another process has it.
 *
 * **Example** (Providing the cluster of an SQLite file)
 *
 * ```ts
 * import { Layer } from "effect"
 * import { Cluster } from "effect-agent/durable"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 *
 * export const cluster = Cluster.embedded().pipe(Layer.provideMerge(NodeSqlite.layer({ filename: "./agent.db" })))
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const embedded = <const O extends Options>(
  options?: O
): Layer.Layer<Worker | Messages<O>, ClusterRefused, SqlClient.SqlClient> =>
  Sharding.layer.pipe(
    Layer.provideMerge(Runners.layerNoop),
    Layer.provideMerge(messages(options)),
    // With the lock of the process, locks in the database would cost a statement a reply, and protect nothing.
    Layer.provide(RunnerHealth.layerNoop),
    Layer.provideMerge(Shards.layer(RunnerStorage.layerMemory)),
    Layer.provide(ShardingConfig.layer(settings(options))),
    Layer.provide(Layer.effectDiscard(takeFile))
  )

const calls = Peers.calls.pipe(Layer.provideMerge(RpcSerialization.layerSchemaBinary()))

/**
 * Makes a layer of a worker, which runs sessions of the database and listens to the other processes of the cluster.
 *
 * **Details**
 *
 * `worker` of `effect-agent/node/NodeCluster` has the sockets of Node.
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
export const worker = <const O extends WorkerOptions>(
  options: O
): Layer.Layer<Worker | Messages<O>, ClusterRefused, Sockets | SocketServer> => {
  const { host = "127.0.0.1", port } = options
  const address = RunnerAddress.make(host, port)
  const config = { ...settings(options), runnerAddress: Option.some(address) }
  return SocketRunner.layer.pipe(
    Layer.provide(Layer.provide(RunnerHealth.layerPing, Runners.layerRpc)),
    Layer.merge(Peers.dead(address)),
    Layer.provide(calls),
    Layer.provideMerge(Shards.layer(Shards.locks)),
    Layer.provideMerge(messages(options)),
    Layer.provide(ShardingConfig.layer(config)),
    Layer.provide(Layer.effectDiscard(checkTimeZone))
  )
}

/**
 * Makes a layer of a process that runs no sessions: it sends to the workers, and reads what they store.
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
export const client = <const O extends Options>(
  options?: O
): Layer.Layer<Cluster | Messages<O>, ClusterRefused, Sockets> =>
  SocketRunner.layerClientOnly.pipe(
    Layer.provide([calls, Shards.locks]),
    Layer.provideMerge(messages(options)),
    Layer.provide(ShardingConfig.layer(settings(options))),
    Layer.provide(Layer.effectDiscard(checkTimeZone))
  )

// ───────────────────────── Conditions

/**
 * A process cannot take part in the cluster.
 *
 * **Details**
 *
 * `reason` is `"AlreadyRunning"` if another process uses the SQLite file, `"TimeZone"` if the sessions of PostgreSQL do not have the time
 * zone UTC, and `"Storage"` if the database cannot be used.
 *
 * @category errors
 * @since 0.2.0
 */
export class ClusterRefused extends TaggedError<ClusterRefused>()("ClusterRefused", {
  /** The kind of failure. */
  reason: Schema.Literals(["AlreadyRunning", "TimeZone", "Storage"]),
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

// ───────────────────────── The time zone of the sessions of PostgreSQL

// Effect 4.1 keeps the times at which runners were last seen as TIMESTAMP without a zone, in the zone of the session that wrote them. A
// runner that has another one, or a zone with summer time, takes living runners for dead, and dead ones for living.

const utc: ReadonlyArray<unknown> = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Zulu"]

/** Fails unless the sessions of PostgreSQL have the time zone UTC. */
const checkTimeZone: Effect.Effect<void, ClusterRefused, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const zone = yield* Effect.mapError(zoneOf(sql), storageFailed)
  if (utc.includes(zone)) return
  const detail =
    `The sessions of PostgreSQL have the time zone ${String(zone)}. Set that of the client to UTC: ` +
    "PgClient.layer({ startupParameters: { timezone: \"UTC\" } }), or ALTER DATABASE … SET timezone = 'UTC'."
  return yield* new ClusterRefused({ reason: "TimeZone", detail })
})

const zoneOf = (sql: SqlClient.SqlClient): Effect.Effect<unknown, SqlError> =>
  sql.onDialectOrElse({
    pg: () => Effect.map(sql`SELECT current_setting('TimeZone')`.values, ([row]) => row?.[0]),
    orElse: () => Effect.succeed("UTC")
  })

const storageFailed = ({ message }: SqlError) => new ClusterRefused({ reason: "Storage", detail: message })

// ───────────────────────── The lock of an SQLite file for one process

// Effect 4.1 does not protect a file from a second process: with the same address, which is the default, each of them owns all shards and
// runs each call.

/** A process has one lock, so that its file has one name. */
const only = 1

/** Locks the database until the scope closes. The system takes the lock back from a process that ends, in whatever way. */
const takeFile: Effect.Effect<void, ClusterRefused, SqlClient.SqlClient | Scope.Scope> = Effect.gen(
  function* () {
    const sql = (yield* SqlClient.SqlClient).withoutTransforms()
    const file = yield* Effect.mapError(fileOf(sql), storageFailed)
    if (file === undefined) return
    if (yield* hasOtherName(file)) return yield* linked(file)
    const prefix = `${file}-durable-`
    yield* Effect.catch(NodeSqliteLock.take(prefix, only), (error) =>
      Effect.flatMap(Effect.mapError(NodeSqliteLock.isHeld(`${prefix}${only}`), storageFailed), (isHeld) =>
        isHeld ? alreadyRunning(file) : storageFailed(error)
      )
    )
  }
)

const fileOf = (sql: SqlClient.SqlClient) =>
  sql.onDialectOrElse({
    sqlite: () => SqlOwner.fileOf(sql),
    orElse: () => Effect.undefined
  })

/** Whether a file has a second name: a process that uses it by that one has another lock and another log, which damages the file. */
const hasOtherName = (file: string) =>
  Effect.try({
    try: () => process.getBuiltinModule("node:fs").statSync(file).nlink > 1,
    catch: (error) => new ClusterRefused({ reason: "Storage", detail: String(error) })
  })

const linked = (file: string) =>
  new ClusterRefused({
    reason: "Storage",
    detail: `${file} has a second name, a hard link, by which another process may damage it. Remove that name, or copy the file.`
  })

const alreadyRunning = (file: string) =>
  new ClusterRefused({
    reason: "AlreadyRunning",
    detail:
      `Another process uses ${file}. An SQLite file serves one process: ` +
      "end the other one, or keep the runs in PostgreSQL."
  })
