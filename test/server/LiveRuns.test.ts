import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
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

  it.effect("gives no request to the next run that is about one whose end it has shown", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const slow = Layer.succeed(RunLogStore.RunLogStore, {
        ...logs,
        end: (run) => Effect.delay(logs.end(run), "1 second")
      })
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "one" })
        const next = yield* runs.start({ sessionId, prompt: "two", when: "queue" })
        yield* Effect.repeat(Effect.tap(runs.get(runId), Effect.yieldNow), {
          until: ({ status }) => status === "completed"
        })
        const requests = [runs.steer(runId, "Hi"), runs.cancel(runId), runs.pause(runId)].map(Effect.flip)
        const sent = yield* Effect.forkChild(Effect.all(requests, { concurrency: "unbounded" }))
        yield* TestClock.adjust("1 second")
        for (const { _tag } of yield* Fiber.join(sent)) assert.strictEqual(_tag, "RunOver")
        yield* Effect.repeat(Effect.andThen(TestClock.adjust("1 second"), runs.get(next.runId)), {
          until: ({ status }) => status === "completed"
        })
        const users = (yield* eventsOf(next.runId)).filter(
          ({ event }) => event._tag === "MessageEnd" && event.message.role === "user"
        )
        assert.lengthOf(users, 1)
      }).pipe(Effect.provide(layer([done, done], {}, Layer.merge(places, slow))))
    })
  )

  it.effect("drains: no new runs, time for the others, which then stay for the next process", () =>
    Effect.gen(function* () {
      const { script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        const queued = yield* runs.start({ sessionId, prompt: "later", when: "queue" })
        const draining = yield* Effect.forkChild(runs.drain("10 seconds"), { startImmediately: true })
        yield* Effect.yieldNow
        assert.strictEqual((yield* Effect.flip(runs.health))._tag, "Draining")
        assert.strictEqual((yield* Effect.flip(runs.start({ sessionId, prompt: "no" })))._tag, "Draining")
        yield* TestClock.adjust("9 seconds")
        assert.isUndefined(draining.pollUnsafe())
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(draining)
        assert.deepStrictEqual(tagsOf(yield* eventsOf(queued.runId)), [])
        assert.notInclude(tagsOf(yield* eventsOf(runId)), "RunEnd")
        assert.deepStrictEqual(
          (yield* runs.list(sessionId)).map(({ status }) => status),
          ["running", "queued"]
        )
      }).pipe(Effect.provide(layer(script, setup)))
    })
  )

  it.effect("lets go of an idle session, and of its runs when its scope closes", () =>
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
      assert.notInclude(lines.join("\n"), "RunEnd")
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

  it.effect("ends a run whose end could not be stored, when it starts again", () =>
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
        assert.isUndefined((yield* logs.find(runId))?.ended)
        return runId
      }).pipe(Effect.provide(layer([done], {}, faulty)))
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        assert.strictEqual((yield* runs.get(runId)).status, "completed")
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

  it.effect("refuses a prompt that is not valid, also where it would wait", () =>
    Effect.gen(function* () {
      const { script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const refused = (when?: "queue") =>
          Effect.forEach(
            [
              { prompt: "no", options: { toolConcurrency: -1 } },
              { prompt: [{ type: "text", text: 1 } as never] }
            ],
            (wrong) =>
              Effect.map(
                Effect.flip(runs.start({ sessionId, ...wrong, ...(when && { when }) })),
                ({ _tag }) => _tag
              )
          )
        const invalid = ["MalformedRequest", "MalformedRequest"]
        assert.deepStrictEqual(yield* refused(), invalid)
        yield* runs.start({ sessionId, prompt: "hi" })
        assert.deepStrictEqual(yield* refused("queue"), invalid)
        assert.lengthOf(yield* runs.list(sessionId), 1)
      }).pipe(Effect.provide(layer(script, setup)))
    })
  )
})
