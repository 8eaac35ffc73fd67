import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { Approval, Message } from "effect-agent"
import type { Payload } from "effect-agent/api"
import { RunLogStore, Runs } from "effect-agent/server"
import { SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { recorder } from "../behaviour/approving.ts"
import { eventsOf, layer, stores, tagsOf, waiting } from "./host.ts"

const done = ScriptedProvider.text("done")
const body = (prompt: string) => ({ prompt })

/** A session, and a run whose tool waits until the gate opens. */
const gated = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  const script = [ScriptedProvider.toolCall("wait", {}), done, done, done]
  return { gate, script, setup: { tools: [waiting("wait", Deferred.await(gate))] } }
})

const session = Effect.flatMap(Runs.Runs, (runs) => runs.createSession({ sessionId: "s" }))

describe("LiveRuns", () => {
  it.effect("runs a prompt, and shows its events from any position, also after the end", () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const sessionId = yield* session
      const started = yield* runs.start({ sessionId, prompt: "hi" })
      assert.strictEqual(started.status, "started")
      const all = yield* eventsOf(started.runId)
      assert.strictEqual(all[0]?.event._tag, "RunStart")
      assert.strictEqual(all.at(-1)?.event._tag, "RunEnd")
      const rest = yield* eventsOf(started.runId, 3)
      const whole = all.filter(({ event, position }) => position > 3 && event._tag !== "MessageDelta")
      assert.deepStrictEqual(rest, whole)
      assert.isUndefined(yield* runs.watch(started.runId, all.at(-1)?.position ?? 0))
      const run = yield* runs.get(started.runId)
      assert.deepStrictEqual([run.status, run.turns, run.sessionId], ["completed", 1, "s"])
      assert.deepStrictEqual(
        (yield* runs.list(sessionId)).map(({ runId }) => runId),
        [started.runId]
      )
    }).pipe(Effect.provide(layer([done])))
  )

  it.effect("refuses a second prompt with the id of the run, unless it joins or waits", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "one" })
        const refused = yield* Effect.flip(runs.start({ sessionId, prompt: "two" }))
        assert.deepInclude(refused, { _tag: "RunGoesOn", runId })
        assert.deepStrictEqual(yield* runs.start({ sessionId, prompt: "steered", when: "steer" }), {
          runId,
          status: "joined"
        })
        const queued = yield* runs.start({ sessionId, prompt: "later", when: "queue" })
        assert.strictEqual(queued.status, "queued")
        assert.notStrictEqual(queued.runId, runId)
        assert.strictEqual((yield* runs.get(queued.runId)).status, "queued")
        const steer = yield* Effect.flip(runs.steer(queued.runId, "no"))
        assert.strictEqual(steer._tag, "RunNotReady")
        const gone = yield* Effect.flip(runs.deleteSession(sessionId))
        assert.deepInclude(gone, { _tag: "RunGoesOn", runId })
        yield* Deferred.succeed(gate, undefined)
        const first = yield* eventsOf(runId)
        const texts = first.flatMap(({ event }) =>
          event._tag === "MessageEnd" && event.message.role === "user" ? [Message.textOf(event.message)] : []
        )
        assert.deepStrictEqual(texts, ["one", "steered"])
        const second = yield* eventsOf(queued.runId)
        assert.strictEqual(second.at(-1)?.event._tag, "RunEnd")
        assert.strictEqual((yield* Effect.flip(runs.steer(runId, "late")))._tag, "RunOver")
        assert.strictEqual((yield* Effect.flip(runs.get("run_none")))._tag, "RunNotFound")
        const none = yield* Effect.flip(runs.start({ sessionId: "none", prompt: "hi" }))
        assert.strictEqual(none._tag, "SessionNotFound")
      }).pipe(Effect.provide(layer(script, setup)))
    })
  )

  it.effect("replaces a message: its run begins before it, and the session keeps what was behind it", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* gated
      const texts = (value: unknown) => JSON.stringify(value).match(/(?<="text":")[^"]*/g)
      const turns = [ScriptedProvider.text("a1"), ScriptedProvider.text("a2"), ...script, done]
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const prompted = Effect.fnUntraced(function* (prompt: Message.Input, replaces?: string) {
          const { runId } = yield* runs.start({ sessionId, prompt, ...(replaces && { replaces }) })
          yield* eventsOf(runId)
          return (yield* runs.readSession(sessionId)).view["messages"]
        })
        const second = Message.user("u2")
        yield* prompted("u1")
        yield* prompted(second)
        const asked = { sessionId, prompt: "u3", replaces: second.id }
        const { runId } = yield* runs.start(asked)
        assert.deepInclude(yield* Effect.flip(runs.start({ ...asked, when: "queue" })), {
          _tag: "RunGoesOn",
          runId
        })
        yield* Deferred.succeed(gate, undefined)
        yield* eventsOf(runId)
        const { entries, view } = yield* runs.readSession(sessionId)
        assert.deepStrictEqual(texts(view["messages"]), ["u1", "a1", "u3", "waited", "done"])
        assert.include(texts(entries) ?? [], "a2")
        const gone = yield* Effect.flip(runs.start(asked))
        assert.deepInclude(gone, { _tag: "MessageNotFound", sessionId, messageId: second.id })
        const messages = JSON.parse(JSON.stringify(view["messages"]))
        const result = messages.find(({ role }: { role: string }) => role === "toolResult").id
        assert.strictEqual(
          (yield* Effect.flip(runs.start({ ...asked, replaces: result })))._tag,
          "InvalidRequest"
        )
        const wrong = { ...asked, replaces: messages[0].id, options: { toolConcurrency: -1 } }
        assert.strictEqual((yield* Effect.flip(runs.start(wrong)))._tag, "InvalidRequest")
        assert.deepStrictEqual((yield* runs.readSession(sessionId)).view["messages"], messages)
        const first = { ...Message.user("new"), id: messages[0].id }
        assert.deepStrictEqual(texts(yield* prompted(first, first.id)), ["new", "done"])
        assert.deepStrictEqual(texts(yield* prompted(first, first.id)), ["new", "done"])
      }).pipe(Effect.provide(layer([...turns, done], setup)))
    })
  )

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

  it.effect("waits for an approval, and answers it once", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const script = [ScriptedProvider.toolCall("remove", { path: "a" }), done]
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        const asked = yield* (yield* runs.events(runId, 0)).pipe(
          Stream.filter(({ event }) => event._tag === "ApprovalRequested"),
          Stream.runHead
        )
        assert.strictEqual(asked._tag, "Some")
        const { pending, status } = yield* runs.get(runId)
        const [request] = pending.approvals
        assert.strictEqual(status, "running")
        const id = request?.approvalId ?? ""
        const other = { decision: "approve", argumentsHash: "0" } as const
        assert.deepInclude(yield* Effect.flip(runs.approve(runId, id, other)), {
          _tag: "AnswerConflict",
          runId
        })
        const answer = { decision: "approve", argumentsHash: request?.argumentsHash ?? "" } as const
        assert.deepStrictEqual(yield* runs.approve(runId, id, answer), { decision: "approve", runId })
        yield* eventsOf(runId)
        const again = yield* runs.approve(runId, id, { ...answer, decision: "reject" })
        assert.deepStrictEqual(again, { decision: "approve", runId })
        assert.deepStrictEqual(ran, ["a"])
        assert.strictEqual((yield* Effect.flip(runs.approve(runId, "none", answer)))._tag, "RequestNotFound")
      }).pipe(Effect.provide(layer(script, { tools: [tool], needsApproval: ["remove"] })))
    })
  )

  it.effect("takes the refusal to answer a question", () =>
    Effect.gen(function* () {
      for (const asked of ["wait", "defer"] as const) {
        yield* Effect.gen(function* () {
          const runs = yield* Runs.Runs
          const sessionId = yield* session
          const { runId } = yield* runs.start({ sessionId, prompt: "go" })
          const events = yield* runs.events(runId, 0)
          const isAsked = ({ event }: Runs.Positioned) => asked === "wait" && event._tag === "QuestionAsked"
          yield* Stream.runDrain(Stream.takeUntil(events, isAsked))
          const [question] = (yield* runs.get(runId)).pending.questions
          const give = (answer: Payload.AnswerQuestion) =>
            runs.answer(runId, question?.questionId ?? "", answer)
          const declined = yield* give({ declined: true, reason: "no idea" })
          assert.deepInclude(declined, { answer: null, declined: true, reason: "no idea" })
          const last = (yield* eventsOf(declined.runId)).at(-1)?.event
          assert.deepInclude(last, { _tag: "RunEnd", status: "completed" })
          assert.deepStrictEqual(yield* give({ declined: true }), declined)
          assert.strictEqual((yield* Effect.flip(give({ answer: "x" })))._tag, "AnswerConflict")
          const { view } = yield* runs.readSession(sessionId)
          assert.include(JSON.stringify(view["messages"]), "Tool execution was rejected: no idea")
        }).pipe(
          Effect.provide(
            layer([ScriptedProvider.toolCall("ask_user", { question: "Where?" }), done], {
              asked,
              tools: [Approval.askUser()]
            })
          )
        )
      }
    })
  )

  it.effect("continues a suspended run in a new one, which the answer names, also after a restart", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const { ran, tool } = recorder()
      const setup = { tools: [tool], needsApproval: ["remove"], asked: "defer" } as const
      const call = ScriptedProvider.toolCall("remove", { path: "a" })
      const suspended = yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        const last = (yield* eventsOf(runId)).at(-1)?.event
        assert.deepInclude(last, { _tag: "RunEnd", status: "suspended" })
        return runId
      }).pipe(Effect.provide(layer([call], setup, places)))
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const { pending, status } = yield* runs.get(suspended)
        assert.strictEqual(status, "suspended")
        const [request] = pending.approvals
        const answer = { decision: "approve", argumentsHash: request?.argumentsHash ?? "" } as const
        const given = yield* runs.approve(suspended, request?.approvalId ?? "", answer)
        assert.notStrictEqual(given.runId, suspended)
        const events = yield* eventsOf(given.runId)
        assert.deepInclude(events[0]?.event, { _tag: "RunStart", resumes: suspended })
        assert.deepInclude(events.at(-1)?.event, { _tag: "RunEnd", status: "completed" })
        assert.deepStrictEqual(ran, ["a"])
        assert.deepStrictEqual((yield* runs.get(suspended)).pending.approvals, [])
        const again = yield* runs.approve(suspended, request?.approvalId ?? "", answer)
        assert.deepStrictEqual(again, { decision: "approve", runId: given.runId })
      }).pipe(Effect.provide(layer([done], setup, places)))
    })
  )

  it.effect("cancels a run when the last watcher that asked so has left", () =>
    Effect.gen(function* () {
      const { script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const { runId } = yield* runs.start({ sessionId: yield* session, prompt: "hi" })
        const watch = Effect.gen(function* () {
          const pages = yield* runs.watch(runId, 0, { cancelOnLeave: true })
          return yield* Stream.runDrain(pages ?? Stream.empty)
        })
        const first = yield* Effect.forkChild(watch, { startImmediately: true })
        const second = yield* Effect.forkChild(watch, { startImmediately: true })
        yield* Fiber.interrupt(first)
        assert.strictEqual((yield* runs.get(runId)).status, "running")
        yield* Fiber.interrupt(second)
        const last = (yield* eventsOf(runId)).at(-1)?.event
        assert.deepInclude(last, { _tag: "RunEnd", status: "cancelled" })
      }).pipe(Effect.provide(layer(script, setup)))
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
