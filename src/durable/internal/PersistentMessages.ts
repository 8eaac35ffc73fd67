/**
 * The storage of the messages of the cluster, which lives through lost connections to the database.
 *
 * Effect 4.1 has three faults here, each with a test that fails once it is gone:
 *
 * - A request that cannot be stored ends its caller with an error at once.
 * - A reply whose commit was not confirmed is stored again, meets its own key, and its caller waits for ever.
 * - Messages that a read has claimed, and whose rows were lost, stay claimed for ten minutes.
 */
import * as MessageStorage from "effect/cluster/MessageStorage"
import type { PersistenceError } from "effect/cluster/ClusterError"
import type * as Reply from "effect/cluster/Reply"
import * as Snowflake from "effect/cluster/Snowflake"
import * as SqlMessageStorage from "effect/cluster/SqlMessageStorage"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"

/** About ten minutes. */
const retries = 300
const backoff = Schedule.min([Schedule.exponential("50 millis", 2), Schedule.spaced("2 seconds")])

const again = <A>(call: Effect.Effect<A, PersistenceError>) =>
  Effect.retry(call, { schedule: backoff, times: retries })

/** Makes a storage that tries again what a key makes safe to repeat. */
export const persistent = (storage: MessageStorage.Encoded): MessageStorage.Encoded => {
  let isClaimLost = false
  const claim = (isLost: boolean) => Effect.sync(() => void (isClaimLost = isLost))
  const isStored = ({ id, requestId }: Reply.Encoded) =>
    Effect.map(storage.repliesForUnfiltered([requestId]), (replies) => replies.some((one) => one.id === id))
  return {
    ...storage,
    // Acknowledgements and interrupts have no key: they are tried once.
    saveEnvelope: (options) =>
      options.primaryKey === null
        ? storage.saveEnvelope(options)
        : again(Effect.suspend(() => storage.saveEnvelope(options))),
    saveReply: (reply) =>
      again(
        Effect.catch(
          Effect.suspend(() => storage.saveReply(reply)),
          (lost) => Effect.flatMap(isStored(reply), (is) => (is ? Effect.void : Effect.fail(lost)))
        )
      ),
    repliesFor: (ids) => again(Effect.suspend(() => storage.repliesFor(ids))),
    repliesForUnfiltered: (ids) => again(Effect.suspend(() => storage.repliesForUnfiltered(ids))),
    requestIdForPrimaryKey: (key) => again(Effect.suspend(() => storage.requestIdForPrimaryKey(key))),
    unprocessedMessages: (shards, now, options) =>
      Effect.suspend(() =>
        isClaimLost ? Effect.andThen(storage.resetShards(shards), claim(false)) : Effect.void
      ).pipe(
        Effect.andThen(Effect.suspend(() => storage.unprocessedMessages(shards, now, options))),
        Effect.tapError(() => claim(true))
      )
  }
}

/**
 * Finds the messages of an entity, which Effect 4.1 reads the whole table for when it interrupts a workflow. Another process may make the
 * index at the same time.
 */
const index = Effect.flatMap(SqlClient.SqlClient, (client) => {
  const sql = client.withoutTransforms()
  return Effect.ignore(
    sql`CREATE INDEX IF NOT EXISTS effect_agent_cluster_entity ON cluster_messages (entity_id, entity_type)`,
    { log: "Debug" }
  )
})

/** Provides the storage in the database of the context, in which it makes its tables. */
export const layer: Layer.Layer<MessageStorage.MessageStorage, never, SqlClient.SqlClient> = Layer.effect(
  MessageStorage.MessageStorage,
  Effect.flatMap(Effect.tap(SqlMessageStorage.makeEncoded(), index), (storage) =>
    MessageStorage.makeEncoded(persistent(storage))
  )
).pipe(Layer.provide([Snowflake.layerGenerator, Digest.layerWebCrypto]))
