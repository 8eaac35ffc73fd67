import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { Arbitrary, Effect, Exit, Fiber, Latch, Layer, Queue, Schema } from "effect"
import { type Agent, Approval, Hook, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Json from "../../src/internal/json.ts"
import { approve, calls, done, recorder } from "./approving.ts"
import { broken } from "./invariants.ts"
import { agent, ofTag, outcomes, resultTexts, say, settle, sleeper, status, tags } from "./play.ts"

const waiting = (options: Approval.Options = {}) => Approval.layer({ asked: "wait", ...options })

/** A run that waits for its approvals. */
const asking = Effect.fnUntraced(function* (
  script: ScriptedProvider.Script,
  options: Parameters<typeof agent>[1],
  policy: Layer.Layer<never> = waiting()
) {
  const played = yield* Effect.provide(agent(script, options), policy)
  const asked = yield* Queue.unbounded<Approval.Request>()
  yield* played.agent.subscribe((event) =>
    event._tag === "ApprovalRequested" ? Queue.offer(asked, event) : Effect.void
  )
  const run = yield* Effect.forkChild(played.agent.prompt("go"), { startImmediately: true })
  /** Waits for so many requests: their hash takes a while outside of Effect. */
  const requests = Effect.fnUntraced(function* (count: number) {
    yield* Queue.takeN(asked, count)
    yield* settle()
    return (yield* played.agent.requests).approvals
  })
  return { ...played, run, requests }
})

describe("approvals", () => {
  it.effect("wait for an answer while the calls beside them run, and stand open together", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const other = recorder("other")
      const script = [
        ScriptedProvider.toolCalls(
          { name: "remove", params: { path: "a" } },
          { name: "other", params: { path: "b" } },
          { name: "remove", params: { path: "c" } }
        ),
        done
      ]
      const { agent, events, requests, run } = yield* asking(
        script,
        { tools: [tool, other.tool], toolConcurrency: 1 },
        waiting({ rules: [Approval.allow(other.tool)] })
      )
      const open = yield* requests(2)
      assert.deepStrictEqual(
        open.map(({ params, toolName }) => [toolName, params]),
        [
          ["remove", { path: "a" }],
          ["remove", { path: "c" }]
        ]
      )
      assert.deepStrictEqual([ran, other.ran], [[], ["b"]])
      yield* approve(agent, open[1])
      yield* settle()
      assert.deepStrictEqual(ran, ["c"])
      yield* approve(agent, open[0], { decision: "reject", reason: "not a" })
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(resultTexts(newMessages), [
        "Tool execution was rejected: not a",
        "removed b",
        "removed c"
      ])
      assert.deepStrictEqual(ran, ["c"])
      assert.deepStrictEqual((yield* agent.requests).approvals, [])
      assert.deepStrictEqual(broken(events), [])
    })
  )

  it.effect("stand between ToolExecutionStart and ToolInvoked, with the hash of the params", () =>
    Effect.gen(function* () {
      const { tool } = recorder()
      const { agent, events, requests, run } = yield* asking([calls("a"), done], { tools: [tool] })
      const [request] = yield* requests(1)
      const first = yield* approve(agent, request, { by: "ada" })
      assert.deepStrictEqual(first, { decision: "approve", by: "ada" })
      yield* Fiber.join(run)
      const of = events.filter((event) => "toolCallId" in event)
      assert.deepStrictEqual(tags(of), [
        "ToolExecutionStart",
        "ApprovalRequested",
        "ApprovalAnswered",
        "ToolInvoked",
        "ToolExecutionEnd"
      ])
      const [requested] = ofTag(events, "ApprovalRequested")
      const hash = createHash("sha256").update('{"path":"a"}').digest("hex")
      assert.strictEqual(requested?.argumentsHash, hash)
      assert.strictEqual(ofTag(events, "ApprovalAnswered")[0]?.by, "ada")
      assert.isTrue(ofTag(events, "ToolInvoked")[0]?.approved)
      // The first answer counts, also when the run is over.
      assert.deepStrictEqual(yield* approve(agent, request, { decision: "reject" }), first)
      const other = yield* Effect.flip(approve(agent, request, { argumentsHash: "0" }))
      assert.strictEqual(other._tag, "AnswerConflict")
    })
  )

  it.effect("refuse another hash, unknown ids and params that the tool does not take, and stay open", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent, events, requests, run } = yield* asking([calls("a"), done], { tools: [tool] })
      const [request] = yield* requests(1)
      const refused = [
        yield* Effect.flip(approve(agent, request, { argumentsHash: "other" })),
        yield* Effect.flip(agent.answer("apr_none", { decision: "approve", argumentsHash: "" })),
        yield* Effect.flip(approve(agent, request, { params: { file: "x" } }))
      ]
      assert.deepStrictEqual(
        refused.map(({ _tag }) => _tag),
        ["AnswerConflict", "RequestNotFound", "InvalidAnswer"]
      )
      assert.deepStrictEqual((yield* agent.requests).approvals, request === undefined ? [] : [request])
      assert.deepStrictEqual(ofTag(events, "ApprovalAnswered"), [])
      yield* approve(agent, request, { params: { path: "b" } })
      yield* Fiber.join(run)
      assert.deepStrictEqual(ran, ["b"])
      const [invoked] = ofTag(events, "ToolInvoked")
      assert.deepStrictEqual([invoked?.params, invoked?.modified], [{ path: "b" }, true])
      assert.deepStrictEqual(ofTag(events, "ApprovalAnswered")[0]?.params, { path: "b" })
    })
  )

  it.effect("may be answered by a subscriber of the request", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent: made } = yield* Effect.provide(agent([calls("a"), done], { tools: [tool] }), waiting())
      yield* made.subscribe((event) =>
        event._tag === "ApprovalRequested"
          ? made.answer(event.approvalId, { decision: "approve", argumentsHash: event.argumentsHash })
          : Effect.void
      )
      yield* made.prompt("go")
      assert.deepStrictEqual(ran, ["a"])
    })
  )

  it.effect("come after all hooks, with the params that the hooks gave", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const seen: Array<unknown> = []
      const hooks = [
        Hook.beforeTool(tool, ({ params }) => Effect.succeed({ params: { path: `${params.path}1` } })),
        Hook.approveTool(tool, ({ params }) =>
          params.path === "b1"
            ? Effect.succeed({ approved: false as const })
            : Effect.succeed({ approved: true as const, params: { path: `${params.path}2` } })
        )
      ]
      const { agent, requests, run } = yield* asking(
        [calls("a", "b"), done],
        { tools: [tool], hooks },
        Layer.succeed(Approval.Approval, {
          decide: (call) =>
            Effect.sync(() => {
              seen.push(call.params, call.input)
              return { decision: "ask", reason: "careful" } as const
            }),
          asked: "wait"
        })
      )
      const [request, other] = yield* requests(1)
      assert.isUndefined(other)
      assert.deepStrictEqual(seen, [{ path: "a12" }, { path: "a12" }])
      assert.deepStrictEqual([request?.params, request?.reason], [{ path: "a12" }, "careful"])
      yield* approve(agent, request)
      yield* Fiber.join(run)
      assert.deepStrictEqual(ran, ["a12"])
    })
  )

  it.effect("use no time limit: not of the tool, the run, or a run around it", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const requested = yield* Latch.make(false)
      const outer = Tool.make({
        name: "delegate",
        description: "Runs a sub-agent.",
        timeout: "10 seconds",
        execute: Effect.fnUntraced(function* () {
          const inner = yield* Effect.provide(
            agent([calls("a"), done], { tools: [tool], limits: { executionTime: "5 seconds" } }),
            waiting()
          )
          yield* inner.agent.subscribe((event) =>
            event._tag === "ApprovalRequested" ? requested.open : Effect.void
          )
          const { text } = yield* inner.agent.prompt("go")
          return text
        })
      })
      const { agent: made, events } = yield* agent([ScriptedProvider.toolCall("delegate", {}), done], {
        tools: [outer],
        limits: { executionTime: "20 seconds" }
      })
      const run = yield* Effect.forkChild(made.prompt("go"), { startImmediately: true })
      yield* requested.await
      yield* settle()
      yield* TestClock.adjust("1 day")
      const [request] = (yield* made.requests).approvals
      assert.strictEqual(request?.path?.length, 1)
      assert.deepStrictEqual(ran, [])
      yield* approve(made, request)
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(resultTexts(newMessages), ["done"])
      assert.deepStrictEqual([ran, outcomes(events)], [["a"], ["success"]])
    })
  )

  it.effect("let limits count before and after", () =>
    Effect.gen(function* () {
      const { log, tool } = yield* sleeper()
      const script = [ScriptedProvider.toolCall("sleep", { ms: 4000 }), done]
      const { agent, events, requests, run } = yield* asking(script, {
        tools: [tool],
        limits: { executionTime: 3000 }
      })
      const [request] = yield* requests(1)
      yield* TestClock.adjust(2000)
      yield* approve(agent, request)
      yield* settle()
      yield* TestClock.adjust(2999)
      assert.isUndefined(status(events))
      yield* TestClock.adjust(1)
      const exit = yield* Fiber.await(run)
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(log, ["start 4000", "interrupted 4000"])
      assert.strictEqual(ofTag(events, "LimitReached")[0]?.limit, "executionTime")
    })
  )

  it.effect("expire where the policy limits their time", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent, events, requests, run } = yield* asking(
        [calls("a"), done],
        { tools: [tool] },
        waiting({ expiresAfter: "1 hour" })
      )
      const [request] = yield* requests(1)
      assert.strictEqual(request?.expiresAt, 3_600_000)
      yield* TestClock.adjust("1 hour")
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(resultTexts(newMessages), ["Not run: the time to approve this call is over."])
      assert.deepStrictEqual([ran, outcomes(events)], [[], ["expired"]])
      assert.strictEqual((yield* Effect.flip(approve(agent, request)))._tag, "RequestNotFound")
    })
  )

  it.effect("are denied where no person is", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { events, run } = yield* asking([calls("a"), done], { tools: [tool] }, Approval.layer({}))
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(resultTexts(newMessages), [
        "Tool execution was rejected: it needs a person to answer, and this run has none"
      ])
      assert.deepStrictEqual([ran, outcomes(events)], [[], ["rejected"]])
      assert.deepStrictEqual(ofTag(events, "ApprovalRequested"), [])
    })
  )

  const rules: ReadonlyArray<readonly [string, Approval.Options, Approval.Decision["decision"]]> = [
    ["nothing", {}, "ask"],
    ["an allow rule", { rules: [Approval.allow("remove")] }, "allow"],
    ["an allow rule for another tool", { rules: [Approval.allow("other")] }, "ask"],
    [
      "a deny rule over an allow rule",
      { rules: [Approval.allow("remove"), Approval.deny("remove")] },
      "deny"
    ],
    ["an ask rule over an allow rule", { rules: [Approval.allow("remove"), Approval.ask("remove")] }, "ask"],
    ["a predicate", { rules: [Approval.deny(recorder().tool, () => true)] }, "deny"],
    ["otherwise", { otherwise: "allow" }, "allow"]
  ]
  it.effect.each(rules)("by rules: %s", ([, options, expected]) =>
    Effect.gen(function* () {
      const { tool } = recorder()
      const decided = yield* Approval.make(options).decide({
        runId: "run",
        toolCallId: "1",
        toolName: "remove",
        params: { path: "a" },
        input: { path: "a" },
        tool
      })
      assert.strictEqual(decided.decision, expected)
    })
  )

  it.effect("reads decoded params in predicates, and rejects where one throws", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const rule = Approval.allow(tool, ({ path }) => {
        if (path === "bad") throw new Error("no such rule")
        return path === "a"
      })
      const { run } = yield* asking(
        [calls("a", "bad", "c"), done],
        { tools: [tool] },
        Approval.layer({ rules: [rule] })
      )
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(ran, ["a"])
      assert.include(resultTexts(newMessages)[1], "the approval policy failed: no such rule")
    })
  )

  it.effect.each(["null", "{}", '{"decision":"reject"}', '{"decision":"deny"}'])(
    "rejects a call for which it gives %s, which is no decision",
    (given) =>
      Effect.gen(function* () {
        const { ran, tool } = recorder()
        const policy: Approval.Policy = { decide: () => Effect.sync(() => JSON.parse(given)), asked: "deny" }
        const { run } = yield* asking(
          [calls("a"), done],
          { tools: [tool] },
          Layer.succeed(Approval.Approval, policy)
        )
        const { newMessages } = yield* Fiber.join(run)
        assert.deepStrictEqual(ran, [])
        assert.include(resultTexts(newMessages)[0], "the approval policy failed: it gave no decision")
      })
  )

  it.effect("ask a person at once, whom an answer from elsewhere interrupts", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      let interrupted = 0
      const person: Approval.Person = {
        approve: ({ params }) =>
          Effect.gen(function* () {
            const { path } = Schema.decodeUnknownSync(Schema.Struct({ path: Schema.String }))(params)
            if (path === "fail") return yield* Effect.fail("no terminal")
            if (path === "never") return yield* Effect.never
            return { decision: path === "no" ? ("reject" as const) : ("approve" as const), by: "ada" }
          }).pipe(Effect.onInterrupt(() => Effect.sync(() => interrupted++))),
        answer: () => Effect.fail("none")
      }
      const { agent, requests, run } = yield* asking(
        [calls("yes", "no", "fail", "never"), done],
        { tools: [tool] },
        waiting({ asked: person })
      )
      yield* requests(4)
      const open = (yield* agent.requests).approvals.filter(({ params }) =>
        JSON.stringify(params).includes("never")
      )
      yield* approve(agent, open[0])
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(resultTexts(newMessages), [
        "removed yes",
        "Tool execution was rejected: not approved",
        "Tool execution was rejected: the approval failed: no terminal",
        "removed never"
      ])
      assert.strictEqual(interrupted, 1)
      assert.deepStrictEqual(ran, ["yes", "never"])
    })
  )

  const stops: ReadonlyArray<
    readonly [string, (agent: Agent.Agent, run: Fiber.Fiber<unknown, unknown>) => Effect.Effect<unknown>]
  > = [
    ["a cancel", (agent) => agent.cancel("enough")],
    ["an interruption", (_, run) => Effect.forkChild(Fiber.interrupt(run))]
  ]
  it.effect.each(stops)("end with %s, and nothing hangs", ([, stop]) =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent, events, requests, run } = yield* asking([calls("a", "b"), done], { tools: [tool] })
      const [request] = yield* requests(2)
      yield* stop(agent, run)
      yield* Fiber.await(run)
      yield* agent.waitForIdle
      assert.deepStrictEqual(
        [ran, outcomes(events), status(events)],
        [[], ["aborted", "aborted"], "cancelled"]
      )
      assert.deepStrictEqual(broken(events), [])
      assert.deepStrictEqual((yield* agent.requests).approvals, [])
      assert.strictEqual((yield* Effect.flip(approve(agent, request)))._tag, "RequestNotFound")
    })
  )

  it.effect("end with steering that skips the remaining calls", () =>
    Effect.gen(function* () {
      const { tool } = recorder()
      const { agent, events, requests, run } = yield* asking([calls("a", "b"), done], {
        tools: [tool],
        steeringPolicy: "skipRemaining"
      })
      assert.strictEqual((yield* requests(2)).length, 2)
      yield* agent.steer("stop that")
      yield* Fiber.join(run)
      assert.deepStrictEqual(outcomes(events), ["skipped", "skipped"])
      assert.deepStrictEqual(broken(events), [])
      assert.deepStrictEqual((yield* agent.requests).approvals, [])
    })
  )

  it.effect("end with the failure of another tool, in mode fail", () =>
    Effect.gen(function* () {
      const { tool } = recorder()
      const go = yield* Latch.make(false)
      const fails = Tool.make({
        name: "fails",
        description: "Fails.",
        execute: () => Effect.andThen(go.await, Effect.fail("broken"))
      })
      const { agent, events, requests, run } = yield* asking(
        [
          ScriptedProvider.toolCalls(
            { name: "remove", params: { path: "a" } },
            { name: "fails", params: {} }
          ),
          done
        ],
        { tools: [tool, fails], toolFailureMode: "fail" },
        waiting({ rules: [Approval.allow("fails")] })
      )
      assert.strictEqual((yield* requests(1)).length, 1)
      yield* go.open
      yield* Fiber.await(run)
      assert.deepStrictEqual(outcomes(events).toSorted(), ["aborted", "error"])
      assert.deepStrictEqual(broken(events), [])
      assert.deepStrictEqual((yield* agent.requests).approvals, [])
    })
  )

  it.effect("hold a sequential batch", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent, requests, run } = yield* asking([calls("a", "b"), done], {
        tools: [tool],
        toolExecution: "sequential"
      })
      const [first, none] = yield* requests(1)
      assert.isUndefined(none)
      yield* approve(agent, first)
      const [second] = yield* requests(1)
      assert.deepStrictEqual(ran, ["a"])
      yield* approve(agent, second)
      yield* Fiber.join(run)
      assert.deepStrictEqual(ran, ["a", "b"])
    })
  )

  it.effect.each(["sequential", "parallel"] as const)(
    "hold for one of two calls of the same id: %s",
    (toolExecution) =>
      Effect.gen(function* () {
        const { ran, tool } = recorder()
        const script = [
          ScriptedProvider.toolCalls(
            { name: "remove", params: { path: "a" }, id: "same" },
            { name: "remove", params: { path: "b" }, id: "same" }
          ),
          done
        ]
        const { agent, requests, run } = yield* asking(script, { tools: [tool], toolExecution })
        const asked = yield* requests(toolExecution === "parallel" ? 2 : 1)
        yield* approve(agent, asked[0])
        const [second] = toolExecution === "parallel" ? asked.slice(1) : yield* requests(1)
        yield* settle()
        assert.deepStrictEqual(ran, ["a"])
        yield* approve(agent, second, { decision: "reject" })
        yield* Fiber.join(run)
        assert.deepStrictEqual(ran, ["a"])
      })
  )

  it.effect("keep an approved call from beginning while the run is paused", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const { agent, requests, run } = yield* asking([calls("a"), done], { tools: [tool] })
      const [request] = yield* requests(1)
      yield* agent.pause()
      yield* approve(agent, request)
      yield* settle()
      assert.deepStrictEqual(ran, [])
      yield* agent.resume()
      yield* Fiber.join(run)
      assert.deepStrictEqual(ran, ["a"])
    })
  )

  it.effect("leave room for as many calls as toolConcurrency allows, once they are approved", () =>
    Effect.gen(function* () {
      const { begun, log, tool } = yield* sleeper()
      const script = [
        ScriptedProvider.toolCalls(
          { name: "sleep", params: { ms: 10 } },
          { name: "sleep", params: { ms: 20 } },
          { name: "sleep", params: { ms: 30 } }
        ),
        done
      ]
      const { agent, requests, run } = yield* asking(script, { tools: [tool], toolConcurrency: 1 })
      for (const request of yield* requests(3)) yield* approve(agent, request)
      yield* begun
      yield* settle()
      assert.deepStrictEqual(log, ["start 10"])
      yield* TestClock.adjust(10)
      yield* begun
      yield* TestClock.adjust(20)
      yield* begun
      yield* TestClock.adjust(30)
      yield* Fiber.join(run)
      assert.deepStrictEqual(log.length, 6)
    })
  )

  it.effect("are no requests for a tool that all calls may use", () =>
    Effect.gen(function* () {
      const { agent, events, run } = yield* asking(
        [ScriptedProvider.toolCall("one", {}), done],
        { tools: [say("one")] },
        Layer.empty
      )
      yield* Fiber.join(run)
      assert.deepStrictEqual([(yield* agent.requests).approvals, outcomes(events)], [[], ["success"]])
    })
  )
})

describe("the hash of params", () => {
  it("is that of RFC 8785", () => {
    const value = {
      "\u20ac": "Euro Sign",
      "\r": "CR",
      "10": 1,
      "9": 2,
      "1": "One",
      "\ud83d\ude00": "Smiley",
      "\u0080": "C",
      ö: "o",
      "</script>": "t"
    }
    assert.strictEqual(
      Json.canonical(value),
      '{"\\r":"CR","1":"One","10":1,"9":2,"</script>":"t","\u0080":"C","ö":"o","€":"Euro Sign","😀":"Smiley"}'
    )
    assert.strictEqual(
      Json.canonical([333333333.3333333, 1e30, 4.5, 2e-3, 1e-27, -0, null, true]),
      "[333333333.3333333,1e+30,4.5,0.002,1e-27,0,null,true]"
    )
  })

  it.effect("does not depend on the order of members, and is JSON of the same value", () =>
    Effect.gen(function* () {
      const reversed = (value: Schema.Json): Schema.Json =>
        typeof value !== "object" || value === null
          ? value
          : Array.isArray(value)
            ? value.map(reversed)
            : Object.fromEntries(
                Object.entries(value)
                  .toReversed()
                  .map(([name, member]) => [name, reversed(member)])
              )
      const same = Effect.fnUntraced(function* (value: Schema.Json) {
        const text = Json.canonical(value)
        if (JSON.stringify(JSON.parse(text)) !== JSON.stringify(JSON.parse(Json.canonical(reversed(value)))))
          return yield* Effect.fail("another text")
        assert.deepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)))
        const hash = createHash("sha256").update(text).digest("hex")
        return hash === (yield* Json.hash(reversed(value))) || (yield* Effect.fail("another hash"))
      })
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Schema.Json), same, { seed: 1, runs: 200 })
      assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
    })
  )
})
