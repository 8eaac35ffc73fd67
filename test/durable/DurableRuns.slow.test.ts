import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { Message } from "effect-agent"
import { Runs } from "effect-agent/server"
import { eventsOf } from "../server/host.ts"
import * as Contract from "../server/runsContract.ts"
import { asking } from "../server/resting.ts"
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

  it.live("takes a message that comes while the worker lets go of the run, once", () =>
    Effect.gen(function* () {
      const { approve, context, gate, runId, runs, state } = yield* asking(make)
      state.isSlow = true
      const sent = yield* Effect.forEach(["One.", "Two."], (text) =>
        Effect.forkChild(runs.steer(runId, text))
      )
      yield* Effect.sleep("1500 millis")
      state.isSlow = false
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll(sent)
      yield* approve
      const events = yield* Effect.provideContext(eventsOf(runId), context)
      const texts = events.flatMap(({ event }) =>
        event._tag === "MessageEnd" && event.message.role === "user" ? [Message.textOf(event.message)] : []
      )
      assert.deepStrictEqual(texts.toSorted(), ["Go", "One.", "Two."])
    }).pipe(Effect.scoped)
  )
})
