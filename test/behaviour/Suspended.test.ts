import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Fiber, Layer, Queue, Schema, Stream } from "effect"
import { Agent, type AgentEvent, Approval, Loop, Message, Tool, ToolRegistry } from "effect-agent"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { approve, calls, done, recorder } from "./approving.ts"
import { broken } from "./invariants.ts"
import { agent, ofTag, outcomes, resultTexts, settle, sleeper, tags, texts } from "./play.ts"

/** Allows calls whose path begins with "ok". */
const deferring = (options: Approval.Options = {}) =>
  Approval.layer({
    rules: [
      Approval.allow("remove", (params) => JSON.stringify(params).includes("ok")),
      Approval.allow("sleep")
    ],
    asked: "defer",
    ...options
  })

/** The events of one run. */
const ofRun = (events: ReadonlyArray<AgentEvent.AgentEvent>, index: number) => {
  const ids = [...new Set(events.map(({ runId }) => runId))]
  return events.filter(({ runId }) => runId === ids[index])
}

describe("a suspended run", () => {
  it.effect(
    "ends once the calls beside the waiting one have ended, and continues where it stopped (row 222)",
    () =>
      Effect.gen(function* () {
        const { ran, tool } = recorder()
        const played = yield* Effect.provide(
          agent([calls("ok1", "a", "ok2", "b"), done], { tools: [tool] }),
          deferring()
        )
        const { agent: made, events } = played
        const first = yield* made.prompt("go")
        assert.deepStrictEqual([first.status, ran], ["suspended", ["ok1", "ok2"]])
        assert.deepStrictEqual(
          first.newMessages.map(({ role }) => role),
          ["user", "assistant"]
        )
        assert.deepStrictEqual(tags(ofRun(events, 0)).slice(-2), ["TurnEnd", "RunEnd"])
        assert.deepStrictEqual(ofTag(events, "RunEnd")[0]?.resume, { runId: first.runId })
        assert.strictEqual(ofTag(events, "ToolExecutionEnd").length, 2)
        const [a, b] = (yield* made.requests).approvals
        assert.deepStrictEqual([a?.params, b?.params], [{ path: "a" }, { path: "b" }])
        yield* approve(made, b, { decision: "reject", reason: "keep b" })
        yield* approve(made, a, { params: { path: "a2" } })
        assert.deepStrictEqual((yield* made.requests).approvals, [])
        const { newMessages, status, text } = yield* made.continue
        assert.deepStrictEqual([status, text, ran], ["completed", "done", ["ok1", "ok2", "a2"]])
        assert.deepStrictEqual(resultTexts(newMessages), [
          "removed ok1",
          "removed a2",
          "removed ok2",
          "Tool execution was rejected: keep b"
        ])
        const resumed = ofRun(events, 1)
        const [start] = ofTag(resumed, "RunStart")
        assert.deepStrictEqual([start?.continued, start?.resumes], [true, first.runId])
        assert.deepStrictEqual(tags(resumed.filter(({ turn }) => turn === 1)).slice(0, 3), [
          "TurnStart",
          "ToolsDetected",
          "ToolExecutionStart"
        ])
        assert.strictEqual(ofTag(resumed, "ModelCallStart").length, 1)
        assert.strictEqual(ofTag(resumed, "ApprovalAnswered").length, 2)
        assert.deepStrictEqual(ofTag(resumed, "ApprovalRequested"), [])
        const [request] = (yield* played.requests).slice(1)
        assert.deepStrictEqual(resultTexts(request?.messages).length, 4)
      })
  )

  it.effect("keeps calls open that have no answer, under the same id", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent: made, events } = yield* Effect.provide(
        agent([calls("a", "b"), done], { tools: [tool] }),
        deferring()
      )
      const first = yield* made.prompt("go")
      const [a, b] = (yield* made.requests).approvals
      yield* approve(made, b)
      const second = yield* made.continue
      assert.deepStrictEqual([second.status, ran], ["suspended", ["b"]])
      const [again, none] = (yield* made.requests).approvals
      assert.isUndefined(none)
      assert.strictEqual(again?.approvalId, a?.approvalId)
      assert.strictEqual(again?.runId, second.runId)
      assert.deepStrictEqual(
        ofTag(events, "ApprovalRequested").map(({ approvalId }) => approvalId),
        [a?.approvalId, b?.approvalId, a?.approvalId]
      )
      yield* approve(made, again)
      const third = yield* made.continue
      assert.deepStrictEqual([third.status, ran], ["completed", ["b", "a"]])
      assert.strictEqual(ofTag(events, "RunStart")[2]?.resumes, second.runId)
      assert.deepStrictEqual(resultTexts(third.newMessages), ["removed a", "removed b"])
      assert.notStrictEqual(first.runId, second.runId)
      const before = yield* approve(made, b, { decision: "reject" })
      assert.strictEqual(before.decision, "approve")
    })
  )

  it.effect("waits under the same id where the policy waits by then", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent: made } = yield* agent([calls("a"), done], { tools: [tool] })
      yield* Effect.provide(made.prompt("go"), deferring())
      const [a] = (yield* made.requests).approvals
      const asked = yield* Queue.unbounded<string>()
      yield* made.subscribe((event) =>
        event._tag === "ApprovalRequested" ? Queue.offer(asked, event.approvalId) : Effect.void
      )
      const run = yield* Effect.forkChild(Effect.provide(made.continue, Approval.layer({ asked: "wait" })), {
        startImmediately: true
      })
      assert.strictEqual(yield* Queue.take(asked), a?.approvalId)
      yield* approve(made, a)
      yield* Fiber.join(run)
      assert.deepStrictEqual(ran, ["a"])
    })
  )

  it.effect("asks the policy again about a call without an answer", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent: made } = yield* agent([calls("a", "b"), done], { tools: [tool] })
      yield* Effect.provide(made.prompt("go"), deferring())
      const rules = [
        Approval.allow("remove", (params) => JSON.stringify(params).includes('a"}')),
        Approval.deny("remove", (params) => JSON.stringify(params).includes('b"}'), "no b")
      ]
      const { newMessages } = yield* Effect.provide(made.continue, Approval.layer({ rules }))
      assert.deepStrictEqual(resultTexts(newMessages), ["removed a", "Tool execution was rejected: no b"])
      assert.deepStrictEqual(ran, ["a"])
      assert.deepStrictEqual((yield* made.requests).approvals, [])
    })
  )

  it.effect("is closed by a new prompt, honestly", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent: made } = yield* Effect.provide(
        agent([calls("ok", "a", "b"), done], { tools: [tool] }),
        deferring()
      )
      yield* made.prompt("go")
      const [a, b] = (yield* made.requests).approvals
      yield* approve(made, b)
      const { newMessages, status } = yield* made.prompt("never mind")
      assert.deepStrictEqual([status, ran], ["completed", ["ok"]])
      assert.deepStrictEqual(texts(newMessages), [
        "removed ok",
        "Tool execution was rejected: the user wrote a message and did not approve this call",
        "Not run: the user wrote a message first.",
        "never mind",
        "done"
      ])
      assert.strictEqual((yield* Effect.flip(approve(made, a)))._tag, "RequestNotFound")
    })
  )

  it.effect("looks at the calls behind the waiting one only when it is resumed, in a sequential batch", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent: made, events } = yield* Effect.provide(
        agent([calls("ok1", "a", "ok2", "b"), done], { tools: [tool], toolExecution: "sequential" }),
        deferring()
      )
      const first = yield* made.prompt("go")
      assert.deepStrictEqual([first.status, ran], ["suspended", ["ok1"]])
      assert.deepStrictEqual(resultTexts(first.newMessages), ["removed ok1"])
      yield* approve(made, (yield* made.requests).approvals[0])
      const second = yield* made.continue
      assert.deepStrictEqual([second.status, ran], ["suspended", ["ok1", "a", "ok2"]])
      yield* approve(made, (yield* made.requests).approvals[0])
      yield* made.continue
      assert.deepStrictEqual(ran, ["ok1", "a", "ok2", "b"])
      const { messages } = made.state.getUnsafe()
      assert.deepStrictEqual(resultTexts(messages), ["removed ok1", "removed a", "removed ok2", "removed b"])
      assert.strictEqual(ofTag(events, "RunEnd").length, 3)
    })
  )

  it.effect("takes an answer while the calls beside it run", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { begun, tool: sleep } = yield* sleeper()
      const script = [
        ScriptedProvider.toolCalls(
          { name: "remove", params: { path: "a" } },
          { name: "sleep", params: { ms: 100 } }
        ),
        done
      ]
      const { agent: made } = yield* Effect.provide(agent(script, { tools: [tool, sleep] }), deferring())
      const asked = yield* Queue.unbounded<Approval.Request>()
      yield* made.subscribe((event) =>
        event._tag === "ApprovalRequested" ? Queue.offer(asked, event) : Effect.void
      )
      const run = yield* Effect.forkChild(made.prompt("go"), { startImmediately: true })
      const request = yield* Queue.take(asked)
      yield* begun
      yield* approve(made, request)
      yield* settle()
      yield* TestClock.adjust(100)
      assert.strictEqual((yield* Fiber.join(run)).status, "suspended")
      yield* made.continue
      assert.deepStrictEqual(ran, ["a"])
    })
  )

  it.effect("does not suspend when it is cancelled meanwhile", () =>
    Effect.gen(function* () {
      const { tool } = recorder()
      const { begun, tool: sleep } = yield* sleeper()
      const script = [
        ScriptedProvider.toolCalls(
          { name: "remove", params: { path: "a" } },
          { name: "sleep", params: { ms: 100 } }
        ),
        done
      ]
      const { agent: made, events } = yield* Effect.provide(
        agent(script, { tools: [tool, sleep] }),
        deferring()
      )
      const run = yield* Effect.forkChild(made.prompt("go"), { startImmediately: true })
      yield* begun
      yield* made.cancel()
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
      assert.deepStrictEqual(outcomes(events), ["aborted", "aborted"])
      assert.deepStrictEqual(broken(events), [])
      assert.deepStrictEqual((yield* made.requests).approvals, [])
    })
  )

  it.effect("stays open when the run that resumes it is cancelled before its first turn", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent: made } = yield* Effect.provide(agent([calls("a"), done], { tools: [tool] }), deferring())
      yield* made.prompt("go")
      yield* approve(made, (yield* made.requests).approvals[0])
      const cancelling = made.subscribe((event) => (event._tag === "RunStart" ? made.cancel() : Effect.void))
      const cancelled = yield* Effect.scoped(Effect.andThen(cancelling, made.continue))
      assert.deepStrictEqual([cancelled.status, ran], ["cancelled", []])
      const { newMessages } = yield* made.continue
      assert.deepStrictEqual([ran, resultTexts(newMessages)], [["a"], ["removed a"]])
    })
  )

  it.effect("expires where the time of the approval is over when it is resumed", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent: made, events } = yield* Effect.provide(
        agent([calls("a"), done], { tools: [tool] }),
        deferring({ expiresAfter: "1 hour" })
      )
      yield* made.prompt("go")
      const [a] = (yield* made.requests).approvals
      yield* TestClock.adjust("2 hours")
      assert.strictEqual((yield* Effect.flip(approve(made, a)))._tag, "RequestNotFound")
      yield* made.continue
      assert.deepStrictEqual([ran, outcomes(events)], [[], ["expired"]])
    })
  )

  it.effect("is forgotten by reset and setMessages", () =>
    Effect.gen(function* () {
      const { tool } = recorder()
      const { agent: made } = yield* Effect.provide(
        agent([calls("a"), calls("b"), done], { tools: [tool] }),
        deferring()
      )
      yield* made.prompt("go")
      yield* made.reset
      assert.deepStrictEqual((yield* made.requests).approvals, [])
      yield* made.prompt("go")
      yield* made.setMessages([Message.user("hello")])
      assert.deepStrictEqual((yield* made.requests).approvals, [])
      assert.strictEqual((yield* made.continue).text, "done")
    })
  )

  const loop = Effect.fnUntraced(function* (tool: Tool.Runnable, script: ScriptedProvider.Script) {
    const provider = yield* ScriptedProvider.make(script)
    return Layer.mergeAll(provider.layer, ToolRegistry.layer(tool))
  })

  it.effect("continues without an agent, from the open turn of its result", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const layer = yield* loop(tool, [calls("ok", "a"), done])
      const provided = Effect.provide([
        layer,
        Approval.layer({
          rules: [Approval.allow("remove", (p) => JSON.stringify(p).includes("ok"))],
          asked: "wait"
        })
      ])
      const { newMessages, open, status } = yield* provided(Loop.run("go", { messages: [] }, { model: "m" }))
      assert.strictEqual(status, "suspended")
      assert.isDefined(open)
      if (open === undefined) return
      // As another process reads it.
      const json = Schema.fromJsonString(Schema.toCodecJson(Approval.OpenTurn))
      const read = yield* Schema.decodeEffect(json)(yield* Schema.encodeEffect(json)(open))
      assert.deepStrictEqual(read, open)
      const approvals = read.approvals.map(({ request }) => ({
        request,
        answer: { decision: "approve" as const }
      }))
      const events = yield* provided(
        Stream.runCollect(
          Loop.continue({ messages: newMessages, open: { ...read, approvals } }, { model: "m" })
        )
      )
      assert.deepStrictEqual(ran, ["ok", "a"])
      assert.strictEqual(ofTag(events, "RunStart")[0]?.resumes, open.runId)
      assert.deepStrictEqual(ofTag(events, "RunEnd")[0]?.status, "completed")
      assert.deepStrictEqual(
        ofTag(events, "MessageEnd").map(({ message }) => Message.textOf(message)),
        ["removed ok", "removed a", "done"]
      )
    })
  )

  it.effect("rejects params that were changed after the approval", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const layer = yield* loop(tool, [calls("a"), done])
      const provided = Effect.provide([layer, Approval.layer({ asked: "defer" })])
      const { newMessages, open } = yield* provided(Loop.run("go", { messages: [] }, { model: "m" }))
      if (open === undefined) return assert.fail("not suspended")
      const approvals = open.approvals.map(({ request }) => ({
        request: { ...request, params: { path: "/" } },
        answer: { decision: "approve" as const }
      }))
      const events = yield* provided(
        Stream.runCollect(
          Loop.continue({ messages: newMessages, open: { ...open, approvals } }, { model: "m" })
        )
      )
      assert.deepStrictEqual([ran, outcomes(events)], [[], ["rejected"]])
    })
  )

  it.effect("resumes after a crash: ended, unknown and not begun calls get honest results", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const call = (id: string): Message.ToolCall => ({
        type: "toolCall",
        id,
        name: "remove",
        rawArguments: `{"path":"${id}"}`,
        params: { path: id }
      })
      const message = Message.assistant(["ended", "begun", "asked", "unseen"].map(call), {
        stopReason: "toolUse"
      })
      const layer = yield* loop(tool, [done])
      const open: Approval.OpenTurn = {
        runId: "run_lost",
        message,
        isSuspended: false,
        ended: [
          { toolCallId: "ended", outcome: "success", output: { content: [Message.text("was removed")] } }
        ],
        begun: ["ended", "begun"],
        approvals: [
          {
            request: {
              approvalId: "apr_1",
              runId: "run_lost",
              toolCallId: "asked",
              toolName: "remove",
              params: { path: "asked" },
              argumentsHash: "d9bc8a9a4f4a1a1f"
            }
          }
        ],
        questions: []
      }
      const events = yield* Effect.provide(
        Stream.runCollect(Loop.continue({ messages: [Message.user("go"), message], open }, { model: "m" })),
        [layer]
      )
      assert.deepStrictEqual(ran, ["asked"])
      assert.deepStrictEqual(
        ofTag(events, "MessageEnd").map(({ message }) => Message.textOf(message)),
        [
          "was removed",
          "The process ended while tool remove ran, and its end is not known. It may have had effects: check before you call it again.",
          "removed asked",
          "Not run: the process ended before this call began.",
          "done"
        ]
      )
      assert.deepStrictEqual(outcomes(events).toSorted(), ["aborted", "success", "unknown"])
    })
  )
})

/** A batch of calls, the decisions of a policy and of a person about them, and the way to ask. */
const Plan = Schema.Struct({
  calls: Schema.NonEmptyArray(
    Schema.Struct({
      policy: Schema.Literals(["allow", "deny", "ask", "ask"]),
      decision: Schema.Literals(["approve", "reject", "edit"]),
      /** In which round the person answers. */
      round: Schema.Literals([0, 1, 2])
    })
  ),
  asked: Schema.Literals(["wait", "defer"]),
  isSequential: Schema.Boolean,
  isReversed: Schema.Boolean,
  /** Whether another process continues after each suspension. */
  restarts: Schema.Boolean
})

const playPlan = (plan: typeof Plan.Type) =>
  Effect.gen(function* () {
    const { ran, tool } = recorder()
    const calls = plan.calls.slice(0, 8)
    const callOf = (path: string) => calls[Number.parseInt(path, 10)]
    const store = SessionStore.make(MemorySessionStore.storage())
    const provider = yield* ScriptedProvider.make([
      ScriptedProvider.toolCalls(...calls.map((_, n) => ({ name: "remove", params: { path: `${n}` } }))),
      done
    ])
    const policy = Layer.succeed(Approval.Approval, {
      decide: ({ input }) => {
        const decision = callOf(pathOf(input))?.policy ?? "deny"
        return Effect.succeed(decision === "deny" ? { decision, reason: "denied" } : { decision })
      },
      asked: plan.asked
    })
    const ordered = <A>(all: ReadonlyArray<A>) => (plan.isReversed ? all.toReversed() : all)
    const answer = (given: Agent.Agent, request: Approval.Request) => {
      const path = pathOf(request.params)
      const decision = callOf(path)?.decision
      return decision === "edit"
        ? approve(given, request, { params: { path: `${path} edited` } })
        : approve(given, request, { decision: decision ?? "reject" })
    }
    const opened = Effect.gen(function* () {
      const session = yield* store.openOrCreate("s1")
      const made = yield* Agent.make({
        model: "m",
        tools: [tool],
        session,
        toolExecution: plan.isSequential ? "sequential" : "parallel"
      })
      if (plan.asked === "wait") {
        const asked = yield* Queue.unbounded<Approval.Request>()
        yield* made.subscribe((event) =>
          event._tag === "ApprovalRequested" ? Queue.offer(asked, event) : Effect.void
        )
        const answering = Effect.flatMap(Queue.takeAll(asked), (requests) =>
          Effect.forEach(ordered(requests), (request) => answer(made, request), { discard: true })
        )
        yield* Effect.forkScoped(Effect.forever(answering))
      }
      return made
    })
    const round = Effect.fnUntraced(function* (given: Agent.Agent, number: number) {
      const { status } = yield* number === 0 ? given.prompt("go") : given.continue
      if (status !== "suspended") return given.state.getUnsafe().messages
      const waiting = (yield* given.requests).approvals
      const due = waiting.filter(({ params }) => (callOf(pathOf(params))?.round ?? 0) <= number)
      yield* Effect.forEach(ordered(due), (request) => answer(given, request), { discard: true })
      return undefined
    })
    const rounds = Effect.fnUntraced(function* (given: Effect.Effect<Agent.Agent, unknown, never>) {
      for (let number = 0; number < 40; number++) {
        const messages = yield* Effect.flatMap(given, (agent) => round(agent, number))
        if (messages !== undefined) return messages
      }
      return []
    })
    const messages = yield* Effect.scoped(
      plan.restarts
        ? Effect.gen(function* () {
            for (let number = 0; number < 40; number++) {
              const messages = yield* Effect.scoped(Effect.flatMap(opened, (agent) => round(agent, number)))
              if (messages !== undefined) return messages
            }
            return []
          })
        : Effect.flatMap(opened, (agent) => rounds(Effect.succeed(agent)))
    ).pipe(Effect.provide([provider.layer, policy]))
    const expected = calls.map(({ decision, policy }, n) => {
      if (policy === "deny") return "Tool execution was rejected: denied"
      if (policy === "allow") return `removed ${n}`
      if (decision === "reject") return "Tool execution was rejected: not approved"
      return decision === "edit" ? `removed ${n} edited` : `removed ${n}`
    })
    return {
      results: resultTexts(messages),
      expected,
      ran: ran.toSorted(),
      due: expected.flatMap((text) => (text.startsWith("removed ") ? [text.slice(8)] : [])).toSorted()
    }
  })

const pathOf = (json: unknown): string =>
  typeof json === "object" && json !== null && "path" in json ? String(json.path) : ""

describe("any batch, policy and order of answers", () => {
  it.effect(
    "gives each call one result, in order, and runs each approved tool exactly once (row 263)",
    () =>
      Effect.gen(function* () {
        const lawful = Effect.fnUntraced(function* (plan: typeof Plan.Type) {
          const { due, expected, ran, results } = yield* playPlan(plan)
          const got = JSON.stringify([results, ran])
          return got === JSON.stringify([expected, due]) || (yield* Effect.fail(got))
        })
        const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Plan), lawful, {
          seed: 1,
          runs: 150,
          size: 6
        })
        assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
      }),
    60_000
  )
})
