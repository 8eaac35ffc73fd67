import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ClusterWorkflowEngine } from "effect/cluster"
import { AgentRun, Cluster } from "effect-agent/durable"
import { Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { database, make } from "./embedded.ts"

const cluster = Cluster.embedded({ workflows: true }).pipe(Layer.provide(database))

const layer = (script: ScriptedProvider.Script) =>
  AgentRun.layer.pipe(
    Layer.provideMerge(
      Layer.merge(
        Layer.provide(ClusterWorkflowEngine.layer, cluster),
        make(script, undefined, undefined, cluster)
      )
    )
  )

describe("AgentRun", () => {
  it.live("runs a prompt once for an id, and succeeds with the run when it is over", () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      yield* runs.sessions.create({ sessionId: "s" })
      const prompt = yield* AgentRun.payload({ id: "a", sessionId: "s", prompt: "hi" })
      const run = yield* AgentRun.AgentRun.execute(prompt)
      assert.deepInclude(run, { sessionId: "s", status: "completed", turns: 1 })
      assert.deepStrictEqual(yield* AgentRun.AgentRun.execute(prompt), run)
      const [only, ...others] = yield* runs.list("s")
      assert.deepStrictEqual([only?.runId, others.length], [run.runId, 0])
      const none = yield* AgentRun.payload({ id: "b", sessionId: "none", prompt: "hi" })
      assert.strictEqual((yield* Effect.flip(AgentRun.AgentRun.execute(none)))._tag, "SessionNotFound")
    }).pipe(Effect.provide(layer([ScriptedProvider.text("done")])))
  )

  it.live("runs a body that version 1 stored", () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      yield* runs.sessions.create({ sessionId: "s" })
      const message = `{"role":"user","id":"msg_1","content":[{"type":"text","text":"hi"}],"timestamp":1}`
      const options = `{"toolExecution":"sequential"}`
      const body = `{"v":1,"body":{"sessionId":"s","prompt":[${message}],"options":${options}}}`
      const run = yield* AgentRun.AgentRun.execute({ id: "a", body })
      assert.deepInclude(run, { sessionId: "s", status: "completed", turns: 1 })
    }).pipe(Effect.provide(layer([ScriptedProvider.text("done")])))
  )

  it.live("refuses a body of another version", () =>
    Effect.gen(function* () {
      const { body, id } = yield* AgentRun.payload({ id: "c", sessionId: "s", prompt: "hi" })
      const later = { id, body: body.replace('"v":1', '"v":2') }
      const refused = yield* Effect.flip(AgentRun.AgentRun.execute(later))
      assert.strictEqual(refused._tag, "MalformedRequest")
      assert.include(refused.message, "version 2")
    }).pipe(Effect.provide(layer([])))
  )
})
