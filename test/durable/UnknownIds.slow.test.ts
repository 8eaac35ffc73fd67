/** Ids that PostgreSQL cannot hold. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent } from "effect-agent"
import { Cluster, DurableRuns } from "effect-agent/durable"
import { Agents, Runs, SqlRunLogStore } from "effect-agent/server"
import { SqlSessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { client } from "../sql/databases.ts"
import { onEach } from "../sql/suites.ts"

const id = "a\0b"

/** A server and worker on a database. */
const served = (url: string) => {
  const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session }))
  return DurableRuns.layer().pipe(
    Layer.provideMerge(DurableRuns.worker()),
    Layer.provide([Layer.provide(agents, ScriptedProvider.layer([])), Cluster.embedded()]),
    Layer.provide(SqlRunLogStore.layer()),
    Layer.provide(SqlSessionStore.layer({ takeOver: true })),
    Layer.provide(client(url))
  )
}

onEach((_, make) => {
  it.live(
    "an id with the character NUL is that of no session and of no run",
    () =>
      Effect.gen(function* () {
        const runs = yield* Runs.Runs
        for (const request of [
          runs.sessions.get(id),
          runs.sessions.update(id, { name: "n" }),
          runs.sessions.fork(id, {}),
          runs.sessions.remove(id),
          runs.list(id),
          runs.start({ sessionId: id, prompt: "hi" })
        ])
          assert.strictEqual(
            (yield* Effect.flip<unknown, { _tag: string }, never>(request))._tag,
            "SessionNotFound"
          )
        for (const request of [runs.get(id), runs.watch(id, 0), runs.cancel(id), runs.remove(id)])
          assert.strictEqual(
            (yield* Effect.flip<unknown, { _tag: string }, never>(request))._tag,
            "RunNotFound"
          )
      }).pipe(Effect.provide(Layer.unwrap(Effect.map(make, served)))),
    60_000
  )
})
