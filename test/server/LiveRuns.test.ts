import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { Message } from "effect-agent"
import { RunLogStore, Runs } from "effect-agent/server"
import { SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { eventsOf, layer, stores, tagsOf } from "./host.ts"
import { check, gated, session } from "./runsContract.ts"

const done = ScriptedProvider.text("done")
const body = (prompt: string) => ({ prompt })

describe("LiveRuns", () => {
  check(layer, it.effect)

  it.effect("answers a key once: again with the first answer, and another body with a conflict", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const start = (prompt: string) =>
        Effect.flatMap(Runs.Runs, (runs) =>
          runs.start({ sessionId: "s", prompt, idempotency: { key: "k", body: body(prompt) } })
        )
      const first = yield* Effect.gen(function* () {
        yield* session
        const first = yield* start("hi")
        yield* eventsOf(first.runId)
        assert.deepStrictEqual(yield* start("hi"), first)
        assert.deepInclude(yield* Effect.flip(start("other")), { _tag: "KeyReused", runId: first.runId })
        return first
      }).pipe(Effect.provide(layer([done], {}, places)))
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* start("hi"), first)
        yield* TestClock.adjust("25 hours")
        assert.notStrictEqual((yield* start("hi")).runId, first.runId)
      }).pipe(Effect.provide(layer([done], {}, places)))
    })
  )

  it.effect("drains: no new runs, time for the others, then their end", () =>
    Effect.gen(function* () {
      const { script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        const queued = yield* runs.start({ sessionId, prompt: "later", when: "queue" })
        const draining = yield* Effect.forkChild(runs.drain("10 seconds"), { startImmediately: true })
        yield* Effect.yieldNow
        assert.strictEqual((yield* Effect.flip(runs.ready))._tag, "Draining")
        assert.strictEqual((yield* Effect.flip(runs.start({ sessionId, prompt: "no" })))._tag, "Draining")
        assert.deepStrictEqual(tagsOf(yield* eventsOf(queued.runId)), ["RunEnd"])
        yield* TestClock.adjust("9 seconds")
        assert.strictEqual((yield* runs.get(runId)).status, "running")
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(draining)
        assert.strictEqual((yield* runs.get(runId)).status, "cancelled")
      }).pipe(Effect.provide(layer(script, setup)))
    })
  )

  it.effect("lets go of an idle session, and cancels runs when its scope closes", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const { script, setup } = yield* gated
      const scope = yield* Scope.make()
      const context = yield* Scope.provide(Layer.build(layer([done, ...script], setup, places)), scope)
      const within = <A, E>(effect: Effect.Effect<A, E, Runs.Runs>) => Effect.provideContext(effect, context)
      const sessions = yield* Effect.provide(SessionStore.SessionStore, places)
      yield* within(session)
      const runs = yield* within(Runs.Runs)
      const first = yield* runs.start({ sessionId: "s", prompt: "hi" })
      yield* within(eventsOf(first.runId))
      const open = Effect.scoped(sessions.open("s"))
      assert.strictEqual((yield* Effect.flip(open)).reason._tag, "Locked")
      yield* TestClock.adjust("61 seconds")
      yield* open
      const second = yield* runs.start({ sessionId: "s", prompt: "hi" })
      yield* Scope.close(scope, Exit.void)
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const lines = yield* logs.read({ runId: second.runId, sessionId: "s" })
      assert.include(lines.at(-1), '"status":"cancelled"')
      yield* open
    })
  )

  it.effect("delivers a message that comes again because its key could not be stored", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      let faults = 0
      const addKey: RunLogStore.Service["addKey"] = (sessionId, line) =>
        Effect.suspend(() =>
          faults-- > 0
            ? new RunLogStore.RunLogError({ detail: "the disk is full" })
            : logs.addKey(sessionId, line)
        )
      const faulty = Layer.merge(places, Layer.succeed(RunLogStore.RunLogStore, { ...logs, addKey }))
      const { gate, script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        faults = 1
        const steer = runs.start({
          sessionId,
          prompt: "By the way.",
          when: "steer",
          idempotency: { key: "k", body: null }
        })
        assert.strictEqual((yield* Effect.flip(steer))._tag, "StorageUnavailable")
        assert.deepStrictEqual(yield* steer, { runId, status: "joined" })
        yield* Deferred.succeed(gate, undefined)
        const users = (yield* eventsOf(runId)).flatMap(({ event }) =>
          event._tag === "MessageEnd" && event.message.role === "user" ? [Message.textOf(event.message)] : []
        )
        assert.deepStrictEqual(users, ["hi", "By the way."])
      }).pipe(Effect.provide(layer(script, setup, faulty)))
    })
  )

  it.effect("ends a run whose end could not be stored when it starts again", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const open: RunLogStore.Service["open"] = (run) =>
        Effect.map(
          logs.open(run),
          (append): RunLogStore.Append =>
            (lines) =>
              lines.some((line) => line.includes('"_tag":"RunEnd"'))
                ? Effect.fail(new RunLogStore.RunLogError({ detail: "the disk is full" }))
                : append(lines)
        )
      const faulty = Layer.merge(places, Layer.succeed(RunLogStore.RunLogStore, { ...logs, open }))
      const runId = yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const { runId } = yield* runs.start({ sessionId: yield* session, prompt: "hi" })
        assert.strictEqual(tagsOf(yield* eventsOf(runId)).at(-1), "RunEnd")
        return runId
      }).pipe(Effect.provide(layer([done], {}, faulty)))
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        assert.strictEqual((yield* runs.get(runId)).status, "failed")
        assert.strictEqual(tagsOf(yield* eventsOf(runId)).at(-1), "RunEnd")
      }).pipe(Effect.provide(layer([], {}, places)))
    })
  )

  it.effect("starts although another process has ended a lost run meanwhile", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const key = { runId: "r", sessionId: "s" }
      yield* Effect.scoped(logs.open(key))
      const unended = Effect.tap(logs.unended, () => logs.end(key))
      const other = Layer.merge(places, Layer.succeed(RunLogStore.RunLogStore, { ...logs, unended }))
      const active = Effect.flatMap(Runs.Runs, (runs) => runs.active("s"))
      assert.isUndefined(yield* Effect.provide(active, layer([], {}, other)))
    })
  )

  it.effect("shows the failure of a run that waited and is refused", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const first = yield* runs.start({ sessionId, prompt: "hi" })
        const wrong = { sessionId, prompt: "no", options: { toolConcurrency: -1 } }
        const refused = yield* runs.start({ ...wrong, when: "queue" })
        const last = yield* runs.start({ sessionId, prompt: "last", when: "queue" })
        assert.lengthOf(yield* runs.list(sessionId), 3)
        const watched = yield* Effect.forkChild(eventsOf(refused.runId), { startImmediately: true })
        yield* Deferred.succeed(gate, undefined)
        yield* eventsOf(first.runId)
        assert.deepStrictEqual(tagsOf(yield* Fiber.join(watched)), ["RunError", "RunEnd"])
        yield* eventsOf(last.runId)
        assert.strictEqual((yield* runs.get(refused.runId)).status, "failed")
        assert.deepStrictEqual(
          (yield* runs.list(sessionId)).map(({ status }) => status),
          ["completed", "failed", "completed"]
        )
      }).pipe(Effect.provide(layer(script, setup)))
    })
  )

  it.effect("ends the log of a run that a crash cut, at positions that stay", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const { script, setup } = yield* gated
      // Never closed: the process is gone.
      const crashed = yield* Layer.build(layer(script, setup, places)).pipe(
        Scope.provide(yield* Scope.make())
      )
      const { runId, seen } = yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const { runId } = yield* runs.start({ sessionId: yield* session, prompt: "hi" })
        const until = yield* (yield* runs.events(runId, 0)).pipe(
          Stream.takeUntil(({ event }) => event._tag === "ToolInvoked"),
          Stream.runCollect
        )
        return { runId, seen: until }
      }).pipe(Effect.provideContext(crashed))
      // The lock of a dead process counts for nothing: a new store on the same entries.
      const sessions = yield* Effect.provide(SessionStore.SessionStore, places)
      const lines = (yield* Stream.runCollect(sessions.export("s", "jsonl"))).join("")
      assert.include(lines, '"phase":"start"')
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const unlocked = Layer.mergeAll(
        Layer.succeed(RunLogStore.RunLogStore, logs),
        Layer.succeed(SessionStore.SessionStore, {
          ...sessions,
          open: (id) =>
            Effect.map(sessions.read(id), ({ view }) => ({
              id,
              restored: view,
              damage: [],
              record: () => Effect.void,
              child: () => Effect.die("none"),
              leaf: Effect.succeed(""),
              append: () => Effect.succeed([]),
              rewind: () => Effect.die("none"),
              rewindBefore: () => Effect.die("none"),
              label: () => Effect.void,
              rename: () => Effect.void
            }))
        })
      )
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const last = seen.at(-1)?.position ?? 0
        const rest = yield* eventsOf(runId, last)
        assert.deepStrictEqual(tagsOf(rest), ["ToolExecutionEnd", "RunError", "RunEnd"])
        assert.isAbove(rest[0]?.position ?? 0, last)
        assert.deepInclude(rest[0]?.event, { isError: true, outcome: "unknown" })
        assert.deepInclude(rest.at(-1)?.event, { status: "failed" })
        assert.strictEqual((yield* runs.get(runId)).error?._tag, "Defect")
        const all = yield* eventsOf(runId)
        const stored = seen.filter(({ event }) => event._tag !== "MessageDelta")
        assert.deepStrictEqual(
          all.slice(0, stored.length).map(({ position }) => position),
          stored.map(({ position }) => position)
        )
      }).pipe(Effect.provide(layer([], setup, unlocked)))
    })
  )
})
