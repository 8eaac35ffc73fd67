import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Option, Redacted, Schedule, Scope, Stream } from "effect"
import { AgentEvent, Approval, Message, ProviderError } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { recorder } from "../behaviour/approving.ts"
import { eventsOf, waiting } from "../server/host.ts"
import { serve, token } from "../server/http.ts"
import { clientOf, opened, until } from "./client.ts"

const done = ScriptedProvider.text("done")
const again = ScriptedProvider.text("again")

/** A tool that waits for a gate, and its call. */
const gated = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  const began = yield* Deferred.make<void>()
  const wait = Effect.andThen(Deferred.succeed(began, undefined), Deferred.await(gate))
  const script = [ScriptedProvider.toolCall("wait", {}), done, again]
  return { gate, began, script, setup: { tools: [waiting("wait", wait)] } }
})

const statusOf = (url: string, runId: string) =>
  Effect.flatMap(clientOf(url), (client) => Effect.map(client.runs.get(runId), ({ status }) => status))

describe("AgentClient", () => {
  it.live("prompts at the server, with the result and the state that an agent here has", () =>
    Effect.gen(function* () {
      const { url } = yield* serve([
        ScriptedProvider.text(["do", "ne"], { usage: { input: 5, output: 2 } }),
        again
      ])
      const { agent } = yield* opened(url)
      const result = yield* agent.prompt("hi", { limits: { maxTurns: 3 } })
      assert.deepInclude(result, { status: "completed", text: "done", turns: 1, undelivered: [] })
      assert.strictEqual(result.usage.total, 7)
      assert.deepStrictEqual(
        result.newMessages.map((message) => [message.role, Message.textOf(message)]),
        [
          ["user", "hi"],
          ["assistant", "done"]
        ]
      )
      assert.strictEqual(result.message?.id, result.newMessages[1]?.id)
      assert.strictEqual(result.report.turns, 1)
      const view = yield* agent.state.get
      assert.deepStrictEqual(view.messages, result.newMessages)
      assert.deepStrictEqual([view.phase, view.status, view.runId], ["idle", "completed", result.runId])
      yield* agent.prompt([{ type: "text", text: "more" }])
      assert.strictEqual(agent.state.getUnsafe().messages.length, 4)
      assert.isTrue(Option.isNone(yield* agent.partial))
    })
  )

  it.live("replaces a message, in the state too", () =>
    Effect.gen(function* () {
      const { url } = yield* serve([done, again, ScriptedProvider.text("third")])
      const { agent, client } = yield* opened(url)
      const textsOf = (messages: ReadonlyArray<Message.Message>) => messages.map(Message.textOf)
      yield* agent.prompt("one")
      const { newMessages } = yield* agent.prompt("two")
      const replaces = newMessages[0]?.id ?? ""
      yield* agent.prompt("other", { replaces })
      const { messages } = yield* agent.state.get
      assert.deepStrictEqual(textsOf(messages), ["one", "done", "other", "third"])
      const fresh = yield* client.open(agent.sessionId)
      assert.deepStrictEqual((yield* fresh.state.get).messages, messages)
      const gone = yield* Effect.flip(agent.prompt("other", { replaces }))
      assert.deepInclude(gone, { _tag: "MessageNotFound", messageId: replaces })
    })
  )

  it.live("streams the events of the run, and fails after those of a run that failed", () =>
    Effect.gen(function* () {
      const overloaded = ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "busy" }))
      const { url } = yield* serve([done, overloaded, overloaded])
      const { agent } = yield* opened(url)
      const events = yield* Stream.runCollect(agent.stream("hi"))
      const folded = events.reduce(AgentEvent.fold, AgentEvent.initial())
      assert.deepStrictEqual(folded.messages.map(Message.textOf), ["hi", "done"])
      assert.strictEqual(events.at(-1)?._tag, "RunEnd")
      const seen: Array<string> = []
      const failed = yield* Effect.flip(
        Stream.runForEach(agent.stream("hi"), ({ _tag }) => Effect.sync(() => seen.push(_tag)))
      )
      assert.strictEqual(seen.at(-1), "RunEnd")
      if (failed._tag !== "RunFailed") return assert.fail(failed._tag)
      assert.strictEqual(failed.reason._tag, "ProviderError")
      assert.deepStrictEqual([failed.result.status, failed.result.turns], ["failed", 1])
      const quiet = yield* Stream.runCollect(agent.streamEvents("hi"))
      assert.deepInclude(quiet.at(-1), { _tag: "RunEnd", status: "failed" })
      assert.strictEqual(quiet.filter(({ _tag }) => _tag === "RunEnd").length, 1)
    })
  )

  it.live("shows partial values of a run that has them, which its log does not keep (row 58)", () =>
    Effect.gen(function* () {
      const { url } = yield* serve([ScriptedProvider.toolCall("none", { a: "b" }), done, done])
      const { agent } = yield* opened(url)
      const events = yield* Stream.runCollect(agent.stream("hi", { partialValues: true }))
      const values = events.flatMap((event) => (event._tag === "PartialValue" ? [event.changes] : []))
      assert.deepStrictEqual(values.flat().at(-1), { path: [], set: { a: "b" } })
      const { runId } = events[0] ?? assert.fail("no event")
      const stored = yield* Effect.promise(() =>
        fetch(`${url}/runs/${runId}/events?partials=true`, {
          headers: { authorization: `Bearer ${token}` }
        }).then((response) => response.text())
      )
      assert.include(stored, "event: MessageEnd")
      assert.notInclude(stored, "PartialValue")
    })
  )

  it.live("keeps sessions: makes, lists, reads, forks and deletes them", () =>
    Effect.gen(function* () {
      const { url } = yield* serve([done, again])
      const client = yield* clientOf(url)
      yield* client.health
      const sessionId = yield* client.sessions.create({ sessionId: "s", name: "Trip" })
      assert.strictEqual(sessionId, "s")
      assert.strictEqual(
        (yield* Effect.flip(client.sessions.create({ sessionId: "s" })))._tag,
        "SessionExists"
      )
      const agent = yield* client.open("s")
      yield* agent.prompt("hi")
      const { items } = yield* client.sessions.list({ limit: 5, query: "tri" })
      assert.deepStrictEqual(
        items.map(({ title }) => title),
        ["Trip"]
      )
      assert.strictEqual((yield* client.sessions.get("s")).entries[0]?.["type"], "session")
      const fork = yield* client.open(yield* client.sessions.fork("s"))
      assert.deepStrictEqual((yield* fork.state.get).messages.map(Message.textOf), ["hi", "done"])
      yield* fork.prompt("more")
      assert.strictEqual((yield* fork.state.get).messages.length, 4)
      assert.strictEqual((yield* agent.state.get).messages.length, 2)
      yield* client.sessions.update("s", { name: "Oslo", model: "m" })
      assert.strictEqual((yield* client.sessions.get("s")).session.title, "Oslo")
      yield* client.sessions.remove("s")
      const gone = yield* Effect.flip(client.open("s"))
      assert.deepInclude(gone, { _tag: "SessionNotFound", sessionId: "s" })
      assert.strictEqual((yield* Effect.flip(agent.prompt("hi")))._tag, "SessionNotFound")
    })
  )

  it.live("ends the turn at work by a steering message that interrupts", () =>
    Effect.gen(function* () {
      const { began, script, setup } = yield* gated
      const { url } = yield* serve(script, setup)
      const { agent } = yield* opened(url)
      const run = yield* agent.start("hi")
      yield* Deferred.await(began)
      yield* agent.steer("leave it", { interrupt: true })
      const { newMessages, status } = yield* run.result
      assert.strictEqual(status, "completed")
      assert.deepStrictEqual(
        newMessages.flatMap((message) => (message.role === "toolResult" ? [message.outcome] : [])),
        ["aborted"]
      )
    })
  )

  it.live("steers, follows up, pauses, resumes and cancels the run of the session", () =>
    Effect.gen(function* () {
      const { began, gate, script, setup } = yield* gated
      const { url } = yield* serve([...script, again], setup)
      const { agent } = yield* opened(url)
      assert.strictEqual((yield* Effect.flip(agent.steer("no")))._tag, "NoRun")
      yield* agent.pause()
      yield* agent.cancel()
      assert.strictEqual((yield* Effect.flip(agent.resume()))._tag, "NotPaused")
      const run = yield* agent.start("hi")
      yield* Deferred.await(began)
      assert.strictEqual((yield* Effect.flip(agent.resume()))._tag, "NotPaused")
      yield* agent.steer("steered")
      yield* agent.followUp("later")
      const refused = yield* Effect.flip(agent.prompt("two"))
      assert.deepInclude(refused, { _tag: "RunGoesOn", runId: run.runId })
      yield* agent.pause("lunch")
      yield* Deferred.succeed(gate, undefined)
      yield* until(agent, ({ phase }) => phase === "paused")
      assert.strictEqual(yield* statusOf(url, run.runId), "paused")
      yield* agent.resume("back")
      const result = yield* run.result
      assert.deepStrictEqual(
        result.newMessages.flatMap((message) => (message.role === "user" ? [Message.textOf(message)] : [])),
        ["hi", "steered", "later"]
      )
      assert.deepStrictEqual(
        result.report.audit.map(({ detail }) => detail),
        ["lunch", "back"]
      )
    })
  )

  it.live("cancels a run, whose prompt then has its result", () =>
    Effect.gen(function* () {
      const { began, script, setup } = yield* gated
      const { url } = yield* serve(script, setup)
      const { agent, client } = yield* opened(url)
      const prompt = yield* Effect.forkChild(agent.prompt("hi"))
      yield* Deferred.await(began)
      yield* agent.cancel("enough")
      const result = yield* Fiber.join(prompt)
      assert.strictEqual(result.status, "cancelled")
      yield* agent.cancel()
      assert.strictEqual((yield* Effect.flip(client.runs.cancel(result.runId)))._tag, "RunOver")
      assert.strictEqual((yield* Effect.flip(client.runs.cancel("run_none")))._tag, "RunNotFound")
    })
  )

  it.live(
    "cancels the run at the server when a prompt or a stream is left, unless the prompt says otherwise",
    () =>
      Effect.gen(function* () {
        const { began, gate, setup } = yield* gated
        const call = ScriptedProvider.toolCall("wait", {})
        const { url } = yield* serve([call, call, call, done], setup)
        const { agent, client } = yield* opened(url)
        const prompt = yield* Effect.forkChild(agent.prompt("one"))
        yield* Deferred.await(began)
        yield* Fiber.interrupt(prompt)
        const left = yield* agent.stream("two").pipe(
          Stream.takeUntil(({ _tag }) => _tag === "ToolInvoked"),
          Stream.runCollect
        )
        assert.strictEqual(yield* statusOf(url, left[0]?.runId ?? ""), "cancelled")
        const kept = yield* Effect.forkChild(agent.prompt("three", { cancelOnInterrupt: false }))
        yield* until(
          agent,
          ({ messages, pendingToolCalls }) =>
            messages.some((message) => Message.textOf(message) === "three") && pendingToolCalls.size === 1
        )
        yield* Fiber.interrupt(kept)
        const { runId = "" } = agent.state.getUnsafe()
        yield* client.runs.events(runId).pipe(
          Stream.takeUntil(({ event }) => event._tag === "ToolInvoked"),
          Stream.runDrain
        )
        assert.deepStrictEqual(
          (yield* agent.runs).map(({ status }) => status),
          ["cancelled", "cancelled", "running"]
        )
        yield* Deferred.succeed(gate, undefined)
        yield* agent.waitForIdle
        assert.strictEqual(yield* statusOf(url, runId), "completed")
      })
  )

  it.live("asks a person here: approvals and questions, also after the run was suspended", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const script = [ScriptedProvider.toolCall("remove", { path: "a" }), done]
      const setup = { tools: [tool], needsApproval: ["remove"], asked: "defer" } as const
      const { url } = yield* serve(script, setup)
      const { agent } = yield* opened(url)
      const suspended = yield* agent.prompt("hi")
      assert.strictEqual(suspended.status, "suspended")
      const [request] = (yield* agent.requests).approvals
      assert.deepInclude(request, { toolName: "remove", params: { path: "a" } })
      assert.deepStrictEqual(
        suspended.open?.approvals.map(({ request: { approvalId } }) => approvalId),
        [request?.approvalId]
      )
      assert.strictEqual((yield* Effect.flip(agent.continue))._tag, "InvalidContinuation")
      const answer = { decision: "approve", argumentsHash: request?.argumentsHash ?? "" } as const
      const conflict = yield* Effect.flip(
        agent.answer(request?.approvalId ?? "", { ...answer, argumentsHash: "0" })
      )
      assert.instanceOf(conflict, Approval.AnswerConflict)
      assert.strictEqual(conflict.id, request?.approvalId)
      assert.instanceOf(yield* Effect.flip(agent.answer("none", answer)), Approval.RequestNotFound)
      const given = yield* agent.answer(request?.approvalId ?? "", answer)
      const continued = yield* agent.continue
      assert.deepStrictEqual([given.decision, given.runId], ["approve", continued.runId])
      assert.deepStrictEqual([continued.status, continued.text, ran], ["completed", "done", ["a"]])
      assert.deepStrictEqual(
        (yield* agent.state.get).messages.map(({ role }) => role),
        ["user", "assistant", "toolResult", "assistant"]
      )
      assert.deepStrictEqual((yield* agent.requests).approvals, [])
      assert.deepStrictEqual((yield* agent.requests).questions, [])
    })
  )

  it.live("follows a run that another client began, and shows its answer as it comes", () =>
    Effect.gen(function* () {
      const { began, gate, script, setup } = yield* gated
      const { url } = yield* serve(script, setup)
      const first = yield* opened(url)
      const run = yield* first.agent.start("hi")
      yield* Deferred.await(began)
      const second = yield* (yield* clientOf(url)).open(first.agent.sessionId)
      yield* until(second, ({ pendingToolCalls }) => pendingToolCalls.size === 1)
      yield* Deferred.succeed(gate, undefined)
      yield* second.waitForIdle
      const result = yield* run.result
      assert.deepStrictEqual((yield* second.state.get).messages, result.newMessages)
      yield* second.prompt("more")
      yield* first.agent.refresh
      assert.deepStrictEqual((yield* first.agent.state.get).messages, (yield* second.state.get).messages)
    })
  )

  it.live("begins a run once, however often its request is sent", () =>
    Effect.gen(function* () {
      const { url } = yield* serve([done, again])
      const { agent } = yield* opened(url)
      const first = yield* agent.start("hi", { key: "k" })
      yield* first.result
      const second = yield* agent.start("hi", { key: "k" })
      assert.strictEqual(second.runId, first.runId)
      assert.strictEqual((yield* second.result).text, "done")
      assert.deepInclude(yield* Effect.flip(agent.start("other", { key: "k" })), {
        _tag: "KeyReused",
        runId: first.runId
      })
      assert.strictEqual((yield* agent.state.get).messages.length, 2)
    })
  )

  it.live("has typed errors: a wrong token, no server, another server", () =>
    Effect.gen(function* () {
      const { context, port, url } = yield* serve([done])
      const stranger = yield* clientOf(url, { token: Redacted.make("other") })
      assert.strictEqual((yield* Effect.flip(stranger.sessions.list()))._tag, "TokenRefused")
      const watching = yield* Effect.flip(Stream.runDrain(stranger.runs.events("run_1")))
      assert.strictEqual(watching._tag, "TokenRefused")
      const client = yield* clientOf(url)
      const none = yield* Effect.flip(Stream.runDrain(client.runs.events("run_none")))
      assert.deepInclude(none, { _tag: "RunNotFound", runId: "run_none" })
      const once = { reconnect: Schedule.recurs(1), retry: Schedule.recurs(1) }
      const nowhere = yield* clientOf("http://127.0.0.1:1", once)
      const gone = yield* Effect.flip(nowhere.sessions.list())
      assert.strictEqual(gone._tag, "ServerUnreachable")
      assert.match(gone.message, /127\.0\.0\.1/)
      assert.strictEqual(
        (yield* Effect.flip(Stream.runDrain(nowhere.runs.events("run_1"))))._tag,
        "ServerUnreachable"
      )
      const elsewhere = yield* clientOf(`http://127.0.0.1:${port}/elsewhere`, once)
      const other = yield* Effect.flip(elsewhere.sessions.list())
      assert.deepInclude(other, { _tag: "UnexpectedResponse", status: 404 })
      yield* Effect.provideContext(eventsOf("run_1"), context).pipe(Effect.exit)
    })
  )

  it.live("interrupts those who wait for a run when its session is closed here", () =>
    Effect.gen(function* () {
      const { began, script, setup } = yield* gated
      const { url } = yield* serve(script, setup)
      const client = yield* clientOf(url)
      const scope = yield* Scope.make()
      const agent = yield* Scope.provide(client.open(yield* client.sessions.create()), scope)
      const run = yield* agent.start("hi")
      const waiting = yield* Effect.forkChild(run.result, { startImmediately: true })
      yield* Deferred.await(began)
      yield* Scope.close(scope, Exit.void)
      const exit = yield* Fiber.await(waiting)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      assert.strictEqual(yield* statusOf(url, run.runId), "running")
      yield* client.runs.cancel(run.runId)
    })
  )
})
