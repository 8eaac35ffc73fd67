import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { MachineId, Snowflake } from "effect/cluster"
import { Message } from "effect-agent"
import { Retention } from "effect-agent/durable"
import * as PersistentMessages from "../../src/durable/PersistentMessages.ts"
import { processOf } from "../server/sqlRuns.ts"
import { said } from "../sessions/records.ts"
import { onEach } from "../sql/suites.ts"

const day = 86_400_000
let sequence = 0
const idAt = (timestamp: number) =>
  Snowflake.make({ timestamp, machineId: MachineId.make(1), sequence: sequence++ })

onEach((_, make) => {
  it.live(
    "removes old runs, sessions and messages, and nothing that is needed",
    () =>
      Effect.gen(function* () {
        const { context, logs, sessions, sql } = yield* processOf(yield* make)
        yield* Layer.build(Layer.provide(PersistentMessages.layer, Layer.succeedContext(context)))
        const now = Date.now()
        // A session and its ended run, of each age.
        const kept = (sessionId: string, runId: string, end: boolean) =>
          Effect.scoped(
            Effect.gen(function* () {
              const session = yield* sessions.openOrCreate(sessionId)
              yield* session.record([said(Message.user("hello"))])
              const append = yield* logs.open({ runId, sessionId })
              yield* append(["1"])
              yield* logs.addKey(sessionId, runId)
              if (end) yield* logs.end({ runId, sessionId })
            })
          )
        yield* kept("old", "r1", true)
        yield* kept("waits", "r2", true)
        yield* kept("waits", "r3", false)
        yield* kept("open", "r4", true)
        yield* sql`UPDATE effect_agent_session SET modified = ${now - 40 * day}`
        yield* sql`UPDATE effect_agent_run SET ended = ${now - 40 * day} WHERE ended IS NOT NULL`
        yield* kept("new", "r5", true)
        yield* sessions.open("open")
        const message = (age: number, type: string, isProcessed: boolean) =>
          Effect.gen(function* () {
            const id = idAt(now - age * day)
            const row = {
              id,
              request_id: id,
              shard_id: "default:1",
              entity_type: type,
              entity_id: "s",
              kind: 0
            }
            yield* sql`INSERT INTO cluster_messages ${sql.insert(row)}`
            if (!isProcessed) return
            yield* sql`UPDATE cluster_messages SET processed = TRUE WHERE id = ${id}`
            const reply = { id: idAt(now), request_id: id, kind: 0, payload: "{}" }
            yield* sql`INSERT INTO cluster_replies ${sql.insert(reply)}`
          })
        for (let n = 0; n < 620; n++) yield* message(40, "AgentSession", true)
        yield* message(40, "AgentSession", false)
        yield* message(1, "AgentSession", true)
        yield* message(40, "Workflow/AgentRun", true)
        const swept = yield* Effect.provide(Retention.sweep("30 days"), context)
        assert.deepStrictEqual(swept, { runs: 3, sessions: 1, messages: 620 })
        const { items } = yield* sessions.list()
        assert.sameMembers(
          items.map(({ sessionId }) => sessionId),
          ["waits", "open", "new"]
        )
        assert.isUndefined(yield* logs.find("r1"))
        assert.deepStrictEqual(yield* logs.keys("old"), [])
        for (const runId of ["r3", "r5"]) assert.isDefined(yield* logs.find(runId))
        const counts =
          yield* sql`SELECT (SELECT count(*) FROM cluster_messages), (SELECT count(*) FROM cluster_replies)`
            .values
        assert.deepStrictEqual(counts.flat().map(Number), [3, 2])
        assert.deepStrictEqual(yield* Effect.provide(Retention.sweep("30 days"), context), {
          runs: 0,
          sessions: 0,
          messages: 0
        })
      }),
    60_000
  )
})
