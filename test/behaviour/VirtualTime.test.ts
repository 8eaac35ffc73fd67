import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Latch, Layer, Option, Stream } from "effect"
import { AgentEvent, Hook, Loop, Message, Provider, RunOptions, Tool, ToolRegistry } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import { agent, deaf, failureOf, gated, ofTag, outcomes, play, reasonOf, resultTexts, say } from "./play.ts"
import { type Setup, settle, sleeper, status, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})
const sleep = (ms: number) => ScriptedProvider.toolCall("sleep", { ms })

/** Still running, after it had its chance. */
const goesOn = <A, E>(run: Fiber.Fiber<A, E>) => Effect.map(settle(), () => run.pollUnsafe() === undefined)

describe("Virtual time", () => {
  describe("of tools", () => {
    const timed = Effect.fnUntraced(function* (
      options: Partial<RunOptions.RunOptions>,
      own: Partial<Pick<Tool.Runnable, "timeout">> = {}
    ) {
      const { begun, tool } = yield* sleeper(own)
      const run = yield* Effect.forkChild(play([sleep(3_600_000), done], { tools: [tool], options }))
      yield* begun
      return run
    })

    it.effect("F086: is 30 seconds by default, after which the run continues (rows 156, 262)", () =>
      Effect.gen(function* () {
        const run = yield* timed({})
        yield* TestClock.adjust(29_999)
        assert.isTrue(yield* goesOn(run))
        yield* TestClock.adjust(1)
        const { events, requests, view } = yield* Fiber.join(run)
        assert.deepStrictEqual(outcomes(events), ["timeout"])
        assert.strictEqual(ofTag(events, "ToolExecutionEnd")[0]?.durationMs, 30_000)
        assert.strictEqual(requests.length, 2)
        assert.strictEqual(view.status, "completed")
      })
    )

    it.effect("is what the options say, unless the tool says otherwise (row 156)", () =>
      Effect.gen(function* () {
        const general = yield* timed({ toolTimeout: "2 seconds" })
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(outcomes((yield* Fiber.join(general)).events), ["timeout"])
        const own = yield* timed({ toolTimeout: "2 seconds" }, { timeout: "5 seconds" })
        yield* TestClock.adjust("4 seconds")
        assert.isTrue(yield* goesOn(own))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(outcomes((yield* Fiber.join(own)).events), ["timeout"])
      })
    )

    it.effect("Infinity is none, for one tool or for all (row 156)", () =>
      Effect.gen(function* () {
        for (const run of [
          yield* timed({ toolTimeout: "Infinity" }),
          yield* timed({}, { timeout: "Infinity" })
        ]) {
          yield* TestClock.adjust(3_600_000)
          assert.deepStrictEqual(outcomes((yield* Fiber.join(run)).events), ["success"])
        }
      })
    )

    it.effect("counts for each try of a call, and for each call by itself", () =>
      Effect.gen(function* () {
        const { begun, tool } = yield* sleeper()
        const run = yield* Effect.forkChild(
          play([sleep(5000), done], {
            tools: [tool],
            hooks: [Hook.afterTool(({ outcome }) => Effect.succeed({ retry: outcome === "timeout" }))],
            options: { toolTimeout: 1000, limits: { maxToolRetries: 2 } }
          })
        )
        for (const _ of [1, 2, 3]) {
          yield* begun
          yield* TestClock.adjust(1000)
        }
        const { events } = yield* Fiber.join(run)
        assert.deepStrictEqual(outcomes(events), ["timeout"])
        assert.strictEqual(ofTag(events, "ToolExecutionEnd")[0]?.durationMs, 3000)
      })
    )

    it.effect("a tool that ignores its timeout is left behind after 100 ms, and reported", () =>
      Effect.gen(function* () {
        const { began, tool } = yield* deaf
        const run = yield* Effect.forkChild(
          play([call("deaf"), done], { tools: [tool], options: { toolTimeout: 1000 } })
        )
        yield* began.await
        yield* TestClock.adjust(1099)
        assert.isTrue(yield* goesOn(run))
        yield* TestClock.adjust(1)
        const { events, view } = yield* Fiber.join(run)
        assert.deepStrictEqual(outcomes(events), ["timeout"])
        assert.include(resultTexts(view.messages)[0], "left behind")
        assert.strictEqual(view.status, "completed")
      })
    )

    it.effect("in fail mode a sibling that ignores its end is left behind too", () =>
      Effect.gen(function* () {
        const { began, tool } = yield* deaf
        const bad = Tool.make({
          name: "bad",
          description: "Fails when the other has begun.",
          execute: () => Effect.andThen(began.await, Effect.fail("no"))
        })
        const run = yield* Effect.forkChild(
          play([ScriptedProvider.toolCalls({ name: "deaf", params: {} }, { name: "bad", params: {} })], {
            tools: [tool, bad],
            options: { toolFailureMode: "fail" }
          })
        )
        yield* began.await
        yield* settle()
        yield* TestClock.adjust(100)
        const { events, exit, view } = yield* Fiber.join(run)
        assert.deepInclude(reasonOf(exit), { _tag: "ToolFailed", toolName: "bad" })
        assert.include(resultTexts(view.messages)[0], "left behind")
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
    )

    it.effect("a tool that cleans up in time is waited for, and not called deaf", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        let cleaned = false
        const tidy = Tool.make({
          name: "tidy",
          description: "Takes a moment to clean up.",
          execute: () =>
            Effect.andThen(began.open, Effect.never).pipe(
              Effect.onInterrupt(() =>
                Effect.andThen(
                  Effect.sleep(50),
                  Effect.sync(() => (cleaned = true))
                )
              )
            )
        })
        const run = yield* Effect.forkChild(
          play([call("tidy"), done], { tools: [tidy], options: { toolTimeout: 1000 } })
        )
        yield* began.await
        yield* TestClock.adjust(1050)
        const { view } = yield* Fiber.join(run)
        assert.isTrue(cleaned)
        assert.notInclude(resultTexts(view.messages)[0], "left behind")
      })
    )

    it.effect("what a tool left behind does later is not heard", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        const late = Tool.make({
          name: "late",
          description: "Speaks when nobody listens.",
          execute: () =>
            Effect.gen(function* () {
              const { progress } = yield* Tool.ToolContext
              yield* began.open
              yield* Effect.sleep(5000)
              yield* progress(Tool.output("late"))
              return "late"
            }).pipe(Effect.uninterruptible)
        })
        const script = yield* agent([call("late"), done], { tools: [late], toolTimeout: 1000 })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* TestClock.adjust(1100)
        yield* Fiber.join(run)
        const heard = script.events.length
        yield* TestClock.adjust(10_000)
        yield* settle()
        assert.strictEqual(script.events.length, heard)
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )
  })

  describe("of a run", () => {
    const hour = { limits: { executionTime: "1 hour" } } as const
    const expired = (exit: Parameters<typeof reasonOf>[0], value = 3_600_000) =>
      assert.deepInclude(reasonOf(exit), {
        _tag: "LimitExceeded",
        limit: "executionTime",
        value,
        max: 3_600_000
      })

    it.effect(
      "F118: cuts a provider that sends nothing more, and keeps the text that it sent (row 169)",
      () =>
        Effect.gen(function* () {
          const began = yield* Latch.make(false)
          const stalled = ScriptedProvider.turn(
            Step.start,
            Step.text("Hel"),
            Step.run(began.open),
            Step.never
          )
          const run = yield* Effect.forkChild(play([stalled], { options: hour }))
          yield* began.await
          yield* TestClock.adjust(3_599_999)
          assert.isTrue(yield* goesOn(run))
          yield* TestClock.adjust(1)
          const { events, exit, view } = yield* Fiber.join(run)
          expired(exit)
          assert.deepStrictEqual(texts(view.messages), ["hi", "Hel"])
          assert.deepInclude(view.messages[1], { stopReason: "aborted" })
          assert.deepStrictEqual(tags(events).slice(-4), ["TurnEnd", "LimitReached", "RunError", "RunEnd"])
          assert.notInclude(tags(events), "RunCancelled")
          assert.deepStrictEqual(Invariants.broken(events), [])
        })
    )

    it.effect("cuts a tool, an approval, a pause and a hook alike (rows 169, 220)", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        const forever = () => Effect.andThen(began.open, Effect.never)
        const tool = Tool.make({ name: "t", description: "", timeout: "Infinity", execute: forever })
        const setups: ReadonlyArray<Setup> = [
          { tools: [tool] },
          { tools: [say("t")], hooks: [Hook.approveTool(forever)] },
          { tools: [say("t")], hooks: [Hook.beforeModel(forever)], options: { hookTimeout: "Infinity" } },
          { tools: [say("t")], hooks: [Hook.prepareNextTurn(forever)], options: { hookTimeout: "Infinity" } },
          {
            tools: [say("t")],
            hooks: [Hook.pauseCheck(() => Effect.as(began.open, { shouldPause: true }))]
          }
        ]
        for (const { options, ...setup } of setups) {
          yield* began.close
          const run = yield* Effect.forkChild(
            play([call("t"), done], { ...setup, options: { ...options, ...hour } })
          )
          yield* began.await
          yield* TestClock.adjust("1 hour")
          const { events, exit } = yield* Fiber.join(run)
          expired(exit)
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
      })
    )

    it.effect("counts pauses, and what hooks took before the first turn (row 220)", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        const run = yield* Effect.forkChild(
          play([ScriptedProvider.never], {
            hooks: [Hook.beforeExecution(() => Effect.andThen(began.open, Effect.sleep("40 minutes")))],
            options: { ...hour, hookTimeout: "Infinity" }
          })
        )
        yield* began.await
        yield* TestClock.adjust("40 minutes")
        assert.isTrue(yield* goesOn(run))
        yield* TestClock.adjust("20 minutes")
        assert.isFalse(yield* goesOn(run), "the deadline is counted from the first turn")
        expired((yield* Fiber.join(run)).exit)
      })
    )

    it.effect("is measured at the gate too, for what could not be cut (row 169)", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        const run = yield* Effect.forkChild(
          play([done], {
            hooks: [Hook.beforeExecution(() => Effect.andThen(began.open, Effect.sleep("2 hours")))],
            options: { ...hour, hookTimeout: "Infinity" }
          })
        )
        yield* began.await
        yield* TestClock.adjust("2 hours")
        const { exit, requests } = yield* Fiber.join(run)
        assert.strictEqual(requests.length, 0)
        assert.deepInclude(reasonOf(exit), { limit: "executionTime", max: 3_600_000 })
      })
    )

    it.effect("cuts a provider that ignores it, and hears no more of it", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        const deafProvider = Provider.Provider.of({
          id: "deaf",
          stream: () =>
            Stream.unfold(0, (n) =>
              Effect.uninterruptible(
                Effect.as(Effect.andThen(began.open, Effect.sleep("40 minutes")), [
                  { _tag: "TextDelta" as const, contentIndex: 0, delta: `${n}` },
                  n + 1
                ] as const)
              )
            )
        })
        const events: Array<AgentEvent.AgentEvent> = []
        const run = yield* Loop.stream("hi", { messages: [] }, { model: "m", ...hour }).pipe(
          Stream.runForEach((event) => Effect.sync(() => void events.push(event))),
          Effect.provide([Layer.succeed(Provider.Provider, deafProvider), ToolRegistry.layer()]),
          Effect.exit,
          Effect.forkChild
        )
        yield* began.await
        yield* TestClock.adjust("1 hour")
        yield* TestClock.adjust(100)
        expired(yield* Fiber.join(run), 3_600_100)
        const heard = events.length
        yield* TestClock.adjust("3 hours")
        yield* settle()
        assert.strictEqual(events.length, heard)
        assert.deepStrictEqual(
          ofTag(events, "MessageEnd").map(({ message }) => Message.textOf(message)),
          ["hi", "0"]
        )
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
    )

    it.effect("may be changed while the run goes on, and counts from its beginning", () =>
      Effect.gen(function* () {
        for (const [minutes, before] of [
          [30, 29],
          [90, 89]
        ] as const) {
          const { began, go, tool } = yield* gated
          const script = yield* agent([call("gated"), ScriptedProvider.never], { tools: [tool], ...hour })
          const run = yield* Effect.forkChild(Effect.exit(script.agent.prompt("hi")))
          yield* began.await
          yield* TestClock.adjust("10 seconds")
          yield* script.agent.update({ limits: { executionTime: `${minutes} minutes` } })
          yield* go.open
          yield* settle()
          yield* TestClock.adjust(before * 60_000)
          assert.isTrue(yield* goesOn(run))
          yield* TestClock.adjust("1 minute")
          const max = minutes * 60_000
          assert.deepInclude(reasonOf(yield* Fiber.join(run)), { limit: "executionTime", max })
        }
      })
    )

    it.effect("leaves nothing behind in a run that ends before", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done], { ...hour })
        yield* script.agent.prompt("1")
        yield* TestClock.adjust("2 hours")
        assert.strictEqual((yield* script.agent.prompt("2")).status, "completed")
        assert.deepStrictEqual(status(script.events), "completed")
      })
    )

    it.effect("that is cancelled first is cancelled; one whose time is up first has failed", () =>
      Effect.gen(function* () {
        const { began, tool } = yield* deaf
        for (const first of ["cancel", "deadline"] as const) {
          yield* began.close
          const script = yield* agent([call("deaf")], { tools: [tool], limits: { executionTime: 1000 } })
          const run = yield* Effect.forkChild(Effect.exit(script.agent.prompt("hi")))
          yield* began.await
          yield* settle()
          if (first === "cancel") yield* script.agent.cancel()
          yield* TestClock.adjust(1000)
          yield* script.agent.cancel()
          yield* TestClock.adjust(100)
          yield* Fiber.join(run)
          assert.strictEqual(status(script.events), first === "cancel" ? "cancelled" : "failed")
          assert.deepStrictEqual(Invariants.broken(script.events), [])
        }
      })
    )
  })

  describe("of empty answers", () => {
    const empty = ScriptedProvider.turn(Step.start, Step.finish("stop", { input: 10 }))
    const thoughtful = ScriptedProvider.turn(Step.thinking("hm"), Step.text(" \n"), Step.finish())

    it.effect("retry waits one second, then five, in the same turn; then takes what there is (row 78)", () =>
      Effect.gen(function* () {
        const run = yield* Effect.forkChild(
          play([empty, thoughtful, empty], { options: { emptyResponse: "retry" } })
        )
        yield* settle()
        yield* TestClock.adjust(999)
        assert.isTrue(yield* goesOn(run))
        yield* TestClock.adjust(1)
        yield* settle()
        yield* TestClock.adjust(4999)
        assert.isTrue(yield* goesOn(run))
        yield* TestClock.adjust(1)
        const { events, requests, view } = yield* Fiber.join(run)
        assert.strictEqual(requests.length, 3)
        assert.strictEqual(ofTag(events, "MessageRetracted").length, 2)
        assert.strictEqual(view.status, "completed")
        assert.strictEqual(ofTag(events, "TurnStart").length, 1)
        assert.strictEqual(view.messages.length, 2)
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
    )

    it.effect("retry ends with the first answer that says something, a call included", () =>
      Effect.gen(function* () {
        const run = yield* Effect.forkChild(
          play([empty, call("a"), done], { tools: [say("a")], options: { emptyResponse: "retry" } })
        )
        yield* settle()
        yield* TestClock.adjust(1000)
        const { requests, view } = yield* Fiber.join(run)
        assert.strictEqual(requests.length, 3)
        assert.strictEqual(view.status, "completed")
        assert.deepStrictEqual(texts(view.messages), ["hi", "", "a", "done"])
      })
    )

    it.effect("retry counts the tokens of the answers it threw away", () =>
      Effect.gen(function* () {
        const run = yield* Effect.forkChild(
          play([empty, ScriptedProvider.text("x", { usage: { input: 10, output: 1 } })], {
            options: { emptyResponse: "retry" }
          })
        )
        yield* settle()
        yield* TestClock.adjust(1000)
        const { events, view } = yield* Fiber.join(run)
        assert.strictEqual(view.usage?.total, 21)
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
    )

    it.effect("retry is left at once when the run is cancelled, and nothing is being said meanwhile", () =>
      Effect.gen(function* () {
        const retracted = yield* Latch.make(false)
        const script = yield* agent([empty, done], { emptyResponse: "retry" })
        yield* script.agent.subscribe(({ _tag }) =>
          _tag === "MessageRetracted" ? retracted.open : Effect.void
        )
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* retracted.await
        yield* settle()
        assert.isTrue(Option.isNone(yield* script.agent.partial))
        yield* script.agent.cancel()
        assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
        assert.strictEqual((yield* script.requests).length, 1)
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )

    it.effect("fail says so typed, for thinking alone too; accept takes them (row 78)", () =>
      Effect.gen(function* () {
        for (const turn of [empty, thoughtful]) {
          const { events, exit } = yield* play([turn], { options: { emptyResponse: "fail" } })
          const reason = reasonOf(exit)
          assert.deepInclude(reason?._tag === "ProviderError" ? reason.reason : undefined, {
            _tag: "Protocol",
            kind: "empty"
          })
          assert.deepStrictEqual(Invariants.broken(events), [])
          assert.strictEqual((yield* play([turn])).view.status, "completed")
        }
      })
    )
  })

  describe("on record", () => {
    it.effect("every message and event has the time of the clock, the prompt included (rows 14, 106)", () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("1 day")
        const day = Duration.toMillis("1 day")
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done, done], {
          tools: [tool],
          limits: { maxTurns: 2, onMaxTurns: "stop" }
        })
        yield* script.agent.followUp("more")
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* TestClock.adjust(500)
        yield* go.open
        const { duration, newMessages } = yield* Fiber.join(run)
        assert.deepStrictEqual(
          newMessages.map(({ role, timestamp }) => [role, timestamp - day]),
          [
            ["user", 0],
            ["assistant", 0],
            ["toolResult", 500],
            ["assistant", 500]
          ]
        )
        assert.strictEqual(Duration.toMillis(duration), 500)
        assert.strictEqual(ofTag(script.events, "RunEnd")[0]?.durationMs, 500)
        assert.isTrue(script.events.every(({ timestamp }) => timestamp >= day && timestamp <= day + 500))
      })
    )

    it.effect("so has what a queue, a wrap-up and a resumed call bring in", () =>
      Effect.gen(function* () {
        const open = Message.assistant(
          [{ type: "toolCall", id: "x", name: "t", rawArguments: "{}", params: {} }],
          {
            timestamp: 0
          }
        )
        const script = yield* agent([call("a"), done], {
          messages: [Message.user("hi", 0), open],
          tools: [say("a")],
          limits: { maxTurns: 1, onMaxTurns: "wrapUp" }
        })
        yield* TestClock.adjust(1000)
        yield* script.agent.steer("queued")
        const { newMessages } = yield* script.agent.continue
        assert.deepStrictEqual(
          newMessages.map(({ role, timestamp }) => [role, timestamp]),
          [
            ["toolResult", 1000],
            ["user", 1000],
            ["assistant", 1000],
            ["toolResult", 1000],
            ["user", 1000],
            ["assistant", 1000]
          ]
        )
      })
    )

    it.effect("a tool's time is its execution, without the wait for its approval", () =>
      Effect.gen(function* () {
        const asked = yield* Latch.make(false)
        const { begun, tool } = yield* sleeper()
        const run = yield* Effect.forkChild(
          play([sleep(50), done], {
            tools: [tool],
            hooks: [
              Hook.approveTool(() =>
                Effect.andThen(asked.open, Effect.as(Effect.sleep(1000), { approved: true }))
              )
            ]
          })
        )
        yield* asked.await
        yield* TestClock.adjust(1000)
        yield* begun
        yield* TestClock.adjust(50)
        const { events, exit } = yield* Fiber.join(run)
        assert.strictEqual(ofTag(events, "ToolExecutionEnd")[0]?.durationMs, 50)
        assert.isUndefined(failureOf(exit))
      })
    )
  })
})
