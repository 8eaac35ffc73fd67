import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { Runs } from "effect-agent/server"
import { eventsOf } from "../server/host.ts"
import * as Contract from "../server/runsContract.ts"
import { make } from "./embedded.ts"

describe("DurableRuns", () => {
  Contract.check(make, it.live)

  it.live("ends the streams of its watchers when it is drained", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* Contract.gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* Contract.session
        const { runId } = yield* runs.start({ sessionId, prompt: "one" })
        const watched = yield* Effect.forkChild(
          Effect.flatMap(runs.events(runId, 0), (events) => Stream.runDrain(events))
        )
        yield* runs.drain("100 millis")
        yield* Fiber.join(watched)
        assert.strictEqual((yield* Effect.flip(runs.health))._tag, "Draining")
        yield* Deferred.succeed(gate, undefined)
      }).pipe(Effect.provide(make(script, setup)))
    })
  )

  it.live("keeps a session whose run waits for a place", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* Contract.gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const begin = Effect.fnUntraced(function* (sessionId: string) {
          yield* runs.sessions.create({ sessionId })
          return (yield* runs.start({ sessionId, prompt: "one" })).runId
        })
        yield* begin("a")
        const runId = yield* begin("b")
        assert.strictEqual((yield* runs.get(runId)).status, "queued")
        assert.deepInclude(yield* Effect.flip(runs.sessions.remove("b")), { _tag: "RunGoesOn", runId })
        yield* Deferred.succeed(gate, undefined)
        assert.deepInclude((yield* eventsOf(runId)).at(-1)?.event, { _tag: "RunEnd", status: "completed" })
        yield* runs.sessions.remove("b")
      }).pipe(Effect.provide(make(script, { ...setup, concurrency: 1 })))
    })
  )
})
