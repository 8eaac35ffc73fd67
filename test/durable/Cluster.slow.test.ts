import { assert, describe, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, type Redacted, Schema } from "effect"
import { Entity, type Sharding } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { Cluster } from "effect-agent/durable"
import * as NodeCluster from "effect-agent/node/NodeCluster"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { sqlite } from "../sql/databases.ts"
import * as Postgres from "../sql/postgres.ts"
import { freePort } from "./ports.ts"
import { linkSync, rmSync, writeFileSync } from "node:fs"

/** An entity that says which worker it lives on. */
const Place = Entity.make("Place", [Rpc.make("Where", { success: Schema.Int })])
const placed = (port: number) => Place.toLayer({ Where: () => Effect.succeed(port) })
const where = (id: string) => Effect.flatMap(Place.client, (client) => client(id).Where())
const ids = Array.from({ length: 40 }, (_, index) => `session-${index}`)

const database = (url: Redacted.Redacted) =>
  PgClient.layer({ url, maxConnections: 4, startupParameters: { timezone: "UTC" } })

const worker = (url: Redacted.Redacted, port: number) =>
  placed(port).pipe(
    Layer.provideMerge(NodeCluster.worker({ port, lease: "6 seconds" })),
    Layer.provide(database(url))
  )

const client = (url: Redacted.Redacted) =>
  Layer.provide(NodeCluster.client({ lease: "6 seconds" }), database(url))

/** Asks for the workers of all sessions until the answer is as wanted. */
const placesUntil = (wanted: (ports: ReadonlySet<number>) => boolean) =>
  Effect.map(Effect.forEach(ids, where, { concurrency: 8 }), (ports) => new Set(ports)).pipe(
    Effect.repeat({ until: wanted }),
    Effect.timeout("15 seconds")
  )

const provided = <E, R>(layer: Layer.Layer<Sharding.Sharding, E, R>) => Layer.build(layer)

describe("Cluster.embedded", () => {
  it.live("refuses a file that has a second name", () =>
    Effect.gen(function* () {
      const filename = (yield* sqlite).slice("sqlite:".length)
      const process = Cluster.embedded().pipe(Layer.provide(NodeSqlite.layer({ filename })))
      writeFileSync(filename, "")
      linkSync(filename, `${filename}.other`)
      const refused = yield* Effect.flip(Effect.scoped(provided(process)))
      assert.deepInclude(refused, { _tag: "ClusterRefused", reason: "Storage" })
      assert.include(refused.message, "second name")
      rmSync(`${filename}.other`)
      yield* Effect.scoped(provided(Layer.fresh(process)))
    })
  )

  it.live("runs entities in one process, and refuses a second one", () =>
    Effect.gen(function* () {
      const url = yield* sqlite
      const filename = url.slice("sqlite:".length)
      const process = placed(1).pipe(
        Layer.provideMerge(Cluster.embedded()),
        Layer.provide(NodeSqlite.layer({ filename }))
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const first = yield* provided(process)
          assert.strictEqual(yield* Effect.provide(where("a"), first), 1)
          const refused = yield* Effect.flip(Effect.scoped(provided(Layer.fresh(process))))
          assert.strictEqual(refused._tag, "ClusterRefused")
          if (refused._tag === "ClusterRefused") assert.strictEqual(refused.reason, "AlreadyRunning")
          assert.include(refused.message, filename)
        })
      )
      const next = yield* provided(Layer.fresh(process))
      assert.strictEqual(yield* Effect.provide(where("a"), next), 1)
    })
  )
})

describe.skipIf(!Postgres.isInstalled)("Cluster.worker", () => {
  it.live(
    "routes calls to the worker of a session, shares sessions with one that comes, and takes those of one that goes",
    () =>
      Effect.gen(function* () {
        const { url } = yield* Postgres.start
        const [one, two] = [yield* freePort, yield* freePort]
        yield* provided(worker(url, one))
        const outside = yield* provided(client(url))
        const all = (wanted: ReadonlyArray<number>) =>
          Effect.provide(
            placesUntil((ports) => ports.size === wanted.length && wanted.every((port) => ports.has(port))),
            outside
          )
        yield* all([one])
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* provided(worker(url, two))
            yield* all([one, two])
          })
        )
        yield* all([one])
      })
  )

  it.live("refuses sessions of PostgreSQL with another time zone than UTC", () =>
    Effect.gen(function* () {
      const { url } = yield* Postgres.start
      const zoned = PgClient.layer({ url, startupParameters: { timezone: "Europe/Oslo" } })
      const refused = yield* Effect.flip(Effect.scoped(provided(Layer.provide(NodeCluster.client(), zoned))))
      assert.strictEqual(refused._tag, "ClusterRefused")
      assert.include(refused.message, "Europe/Oslo")
    })
  )
})
