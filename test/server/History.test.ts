import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { RunLogStore, Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { eventsOf, layer, stores, waiting } from "./host.ts"
import { gated, session } from "./runsContract.ts"

/** Stores whose runs are listed only when the gate is open. */
const slow = (gate: Deferred.Deferred<void>, reading: Deferred.Deferred<void>) =>
  Effect.gen(function* () {
    const places = yield* stores
    const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
    const list: RunLogStore.Service["list"] = (sessionId) =>
      Effect.gen(function* () {
        const found = yield* logs.list(sessionId)
        yield* Deferred.succeed(reading, undefined)
        yield* Deferred.await(gate)
        return found
      })
    return Layer.merge(places, Layer.succeed(RunLogStore.RunLogStore, { ...logs, list }))
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
        yield* runs.remove(runId)
        yield* Deferred.succeed(opened, undefined)
        assert.deepStrictEqual(yield* Fiber.join(listed), [])
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

  it.effect("name the runs that resumed them, while those go on too", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const script = [
        ScriptedProvider.text("done"),
        ScriptedProvider.toolCall("wait", {}),
        ScriptedProvider.text("done")
      ]
      const places = yield* stores
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const first = yield* runs.start({ sessionId, prompt: "one" })
        yield* eventsOf(first.runId)
        const { runId } = yield* runs.start({ sessionId, prompt: "two" })
        yield* eventsOf(runId)
        const { approvalId = "", argumentsHash = "" } = (yield* runs.get(runId)).pending.approvals[0] ?? {}
        const next = yield* runs.approve(runId, approvalId, { decision: "approve", argumentsHash })
        yield* runs.remove(first.runId)
        assert.strictEqual((yield* runs.get(runId)).resumedBy, next.runId)
        yield* Deferred.succeed(gate, undefined)
        yield* eventsOf(next.runId)
      }).pipe(
        Effect.provide(
          layer(
            script,
            { tools: [waiting("wait", Deferred.await(gate))], needsApproval: ["wait"], asked: "defer" },
            places
          )
        )
      )
    })
  )
})

describe("the list of all runs", () => {
  it.effect("is there although a line of one log is none that a version has written", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const tags = [{ toString: 1 }, 1, null, ["RunEnd"]]
      for (const [index, _tag] of tags.entries()) {
        const line = JSON.stringify({ type: "event", position: 1, event: { _tag } })
        const run = { runId: `r${index}`, sessionId: "s" }
        yield* Effect.scoped(Effect.flatMap(logs.open(run), (append) => append([line])))
        yield* logs.end(run)
      }
      const listed = yield* Effect.flatMap(Runs.Runs, (runs) => runs.listAll({})).pipe(
        Effect.provide(layer([], {}, places))
      )
      assert.lengthOf(listed.items, tags.length)
    })
  )
})
