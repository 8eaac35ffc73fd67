/** A run that waits for a person without a watcher: the process lets go of it, and the answer takes it up. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Agent, Approval, Message } from "effect-agent"
import { Agents, LiveRuns, RunLogStore } from "effect-agent/server"
import { MemorySessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { eventsOf } from "./host.ts"
import { asking } from "./resting.ts"
import type { Make } from "./runsContract.ts"

describe("a run that waits without a watcher", () => {
  it.effect("takes an answer that comes while the process lets go of it", () =>
    Effect.gen(function* () {
      const { approve, context, gate, runId, state } = yield* asking()
      state.isSlow = true
      const answered = yield* Effect.forkChild(approve)
      yield* TestClock.adjust("1 second")
      state.isSlow = false
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(yield* Fiber.join(answered), { decision: "approve", runId })
      const events = yield* Effect.provideContext(eventsOf(runId), context)
      assert.deepInclude(events.at(-1)?.event, { _tag: "RunEnd", status: "completed" })
      assert.lengthOf(
        events.filter(({ event }) => event._tag === "ApprovalAnswered"),
        1
      )
    }).pipe(Effect.scoped)
  )

  for (const how of ["steer", "followUp"] as const)
    for (const isStored of [true, false])
      it.effect(
        `takes a message that comes while the process lets go of it: ${how}, ${isStored ? "stored" : "not stored"} before`,
        () =>
          Effect.gen(function* () {
            const { approve, context, gate, runId, runs, state } = yield* asking()
            state.isSlow = true
            // The message waits for the write before it.
            const before = yield* Effect.forkChild(isStored ? Effect.void : runs.followUp(runId, "One."))
            for (let index = 0; index < 50; index++) yield* Effect.yieldNow
            const sent = yield* Effect.forkChild(runs[how](runId, "Two."))
            yield* TestClock.adjust("1 second")
            state.isSlow = false
            yield* Deferred.succeed(gate, undefined)
            yield* Fiber.join(before)
            yield* Fiber.join(sent)
            yield* approve
            const events = yield* Effect.provideContext(eventsOf(runId), context)
            const texts = events.flatMap(({ event }) =>
              event._tag === "MessageEnd" && event.message.role === "user"
                ? [Message.textOf(event.message)]
                : []
            )
            assert.deepStrictEqual(texts.toSorted(), ["Go", ...(isStored ? [] : ["One."]), "Two."])
            assert.deepInclude(events.at(-1)?.event, { _tag: "RunEnd", status: "completed" })
          }).pipe(Effect.scoped)
      )

  it.effect("is paused by a request that comes while the process lets go of it", () =>
    Effect.gen(function* () {
      const { approve, context, gate, runId, runs, state } = yield* asking()
      state.isSlow = true
      const before = yield* Effect.forkChild(runs.followUp(runId, "One."))
      const paused = yield* Effect.forkChild(runs.pause(runId))
      yield* TestClock.adjust("1 second")
      state.isSlow = false
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(before)
      yield* Fiber.join(paused)
      yield* approve
      yield* Effect.repeat(Effect.tap(runs.get(runId), Effect.yieldNow), {
        until: ({ status }) => status === "paused"
      })
      yield* runs.resume(runId)
      const events = yield* Effect.provideContext(eventsOf(runId), context)
      assert.deepInclude(events.at(-1)?.event, { _tag: "RunEnd", status: "completed" })
    }).pipe(Effect.scoped)
  )

  it.effect("stays in its process where its session has nothing of it: the agent ignores the session", () =>
    Effect.gen(function* () {
      const memory = Layer.mergeAll(MemorySessionStore.layer(), RunLogStore.layerMemory)
      const ignoring: Make = (script, { tools = [] } = {}, places = memory) =>
        LiveRuns.layer({ flush: 0 }).pipe(
          Layer.provide(
            Agents.layer(() => Agent.make({ model: "any", tools })).pipe(
              Layer.provide(ScriptedProvider.layer(script)),
              Layer.provide(Approval.layer({ rules: [Approval.ask("remove")], asked: "wait" }))
            )
          ),
          Layer.provide(places)
        )
      const { approve, context, runId } = yield* asking(ignoring)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* approve, { decision: "approve", runId })
      const events = yield* Effect.provideContext(eventsOf(runId), context)
      assert.deepInclude(events.at(-1)?.event, { _tag: "RunEnd", status: "completed" })
    }).pipe(Effect.scoped)
  )

  it.effect("has a message that is stored while its process ends", () =>
    Effect.gen(function* () {
      const { gate, runId, runs, state } = yield* asking()
      state.isSlow = true
      const sent = yield* Effect.forkChild(runs.steer(runId, "Two."))
      for (let index = 0; index < 50; index++) yield* Effect.yieldNow
      const drained = yield* Effect.forkChild(runs.drain(0))
      for (let index = 0; index < 50; index++) yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(sent)
      yield* Fiber.join(drained)
      assert.deepInclude(yield* Effect.flip(runs.steer(runId, "Three.")), { _tag: "RunNotReady" })
    }).pipe(Effect.scoped)
  )
})
