import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Option, Schema } from "effect"
import { Hook, Message, ProviderError, Run, type RunOptions, RunReport, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { agent, echo, failing, failureOf, gated, play, range, say, sleeper } from "./play.ts"

const done = ScriptedProvider.text("done", { usage: { input: 2, output: 1 } })
const call = (name: string) => ScriptedProvider.toolCall(name, {}, { usage: { input: 10, output: 5 } })

describe("Report", () => {
  it.effect("metrics, history and audit can be read when the run is over (row 229)", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), done], {
        tools: [say("a")],
        hooks: [Hook.approveTool(() => Effect.succeed({ approved: true }))]
      })
      const { report } = yield* script.agent.prompt("hi")
      assert.deepInclude(report, { turns: 2, toolCalls: 1, toolSuccess: 1, toolFailure: 0, retries: 0 })
      assert.deepStrictEqual(
        report.history.map(({ tokens, toolCalls, turn }) => [turn, tokens, toolCalls]),
        [
          [1, 15, 1],
          [2, 3, 0]
        ]
      )
      assert.deepStrictEqual(
        report.audit.map(({ toolCallId, type }) => [type, toolCallId]),
        [["tool_approved", "call-1"]]
      )
      assert.deepStrictEqual(Option.getOrUndefined(yield* script.agent.report), report)
    })
  )

  it.effect("a run of one turn reports its tokens and its turn (row 225)", () =>
    Effect.gen(function* () {
      const script = yield* agent([
        ScriptedProvider.text("x", {
          usage: { input: 7, output: 3, cacheRead: 2, cacheWrite: 1, reasoning: 2, cost: 0.5 }
        })
      ])
      const { report, turns, usage } = yield* script.agent.prompt("hi")
      assert.strictEqual(turns, 1)
      assert.deepStrictEqual(usage, {
        input: 7,
        output: 3,
        cacheRead: 2,
        cacheWrite: 1,
        reasoning: 2,
        total: 10,
        cost: 0.5,
        costSource: "reported"
      })
      assert.deepStrictEqual(report.usage, usage)
      assert.strictEqual(report.turns, 1)
    })
  )

  it.effect("a provider that tells no usage adds nothing, and invents nothing", () =>
    Effect.gen(function* () {
      const { view } = yield* play([ScriptedProvider.text("x")])
      const answer = view.messages.at(-1)
      assert.isTrue(answer?.role === "assistant" && answer.usage === undefined)
      assert.strictEqual(view.usage?.total, 0)
      assert.isUndefined(view.usage?.cost)
    })
  )

  it.effect("there is none before the first run, and a new one with each run (row 210)", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), done, done], { tools: [say("a")] })
      assert.isTrue(Option.isNone(yield* script.agent.report))
      yield* script.agent.prompt("1")
      yield* script.agent.prompt("2")
      assert.deepInclude(Option.getOrThrow(yield* script.agent.report), { turns: 1, toolCalls: 0 })
    })
  )

  it.effect("can be read while the run goes on", () =>
    Effect.gen(function* () {
      const { began, go, tool } = yield* gated
      const script = yield* agent([call("a"), call("gated"), done], { tools: [say("a"), tool] })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      assert.deepInclude(Option.getOrThrow(yield* script.agent.report), { turns: 2, toolCalls: 1 })
      yield* go.open
      yield* Fiber.join(run)
    })
  )

  it.effect("counts each call once, by what came of it (row 224)", () =>
    Effect.gen(function* () {
      const script = yield* agent(
        [
          ScriptedProvider.turn(
            Step.toolCall("a", {}),
            Step.toolCall("bad", {}),
            Step.toolCall("nope", {}),
            Step.toolCall("echo", { n: "x" }),
            Step.toolCall("block", {}),
            Step.toolCall("skip", {}),
            Step.toolCall("reject", {}),
            Step.toolCall("change", {}),
            Step.finish("toolUse")
          ),
          done
        ],
        {
          tools: ["a", "block", "skip", "reject", "change"].map((name) => say(name)),
          toolExecution: "sequential",
          hooks: [
            Hook.beforeTool(({ call: { name } }) =>
              Effect.succeed(
                name === "change"
                  ? { params: {} }
                  : name === "skip"
                    ? { skip: true }
                    : { block: name === "block" }
              )
            ),
            Hook.approveTool(({ call: { name } }) => Effect.succeed({ approved: name !== "reject" }))
          ]
        }
      )
      yield* script.agent.tools.register(failing("bad"))
      yield* script.agent.tools.register(echo)
      const { report } = yield* script.agent.prompt("hi")
      assert.deepInclude(report, { toolCalls: 8, toolSuccess: 3, toolFailure: 5, toolTimeout: 0 })
      assert.deepStrictEqual(
        report.audit.map(({ type }) => type),
        [
          "tool_approved",
          "tool_approved",
          "tool_failed",
          "tool_failed",
          "tool_failed",
          "tool_blocked",
          "tool_skipped",
          "tool_rejected",
          "tool_modified",
          "tool_approved"
        ]
      )
    })
  )

  it.effect("keeps the last ten turns", () =>
    Effect.gen(function* () {
      const turns = range(25).map((n) => ScriptedProvider.toolCall("echo", { n }))
      const script = yield* agent([...turns, done], { tools: [echo] })
      const { report } = yield* script.agent.prompt("hi")
      assert.deepStrictEqual(
        report.history.map(({ turn }) => turn),
        range(10).map((n) => 17 + n)
      )
      assert.deepInclude(report, { turns: 26, toolCalls: 25 })
    })
  )

  it.effect("keeps no turns, a summary of some, or whole turns (row 226)", () =>
    Effect.gen(function* () {
      const kept = Effect.fnUntraced(function* (history?: RunOptions.History) {
        const turns = range(4).map((n) => ScriptedProvider.toolCall("echo", { n }))
        const script = yield* agent([...turns, done], {
          tools: [echo],
          ...(history === undefined ? {} : { history })
        })
        const { report } = yield* script.agent.prompt("hi")
        assert.deepStrictEqual(RunReport.fromEvents(script.events), report)
        assert.deepInclude(report, { turns: 5, toolCalls: 4 })
        return report
      })
      const numbers = ({ history }: RunReport.RunReport) => history.map(({ turn }) => turn)
      const whole = yield* kept({ mode: "full" })
      assert.deepStrictEqual(
        whole.history.map(({ messages }) => messages?.map(({ role }) => role)),
        [
          ["user", "assistant", "toolResult"],
          ["assistant", "toolResult"],
          ["assistant", "toolResult"],
          ["assistant", "toolResult"],
          ["assistant"]
        ]
      )
      const usual = yield* kept()
      assert.deepStrictEqual(numbers(usual), [1, 2, 3, 4, 5])
      assert.isTrue(usual.history.every(({ messages }) => messages === undefined))
      assert.deepStrictEqual(numbers(yield* kept({ size: 2 })), [4, 5])
      assert.deepStrictEqual(numbers(yield* kept({ mode: "full", size: 1 })), [5])
      assert.deepStrictEqual(numbers(yield* kept({ size: Infinity })), [1, 2, 3, 4, 5])
      assert.deepStrictEqual(numbers(yield* kept({ size: 0 })), [])
      assert.deepStrictEqual(numbers(yield* kept({ mode: "none" })), [])
    })
  )

  it.effect("has a record of each call: its state, its times and its error (row 9)", () =>
    Effect.gen(function* () {
      const { began, go, tool } = yield* gated
      const { begun, tool: sleep } = yield* sleeper({ timeout: "10 millis" })
      const calls = ScriptedProvider.toolCalls(
        { name: "a", params: {} },
        { name: "bad", params: {} },
        { name: "sleep", params: { ms: 30 } },
        { name: "gated", params: {} }
      )
      const script = yield* agent([calls, done], {
        tools: [say("a"), failing("bad"), sleep, tool]
      })
      const first: Array<string | undefined> = []
      yield* script.agent.subscribe(({ _tag }) =>
        _tag === "ToolExecutionStart"
          ? Effect.map(script.agent.report, (report) => {
              first.push(Option.getOrUndefined(report)?.calls.at(-1)?.state)
            })
          : Effect.void
      )
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* begun
      yield* TestClock.adjust(10)
      yield* Effect.repeat(Effect.yieldNow, { times: 50 })
      const { calls: open } = Option.getOrThrow(yield* script.agent.report)
      assert.deepStrictEqual(
        open.map(({ endTime, state, toolName }) => [toolName, state, endTime]),
        [
          ["a", "completed", 0],
          ["bad", "failed", 0],
          ["sleep", "timedOut", 10],
          ["gated", "executing", undefined]
        ]
      )
      yield* TestClock.adjust(5)
      yield* go.open
      const { report } = yield* Fiber.join(run)
      assert.strictEqual(first[0], "pending")
      assert.deepStrictEqual(RunReport.fromEvents(script.events), report)
      assert.deepInclude(report.calls[1], { turn: 1, toolCallId: "call-2", durationMs: 0 })
      assert.include(report.calls[1]?.error, "not today")
      assert.include(report.calls[2]?.error, "10ms")
      assert.deepStrictEqual(report.calls[3], {
        toolCallId: "call-4",
        toolName: "gated",
        turn: 1,
        state: "completed",
        startTime: 0,
        endTime: 15,
        durationMs: 15
      })
    })
  )

  it("keeps the last thousand records, the newest of calls with one id, and the first words of an error", () => {
    const of = (n: number, id: string) => ({
      runId: "r",
      seq: n,
      timestamp: n,
      turn: n,
      toolCallId: id,
      toolName: "a"
    })
    const start = (n: number, id = `call-${n}`) => ({
      _tag: "ToolExecutionStart" as const,
      ...of(n, id),
      params: {}
    })
    const end = (n: number, id: string) => ({
      _tag: "ToolExecutionEnd" as const,
      ...of(n, id),
      result: { content: [Message.text("x".repeat(9000))] },
      isError: true,
      outcome: "error" as const,
      durationMs: 1
    })
    const { calls } = RunReport.fromEvents(range(1005).map((n) => start(n)))
    assert.deepStrictEqual([calls.length, calls[0]?.toolCallId], [1000, "call-5"])
    const twice = RunReport.fromEvents([
      start(1, "c"),
      end(2, "c"),
      start(3, "c"),
      end(4, "c"),
      end(5, "gone")
    ])
    assert.deepStrictEqual(
      twice.calls.map(({ endTime, turn }) => [turn, endTime]),
      [
        [1, 2],
        [3, 4]
      ]
    )
    assert.strictEqual(twice.calls[0]?.error?.length, 500)
    assert.strictEqual(twice.audit[0]?.detail?.length, 500)
    // The call begins again in another process.
    const again = RunReport.fromEvents([start(1, "c"), start(2, "c"), end(3, "c")])
    assert.deepStrictEqual(
      again.calls.map(({ startTime, state }) => [startTime, state]),
      [[2, "failed"]]
    )
  })

  it.effect("reads a report that was written before calls had records", () =>
    Effect.gen(function* () {
      const codec = Schema.toCodecJson(RunReport.RunReport)
      const { calls: _, ...earlier } = RunReport.empty
      assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(codec)(earlier), RunReport.empty)
    })
  )

  it.effect("tells of hooks that ran, of failures and of timeouts (row 227)", () =>
    Effect.gen(function* () {
      const { begun, tool } = yield* sleeper({ timeout: "10 millis" })
      const calls = ScriptedProvider.toolCalls(
        { name: "bad", params: {} },
        { name: "sleep", params: { ms: 30 } }
      )
      const audit = Effect.fnUntraced(function* (history: RunOptions.History) {
        const script = yield* agent([calls, done], {
          tools: [failing("bad"), tool],
          toolExecution: "sequential",
          hooks: [
            Hook.afterModel(() => Effect.void, { name: "look" }),
            Hook.beforeTool(({ call: { name } }) =>
              name === "sleep" ? Effect.succeed({ params: { ms: 40 } }) : Effect.void
            )
          ],
          history
        })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* begun
        yield* TestClock.adjust(10)
        const { report } = yield* Fiber.join(run)
        assert.deepStrictEqual(RunReport.fromEvents(script.events), report)
        return report.audit.map(({ detail = "", toolName = "", type }) =>
          [type, toolName, detail.slice(0, 17)].join(" ").trim()
        )
      })
      const decisions = ["tool_failed bad not today", "tool_modified sleep", "tool_timeout sleep Tool"]
      const short = yield* audit({ mode: "summary" })
      assert.deepStrictEqual(
        short.map((entry, index) => entry.slice(0, decisions[index]?.length)),
        decisions
      )
      const whole = yield* audit({ mode: "full" })
      assert.deepStrictEqual(
        whole.filter((entry) => entry.startsWith("hook_executed")),
        [
          'hook_executed  afterModel "look"',
          "hook_executed bad beforeTool",
          "hook_executed sleep beforeTool",
          'hook_executed  afterModel "look"'
        ]
      )
      assert.strictEqual(whole.length, 7)
    })
  )

  it("keeps the last thousand decisions", () => {
    const events = range(1005).map((n) => ({
      _tag: "ToolInvoked" as const,
      runId: "r",
      seq: n,
      timestamp: n,
      toolCallId: `call-${n}`,
      toolName: "a",
      params: {},
      modified: false,
      approved: true
    }))
    const { audit } = RunReport.fromEvents(events)
    assert.strictEqual(audit.length, 1000)
    assert.strictEqual(audit[0]?.toolCallId, "call-5")
    assert.strictEqual(audit.at(-1)?.toolCallId, "call-1004")
  })

  it.effect(
    "adds up the time of the model and of the tools, and knows that of each turn (rows 168, 224)",
    () =>
      Effect.gen(function* () {
        const { begun, tool } = yield* sleeper()
        const slow = ScriptedProvider.turn(
          Step.sleep(100),
          Step.toolCall("sleep", { ms: 30 }),
          Step.finish("toolUse")
        )
        const script = yield* agent([slow, done], { tools: [tool] })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* Effect.repeat(Effect.yieldNow, { times: 50 })
        yield* TestClock.adjust(100)
        yield* begun
        yield* TestClock.adjust(30)
        const { duration, report } = yield* Fiber.join(run)
        assert.deepInclude(report, { modelMs: 100, toolMs: 30 })
        assert.deepStrictEqual(
          report.history.map(({ durationMs, timestamp }) => [timestamp, durationMs]),
          [
            [0, 130],
            [130, 0]
          ]
        )
        assert.strictEqual(Duration.toMillis(duration), 130)
      })
  )

  it.effect("tells what went wrong: failed hooks, limits, the run's error", () =>
    Effect.gen(function* () {
      const { exit } = yield* play([call("a")], {
        tools: [say("a")],
        hooks: [Hook.afterModel(() => Effect.fail("broke"))],
        options: { limits: { maxTurns: 1 } }
      })
      const report = failureOf(exit)?.result.report
      assert.deepStrictEqual(
        report?.audit.map(({ detail, type }) => [type, detail]),
        [
          ["hook_failed", "afterModel: broke"],
          ["limit_reached", "maxTurns"]
        ]
      )
      assert.deepStrictEqual(report?.errors, ["Limit maxTurns reached: 1, allowed 1"])
    })
  )

  it.effect("is nothing but a fold of the events, of a run that failed too (row 228)", () =>
    Effect.gen(function* () {
      const scripts = [
        [call("a"), call("bad"), done],
        [call("a"), ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "busy" }))]
      ]
      for (const one of scripts) {
        const script = yield* agent(one, { tools: [say("a"), failing("bad")] })
        const exit = yield* Effect.exit(script.agent.prompt("hi"))
        const report = Exit.isSuccess(exit) ? exit.value.report : failureOf(exit)?.result.report
        assert.deepStrictEqual(RunReport.fromEvents(script.events), report)
      }
    })
  )

  it.effect("and its result survive JSON, as does a failure (row 235)", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), done, call("a")], { tools: [say("a")] })
      const result = yield* script.agent.prompt("hi")
      const codec = Schema.toCodecJson(Run.RunResult)
      const encoded: unknown = yield* Schema.encodeEffect(codec)(result)
      assert.deepStrictEqual(
        yield* Schema.decodeUnknownEffect(codec)(JSON.parse(JSON.stringify(encoded))),
        result
      )
      const failure = failureOf(yield* Effect.exit(script.agent.prompt("hi", { limits: { maxTurns: 1 } })))
      const failures = Schema.toCodecJson(Run.RunFailed)
      if (failure === undefined) return assert.fail("the run did not fail")
      const wire: unknown = yield* Schema.encodeEffect(failures)(failure)
      const decoded = yield* Schema.decodeUnknownEffect(failures)(JSON.parse(JSON.stringify(wire)))
      assert.strictEqual(decoded.reason._tag, "LimitExceeded")
      assert.strictEqual(decoded.message, failure.message)
    })
  )

  it.effect("what a run resolves with says how it ended (rows 17, 66)", () =>
    Effect.gen(function* () {
      const stop = say("stop", Tool.output("over", { terminate: true }))
      const ended = Effect.fnUntraced(function* (
        script: ScriptedProvider.Script,
        options: Parameters<typeof agent>[1]
      ) {
        const one = yield* agent(script, { tools: [say("a"), stop], ...options })
        const exit = yield* Effect.exit(one.agent.prompt("hi"))
        return Exit.isSuccess(exit) ? exit.value.status : failureOf(exit)?.result.status
      })
      assert.deepStrictEqual(
        [
          yield* ended([done], {}),
          yield* ended([done], { hooks: [Hook.shouldStopAfterTurn(() => Effect.succeed(true))] }),
          yield* ended([call("stop")], {}),
          yield* ended([call("a")], { limits: { maxTurns: 1, onMaxTurns: "stop" } }),
          yield* ended([call("a")], { limits: { maxTurns: 1 } }),
          yield* ended([ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "" }))], {})
        ],
        ["completed", "stopped", "terminated", "incomplete", "failed", "failed"]
      )
    })
  )

  it.effect("a failed answer is told apart from an empty one", () =>
    Effect.gen(function* () {
      const { view } = yield* play([
        ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "all machines are busy" }))
      ])
      const answer: Message.Message | undefined = view.messages.at(-1)
      assert.deepInclude(answer, { stopReason: "error", content: [] })
      assert.include(view.lastError, "all machines are busy")
    })
  )

  it.effect("has the id, the times and the state of the run (rows 132, 224, 230)", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 minute")
      const script = yield* agent([call("a"), done], {
        tools: [say("a")],
        hooks: [
          Hook.beforeModel(() => TestClock.adjust("2 seconds")),
          Hook.afterTool(() => TestClock.adjust("1 second"))
        ]
      })
      const paused: Array<boolean | undefined> = []
      const look = Effect.map(script.agent.report, (report) => {
        paused.push(Option.getOrUndefined(report)?.paused)
      })
      yield* script.agent.subscribe(({ _tag }) => {
        if (_tag === "RunStart") return script.agent.pause("lunch")
        if (_tag === "RunPaused") return Effect.andThen(look, Effect.orDie(script.agent.resume()))
        return _tag === "RunResumed" ? look : Effect.void
      })
      const { duration, report, runId } = yield* script.agent.prompt("hi")
      assert.deepStrictEqual(paused, [true, false])
      assert.strictEqual(Duration.toMillis(duration), 5000)
      assert.deepInclude(report, {
        runId,
        startTime: 60_000,
        durationMs: 5000,
        hookMs: 5000,
        paused: false,
        cancelled: false
      })
      assert.deepStrictEqual(RunReport.fromEvents(script.events), report)
    })
  )

  it.effect("says of a cancelled run that it was cancelled", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      yield* script.agent.subscribe(({ _tag }) =>
        _tag === "TurnStart" ? script.agent.cancel("enough") : Effect.void
      )
      const { report } = yield* script.agent.prompt("hi")
      assert.isTrue(report.cancelled)
    })
  )

  it.effect("names the tool and the reason of a decision", () =>
    Effect.gen(function* () {
      const script = yield* agent(
        [ScriptedProvider.toolCalls({ name: "a", params: {} }, { name: "b", params: {} }), done],
        {
          tools: [say("a"), say("b")],
          hooks: [
            Hook.beforeTool(({ call }) =>
              Effect.succeed(call.name === "a" ? { block: true, reason: "not a" } : undefined)
            ),
            Hook.approveTool(() => Effect.succeed({ approved: false, reason: "not b" }))
          ]
        }
      )
      const { report } = yield* script.agent.prompt("hi")
      assert.deepStrictEqual(
        report.audit.map(({ detail, toolName, type }) => [type, toolName, detail]),
        [
          ["tool_blocked", "a", "not a"],
          ["tool_rejected", "b", "Tool execution was rejected: not b"]
        ]
      )
    })
  )
})
