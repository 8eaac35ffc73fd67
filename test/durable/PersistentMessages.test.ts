/** The faults of effect 4.1.0 that `PersistentMessages` works around. A test of the fault itself that fails says that the module can go. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { ClusterError, type MessageStorage, SqlMessageStorage } from "effect/cluster"
import { Digest } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { persistent } from "../../src/durable/internal/PersistentMessages.ts"

const lost = new ClusterError.PersistenceError({ cause: new Error("the connection is lost") })

const address = {
  shardId: { group: "default", id: 1 },
  entityType: "AgentSession",
  entityId: "s"
}
const envelope = {
  _tag: "Request",
  requestId: "1",
  address,
  tag: "Start",
  payload: {},
  headers: {}
} as const
const request = { envelope, primaryKey: "AgentSession/s/Start/a", deliverAt: null }
const reply = {
  _tag: "WithExit",
  id: "2",
  requestId: "1",
  exit: { _tag: "Success", value: null }
} as const

const storage = SqlMessageStorage.makeEncoded()
const provided = Layer.mergeAll(NodeSqlite.layer({ filename: ":memory:" }), Digest.layerWebCrypto)

/** Fails the first call, before or after it has done its work. */
const failing = <A extends ReadonlyArray<unknown>, B>(
  call: (...args: A) => Effect.Effect<B, ClusterError.PersistenceError>,
  when: "before" | "after"
) => {
  let calls = 0
  return (...args: A) =>
    Effect.suspend(() => {
      if (calls++ > 0) return call(...args)
      return when === "before" ? Effect.fail(lost) : Effect.andThen(call(...args), Effect.fail(lost))
    })
}

/** Runs an effect, and the clock until it has ended. */
const patiently = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
    while (fiber.pollUnsafe() === undefined) {
      yield* Effect.yieldNow
      yield* TestClock.adjust("1 second")
    }
    return yield* Fiber.join(fiber)
  })

const now = 1
const shards = ["default:1"] as const

describe("PersistentMessages", () => {
  it.effect("stores a request after a lost connection, once", () =>
    Effect.gen(function* () {
      const sql = yield* storage
      for (const when of ["before", "after"] as const) {
        const faulty = { ...sql, saveEnvelope: failing(sql.saveEnvelope, when) }
        assert.strictEqual((yield* Effect.flip(faulty.saveEnvelope(request)))._tag, "PersistenceError")
        const mended = persistent({ ...sql, saveEnvelope: failing(sql.saveEnvelope, when) })
        yield* patiently(mended.saveEnvelope(request))
      }
      const client = yield* SqlClient.SqlClient
      const rows = yield* client`SELECT id FROM cluster_messages`
      assert.strictEqual(rows.length, 1)
    }).pipe(Effect.provide(provided))
  )

  it.effect("recognises a reply whose commit was not confirmed", () =>
    Effect.gen(function* () {
      const sql = yield* storage
      yield* sql.saveEnvelope(request)
      const faulty = { ...sql, saveReply: failing(sql.saveReply, "after") }
      yield* Effect.flip(faulty.saveReply(reply))
      // The fault: the second attempt meets the key of the first one.
      assert.strictEqual((yield* Effect.flip(faulty.saveReply(reply)))._tag, "PersistenceError")
      yield* patiently(persistent(faulty).saveReply(reply))
      assert.lengthOf(yield* sql.repliesForUnfiltered(["1"]), 1)
    }).pipe(Effect.provide(provided))
  )

  it.effect("gives messages again that a read has claimed and lost", () =>
    Effect.gen(function* () {
      const sql = yield* storage
      yield* sql.saveEnvelope(request)
      const read = (from: MessageStorage.Encoded) => from.unprocessedMessages([...shards], now)
      const faulty = () => ({ ...sql, unprocessedMessages: failing(sql.unprocessedMessages, "after") })
      const plain = faulty()
      yield* Effect.flip(read(plain))
      // The fault: the message stays claimed for ten minutes.
      assert.lengthOf(yield* read(plain), 0)
      yield* sql.resetShards([...shards])
      const mended = persistent(faulty())
      yield* Effect.flip(read(mended))
      assert.lengthOf(yield* read(mended), 1)
    }).pipe(Effect.provide(provided))
  )
})
