import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Schedule, Schema } from "effect"
import { ClusterWorkflowEngine, MachineId, Snowflake } from "effect/cluster"
import { DurableDeferred, Workflow } from "effect/workflow"
import { Agent, Message } from "effect-agent"
import { ArtifactStore, SqlArtifactStore } from "effect-agent/artifacts"
import { AgentRun, Cluster, DurableRuns, Retention } from "effect-agent/durable"
import { Agents, Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import * as PersistentMessages from "../../src/durable/internal/PersistentMessages.ts"
import { processOf } from "../server/sqlRuns.ts"
import { said } from "../sessions/records.ts"
import { onEach } from "../sql/suites.ts"

const day = 86_400_000
let sequence = 0
const idAt = (timestamp: number) =>
  Snowflake.make({ timestamp, machineId: MachineId.make(1), sequence: sequence++ })

onEach((_, make) => {
  it.live(
    "removes old runs and sessions, and nothing that is needed",
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
        const id = idAt(now - 40 * day)
        const place = { shard_id: "default:1", entity_type: "Workflow/AgentRun", entity_id: "s" }
        yield* sql`INSERT INTO cluster_messages ${sql.insert({ id, request_id: id, ...place, kind: 0 })}`
        yield* sql`UPDATE cluster_messages SET processed = TRUE WHERE id = ${id}`
        const reply = { id: idAt(now), request_id: id, kind: 0, payload: "{}" }
        yield* sql`INSERT INTO cluster_replies ${sql.insert(reply)}`
        const swept = yield* Effect.provide(Retention.sweep("30 days"), context)
        assert.deepStrictEqual(swept, { runs: 3, sessions: 1, workflows: 0, artifacts: 0 })
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
        assert.deepStrictEqual(counts.flat().map(Number), [1, 1])
        assert.deepStrictEqual(yield* Effect.provide(Retention.sweep("30 days"), context), {
          runs: 0,
          sessions: 0,
          workflows: 0,
          artifacts: 0
        })
      }),
    60_000
  )

  it.live(
    "removes the large results of tools that no session names",
    () =>
      Effect.gen(function* () {
        const { context, sessions, sql } = yield* processOf(yield* make)
        const built = yield* Layer.build(Layer.provide(SqlArtifactStore.layer, Layer.succeedContext(context)))
        const artifacts = Context.get(built, ArtifactStore.ArtifactStore)
        const put = (id: string, text = "x") =>
          artifacts.put({
            id,
            runId: "r",
            toolCallId: "c",
            toolName: "log",
            mediaType: "text/plain",
            text
          })
        const ids = ["artifact_of-kept", "artifact_of-fork", "artifact_gone", "artifact_gone-2", "own"]
        yield* Effect.forEach(ids, (id) => put(id, "x".repeat(300_000)))
        const told = (sessionId: string, text: string) =>
          Effect.scoped(
            Effect.flatMap(sessions.openOrCreate(sessionId), (session) =>
              session.record([said(Message.user(text))])
            )
          )
        yield* told("kept", `${"x".repeat(262_100)} artifact_of-kept`)
        yield* told("old", "artifact_gone artifact_gone-2 artifact_of-fork")
        yield* sessions.fork("old")
        const ago = Date.now() - 40 * day
        yield* sql`UPDATE effect_agent_artifact SET created = ${ago}`
        yield* put("artifact_new")
        yield* sql`UPDATE effect_agent_session SET modified = ${ago} WHERE session_id = 'old'`
        // A fork that was made from the entries of the old session.
        const before = yield* Effect.provide(Retention.sweep("30 days"), context)
        assert.deepInclude(before, { sessions: 1, artifacts: 0 })
        for (const { sessionId } of (yield* sessions.list()).items)
          if (sessionId !== "kept") yield* sessions.delete(sessionId)
        yield* told("other", "artifact_of-fork")
        const swept = yield* Effect.provide(Retention.sweep("30 days"), context)
        assert.deepInclude(swept, { sessions: 0, artifacts: 2 })
        const left = yield* Effect.filter([...ids, "artifact_new"], (id) =>
          Effect.isSuccess(artifacts.get(id))
        )
        assert.deepStrictEqual(left, ["artifact_of-kept", "artifact_of-fork", "own", "artifact_new"])
      }),
    60_000
  )

  it.live(
    "removes finished executions of AgentRun, but for those that a workflow may read again",
    () =>
      Effect.gen(function* () {
        const { context, sql } = yield* processOf(yield* make)
        const provided = Layer.succeedContext(context)
        const runs = Layer.provide(DurableRuns.layer(), DurableRuns.worker({ flush: 0 }))
        const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
          Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("one"), ScriptedProvider.text("two")]))
        )
        const parent = Parent.toLayer(() =>
          Effect.gen(function* () {
            yield* AgentRun.AgentRun.execute(
              yield* AgentRun.payload({ id: "child", sessionId: "s", prompt: "hi" })
            )
            yield* DurableDeferred.await(go)
          }).pipe(Effect.orDie)
        )
        const cluster = yield* Layer.build(
          parent.pipe(
            Layer.provideMerge(AgentRun.layer),
            Layer.provideMerge(Layer.merge(ClusterWorkflowEngine.layer, runs)),
            Layer.provide(agents),
            Layer.provideMerge(Layer.orDie(Cluster.embedded({ workflows: true }))),
            Layer.provideMerge(provided)
          )
        )
        yield* Effect.gen(function* () {
          yield* (yield* Runs.Runs).sessions.create({ sessionId: "s" })
          const alone = yield* AgentRun.payload({ id: "alone", sessionId: "s", prompt: "hi" })
          yield* AgentRun.AgentRun.execute(alone)
          const executionId = yield* Parent.execute({ id: "p" }, { discard: true })
          const suspended = Effect.map(
            sql`SELECT 1 FROM cluster_messages m JOIN cluster_replies r ON r.request_id = m.request_id
              WHERE m.entity_type = 'Workflow/Report' AND r.payload LIKE '%Suspended%'`,
            ({ length }) => length > 0
          )
          const children = sql`SELECT 1 FROM cluster_messages m JOIN cluster_replies r ON r.request_id = m.request_id
            WHERE m.entity_type = 'Workflow/AgentRun' AND m.tag = 'run' AND r.payload LIKE '%Complete%'`
          const until = (is: Effect.Effect<boolean, unknown>) =>
            Effect.repeat(is, { until: (is) => is, schedule: Schedule.spaced("20 millis") })
          yield* until(Effect.map(children, ({ length }) => length === 2))
          yield* until(suspended)
          const sweep = Effect.map(Retention.sweep(0), ({ workflows }) => workflows)
          assert.strictEqual(yield* sweep, 1)
          assert.strictEqual(yield* sweep, 0)
          const token = DurableDeferred.tokenFromExecutionId(go, { workflow: Parent, executionId })
          yield* DurableDeferred.succeed(go, { token, value: undefined })
          yield* Parent.execute({ id: "p" })
          assert.strictEqual(yield* sweep, 1)
          const left = yield* sql`SELECT DISTINCT entity_type FROM cluster_messages`.values
          assert.notInclude(left.flat(), "Workflow/AgentRun")
        }).pipe(Effect.provide(cluster))
      }),
    60_000
  )
})

const go = DurableDeferred.make("go")
const Parent = Workflow.make("Report", { payload: { id: Schema.String }, idempotencyKey: ({ id }) => id })
