/** Runs that survive their process, which may have no room for another one. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Stream } from "effect"
import { Agent, Approval, Message, Session } from "effect-agent"
import { Agents, RunLogStore } from "effect-agent/server"
import { SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as LiveRuns from "../../src/runs/LiveRuns.ts"
import { placesOf, stores } from "./host.ts"
import { gated } from "./runsContract.ts"

/** A process that takes runs, and has room while `room.isFull` is false. The first `room.faults` starts cannot be counted. */
const made = Effect.gen(function* () {
  const { gate, script, setup } = yield* gated
  const twice = [...script.slice(0, 1), ...script]
  const room: {
    isFull: boolean
    faults: number
    append: Effect.Effect<void, RunLogStore.RunLogError>
    rewind: Effect.Effect<void, Session.SessionError>
  } = { isFull: false, faults: 0, append: Effect.void, rewind: Effect.void }
  const kept = yield* stores
  const logs = yield* Effect.provide(RunLogStore.RunLogStore, kept)
  const faulty = Layer.succeed(RunLogStore.RunLogStore, {
    ...logs,
    open: (run) =>
      Effect.map(
        logs.open(run),
        (append): RunLogStore.Append =>
          (lines) =>
            Effect.andThen(room.append, append(lines))
      ),
    begun: (run) =>
      Effect.suspend(() =>
        room.faults-- > 0 ? new RunLogStore.RunLogError({ detail: "the disk is full" }) : logs.begun(run)
      )
  })
  const sessions = yield* Effect.provide(SessionStore.SessionStore, kept)
  const rewinding = (session: SessionStore.OpenSession): SessionStore.OpenSession => ({
    ...session,
    get restored() {
      return session.restored
    },
    rewindBefore: (messageId) =>
      Effect.andThen(
        Effect.suspend(() => room.rewind),
        session.rewindBefore(messageId)
      )
  })
  const refusing = Layer.succeed(SessionStore.SessionStore, {
    ...sessions,
    create: (options) => Effect.map(sessions.create(options), rewinding),
    open: (sessionId) => Effect.map(sessions.open(sessionId), rewinding)
  })
  const places = Layer.merge(refusing, faulty)
  const agents = Agents.layer(({ session }) => Agent.make({ model: "any", ...setup, session })).pipe(
    Layer.provide([ScriptedProvider.layer(twice), Approval.layer({ rules: [], otherwise: "allow" })])
  )
  const context = yield* Layer.build(Layer.merge(agents, places))
  const { host, runs } = yield* Effect.provideContext(
    LiveRuns.make({ flush: 0, adopts: true, places: placesOf(() => room.isFull) }),
    context
  )
  const sessionId = yield* runs.sessions.create({ sessionId: "s" })
  return { gate, host, logs, room, runs, sessionId }
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

  it.effect("begins the run behind one whose session could not be rewound", () =>
    Effect.gen(function* () {
      const { gate, host, room, runs, sessionId } = yield* made
      yield* Deferred.succeed(gate, undefined)
      const prompt = Message.user("one")
      const { runId } = yield* runs.start({ sessionId, prompt })
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      room.isFull = true
      const first = yield* runs.start({ sessionId, prompt: "again", replaces: prompt.id })
      const second = yield* runs.start({ sessionId, prompt: "two", when: "queue" })
      room.isFull = false
      const reason = new Session.StorageFailed({ operation: "write", detail: "the disk is full" })
      room.rewind = new Session.SessionError({ sessionId, reason })
      assert.strictEqual(yield* host.adopt({ runId: first.runId, sessionId }), "over")
      assert.strictEqual(yield* host.adopt({ runId: second.runId, sessionId }), "over")
      assert.strictEqual((yield* runs.get(first.runId)).status, "failed")
      assert.strictEqual((yield* runs.get(second.runId)).status, "completed")
    }).pipe(Effect.scoped)
  )

  it.effect("keeps the session and the agent of a run that waits", () =>
    Effect.gen(function* () {
      const { gate, host, room, runs, sessionId } = yield* made
      room.isFull = true
      const { runId } = yield* runs.start({ sessionId, prompt: "one" })
      const goesOn = { _tag: "RunGoesOn", runId } as const
      assert.deepInclude(yield* Effect.flip(runs.sessions.remove(sessionId)), goesOn)
      assert.deepInclude(yield* Effect.flip(runs.sessions.update(sessionId, { model: "other" })), goesOn)
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

describe("a process that is asked for sessions", () => {
  it.effect("forgets those that do not exist, and those that it has closed", () =>
    Effect.gen(function* () {
      const { gate, host, runs, sessionId } = yield* made
      const none = { sessionId: "none", prompt: "hi" }
      assert.strictEqual((yield* Effect.flip(runs.start(none))).status, 404)
      assert.strictEqual((yield* Effect.flip(runs.sessions.update("none", { name: "x" }))).status, 404)
      assert.strictEqual((yield* Effect.flip(runs.sessions.remove("none"))).status, 404)
      // A new session stays open for a moment.
      assert.strictEqual(host.conversations.size, 1)
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(host.conversations.size, 0)
      const { runId } = yield* runs.start({ sessionId, prompt: "one" })
      assert.strictEqual(host.conversations.size, 1)
      yield* Deferred.succeed(gate, undefined)
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      yield* TestClock.adjust("61 seconds")
      assert.strictEqual(host.conversations.size, 0)
      yield* Stream.runDrain(yield* runs.events((yield* runs.start({ sessionId, prompt: "two" })).runId, 0))
      yield* runs.sessions.remove(sessionId)
      assert.strictEqual(host.conversations.size, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("forgets a run that no watcher waits for any more", () =>
    Effect.gen(function* () {
      const { host } = yield* made
      const waiting = yield* Effect.forEach([1, 2], () =>
        Effect.forkChild(host.arrival("elsewhere"), { startImmediately: true })
      )
      assert.deepStrictEqual([...host.arrivals.keys()], ["elsewhere"])
      yield* Fiber.interruptAll(waiting)
      assert.strictEqual(host.arrivals.size, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("keeps one conversation for all that wait while it lets go of the session", () =>
    Effect.gen(function* () {
      const { gate, host, runs, sessionId } = yield* made
      yield* runs.start({ sessionId, prompt: "one" })
      const leaving = yield* Effect.forkChild(host.leave(sessionId), { startImmediately: true })
      const updated = yield* Effect.forkChild(runs.start({ sessionId, prompt: "two", when: "queue" }), {
        startImmediately: true
      })
      yield* Fiber.join(leaving)
      const { runId } = yield* Fiber.join(updated)
      assert.isDefined(host.active(sessionId))
      yield* Deferred.succeed(gate, undefined)
      yield* Stream.runDrain(yield* runs.events(runId, 0))
    }).pipe(Effect.scoped)
  )
})

describe("a run that waits", () => {
  it.effect("fails if its start cannot be counted", () =>
    Effect.gen(function* () {
      const { logs, room, runs, sessionId } = yield* made
      room.faults = 1
      const { runId } = yield* runs.start({ sessionId, prompt: "one" })
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      const { error, status } = yield* runs.get(runId)
      assert.deepStrictEqual([status, error?._tag], ["failed", "SessionError"])
      assert.isDefined((yield* logs.find(runId))?.ended)
    }).pipe(Effect.scoped)
  )

  it.effect("does not begin if too many processes have started it", () =>
    Effect.gen(function* () {
      const { host, logs, room, runs, sessionId } = yield* made
      room.isFull = true
      const { runId } = yield* runs.start({ sessionId, prompt: "one" })
      for (let count = 0; count < 5; count++) yield* logs.begun({ runId, sessionId })
      room.isFull = false
      const adopted = yield* Effect.exit(host.adopt({ runId, sessionId }))
      assert.deepStrictEqual(adopted, Exit.succeed("left"))
      yield* host.leave(sessionId)
      const again = yield* Effect.flip(host.adopt({ runId, sessionId }))
      assert.strictEqual(again._tag, "RunNotReady")
      assert.lengthOf(yield* logs.read({ runId, sessionId }), 1)
    }).pipe(Effect.scoped)
  )
})

describe("a run that its host has left", () => {
  it.effect("does not disturb the host that has it again, when its last write fails", () =>
    Effect.gen(function* () {
      const { gate, host, room, runs, sessionId } = yield* made
      const { runId } = yield* runs.start({ sessionId, prompt: "one" })
      const invoked = Effect.flatMap(runs.events(runId, 0), (events) =>
        Stream.runDrain(Stream.takeUntil(events, ({ event }) => event._tag === "ToolInvoked"))
      )
      yield* invoked
      const late = yield* Deferred.make<void, RunLogStore.RunLogError>()
      room.append = Deferred.await(late)
      yield* runs.steer(runId, "By the way.")
      yield* host.leave(sessionId)
      room.append = Effect.void
      const over = yield* Effect.forkChild(host.adopt({ runId, sessionId }), { startImmediately: true })
      yield* Effect.repeat(Effect.yieldNow, { until: () => host.active(sessionId) !== undefined })
      const again = host.active(sessionId)
      yield* Deferred.fail(late, new RunLogStore.RunLogError({ detail: "late", reason: "taken" }))
      for (let index = 0; index < 100; index++) yield* Effect.yieldNow
      assert.isDefined(again)
      assert.strictEqual(host.runs.get(runId), again)
      assert.isFalse(again?.isLeft)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(over), "over")
    }).pipe(Effect.scoped)
  )
})
