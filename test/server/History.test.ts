import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { RunLogStore, Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { eventsOf, layer, stores } from "./host.ts"
import { gated, session } from "./runsContract.ts"

/** Stores whose logs are read only when the gate is open. */
const slow = (gate: Deferred.Deferred<void>, reading: Deferred.Deferred<void>) =>
  Effect.gen(function* () {
    const places = yield* stores
    const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
    const read: RunLogStore.Service["read"] = (run) =>
      Effect.gen(function* () {
        const lines = yield* logs.read(run)
        yield* Deferred.succeed(reading, undefined)
        yield* Deferred.await(gate)
        return lines
      })
    return Layer.merge(places, Layer.succeed(RunLogStore.RunLogStore, { ...logs, read }))
  })

describe("the runs of a session that have ended", () => {
  it.effect("have a run that ends while they are read", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* gated
      const opened = yield* Deferred.make<void>()
      const reading = yield* Deferred.make<void>()
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        const listed = yield* Effect.forkChild(runs.list(sessionId))
        yield* Deferred.await(reading)
        yield* Deferred.succeed(gate, undefined)
        yield* eventsOf(runId)
        yield* Deferred.succeed(opened, undefined)
        const ids = (yield* Fiber.join(listed)).map(({ runId }) => runId)
        assert.deepStrictEqual(ids, [runId])
        assert.strictEqual((yield* runs.get(runId)).status, "completed")
      }).pipe(Effect.provide(layer(script, setup, yield* slow(opened, reading))))
    })
  )

  it.effect("are without one that is deleted while they are read", () =>
    Effect.gen(function* () {
      const opened = yield* Deferred.make<void>()
      const reading = yield* Deferred.make<void>()
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        yield* eventsOf(runId)
        const listed = yield* Effect.forkChild(runs.list(sessionId))
        yield* Deferred.await(reading)
        yield* runs.deleteRun(runId)
        yield* Deferred.succeed(opened, undefined)
        yield* Fiber.join(listed)
        assert.deepStrictEqual(yield* runs.list(sessionId), [])
      }).pipe(Effect.provide(layer([ScriptedProvider.text("done")], {}, yield* slow(opened, reading))))
    })
  )

  it.effect("have a run once whose log is about to be complete", () =>
    Effect.gen(function* () {
      const opened = yield* Deferred.make<void>()
      const ending = yield* Deferred.make<void>()
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const end: RunLogStore.Service["end"] = (run) =>
        Deferred.succeed(ending, undefined).pipe(
          Effect.andThen(Deferred.await(opened)),
          Effect.andThen(logs.end(run))
        )
      const slow = Layer.merge(places, Layer.succeed(RunLogStore.RunLogStore, { ...logs, end }))
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        yield* Deferred.await(ending)
        const ids = (yield* runs.list(sessionId)).map(({ runId }) => runId)
        yield* Deferred.succeed(opened, undefined)
        assert.deepStrictEqual(ids, [runId])
      }).pipe(Effect.provide(layer([ScriptedProvider.text("done")], {}, slow)))
    })
  )
})
