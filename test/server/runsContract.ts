/** What all implementations of `Runs` do. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, type Layer, Schedule, Stream } from "effect"
import { type AgentEvent, Approval, Message } from "effect-agent"
import type { Payload } from "effect-agent/api"
import { RunLogStore, Runs } from "effect-agent/server"
import type { SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { recorder } from "../behaviour/approving.ts"
import { eventsOf, type Setup, stores, waiting } from "./host.ts"

/** Makes runs on a script. */
export type Make = (
  script: ScriptedProvider.Script,
  setup?: Setup,
  places?: Layer.Layer<SessionStore.SessionStore | RunLogStore.RunLogStore>
) => Layer.Layer<Runs.Runs, unknown>

const done = ScriptedProvider.text("done")

/** A session, and a run whose tool waits until the gate opens. */
export const gated = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  const script = [ScriptedProvider.toolCall("wait", {}), done, done, done]
  return { gate, script, setup: { tools: [waiting("wait", Deferred.await(gate))] } }
})

export const session = Effect.flatMap(Runs.Runs, (runs) => runs.sessions.create({ sessionId: "s" }))

/** Tests runs, with the time of the test or that of the world. `takesMessages`: whether a prompt may be a message with an id. */
export const check = (
  make: Make,
  test: typeof it.effect | typeof it.live,
  { takesMessages = true }: { readonly takesMessages?: boolean } = {}
) => {
  test("runs a prompt, and shows its events from any position, also after the end", () =>
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
    }).pipe(Effect.provide(make([done]))))

  test("lists the runs of all sessions, the newest first, by status and in pages", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const listed = Effect.fnUntraced(function* (page: Runs.RunPage) {
          const { items, nextCursor } = yield* runs.listAll(page)
          return [items.map(({ runId }) => runId), nextCursor] as const
        })
        assert.deepStrictEqual(yield* listed({}), [[], undefined])
        const of = Effect.fnUntraced(function* (sessionId: string, when?: "queue") {
          yield* Effect.ignore(runs.sessions.create({ sessionId }))
          return (yield* runs.start({ sessionId, prompt: "hi", ...(when && { when }) })).runId
        })
        const running = yield* of("a")
        const queued = yield* of("a", "queue")
        const ended = yield* of("b")
        yield* eventsOf(ended)
        const all = yield* Effect.forEach([running, queued, ended], runs.get)
        const newest = all
          .toSorted((one, two) => two.created - one.created || (one.runId < two.runId ? 1 : -1))
          .map(({ runId }) => runId)
        assert.deepStrictEqual(yield* listed({}), [newest, undefined])
        for (const { runId, status } of all)
          assert.deepStrictEqual(yield* listed({ status }), [[runId], undefined])
        assert.deepStrictEqual(yield* listed({ status: "failed" }), [[], undefined])
        const [first, cursor = ""] = yield* listed({ limit: 2 })
        assert.deepStrictEqual(first, newest.slice(0, 2))
        assert.deepStrictEqual(yield* listed({ limit: 2, cursor }), [newest.slice(2), undefined])
        const refused = yield* Effect.flip(runs.listAll({ cursor: "none" }))
        assert.strictEqual(refused._tag, "MalformedRequest")
        yield* Deferred.succeed(gate, undefined)
        yield* eventsOf(queued)
        assert.deepStrictEqual((yield* listed({ status: "completed" }))[0], newest)
      }).pipe(Effect.provide(make(script, setup)))
    }))

  test("removes a run that has ended, and leaves the conversation", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "one" })
        assert.deepInclude(yield* Effect.flip(runs.remove(runId)), { _tag: "RunGoesOn", runId })
        yield* Deferred.succeed(gate, undefined)
        yield* eventsOf(runId)
        assert.lengthOf(yield* runs.list(sessionId), 1)
        yield* runs.remove(runId)
        for (const gone of [runs.remove(runId), runs.get(runId), runs.watch(runId, 0)]) {
          assert.deepInclude(yield* Effect.flip<unknown, unknown, never>(gone), {
            _tag: "RunNotFound",
            runId
          })
        }
        assert.deepStrictEqual(yield* runs.list(sessionId), [])
        assert.isAbove((yield* runs.sessions.get(sessionId)).entries.length, 0)
      }).pipe(Effect.provide(make(script, setup)))
    }))

  test("refuses a second prompt with the id of the run, unless it joins or waits", () =>
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
        const gone = yield* Effect.flip(runs.sessions.remove(sessionId))
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
      }).pipe(Effect.provide(make(script, setup)))
    }))

  test("ends the turn at work for a steering message that interrupts, and the run continues", () =>
    Effect.gen(function* () {
      const { script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "one" })
        const invoked = Effect.flatMap(runs.events(runId, 0), (events) =>
          Stream.runDrain(Stream.takeUntil(events, ({ event }) => event._tag === "ToolInvoked"))
        )
        yield* invoked
        yield* runs.steer(runId, "leave it", { interrupt: true })
        const events = (yield* eventsOf(runId)).map(({ event }) => event)
        const outcomes = events.flatMap((event) => (event._tag === "ToolExecutionEnd" ? [event.outcome] : []))
        assert.deepStrictEqual(outcomes, ["aborted"])
        const texts = events.flatMap((event) =>
          event._tag === "MessageEnd" && event.message.role === "user" ? [Message.textOf(event.message)] : []
        )
        assert.deepStrictEqual(texts, ["one", "leave it"])
        const [end] = events.slice(-1)
        assert.strictEqual(end?._tag === "RunEnd" && end.status, "completed")
      }).pipe(Effect.provide(make(script, setup)))
    }))

  test("replaces a message: its run begins before it, and the session keeps what was behind it", () =>
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
          return (yield* runs.sessions.get(sessionId)).view["messages"]
        })
        yield* prompted("u1")
        const before = JSON.parse(JSON.stringify(yield* prompted("u2")))
        const second = { id: before[2].id }
        const asked = { sessionId, prompt: "u3", replaces: second.id }
        const { runId } = yield* runs.start(asked)
        assert.deepInclude(yield* Effect.flip(runs.start({ ...asked, when: "queue" })), {
          _tag: "RunGoesOn",
          runId
        })
        yield* Deferred.succeed(gate, undefined)
        yield* eventsOf(runId)
        const { entries, view } = yield* runs.sessions.get(sessionId)
        assert.deepStrictEqual(texts(view["messages"]), ["u1", "a1", "u3", "waited", "done"])
        assert.include(texts(entries) ?? [], "a2")
        const gone = yield* Effect.flip(runs.start(asked))
        assert.deepInclude(gone, { _tag: "MessageNotFound", sessionId, messageId: second.id })
        const messages = JSON.parse(JSON.stringify(view["messages"]))
        const result = messages.find(({ role }: { role: string }) => role === "toolResult").id
        assert.strictEqual(
          (yield* Effect.flip(runs.start({ ...asked, replaces: result })))._tag,
          "MalformedRequest"
        )
        const wrong = { ...asked, replaces: messages[0].id, options: { toolConcurrency: -1 } }
        assert.strictEqual((yield* Effect.flip(runs.start(wrong)))._tag, "MalformedRequest")
        assert.deepStrictEqual((yield* runs.sessions.get(sessionId)).view["messages"], messages)
        if (!takesMessages) return
        const first = { ...Message.user("new"), id: messages[0].id }
        assert.deepStrictEqual(texts(yield* prompted(first, first.id)), ["new", "done"])
        assert.deepStrictEqual(texts(yield* prompted(first, first.id)), ["new", "done"])
      }).pipe(Effect.provide(make([...turns, done], setup)))
    }))

  test("changes the name and the model of a session, the model between its runs alone", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "one" })
        yield* runs.sessions.update(sessionId, { name: "Trip" })
        const refused = yield* Effect.flip(runs.sessions.update(sessionId, { name: "No", model: "other" }))
        assert.deepInclude(refused, { _tag: "RunGoesOn", runId })
        yield* Deferred.succeed(gate, undefined)
        yield* eventsOf(runId)
        yield* runs.sessions.update(sessionId, { model: "other" })
        const { session: shown, view } = yield* runs.sessions.get(sessionId)
        assert.deepStrictEqual([shown.title, view["options"]], ["Trip", { model: "other" }])
        const next = yield* runs.start({ sessionId, prompt: "two" })
        assert.deepInclude((yield* eventsOf(next.runId))[0]?.event, { _tag: "RunStart", model: "other" })
        yield* runs.sessions.update(sessionId, { name: "" })
        assert.strictEqual((yield* runs.sessions.get(sessionId)).session.title, "one")
        const unknown = yield* Effect.flip(runs.sessions.update("none", { name: "x" }))
        assert.strictEqual(unknown._tag, "SessionNotFound")
      }).pipe(Effect.provide(make(script, setup)))
    }))

  test("waits for an approval, and answers it once", () =>
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
        assert.deepStrictEqual(yield* runs.approve(runId, id, answer), { decision: "approve", runId })
        const late = yield* Effect.flip(runs.approve(runId, id, { ...answer, decision: "reject" }))
        assert.deepInclude(late, { _tag: "AnswerConflict", runId })
        assert.include(late._tag === "AnswerConflict" ? late.detail : "", "approve")
        assert.deepStrictEqual(ran, ["a"])
        assert.strictEqual((yield* Effect.flip(runs.approve(runId, "none", answer)))._tag, "RequestNotFound")
      }).pipe(Effect.provide(make(script, { tools: [tool], needsApproval: ["remove"] })))
    }))

  test("lets go of a run that waits for a person, and continues it with the answer", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const script = [ScriptedProvider.toolCall("remove", { path: "a" }), done]
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        const resting = Effect.map(logs.find(runId), (run) => run?.isResting === true)
        const isResting = (is: boolean) =>
          Effect.repeat(resting, { until: (found) => found === is, schedule: Schedule.spaced("50 millis") })
        const pass = (effect: Effect.Effect<unknown, unknown>) =>
          Effect.raceFirst(
            effect,
            Effect.forever(Effect.andThen(TestClock.adjust("100 millis"), Effect.yieldNow))
          )
        const passing = test === it.live ? (effect: Effect.Effect<unknown, unknown>) => effect : pass
        yield* passing(isResting(true))
        assert.strictEqual(yield* runs.active(sessionId), runId)
        const { pending, status } = yield* runs.get(runId)
        assert.strictEqual(status, "running")
        const [{ approvalId = "", argumentsHash = "" } = {}] = pending.approvals
        // A watcher who comes now sees the rest.
        const watching = yield* Effect.forkChild(eventsOf(runId), { startImmediately: true })
        const answer = { decision: "approve", argumentsHash } as const
        assert.deepStrictEqual(yield* runs.approve(runId, approvalId, answer), { decision: "approve", runId })
        const seen = yield* Fiber.join(watching)
        const tags = seen.map(({ event }) => event._tag)
        assert.strictEqual(tags.filter((tag) => tag === "ApprovalRequested").length, 1)
        assert.deepInclude(seen.at(-1)?.event, { _tag: "RunEnd", status: "completed" })
        assert.isTrue(seen.every(({ position }, index) => position > (seen[index - 1]?.position ?? 0)))
        assert.deepStrictEqual(ran, ["a"])
        assert.isFalse((yield* logs.find(runId))?.isResting)
      }).pipe(Effect.provide(make(script, { tools: [tool], needsApproval: ["remove"] }, places)))
    }))

  test("takes the refusal to answer a question", () =>
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
          const late = yield* Effect.flip(give({ answer: "x" }))
          assert.include(late._tag === "AnswerConflict" ? late.detail : "", "declined")
          const { view } = yield* runs.sessions.get(sessionId)
          assert.include(JSON.stringify(view["messages"]), "Tool execution was rejected: no idea")
        }).pipe(
          Effect.provide(
            make([ScriptedProvider.toolCall("ask_user", { question: "Where?" }), done], {
              asked,
              tools: [Approval.askUser()]
            })
          )
        )
      }
    }))

  test("continues a suspended run in a new one, which the answer names, also after a restart", () =>
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
      }).pipe(Effect.provide(make([call], setup, places)))
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
      }).pipe(Effect.provide(make([done], setup, places)))
    }))

  test("resumes a suspended run by each answer, also by one that comes while a run is about to be suspended", () =>
    Effect.gen(function* () {
      for (const when of ["before the end", "at the end", "after the end"] as const) {
        const { ran, tool } = recorder()
        const gate = yield* Deferred.make<void>()
        const tools = [tool, waiting("wait", Deferred.await(gate))]
        const remove = (path: string) => ({ name: "remove", params: { path } })
        const calls = ScriptedProvider.toolCalls(remove("a"), remove("b"), { name: "wait", params: {} })
        yield* Effect.gen(function* () {
          const runs = yield* Runs.Runs
          const sessionId = yield* session
          const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
          const until = (tag: AgentEvent.AgentEvent["_tag"], nth: number) =>
            Effect.flatMap(runs.events(runId, 0), (events) =>
              events.pipe(
                Stream.filter(({ event }) => event._tag === tag),
                Stream.take(nth),
                Stream.runDrain
              )
            )
          yield* until("ApprovalRequested", 2)
          const requests = (yield* runs.get(runId)).pending.approvals
          if (when !== "before the end") yield* Deferred.succeed(gate, undefined)
          if (when === "at the end") yield* until("RunEnd", 1)
          if (when === "after the end") yield* eventsOf(runId)
          const given: Array<string> = []
          for (const { approvalId, argumentsHash } of requests) {
            given.push((yield* runs.approve(runId, approvalId, { decision: "approve", argumentsHash })).runId)
          }
          if (when === "before the end") yield* Deferred.succeed(gate, undefined)
          else assert.notStrictEqual(given[0], runId)
          let run = yield* runs.get(runId)
          while (run.status !== "completed") {
            yield* eventsOf(run.runId)
            while (run.status !== "completed" && run.resumedBy === undefined) {
              yield* Effect.yieldNow
              run = yield* runs.get(run.runId)
            }
            run = yield* runs.get(run.resumedBy ?? run.runId)
          }
          assert.deepStrictEqual(ran.toSorted(), ["a", "b"])
          assert.strictEqual((yield* runs.list(sessionId)).at(-1)?.runId, run.runId)
        }).pipe(Effect.provide(make([calls, done], { tools, needsApproval: ["remove"], asked: "defer" })))
      }
    }))

  test("cancels a run when the last watcher that asked so has left", () =>
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
      }).pipe(Effect.provide(make(script, setup)))
    }))
}
