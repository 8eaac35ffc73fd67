/** A process that survives the refusal of a write: its run fails, or goes on with the one that has its session. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Logger, References, Schema, Stream } from "effect"
import { Agent, Approval, Message, type Provider, Session, Tool } from "effect-agent"
import { Agents, RunLogStore, type Runs } from "effect-agent/server"
import type { SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as LiveRuns from "../../src/runs/LiveRuns.ts"
import { tagsOf } from "./host.ts"
import { disk as makeDisk, type Disk, Life, storesOf } from "./killing.ts"

const full = "ENOSPC: no space left on device, write"

/** What refuses writes. `entries`: those of a session that can be opened. `end`: that a log is complete. */
type Place = "session" | "entries" | "log" | "end"

/** Stores that refuse writes while a place of them is full. */
const faulty = (disk: Disk, isFull: (place: Place) => boolean, reason: Session.SessionReason) => {
  const kept = <A, R>(place: Place, write: Effect.Effect<A, Session.SessionError, R>) =>
    Effect.suspend(() =>
      isFull(place) ? Effect.fail(new Session.SessionError({ sessionId: "s", reason })) : write
    )
  const logged = <A, R>(place: Place, write: Effect.Effect<A, RunLogStore.RunLogError, R>) =>
    Effect.suspend(() => (isFull(place) ? Effect.fail(new RunLogStore.RunLogError({ detail: full })) : write))
  const refusing = (session: SessionStore.OpenSession): SessionStore.OpenSession => ({
    ...session,
    get restored() {
      return session.restored
    },
    record: (records) => kept("session", kept("entries", session.record(records)))
  })
  const sessions: SessionStore.Service = {
    ...disk.sessions,
    open: (sessionId) => Effect.map(kept("session", disk.sessions.open(sessionId)), refusing)
  }
  const logs: RunLogStore.Service = {
    ...disk.logs,
    open: (run) =>
      Effect.map(
        logged("log", disk.logs.open(run)),
        (append): RunLogStore.Append =>
          (lines) =>
            logged("log", append(lines))
      ),
    end: (run) => logged("end", disk.logs.end(run))
  }
  return { sessions, logs }
}

const storage = new Session.StorageFailed({ operation: "write", detail: full })

/** A process with a run whose `once` tool waits for `gate`, and whose stores can be made full. */
const made = Effect.fnUntraced(function* (disk: Disk, reason: Session.SessionReason = storage) {
  const gate = yield* Deferred.make<void>()
  const state: { full: ReadonlyArray<Place>; calls: number } = { full: [], calls: 0 }
  const pay = Tool.make({
    name: "pay",
    description: "Pays.",
    params: Schema.Struct({}),
    execute: () =>
      Effect.suspend(() => {
        state.calls++
        return Effect.as(Deferred.await(gate), "paid")
      })
  })
  const answer = ({ messages }: Provider.ModelRequest) =>
    messages.some(({ role }) => role === "toolResult")
      ? ScriptedProvider.text("done")
      : ScriptedProvider.toolCall("pay", {})
  const script = [answer, answer, answer]
  const agents = Agents.layer(({ session }) => Agent.make({ model: "any", tools: [pay], session })).pipe(
    Layer.provide([ScriptedProvider.layer(script), Approval.layer({ rules: [], otherwise: "allow" })])
  )
  const stores = storesOf(
    faulty(disk, (place) => state.full.includes(place), reason),
    new Life(Infinity)
  )
  const context = yield* Layer.build(Layer.merge(agents, stores))
  const { host, runs } = yield* Effect.provideContext(LiveRuns.make({ flush: 0 }), context)
  return { gate, host, runs, state }
})

const started = Effect.fnUntraced(function* (runs: Runs.Service) {
  yield* runs.sessions.create({ sessionId: "s" })
  const { runId } = yield* runs.start({ sessionId: "s", prompt: "Go" })
  yield* Stream.runDrain(
    Stream.takeUntil(yield* runs.events(runId, 0), ({ event }) => event._tag === "ToolInvoked")
  )
  return runId
})

const failed = Effect.fnUntraced(function* (runs: Runs.Service, runId: string) {
  const { error, status } = yield* runs.get(runId)
  assert.strictEqual(status, "failed")
  assert.strictEqual(error?._tag, "SessionError")
  assert.include(error?.message, "ENOSPC")
})

const textsOf = (messages: ReadonlyArray<Message.Message>, role: Message.Message["role"]) =>
  messages.filter((message) => message.role === role).map(Message.textOf)

describe("a run whose store refuses a write", () => {
  for (const places of [["session", "log", "end"], ["session"], ["log", "end"]] satisfies Array<
    Array<Place>
  >) {
    it.effect(`fails, is not run again, and lets the session take the next prompt: ${places.join()}`, () =>
      Effect.gen(function* () {
        const disk = yield* makeDisk
        const { gate, runs, state } = yield* made(disk)
        const runId = yield* started(runs)
        const watched = yield* Effect.forkChild(Stream.runCollect(yield* runs.events(runId, 0)))
        state.full = places
        yield* Deferred.succeed(gate, undefined)
        const tags = tagsOf(yield* Fiber.join(watched))
        assert.deepStrictEqual(tags.slice(-2), ["RunError", "RunEnd"])
        yield* failed(runs, runId)
        if (places.includes("log")) {
          const next = yield* Effect.flip(runs.start({ sessionId: "s", prompt: "And now?" }))
          assert.strictEqual(next._tag, "StorageUnavailable")
          assert.strictEqual((yield* Effect.flip(runs.remove(runId)))._tag, "RunGoesOn")
        }
        state.full = []
        const { runId: next } = yield* runs.start({ sessionId: "s", prompt: "And now?" })
        yield* Stream.runDrain(yield* runs.events(next, 0))
        assert.strictEqual((yield* runs.get(next)).status, "completed")
        yield* failed(runs, runId)
        assert.isDefined((yield* disk.logs.find(runId))?.ended)
        assert.strictEqual(state.calls, 1)
        const { view } = yield* disk.sessions.read("s")
        assert.deepStrictEqual(textsOf(view.messages, "user"), ["Go", "And now?"])
        const result = places.includes("session") ? "not known" : "paid"
        assert.include(textsOf(view.messages, "toolResult").join(), result)
        const again = tagsOf(yield* Stream.runCollect(yield* runs.events(runId, 0)))
        assert.deepStrictEqual(again.slice(-2), ["RunError", "RunEnd"])
      }).pipe(Effect.scoped)
    )
  }

  it.effect("is named by each line of the log of the process about it", () =>
    Effect.gen(function* () {
      const lines: Array<readonly [string, Readonly<Record<string, unknown>>]> = []
      const logger = Logger.make(({ fiber, message }) => {
        lines.push([String(message), fiber.getRef(References.CurrentLogAnnotations)])
      })
      yield* Effect.gen(function* () {
        const { gate, runs, state } = yield* made(yield* makeDisk)
        const runId = yield* started(runs)
        state.full = ["session", "log", "end"]
        yield* Deferred.succeed(gate, undefined)
        yield* Stream.runDrain(yield* runs.events(runId, 0))
        yield* TestClock.adjust("10 seconds")
        state.full = []
        yield* TestClock.adjust("10 seconds")
      }).pipe(Effect.provide(Logger.layer([logger])))
      assert.isAbove(lines.length, 0)
      assert.deepStrictEqual(
        lines.filter(([, { sessionId }]) => sessionId !== "s").map(([message]) => message),
        []
      )
    }).pipe(Effect.scoped)
  )

  it.effect("gets its end once the store writes again, without a request", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const { gate, host, runs, state } = yield* made(disk)
      const runId = yield* started(runs)
      const queued = yield* runs.start({ sessionId: "s", prompt: "Later", when: "queue" })
      state.full = ["session", "log", "end"]
      yield* Deferred.succeed(gate, undefined)
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined((yield* disk.logs.find(runId))?.ended)
      state.full = []
      yield* TestClock.adjust("1 second")
      assert.isDefined((yield* disk.logs.find(runId))?.ended)
      yield* Stream.runDrain(yield* runs.events(queued.runId, 0))
      assert.strictEqual((yield* runs.get(queued.runId)).status, "completed")
      assert.isFalse(host.runs.has(runId))
    }).pipe(Effect.scoped)
  )

  it.effect("refuses the requests about it while the store does", () =>
    Effect.gen(function* () {
      const { gate, runs, state } = yield* made(yield* makeDisk)
      const runId = yield* started(runs)
      state.full = ["session", "log", "end"]
      yield* Deferred.succeed(gate, undefined)
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      for (const request of [
        runs.pause(runId),
        runs.resume(runId),
        runs.cancel(runId),
        runs.steer(runId, "Hi"),
        runs.followUp(runId, "Hi")
      ])
        assert.strictEqual((yield* Effect.flip(request))._tag, "StorageUnavailable")
    }).pipe(Effect.scoped)
  )

  it.effect("does not hold up a prompt behind it while the session refuses writes", () =>
    Effect.gen(function* () {
      const { gate, runs, state } = yield* made(yield* makeDisk)
      const runId = yield* started(runs)
      state.full = ["entries"]
      yield* Deferred.succeed(gate, undefined)
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      const start = runs.start({ sessionId: "s", prompt: "And now?", when: "queue" })
      for (let attempt = 0; attempt < 3; attempt++) {
        assert.strictEqual((yield* Effect.flip(start))._tag, "StorageUnavailable")
        yield* TestClock.adjust("1 second")
      }
      state.full = []
      const next = yield* start
      yield* Stream.runDrain(yield* runs.events(next.runId, 0))
      assert.strictEqual((yield* runs.get(next.runId)).status, "completed")
    }).pipe(Effect.scoped)
  )

  it.effect("keeps the status that it came to, where only the end of its log is refused", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const { gate, runs, state } = yield* made(disk)
      const runId = yield* started(runs)
      state.full = ["end"]
      yield* Deferred.succeed(gate, undefined)
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      assert.strictEqual((yield* runs.get(runId)).status, "completed")
      const next = yield* Effect.flip(runs.start({ sessionId: "s", prompt: "And now?" }))
      assert.strictEqual(next._tag, "StorageUnavailable")
      state.full = []
      yield* TestClock.adjust("1 second")
      assert.isDefined((yield* disk.logs.find(runId))?.ended)
      yield* runs.start({ sessionId: "s", prompt: "And now?" })
    }).pipe(Effect.scoped)
  )

  it.effect("continues in the next process if its end was not stored, and runs no `once` tool again", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const { calls, runId } = yield* Effect.gen(function* () {
        const { gate, runs, state } = yield* made(disk)
        const runId = yield* started(runs)
        state.full = ["session", "log", "end"]
        yield* Deferred.succeed(gate, undefined)
        yield* Stream.runDrain(yield* runs.events(runId, 0))
        yield* failed(runs, runId)
        return { calls: state.calls, runId }
      }).pipe(Effect.scoped)
      const { runs, state } = yield* made(disk)
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      assert.strictEqual((yield* runs.get(runId)).status, "completed")
      assert.deepStrictEqual([calls, state.calls], [1, 0])
    }).pipe(Effect.scoped)
  )
})

describe("a session that another writer has", () => {
  it.effect("shows its run meanwhile, and is opened again without a request", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const { gate, host, runs, state } = yield* made(disk, new Session.Locked({}))
      const runId = yield* started(runs)
      state.full = ["session"]
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.repeat(Effect.yieldNow, { until: () => !host.runs.has(runId) })
      assert.strictEqual((yield* runs.get(runId)).status, "running")
      yield* TestClock.adjust("6 seconds")
      assert.isFalse(host.runs.has(runId))
      state.full = []
      yield* TestClock.adjust("6 seconds")
      yield* Stream.runDrain(yield* runs.events(runId, 0))
      assert.strictEqual((yield* runs.get(runId)).status, "completed")
    }).pipe(Effect.scoped)
  )
})
