/** Runs that no worker starts until someone resumes them. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { RunLogStore, Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { eventsOf, stores } from "../server/host.ts"
import * as Contract from "../server/runsContract.ts"
import { make } from "./embedded.ts"

const prompt = { prompt: "one", idempotency: { key: "k", body: { prompt: "one" } } }

/** Runs of a process that finds a run parked, which the process before it left in the middle of a call. */
const parked = Effect.gen(function* () {
  const { gate, script, setup } = yield* Contract.gated
  const places = yield* stores
  const life = make(script, setup, places)
  const runId = yield* Effect.gen(function* () {
    const runs = yield* Runs.Runs
    return (yield* runs.start({ sessionId: yield* Contract.session, ...prompt })).runId
  }).pipe(Effect.provide(life))
  const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
  yield* logs.park({ runId, sessionId: "s" }, "it broke")
  yield* Deferred.succeed(gate, undefined)
  return { life, runId }
})

describe("a parked run", () => {
  it.live("comes to its end although the worker that resumes it dies before it begins it", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const life = (turn: ScriptedProvider.Turn) => make([turn], {}, places)
      const runId = yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        return (yield* runs.start({ sessionId: yield* Contract.session, ...prompt })).runId
      }).pipe(Effect.provide(life(ScriptedProvider.never)))
      yield* logs.park({ runId, sessionId: "s" }, "it broke")
      yield* logs.unpark(runId)
      const events = Effect.timeout(eventsOf(runId), "10 seconds")
      const last = (yield* Effect.provide(events, life(ScriptedProvider.text("done")))).at(-1)?.event
      assert.deepInclude(last, { _tag: "RunEnd", status: "completed" })
    })
  )

  it.live("is paused with its cause, and comes to its end when someone resumes it", () =>
    Effect.gen(function* () {
      const { life, runId } = yield* parked
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        assert.deepInclude(yield* runs.get(runId), {
          status: "paused",
          error: { _tag: "Defect", message: "it broke" }
        })
        yield* runs.resume(runId)
        assert.deepInclude((yield* eventsOf(runId)).at(-1)?.event, { _tag: "RunEnd", status: "completed" })
      }).pipe(Effect.provide(life))
    })
  )

  it.live("keeps its session", () =>
    Effect.gen(function* () {
      const { life, runId } = yield* parked
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        assert.deepInclude(yield* Effect.flip(runs.sessions.remove("s")), { _tag: "RunGoesOn", runId })
        yield* runs.cancel(runId)
        yield* eventsOf(runId)
        yield* runs.sessions.remove("s")
        assert.strictEqual((yield* Effect.flip(runs.get(runId)))._tag, "RunNotFound")
      }).pipe(Effect.provide(life))
    })
  )

  it.live("is the answer to its idempotency key, and to no other prompt", () =>
    Effect.gen(function* () {
      const { life, runId } = yield* parked
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const start = (idempotency: Runs.Start["idempotency"]) =>
          runs.start({ sessionId: "s", prompt: "one", ...(idempotency && { idempotency }) })
        assert.deepStrictEqual(yield* start(prompt.idempotency), { runId, status: "started" })
        const reused = { key: "k", body: { prompt: "two" } }
        assert.deepInclude(yield* Effect.flip(start(reused)), { _tag: "KeyReused", runId })
        for (const other of [undefined, { key: "l", body: {} }])
          assert.deepInclude(yield* Effect.flip(start(other)), { _tag: "RunGoesOn", runId })
      }).pipe(Effect.provide(life))
    })
  )

  it.live("refuses messages, pauses and answers with its cause", () =>
    Effect.gen(function* () {
      const { life, runId } = yield* parked
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        for (const request of [
          runs.steer(runId, "left"),
          runs.followUp(runId, "then"),
          runs.pause(runId),
          runs.approve(runId, "a", { decision: "approve", argumentsHash: "0" }),
          runs.answer(runId, "q", { answer: "yes" })
        ])
          assert.deepInclude(yield* Effect.flip<unknown, unknown, never>(request), {
            _tag: "RunNotReady",
            detail: "The run waits for resume: it broke"
          })
      }).pipe(Effect.provide(life))
    })
  )
})
