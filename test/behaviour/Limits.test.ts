import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Schema } from "effect"
import {
  ContextManager,
  Hook,
  HookManager,
  Loop,
  Message,
  RunOptions,
  Tool,
  ToolRegistry
} from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import { agent, echo, failureOf, gated, ofTag, outcomes, play, range, reasonOf, resultOf } from "./play.ts"
import { resultTexts, say, sleeper, status, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string, usage?: { readonly input?: number; readonly cost?: number }) =>
  ScriptedProvider.toolCall(name, {}, usage === undefined ? {} : { usage })
const calls = (...names: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...names.map((name) => ({ name, params: {} })))

/** Runs against limits, with a counter in place of each tool. */
const limited = (
  script: ScriptedProvider.Script,
  limits: RunOptions.Limits,
  options: Partial<RunOptions.RunOptions> = {}
) => play(script, { tools: [say("a"), say("b"), say("c"), echo], options: { ...options, limits } })

describe("Limits", () => {
  describe("maxTurns", () => {
    it.effect("a run that ends on its last allowed turn is completed, once (row 77)", () =>
      Effect.gen(function* () {
        const { events } = yield* limited([call("a"), done], { maxTurns: 2 })
        assert.deepStrictEqual(
          ofTag(events, "RunEnd").map((event) => event.status),
          ["completed"]
        )
        assert.notInclude(tags(events), "LimitReached")
      })
    )

    it.effect(
      "F116: is 50 by default: a model that never stops calling tools is stopped (rows 79, 175)",
      () =>
        Effect.gen(function* () {
          const { exit, requests } = yield* limited(
            range(60).map((n) => ScriptedProvider.toolCall("echo", { n })),
            {}
          )
          assert.strictEqual(requests.length, 50)
          assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "maxTurns", value: 50, max: 50 })
        })
    )

    it.effect("Infinity is none", () =>
      Effect.gen(function* () {
        const { requests, view } = yield* limited(
          [...range(70).map((n) => ScriptedProvider.toolCall("echo", { n })), done],
          { maxTurns: Infinity }
        )
        assert.strictEqual(requests.length, 71)
        assert.strictEqual(view.status, "completed")
      })
    )

    it.effect("wrapUp asks once more, without tools, and takes what it gets (row 79)", () =>
      Effect.gen(function* () {
        const { events, requests, view } = yield* limited([call("a"), call("b")], {
          maxTurns: 1,
          onMaxTurns: "wrapUp",
          wrapUpInstruction: "Sum up."
        })
        assert.strictEqual(view.status, "incomplete")
        assert.deepStrictEqual(requests[1]?.tools, [])
        assert.deepStrictEqual(texts(requests[1]?.messages.slice(-1) ?? []), ["Sum up."])
        assert.deepStrictEqual(outcomes(events), ["success", "unknownTool"])
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
    )

    it.effect("wrapUp asks without the tools of the vendor too", () =>
      Effect.gen(function* () {
        const { requests } = yield* limited(
          [call("a"), done],
          { maxTurns: 1, onMaxTurns: "wrapUp" },
          { modelOptions: { seed: 1, hostedTools: [{ type: "webSearch" }] } }
        )
        assert.deepStrictEqual(
          requests.map(({ options }) => options),
          [
            { seed: 1, hostedTools: [{ type: "webSearch" }] },
            { seed: 1, hostedTools: [] }
          ]
        )
      })
    )

    it.effect("wrapUp that fails is a failure, and a cancel during it is a cancel", () =>
      Effect.gen(function* () {
        const failing = yield* limited([call("a"), ScriptedProvider.die("boom")], {
          maxTurns: 1,
          onMaxTurns: "wrapUp"
        })
        assert.strictEqual(status(failing.events), "failed")
        const script = yield* agent([call("a"), done], {
          tools: [say("a")],
          limits: { maxTurns: 1, onMaxTurns: "wrapUp" }
        })
        yield* script.agent.subscribe((event) =>
          event._tag === "TurnEnd" && event.turn === 2 ? script.agent.cancel() : Effect.void
        )
        const result = yield* script.agent.prompt("hi")
        assert.strictEqual(result.status, "cancelled")
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )

    it.effect("0 consumes nothing, and ends by its policy", () =>
      Effect.gen(function* () {
        const failing = yield* limited([], { maxTurns: 0 })
        assert.deepInclude(reasonOf(failing.exit), { limit: "maxTurns", value: 0, max: 0 })
        assert.deepStrictEqual(failing.view.messages, [])
        const stopping = yield* limited([], { maxTurns: 0, onMaxTurns: "stop" })
        assert.strictEqual(stopping.view.status, "incomplete")
        assert.deepStrictEqual(stopping.view.messages, [])
      })
    )

    it.effect("lowered in mid-run counts from the next turn, by the policy", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done], { tools: [tool], limits: { onMaxTurns: "stop" } })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* script.agent.update({ limits: { maxTurns: 1 } })
        yield* go.open
        const result = yield* Fiber.join(run)
        assert.strictEqual(result.status, "incomplete")
        assert.strictEqual((yield* script.requests).length, 1)
      })
    )
  })

  describe("maxToolCalls", () => {
    it.effect(
      "of 2 runs at most 2 tools, in the stream and in a run, and answers every call (rows 76, 77, 170)",
      () =>
        Effect.gen(function* () {
          for (const toolExecution of ["parallel", "sequential"] as const) {
            let ran = 0
            const count = Tool.make({
              name: "count",
              description: "",
              execute: () => Effect.sync(() => ++ran)
            })
            const script = [calls("count", "count", "count")]
            const options = { model: "m", toolExecution, limits: { maxToolCalls: 2 } }
            const streamed = yield* play(script, { tools: [count], options })
            assert.strictEqual(ran, 2)
            assert.deepStrictEqual(outcomes(streamed.events).toSorted(), ["aborted", "success", "success"])
            assert.deepStrictEqual(Invariants.broken(streamed.events), [])
            const provider = yield* ScriptedProvider.make(script)
            const exit = yield* Loop.run("hi", { messages: [] }, options).pipe(
              Effect.provide([provider.layer, ToolRegistry.layer(count)]),
              Effect.exit
            )
            assert.strictEqual(ran, 4)
            for (const reason of [reasonOf(streamed.exit), reasonOf(exit)]) {
              assert.deepInclude(reason, { _tag: "LimitExceeded", limit: "maxToolCalls", value: 3, max: 2 })
            }
          }
        })
    )

    it.effect("exactly used up is not exceeded (row 170)", () =>
      Effect.gen(function* () {
        const { view } = yield* limited([calls("a", "b"), done], { maxToolCalls: 2 })
        assert.strictEqual(view.status, "completed")
      })
    )

    it.effect("0 lets a model talk, but not act", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* limited([done], { maxToolCalls: 0 })).view.status, "completed")
        const acting = yield* limited([call("a")], { maxToolCalls: 0 })
        assert.deepStrictEqual(outcomes(acting.events), ["aborted"])
        assert.notInclude(tags(acting.events), "ToolInvoked")
      })
    )
  })

  describe("maxTotalTokens", () => {
    it.effect("stops before the turn that would begin beyond it, and keeps what was done (row 174)", () =>
      Effect.gen(function* () {
        const { events, exit, requests } = yield* limited(
          [call("a", { input: 40 }), call("b", { input: 60 }), done],
          { maxTotalTokens: 100 }
        )
        assert.strictEqual(requests.length, 2)
        assert.deepInclude(reasonOf(exit), { limit: "maxTotalTokens", value: 100, max: 100 })
        assert.strictEqual(failureOf(exit)?.result.usage.total, 100)
        assert.deepStrictEqual(tags(events).slice(-4), ["TurnEnd", "LimitReached", "RunError", "RunEnd"])
        assert.deepInclude(ofTag(events, "LimitReached")[0], {
          limit: "maxTotalTokens",
          value: 100,
          max: 100
        })
      })
    )

    it.effect("lets a run end that went beyond it in its last turn", () =>
      Effect.gen(function* () {
        const { view } = yield* limited([ScriptedProvider.text("x", { usage: { output: 500 } })], {
          maxTotalTokens: 100
        })
        assert.strictEqual(view.status, "completed")
      })
    )

    it.effect("counts the run's tokens, not those of runs before", () =>
      Effect.gen(function* () {
        const turn = ScriptedProvider.text("x", { usage: { output: 80 } })
        const script = yield* agent([turn, turn], { limits: { maxTotalTokens: 100 } })
        yield* script.agent.prompt("1")
        assert.strictEqual((yield* script.agent.prompt("2")).status, "completed")
      })
    )
  })

  it.effect(
    "maxCost stops a run that has cost that much; a provider that tells no cost is never stopped",
    () =>
      Effect.gen(function* () {
        const priced = yield* limited([call("a", { cost: 0.3 }), call("b", { cost: 0.25 }), done], {
          maxCost: 0.5
        })
        assert.strictEqual(priced.requests.length, 2)
        assert.deepInclude(reasonOf(priced.exit), { limit: "maxCost", max: 0.5 })
        assert.closeTo(failureOf(priced.exit)?.result.usage.cost ?? 0, 0.55, 1e-9)
        assert.strictEqual((yield* limited([call("a"), done], { maxCost: 0.5 })).view.status, "completed")
      })
  )

  describe("executionTime", () => {
    it.effect("0 consumes nothing: there is no turn, and the prompt is not in the transcript", () =>
      Effect.gen(function* () {
        const { events, exit, requests, view } = yield* limited([done], { executionTime: 0 })
        assert.deepInclude(reasonOf(exit), { limit: "executionTime", value: 0, max: 0 })
        assert.notInclude(tags(events), "TurnStart")
        assert.deepStrictEqual(view.messages, [])
        assert.strictEqual(requests.length, 0)
      })
    )

    it.effect("that is exactly used up lets no other turn begin, though the timer may be late", () =>
      Effect.gen(function* () {
        for (const [allowed, turns] of [
          [100, 1],
          [101, 2]
        ] as const) {
          const { clock, set } = yield* lateClock
          const work = Tool.make({
            name: "work",
            description: "",
            execute: () => Effect.sync(() => set(100))
          })
          const { events, exit } = yield* play([call("work"), done], {
            tools: [work],
            options: { limits: { executionTime: allowed } }
          }).pipe(Effect.provideService(Clock.Clock, clock))
          assert.strictEqual(ofTag(events, "TurnStart").length, turns)
          if (turns === 2) assert.strictEqual(status(events), "completed")
          else assert.deepInclude(reasonOf(exit), { limit: "executionTime", value: 100, max: 100 })
        }
      })
    )

    /** A clock that goes by hand, and whose timers never ring. */
    const lateClock = Effect.map(Clock.Clock, (inner) => {
      let millis = 0
      const clock: Clock.Clock = {
        currentTimeMillis: Effect.sync(() => millis),
        currentTimeMillisUnsafe: () => millis,
        currentTimeNanos: inner.currentTimeNanos,
        currentTimeNanosUnsafe: () => BigInt(millis) * 1_000_000n,
        monotonicTimeNanos: inner.monotonicTimeNanos,
        monotonicTimeNanosUnsafe: () => BigInt(millis) * 1_000_000n,
        sleep: () => Effect.never
      }
      return { clock, set: (to: number) => void (millis = to) }
    })

    it.effect("leaves no timer behind when the run ends before it", () =>
      Effect.gen(function* () {
        const inner = yield* Clock.Clock
        let sleeping = 0
        const counting: Clock.Clock = {
          currentTimeMillis: inner.currentTimeMillis,
          currentTimeMillisUnsafe: () => inner.currentTimeMillisUnsafe(),
          currentTimeNanos: inner.currentTimeNanos,
          currentTimeNanosUnsafe: () => inner.currentTimeNanosUnsafe(),
          monotonicTimeNanos: inner.monotonicTimeNanos,
          monotonicTimeNanosUnsafe: () => inner.monotonicTimeNanosUnsafe(),
          sleep: (duration) =>
            Effect.suspend(() => {
              sleeping++
              return Effect.ensuring(
                inner.sleep(duration),
                Effect.sync(() => sleeping--)
              )
            })
        }
        let during = 0
        const count = Tool.make({
          name: "count",
          description: "",
          execute: () => Effect.sync(() => void (during = Math.max(during, sleeping)))
        })
        for (const script of [[call("count"), done], [ScriptedProvider.die("boom")], []]) {
          const { events } = yield* play(script, {
            tools: [count],
            options: { limits: { executionTime: "1 hour", ...(script.length === 0 ? { maxTurns: 0 } : {}) } }
          }).pipe(Effect.provideService(Clock.Clock, counting))
          assert.strictEqual(tags(events).at(-1), "RunEnd")
          yield* Effect.repeat(Effect.yieldNow, { times: 50 })
          assert.strictEqual(sleeping, 0)
        }
        assert.isAbove(during, 0)
      })
    )
  })

  it.effect("too many calls come before identical ones, where both are reached", () =>
    Effect.gen(function* () {
      const { events, exit } = yield* limited([calls("a", "a", "a", "a")], {
        maxToolCalls: 2,
        maxIdenticalToolCalls: 2
      })
      assert.deepInclude(reasonOf(exit), { limit: "maxToolCalls", value: 4, max: 2 })
      assert.strictEqual(ofTag(events, "LimitReached").length, 1)
    })
  )

  describe("maxContextSize", () => {
    const long = range(40).map((n) => Message.user(`${n} ${"x".repeat(500)}`))

    it.effect("counts the UTF-8 bytes of what would be sent (row 171)", () =>
      Effect.gen(function* () {
        const { exit, requests, view } = yield* play([], {
          prompt: "ü".repeat(600),
          options: { limits: { maxContextSize: 1000 } }
        })
        assert.strictEqual(requests.length, 0)
        assert.deepInclude(reasonOf(exit), { limit: "maxContextSize", max: 1000 })
        assert.deepStrictEqual(view.messages, [])
        const fits = yield* play([done], {
          prompt: "x".repeat(600),
          options: { limits: { maxContextSize: 1000 } }
        })
        assert.strictEqual(fits.view.status, "completed")
      })
    )

    it.effect("lets through what is exactly as large, and nothing that is larger by a byte", () =>
      Effect.gen(function* () {
        const prompt = [Message.user("grüße")]
        const size = new TextEncoder().encode(JSON.stringify(prompt[0])).byteLength
        const fits = yield* play([done], { prompt, options: { limits: { maxContextSize: size } } })
        assert.strictEqual(fits.view.status, "completed")
        const tooLarge = yield* play([], { prompt, options: { limits: { maxContextSize: size - 1 } } })
        assert.deepInclude(reasonOf(tooLarge.exit), { limit: "maxContextSize", value: size, max: size - 1 })
        assert.strictEqual(tooLarge.requests.length, 0)
      })
    )

    it.effect("does not count what a window leaves out", () =>
      Effect.gen(function* () {
        const { requests, view } = yield* play([done], {
          messages: long,
          layer: ContextManager.slidingWindow({ maxMessages: 3 }),
          options: { limits: { maxContextSize: 5000 } }
        })
        assert.strictEqual(requests[0]?.messages.length, 3)
        assert.strictEqual(view.status, "completed")
      })
    )

    it.effect("does not count custom messages, which are not sent", () =>
      Effect.gen(function* () {
        const { view } = yield* play([done], {
          messages: [Message.custom("note", "x".repeat(50_000))],
          options: { limits: { maxContextSize: 5000 } }
        })
        assert.strictEqual(view.status, "completed")
      })
    )
  })

  describe("maxIdenticalToolCalls", () => {
    /** How many turns of these calls, over and over, the model gets. */
    const turnsOf = Effect.fnUntraced(function* (
      cycle: ReadonlyArray<ScriptedProvider.Turn>,
      max: number | undefined,
      tools: ReadonlyArray<Tool.Runnable> = [say("a"), say("b"), say("c"), say("d"), echo]
    ) {
      const { events, exit, requests } = yield* play(
        range(40).flatMap(() => cycle),
        {
          tools,
          options: {
            limits: { maxTurns: 30, ...(max === undefined ? {} : { maxIdenticalToolCalls: max }) }
          }
        }
      )
      assert.deepStrictEqual(Invariants.broken(events), [])
      const reason = reasonOf(exit)
      return [reason?._tag === "LimitExceeded" ? reason.limit : reason?._tag, requests.length]
    })

    it.effect("stops the same call with the same result, by default the fifth (row 81)", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* turnsOf([call("a")], undefined), ["maxIdenticalToolCalls", 5])
        assert.deepStrictEqual(yield* turnsOf([call("a")], 3), ["maxIdenticalToolCalls", 3])
      })
    )

    it.effect("stops short cycles too: A-B-A-B and A-B-C-A-B-C", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* turnsOf([call("a"), call("b")], 3), ["maxIdenticalToolCalls", 6])
        assert.deepStrictEqual(yield* turnsOf([call("a"), call("b"), call("c")], 3), [
          "maxIdenticalToolCalls",
          9
        ])
        assert.deepStrictEqual(yield* turnsOf([calls("a", "b")], 3), ["maxIdenticalToolCalls", 3])
      })
    )

    it.effect("lets longer cycles go on", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(
          yield* turnsOf(
            ["a", "b", "c", "d"].map((name) => call(name)),
            3
          ),
          ["maxTurns", 30]
        )
      })
    )

    it.effect("lets a tool be polled as long as it has news", () =>
      Effect.gen(function* () {
        let news = 0
        const poll = Tool.make({ name: "poll", description: "", execute: () => Effect.sync(() => ++news) })
        assert.deepStrictEqual(yield* turnsOf([call("poll")], 3, [poll]), ["maxTurns", 30])
      })
    )

    it.effect("lets other params pass, and Infinity everything (row 81)", () =>
      Effect.gen(function* () {
        const counting = range(30).map((n) => ScriptedProvider.toolCall("echo", { n }))
        assert.deepStrictEqual(yield* turnsOf(counting, 2), ["maxTurns", 30])
        assert.deepStrictEqual(yield* turnsOf([call("a")], Infinity), ["maxTurns", 30])
      })
    )

    it.effect("compares long arguments and long results in full", () =>
      Effect.gen(function* () {
        const long = "x".repeat(20_000)
        const written = ScriptedProvider.toolCall("a", { text: long })
        assert.deepStrictEqual(yield* turnsOf([written], 3), ["maxIdenticalToolCalls", 3])
        assert.deepStrictEqual(yield* turnsOf([call("long")], 3, [say("long", long)]), [
          "maxIdenticalToolCalls",
          3
        ])
        let news = 1000
        const poll = Tool.make({
          name: "poll",
          description: "",
          execute: () => Effect.sync(() => `${long}${++news}${long}`)
        })
        assert.deepStrictEqual(yield* turnsOf([call("poll")], 3, [poll]), ["maxTurns", 30])
      })
    )

    it.effect("stops a model whose calls are cut at its token limit again and again", () =>
      Effect.gen(function* () {
        const cut = ScriptedProvider.turn(Step.toolCall("a", {}), Step.finish("length"))
        assert.deepStrictEqual(yield* turnsOf([cut], undefined), ["maxIdenticalToolCalls", 5])
      })
    )

    it.effect("stops calls that fail in the same way: unknown, malformed, rejected", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* turnsOf([call("nope")], 3), ["maxIdenticalToolCalls", 3])
        const malformed = ScriptedProvider.turn(Step.rawToolCall("a", ["{"]), Step.finish("toolUse"))
        assert.deepStrictEqual(yield* turnsOf([malformed], 3), ["maxIdenticalToolCalls", 3])
      })
    )

    it.effect("sees calls in the order of the answer, not in that of their ends", () =>
      Effect.gen(function* () {
        const { begun, tool } = yield* sleeper()
        let turn = 0
        const swap = Tool.make({
          name: "swap",
          description: "Is quicker and slower than the other by turns.",
          params: Schema.Struct({ first: Schema.Boolean }),
          execute: ({ first }) =>
            Effect.as(
              tool.execute({ ms: (first ? ++turn : turn) % 2 === (first ? 0 : 1) ? 10 : 20 }),
              first ? "one" : "two"
            )
        })
        const pair = ScriptedProvider.toolCalls(
          { name: "swap", params: { first: true } },
          { name: "swap", params: { first: false } }
        )
        const run = yield* Effect.forkChild(turnsOf([pair], 3, [swap]))
        for (const _ of range(3)) {
          yield* Effect.andThen(begun, begun)
          yield* TestClock.adjust(20)
        }
        const ended = yield* Effect.raceFirst(
          Fiber.join(run),
          Effect.as(Effect.andThen(begun, begun), ["a fourth turn", 4])
        )
        assert.deepStrictEqual(ended, ["maxIdenticalToolCalls", 3])
      })
    )
  })

  it.effect("limits of a prompt are laid over the agent's field by field, for that prompt", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), call("a"), done], {
        tools: [say("a")],
        limits: { onMaxTurns: "stop", maxTurns: 9 }
      })
      const first = yield* script.agent.prompt("1", { limits: { maxTurns: 1 } })
      assert.strictEqual(first.status, "incomplete")
      assert.strictEqual((yield* script.agent.prompt("2")).status, "completed")
    })
  )

  it.effect("a limit is told once, to observers, to hooks and to the caller (row 107)", () =>
    Effect.gen(function* () {
      const heard: Array<unknown> = []
      const provider = yield* ScriptedProvider.make([call("a")])
      const exit = yield* Loop.run("hi", { messages: [] }, { model: "m", limits: { maxTurns: 1 } }).pipe(
        Effect.provide([
          provider.layer,
          ToolRegistry.layer(say("a")),
          HookManager.layer(
            Hook.onError(({ error, scope }) => Effect.sync(() => void heard.push(scope, error)))
          )
        ]),
        Effect.exit
      )
      assert.isUndefined(resultOf(exit))
      assert.strictEqual(heard[0], "run")
      assert.strictEqual(heard[1], reasonOf(exit))
      assert.strictEqual(failureOf(exit)?.message, "Limit maxTurns reached: 1, allowed 1")
      assert.deepStrictEqual(resultTexts(failureOf(exit)?.result.newMessages), ["a"])
    })
  )
})
