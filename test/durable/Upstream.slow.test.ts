/**
 * What modules of `src/durable` work around in effect 4.1.0. A test that fails says that upstream is mended: its title names what can go.
 * `PersistentMessages.test.ts` has those of the storage of messages, and `SqlFaults.slow.test.ts` that of `SqlTransaction`.
 */
import { NodeSocket } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import {
  MessageStorage,
  Runner,
  RunnerAddress,
  RunnerHealth,
  RunnerStorage,
  Runners,
  Sharding,
  ShardingConfig,
  SqlMessageStorage,
  SqlRunnerStorage
} from "effect/cluster"
import { Digest } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Socket } from "node:net"
import { vi } from "vitest"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import * as Postgres from "../sql/postgres.ts"
import { onServer } from "../sql/suites.ts"

const self = RunnerAddress.make("127.0.0.1", 4112)
const other = RunnerAddress.make("127.0.0.1", 4113)

/** A cluster of two workers, in which this one has no shard. */
const withoutShards = Effect.gen(function* () {
  const counts = { acquired: 0, checked: 0 }
  const memory = yield* Effect.provide(RunnerStorage.RunnerStorage, RunnerStorage.layerMemory)
  yield* memory.register(Runner.make({ address: other, groups: ["default"], weight: 1 }), true)
  const storage = Layer.succeed(RunnerStorage.RunnerStorage, {
    ...memory,
    acquire: () => Effect.sync(() => (counts.acquired++, []))
  })
  const health = Layer.succeed(RunnerHealth.RunnerHealth, {
    isAlive: () => Effect.sync(() => (counts.checked++, true))
  })
  const config = ShardingConfig.layer({
    runnerAddress: Option.some(self),
    refreshAssignmentsInterval: 250,
    runnerHealthCheckInterval: 2000
  })
  yield* Layer.build(
    Sharding.layer.pipe(
      Layer.provide([Runners.layerNoop, storage, health]),
      Layer.provide(MessageStorage.layerNoop),
      Layer.provide(config)
    )
  )
  return counts
})

describe("upstream", () => {
  it.effect("asks for locks that it did not get a second later: PromptLocks can go", () =>
    Effect.gen(function* () {
      const counts = yield* withoutShards
      while (counts.acquired === 0) yield* TestClock.adjust("50 millis")
      const first = counts.acquired
      yield* TestClock.adjust("900 millis")
      assert.strictEqual(counts.acquired, first)
    })
  )

  it.effect("checks other workers in the worker of one singleton alone: DeadPeers can go", () =>
    Effect.gen(function* () {
      const counts = yield* withoutShards
      yield* TestClock.adjust("60 seconds")
      assert.isAbove(counts.acquired, 0)
      assert.strictEqual(counts.checked, 0)
    })
  )

  it.live("delays small writes of sockets: noDelay of NodeCluster can go", () =>
    Effect.gen(function* () {
      const connect = vi.spyOn(Socket.prototype, "connect")
      yield* Effect.addFinalizer(() => Effect.sync(() => connect.mockRestore()))
      const socket = yield* NodeSocket.makeNet({ host: "127.0.0.1", port: 1 })
      yield* Effect.ignore(Effect.flatMap(socket.reader, ({ pull }) => pull))
      const options = JSON.stringify(connect.mock.calls)
      assert.include(options, '"port":1')
      assert.notInclude(options, "noDelay")
    })
  )

  it.effect("has no index for the messages of an entity: the index of PersistentMessages can go", () =>
    Effect.gen(function* () {
      yield* SqlMessageStorage.makeEncoded()
      const sql = yield* SqlClient.SqlClient
      const plan = yield* sql`EXPLAIN QUERY PLAN DELETE FROM cluster_messages
        WHERE entity_type = 'Workflow/AgentRun' AND entity_id = 'a'`
      assert.match(JSON.stringify(plan), /SCAN cluster_messages/)
    }).pipe(Effect.provide([NodeSqlite.layer({ filename: ":memory:" }), Digest.layerWebCrypto]))
  )
})

describe.skipIf(!Postgres.isInstalled)("upstream on PostgreSQL", () =>
  onServer((make) => {
    it.live(
      "keeps times without their zone: TimeZone and startupParameters of DurablePlace can go",
      () =>
        Effect.gen(function* () {
          const url = yield* make
          const at = (timezone: string) =>
            Effect.map(
              Layer.build(
                SqlRunnerStorage.layer.pipe(
                  Layer.provide(ShardingConfig.layer({})),
                  Layer.provide(PgClient.layer({ url: Redacted.make(url), startupParameters: { timezone } }))
                )
              ),
              (context) => Context.get(context, RunnerStorage.RunnerStorage)
            )
          const here = yield* at("UTC")
          const away = yield* at("Pacific/Kiritimati")
          yield* here.register(Runner.make({ address: self, groups: ["default"], weight: 1 }), true)
          assert.lengthOf(yield* here.getRunners, 1)
          assert.lengthOf(yield* away.getRunners, 0)
        }),
      60_000
    )
  })
)
