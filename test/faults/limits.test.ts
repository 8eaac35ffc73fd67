import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer, Logger, Schedule, Stream } from "effect"
import { Agent, Loop, Message, ProviderError, type RunOptions, Tool, ToolRegistry } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "../behaviour/invariants.ts"
import { agent, failing, failureOf, ofTag, play, range, reasonOf } from "../behaviour/play.ts"
import { resultTexts, say, settle } from "../behaviour/play.ts"

const call = (name: string) => ScriptedProvider.toolCall(name, {})
const done = ScriptedProvider.text("done")
const limit = "maxIdenticalToolCalls" as const
const warned = (text: string) => text.includes("Once more, and the run is ended")

describe("a model that goes in circles", () => {
  /** Plays these calls over and over, by default settings; gives its limit, and the results that warn, by number. */
  const circling = Effect.fnUntraced(function* (...names: ReadonlyArray<string>) {
    const { events, exit, requests, view } = yield* play(
      range(40).flatMap(() => names.map(call)),
      { tools: [say("a"), say("b"), say("c"), failing("bad")] }
    )
    assert.deepStrictEqual(Invariants.broken(events), [])
    const reason = reasonOf(exit)
    // What the tool said is told as it was.
    assert.isFalse(ofTag(events, "ToolExecutionEnd").some(({ result }) => warned(JSON.stringify(result))))
    return {
      limit: reason?._tag === "LimitExceeded" ? reason.limit : reason?._tag,
      requests: requests.length,
      warnings: resultTexts(view.messages).flatMap((text, index) => (warned(text) ? [index + 1] : []))
    }
  })

  it.effect("F117: is told once, and stopped at the fifth of the same calls, by default", () =>
    Effect.gen(function* () {
      const stopped = { limit, requests: 5, warnings: [4] }
      assert.deepStrictEqual(yield* circling("a"), stopped)
      assert.deepStrictEqual(yield* circling("bad"), stopped)
      assert.deepStrictEqual(yield* circling("nobody"), stopped)
    })
  )

  it.effect("F117: is told once, and stopped after five rounds of two or three calls, by default", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* circling("a", "b"), { limit, requests: 10, warnings: [8] })
      assert.deepStrictEqual(yield* circling("a", "bad", "nobody"), { limit, requests: 15, warnings: [12] })
    })
  )

  it.effect("F117: and then does something else is left alone, and told again when it falls back", () =>
    Effect.gen(function* () {
      const names = ["a", "a", "a", "a", "b", "c", "a", "a", "a", "a"]
      const { requests, view } = yield* play([...names.map(call), done], {
        tools: [say("a"), say("b"), say("c")]
      })
      assert.strictEqual(view.status, "completed")
      assert.deepStrictEqual(
        resultTexts(requests.at(-1)?.messages).map(warned),
        [4, 10].reduce((all, index) => all.with(index - 1, true), range(10).fill(0).map(Boolean))
      )
    })
  )
})

describe("a model that makes the same calls in one answer", () => {
  const many = (length: number, name = "a") =>
    ScriptedProvider.toolCalls(...range(length).map(() => ({ name, params: {} })))
  const ended = Effect.fnUntraced(function* (
    script: ScriptedProvider.Script,
    limits: RunOptions.Limits = {},
    toolExecution: "parallel" | "sequential" = "parallel"
  ) {
    const { events, exit, requests, view } = yield* play(script, {
      tools: [say("a"), say("b")],
      options: { limits, toolExecution }
    })
    assert.deepStrictEqual(Invariants.broken(events), [])
    const reason = reasonOf(exit)
    return {
      limit: reason?._tag === "LimitExceeded" ? reason.limit : reason?._tag,
      requests: requests.length,
      warnings: resultTexts(view.messages).flatMap((text, index) => (warned(text) ? [index + 1] : []))
    }
  })

  it.effect("F117: is warned before its run ends, once, and stopped if it makes them again", () =>
    Effect.gen(function* () {
      for (const mode of ["parallel", "sequential"] as const) {
        assert.deepStrictEqual(yield* ended([many(5), done], {}, mode), {
          limit: undefined,
          requests: 2,
          warnings: [4]
        })
        assert.deepStrictEqual(yield* ended([many(5), call("a"), done], {}, mode), {
          limit,
          requests: 2,
          warnings: [4]
        })
        assert.deepStrictEqual(yield* ended([many(40), many(5), done], {}, mode), {
          limit,
          requests: 2,
          warnings: [4]
        })
      }
    })
  )

  it.effect("F117: is warned once in an answer that goes on to repeat, and anew when it falls back", () =>
    Effect.gen(function* () {
      // The warning in the second answer is read with its third.
      assert.deepStrictEqual(yield* ended([call("a"), many(8), call("a"), done]), {
        limit,
        requests: 3,
        warnings: [4]
      })
      assert.deepStrictEqual(yield* ended([many(5), call("b"), many(5), call("a"), done]), {
        limit,
        requests: 4,
        warnings: [4, 10]
      })
      const pairs = ScriptedProvider.toolCalls(
        ...range(10).map((n) => ({ name: n % 2 === 0 ? "a" : "b", params: {} }))
      )
      assert.deepStrictEqual(yield* ended([pairs, done]), { limit: undefined, requests: 2, warnings: [8] })
      assert.deepStrictEqual(yield* ended([pairs, pairs, done]), { limit, requests: 2, warnings: [8] })
    })
  )

  it.effect("F117: was warned in an earlier answer: one more call is enough", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* ended([many(4), many(1), done]), { limit, requests: 2, warnings: [4] })
      assert.deepStrictEqual(yield* ended([many(3), many(2), done]), {
        limit: undefined,
        requests: 3,
        warnings: [4]
      })
    })
  )

  it.effect("F117: is warned at a limit of three, and cannot be at two or one", () =>
    Effect.gen(function* () {
      for (const [max, requests, warnings] of [
        [1, 1, []],
        [2, 2, []],
        [3, 3, [2]]
      ] as const) {
        const script = range(4).map(() => call("a"))
        const limits = { maxIdenticalToolCalls: max }
        assert.deepStrictEqual(yield* ended(script, limits), { limit, requests, warnings: [...warnings] })
      }
      assert.deepStrictEqual(yield* ended([many(2), done], { maxIdenticalToolCalls: 2 }), {
        limit,
        requests: 1,
        warnings: []
      })
    })
  )
})

describe("a budget", () => {
  /** An answer of so many pieces, each of ten tokens at four characters a token, that says how far it came. */
  const talking = (pieces: number, ...ending: ReadonlyArray<Step.Step>) => {
    const said: Array<number> = []
    const steps = range(pieces).flatMap((piece) => [
      Step.run(Effect.sync(() => said.push(piece))),
      Step.text("x".repeat(40))
    ])
    return { said, turn: ScriptedProvider.turn(Step.start, ...steps, ...ending, Step.finish()) }
  }

  const deltas = (events: Parameters<typeof ofTag>[0]) =>
    ofTag(events, "MessageDelta").filter(({ delta }) => delta._tag === "TextDelta").length

  it.effect("F118: of tokens cuts the answer that goes beyond it, at that very piece", () =>
    Effect.gen(function* () {
      const { said, turn } = talking(100)
      const { events, exit, view } = yield* play([turn], { options: { limits: { maxTotalTokens: 50 } } })
      const reached = { limit: "maxTotalTokens", value: 50, max: 50, estimated: true } as const
      assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", ...reached })
      assert.deepInclude(ofTag(events, "LimitReached")[0], reached)
      assert.strictEqual(deltas(events), 5)
      assert.isAtMost(said.length, 6)
      assert.deepInclude(view.messages.at(-1), { role: "assistant", stopReason: "error" })
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("F118: of money cuts it likewise, by the prices of the options", () =>
    Effect.gen(function* () {
      const { turn } = talking(100)
      const limits = { maxCost: 0.5, prices: { input: 1_000, output: 10_000 } }
      const { events, exit } = yield* play([turn], { options: { limits } })
      assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "maxCost", estimated: true })
      assert.strictEqual(deltas(events), 5)
    })
  )

  it.effect("F118: counts what a provider does not tell, or tells as nothing, of what was asked too", () =>
    Effect.gen(function* () {
      for (const usage of [undefined, { input: 0, output: 0 }]) {
        const turn = ScriptedProvider.toolCall("a", {}, usage === undefined ? {} : { usage })
        const script = [turn, turn, done]
        const options = { limits: { maxTotalTokens: 1000 } }
        const setUp = { tools: [say("a")], prompt: "x".repeat(4_000), options }
        const { exit, requests } = yield* play(script, setUp)
        assert.strictEqual(requests.length, 1)
        assert.deepInclude(reasonOf(exit), { limit: "maxTotalTokens", estimated: true })
        // What is reported is what was told.
        assert.strictEqual(failureOf(exit)?.result.usage.total, 0)
      }
    })
  )

  it.effect("F118: says aloud that it cannot hold when nobody tells a cost", () =>
    Effect.gen(function* () {
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void logged.push(String(message)))
      yield* play([call("a"), call("b"), done], {
        tools: [say("a"), say("b")],
        options: { limits: { maxCost: 1 } },
        layer: Logger.layer([logger])
      })
      assert.strictEqual(logged.filter((line) => line.includes("maxCost cannot hold")).length, 1)
    })
  )

  const broken = (reason: ProviderError.Reason, ...said: ReadonlyArray<Step.Step>) =>
    ScriptedProvider.turn(Step.start, ...said, Step.fail(reason))
  const truncated = new ProviderError.StreamTruncated({ detail: "planned" })
  const often = { schedule: Schedule.recurs(20), retryTurn: true }
  const retried = (turn: ScriptedProvider.Turn, limits: RunOptions.Limits) =>
    play(
      range(21).map(() => turn),
      { prompt: "x".repeat(100), around: Retry.layer(often), options: { limits } }
    )

  it.effect("F118: counts answers that broke off and were asked for again", () =>
    Effect.gen(function* () {
      // 25 tokens are asked, and 30 said, each time.
      const spoken = yield* retried(broken(truncated, Step.text("x".repeat(120))), { maxTotalTokens: 120 })
      assert.strictEqual(spoken.requests.length, 3)
      assert.deepInclude(reasonOf(spoken.exit), { limit: "maxTotalTokens", estimated: true })
      const silent = yield* retried(broken(truncated), { maxTotalTokens: 120 })
      assert.strictEqual(silent.requests.length, 5)
      assert.deepStrictEqual(Invariants.broken(silent.events), [])
      const refused = broken(new ProviderError.RateLimited({ detail: "planned" }))
      assert.strictEqual((yield* retried(refused, { maxTotalTokens: 120 })).requests.length, 21)
    })
  )

  it.effect("F118: counts a request that was reset, and none that was refused", () =>
    Effect.gen(function* () {
      const of = (kind: "reset" | "refused") =>
        broken(new ProviderError.Transport({ kind, detail: "planned" }))
      const reset = yield* retried(of("reset"), { maxTotalTokens: 120 })
      assert.strictEqual(reset.requests.length, 5)
      assert.deepInclude(reasonOf(reset.exit), { limit: "maxTotalTokens", estimated: true })
      assert.strictEqual((yield* retried(of("refused"), { maxTotalTokens: 120 })).requests.length, 21)
    })
  )

  it.effect("F118: counts a request that was stopped before its answer began", () =>
    Effect.gen(function* () {
      const asked = yield* Latch.make(false)
      const silent = ScriptedProvider.turn(Step.run(asked.open), Step.never)
      const tool = Tool.make({
        name: "ask",
        description: "Asks a model that never answers.",
        timeout: "1 minute",
        execute: () =>
          Loop.run("x".repeat(4_000), { messages: [] }, { model: "m" }).pipe(
            Effect.provide([ScriptedProvider.layer([silent]), ToolRegistry.layer()]),
            Effect.as("asked")
          )
      })
      const run = yield* Effect.forkChild(
        play([call("ask"), done], { tools: [tool], options: { limits: { maxTotalTokens: 900 } } })
      )
      yield* asked.await
      yield* TestClock.adjust("1 minute")
      const { exit, requests } = yield* Fiber.join(run)
      assert.strictEqual(requests.length, 1)
      assert.deepInclude(reasonOf(exit), { limit: "maxTotalTokens", max: 900, estimated: true })
    })
  )

  it.effect("F118: is asked before an empty answer is asked for again", () =>
    Effect.gen(function* () {
      const empty = ScriptedProvider.turn(Step.start, Step.finish("stop", { input: 60 }))
      const script = [empty, empty, empty]
      for (const [maxTotalTokens, requests] of [
        [50, 1],
        [60, 1],
        [61, 2],
        [500, 3]
      ] as const) {
        const run = yield* Effect.forkChild(
          play(script, { options: { emptyResponse: "retry", limits: { maxTotalTokens } } }),
          { startImmediately: true }
        )
        yield* TestClock.adjust("1 minute")
        const played = yield* Fiber.join(run)
        assert.strictEqual(played.requests.length, requests)
        assert.strictEqual(reasonOf(played.exit)?._tag, requests === 3 ? undefined : "LimitExceeded")
        assert.deepStrictEqual(Invariants.broken(played.events), [])
      }
    })
  )

  it.effect("F118: takes the cost a provider tells, whatever the prices of the options come to", () =>
    Effect.gen(function* () {
      const turn = (cost: number) => ScriptedProvider.toolCall("a", {}, { usage: { input: 1_000, cost } })
      const dear = { maxCost: 1, prices: { input: 1_000_000, output: 0 } }
      const last = ScriptedProvider.text("ok", { usage: { input: 1_000, cost: 0.1 } })
      const told = yield* play([turn(0.1), last], { tools: [say("a")], options: { limits: dear } })
      assert.strictEqual(told.view.status, "completed")
      const cheap = { maxCost: 1, prices: { input: 0, output: 0 } }
      const over = yield* play([turn(2), done], { tools: [say("a")], options: { limits: cheap } })
      assert.deepInclude(reasonOf(over.exit), { limit: "maxCost", value: 2 })
    })
  )

  it.effect("F118: says that it is estimated as long as a part of it is, and no longer", () =>
    Effect.gen(function* () {
      const said = (usage?: { readonly input: number; readonly output: number }) =>
        ScriptedProvider.turn(
          Step.start,
          Step.text("x".repeat(40)),
          Step.toolCall("a", {}),
          Step.finish("toolUse", usage)
        )
      const reached = Effect.fnUntraced(function* (...script: ReadonlyArray<ScriptedProvider.Turn>) {
        const limits = { maxTotalTokens: 100 }
        const { events, exit } = yield* play([...script, done], { tools: [say("a")], options: { limits } })
        const reason = reasonOf(exit)
        assert.strictEqual(ofTag(events, "LimitReached")[0]?.estimated, Object(reason).estimated)
        return [Object(reason).value, Object(reason).estimated]
      })
      const told = { input: 60, output: 10 }
      assert.deepStrictEqual(yield* reached(said(told), said(told)), [140, undefined])
      const [, estimated] = yield* reached(said(), said(told), said(told))
      assert.isTrue(estimated)
    })
  )

  /** A tool that asks a model of its own, so many levels deep. */
  const delegating = (script: ScriptedProvider.Script, depth = 1): Tool.Runnable =>
    Tool.make({
      name: "delegate",
      description: "Asks another agent.",
      timeout: "Infinity",
      execute: () =>
        Effect.scoped(
          Effect.gen(function* () {
            const tools = depth === 1 ? [] : [delegating(script, depth - 1)]
            const answers = depth === 1 ? script : [call("delegate"), done]
            const helper = yield* Agent.make({ model: "m", tools }).pipe(
              Effect.provide(ScriptedProvider.layer(answers))
            )
            const { message } = yield* helper.prompt("help")
            return message === undefined ? "" : Message.textOf(message)
          })
        )
    })

  it.effect("F118: counts what sub-agents spend, however deep, and cuts their answers too", () =>
    Effect.gen(function* () {
      for (const depth of [1, 3]) {
        const { said, turn } = talking(100)
        const { events, exit, requests } = yield* play([call("delegate"), done], {
          tools: [delegating([turn], depth)],
          options: { limits: { maxTotalTokens: 500 } }
        })
        assert.isAtMost(said.length, 50)
        assert.isAtLeast(said.length, 20)
        assert.deepInclude(reasonOf(exit), { limit: "maxTotalTokens", max: 500, estimated: true })
        assert.strictEqual(requests.length, 1)
        assert.include(
          resultTexts(ofTag(events, "MessageEnd").map(({ message }) => message))[0],
          "maxTotalTokens"
        )
      }
    })
  )

  it.effect("F118: counts what sub-agents are told to have spent, in a loop inside of a tool too", () =>
    Effect.gen(function* () {
      const answer = ScriptedProvider.text("ok", { usage: { input: 60, cost: 0.6 } })
      const tool = Tool.make({
        name: "ask",
        description: "Asks a loop.",
        execute: () =>
          Loop.run("help", { messages: [] }, { model: "m" }).pipe(
            Effect.provide([ScriptedProvider.layer([answer]), ToolRegistry.layer()]),
            Effect.as("asked")
          )
      })
      for (const limits of [{ maxTotalTokens: 100 }, { maxCost: 1 }]) {
        const turn = ScriptedProvider.toolCall("ask", {}, { usage: { input: 1, cost: 0.01 } })
        const { exit, requests } = yield* play([turn, turn, done], { tools: [tool], options: { limits } })
        assert.strictEqual(requests.length, 2)
        assert.strictEqual(reasonOf(exit)?._tag, "LimitExceeded")
      }
    })
  )

  it.effect("F118: of time cuts a sub-agent that is answering, and its model", () =>
    Effect.gen(function* () {
      const silent = ScriptedProvider.turn(Step.start, Step.text("hm"), Step.never)
      const run = yield* Effect.forkChild(
        play([call("delegate"), done], {
          tools: [delegating([silent], 2)],
          options: { limits: { executionTime: "1 minute" } }
        })
      )
      yield* settle()
      yield* TestClock.adjust("61 seconds")
      const { events, exit } = yield* Fiber.join(run)
      assert.deepInclude(reasonOf(exit), { limit: "executionTime", value: 60_000, max: 60_000 })
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("F118: that is used up leaves the agent as it was, and the next run has its own", () =>
    Effect.gen(function* () {
      const script = yield* agent([talking(100).turn, done], { limits: { maxTotalTokens: 50 } })
      yield* Effect.flip(script.agent.prompt("talk"))
      assert.strictEqual((yield* script.agent.prompt("again")).status, "completed")
    })
  )

  it.effect("F118: is not there by default, and then nothing is looked at one by one", () =>
    Effect.gen(function* () {
      const { turn } = talking(1000)
      const { events, view } = yield* play([turn])
      assert.deepStrictEqual([view.status, deltas(events)], ["completed", 1000])
    })
  )
})

it.effect("F118: bounds runs beside one another that share nothing apart", () =>
  Effect.gen(function* () {
    const provider = yield* ScriptedProvider.make([done, done])
    const one = Loop.stream("hi", { messages: [] }, { model: "m", limits: { maxTotalTokens: 10 } })
    const both = Effect.all([Stream.runDrain(one), Stream.runDrain(one)], { concurrency: 2 })
    yield* Effect.provide(both, Layer.merge(provider.layer, ToolRegistry.layer()))
    assert.strictEqual((yield* provider.requests).length, 2)
  })
)
