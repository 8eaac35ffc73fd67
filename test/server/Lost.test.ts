/** A process that survives the refusal of a write: it loses the session, and takes it back. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Stream } from "effect"
import { Agent, Approval, Session } from "effect-agent"
import { Agents, type Runs } from "effect-agent/server"
import type { SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as LiveRuns from "../../src/server/LiveRuns.ts"
import { waiting } from "./host.ts"
import { disk as makeDisk, Life, storesOf } from "./killing.ts"

describe("a session that its process has lost", () => {
  it.effect("shows its run meanwhile, and is opened again without a request", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const gate = yield* Deferred.make<void>()
      const faulty = { isOn: false }
      const reason = new Session.StorageFailed({ operation: "write", detail: "the disk is full" })
      const refusing = (session: SessionStore.OpenSession): SessionStore.OpenSession => ({
        ...session,
        get restored() {
          return session.restored
        },
        record: (records) =>
          faulty.isOn
            ? Effect.fail(new Session.SessionError({ sessionId: "s", reason }))
            : session.record(records)
      })
      const sessions: SessionStore.Service = {
        ...disk.sessions,
        open: (sessionId) =>
          faulty.isOn
            ? Effect.fail(new Session.SessionError({ sessionId, reason }))
            : Effect.map(disk.sessions.open(sessionId), refusing)
      }
      const tools = [waiting("wait", Deferred.await(gate))]
      const done = ScriptedProvider.text("done")
      const agents = Agents.layer(({ session }) => Agent.make({ model: "any", tools, session })).pipe(
        Layer.provide([
          ScriptedProvider.layer([ScriptedProvider.toolCall("wait", {}), done]),
          Approval.layer({ rules: [], otherwise: "allow" })
        ])
      )
      const context = yield* Layer.build(
        Layer.merge(agents, storesOf({ ...disk, sessions }, new Life(Infinity)))
      )
      const { host, runs } = yield* Effect.provideContext(LiveRuns.make({ flush: 0 }), context)
      yield* runs.createSession({ sessionId: "s" })
      const { runId } = yield* runs.start({ sessionId: "s", prompt: "Go" })
      const invoked = ({ event }: Runs.Positioned) => event._tag === "ToolExecutionStart"
      yield* Stream.runDrain(Stream.takeUntil(yield* runs.events(runId, 0), invoked))
      faulty.isOn = true
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.repeat(Effect.yieldNow, { until: () => !host.runs.has(runId) })
      assert.strictEqual((yield* runs.get(runId)).status, "running")
      yield* TestClock.adjust("6 seconds")
      assert.isFalse(host.runs.has(runId))
      faulty.isOn = false
      yield* TestClock.adjust("6 seconds")
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      assert.strictEqual((yield* runs.get(runId)).status, "completed")
    }).pipe(Effect.scoped)
  )
})
