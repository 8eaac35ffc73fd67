/** Runs that survive their process, which may have no room for another one. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { Agent, Approval } from "effect-agent"
import { Agents } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import * as LiveRuns from "../../src/server/LiveRuns.ts"
import { stores } from "./host.ts"
import { gated } from "./runsContract.ts"

/** A process that takes runs, and has room while `room.isFull` is false. */
const made = Effect.gen(function* () {
  const { gate, script, setup } = yield* gated
  const room = { isFull: false }
  const places = yield* stores
  const agents = Agents.layer(({ session }) => Agent.make({ model: "any", ...setup, session })).pipe(
    Layer.provide([ScriptedProvider.layer(script), Approval.layer({ rules: [], otherwise: "allow" })])
  )
  const context = yield* Layer.build(Layer.merge(agents, places))
  const { host, runs } = yield* Effect.provideContext(
    LiveRuns.make({ flush: 0, recovery: "adopt", isFull: () => room.isFull }),
    context
  )
  const sessionId = yield* runs.createSession({ sessionId: "s" })
  return { gate, host, room, runs, sessionId }
})

describe("a process without room for another run", () => {
  it.effect("answers a prompt behind one that waits, although there is room again", () =>
    Effect.gen(function* () {
      const { host, room, runs, sessionId } = yield* made
      room.isFull = true
      const first = yield* runs.start({ sessionId, prompt: "one" })
      assert.strictEqual(first.status, "queued")
      room.isFull = false
      const second = yield* Effect.forkChild(runs.start({ sessionId, prompt: "two" }))
      for (let index = 0; index < 100; index++) yield* Effect.yieldNow
      assert.strictEqual(host.active(sessionId)?.runId, first.runId)
      assert.isDefined(second.pollUnsafe())
      assert.strictEqual((yield* Fiber.join(second)).status, "queued")
    }).pipe(Effect.scoped)
  )

  it.effect("keeps the session and the agent of a run that waits", () =>
    Effect.gen(function* () {
      const { gate, host, room, runs, sessionId } = yield* made
      room.isFull = true
      const { runId } = yield* runs.start({ sessionId, prompt: "one" })
      const goesOn = { _tag: "RunGoesOn", runId } as const
      assert.deepInclude(yield* Effect.flip(runs.deleteSession(sessionId)), goesOn)
      assert.deepInclude(yield* Effect.flip(runs.updateSession(sessionId, { model: "other" })), goesOn)
      room.isFull = false
      const over = yield* Effect.forkChild(host.adopt({ runId, sessionId }))
      yield* Stream.runDrain(
        Stream.takeUntil(yield* runs.events(runId, 0), ({ event }) => event._tag === "ToolInvoked")
      )
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(over), "over")
    }).pipe(Effect.scoped)
  )
})
