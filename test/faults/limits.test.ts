import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Schedule, Stream } from "effect"
import { Agent, Loop, Message, ProviderError, type RunOptions, Tool, ToolRegistry } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "../behaviour/invariants.ts"
import { agent, failing, failureOf, ofTag, play, range, reasonOf } from "../behaviour/play.ts"
import { resultTexts, say, settle } from "../behaviour/play.ts"

const call = (name: string) => ScriptedProvider.toolCall(name, {})
const done = ScriptedProvider.text("done")
const limit = "identicalToolCalls" as const
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
      const reached = { limit: "tokens", value: 50, max: 50, estimated: true } as const
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
      assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "cost", estimated: true })
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
        assert.deepInclude(reasonOf(exit), { limit: "tokens", estimated: true })
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
      assert.deepInclude(reasonOf(spoken.exit), { limit: "tokens", estimated: true })
      const silent = yield* retried(broken(truncated), { maxTotalTokens: 120 })
      assert.strictEqual(silent.requests.length, 5)
      assert.deepStrictEqual(Invariants.broken(silent.events), [])
      const refused = broken(new ProviderError.RateLimited({ detail: "planned" }))
      assert.strictEqual((yield* retried(refused, { maxTotalTokens: 120 })).requests.length, 21)
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
        assert.deepInclude(reasonOf(exit), { limit: "tokens", max: 500, estimated: true })
        assert.strictEqual(requests.length, 1)
        assert.include(resultTexts(ofTag(events, "MessageEnd").map(({ message }) => message))[0], "tokens")
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
