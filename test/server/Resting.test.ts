/** A run that waits for a person without a watcher: the process lets go of it, and the answer takes it up. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Tool } from "effect-agent"
import { RunLogStore, Runs } from "effect-agent/server"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { eventsOf, layer } from "./host.ts"
import { session } from "./runsContract.ts"

const remove = Tool.make({ name: "remove", description: "x", execute: () => Effect.succeed("removed") })
const script = [ScriptedProvider.toolCall("remove", {}), ScriptedProvider.text("done")]

describe("a run that waits without a watcher", () => {
  it.effect("takes an answer that comes while the process lets go of it", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      let isSlow = false
      const sessions = SessionStore.make(MemorySessionStore.storage())
      const slow = (session: SessionStore.OpenSession): SessionStore.OpenSession => ({
        ...session,
        get restored() {
          return session.restored
        },
        record: (records) =>
          Effect.suspend(() =>
            Effect.andThen(isSlow ? Deferred.await(gate) : Effect.void, session.record(records))
          )
      })
      const places = Layer.merge(
        Layer.succeed(SessionStore.SessionStore, {
          ...sessions,
          create: (made) => Effect.map(sessions.create(made), slow),
          open: (id) => Effect.map(sessions.open(id), slow)
        }),
        RunLogStore.layerMemory
      )
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const { runId } = yield* runs.start({ sessionId: yield* session, prompt: "Go" })
        const { pending } = yield* Effect.repeat(Effect.tap(runs.get(runId), Effect.yieldNow), {
          until: ({ pending }) => pending.approvals.length > 0
        })
        const { approvalId = "", argumentsHash = "" } = pending.approvals[0] ?? {}
        isSlow = true
        const answer = runs.approve(runId, approvalId, { decision: "approve", argumentsHash })
        const answered = yield* Effect.forkChild(answer)
        yield* TestClock.adjust("1 second")
        isSlow = false
        yield* Deferred.succeed(gate, undefined)
        assert.deepStrictEqual(yield* Fiber.join(answered), { decision: "approve", runId })
        const events = yield* eventsOf(runId)
        assert.deepInclude(events.at(-1)?.event, { _tag: "RunEnd", status: "completed" })
        assert.lengthOf(
          events.filter(({ event }) => event._tag === "ApprovalAnswered"),
          1
        )
      }).pipe(Effect.provide(layer(script, { tools: [remove], needsApproval: ["remove"] }, places)))
    })
  )
})
