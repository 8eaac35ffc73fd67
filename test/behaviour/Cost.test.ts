import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schedule } from "effect"
import { Message, Prices, ProviderError, RunReport, Tool, ToolRegistry, Usage } from "effect-agent"
import { Agent, Loop } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { ofTag, play, reasonOf, say } from "./play.ts"

/** A dollar for a token of the request of `one/m`, a hundredth for one of `two/m`. */
const prices = Prices.layer({
  "one/m": { input: 1e6, output: 2e6, cacheRead: 1e5, cacheWrite: 2e6, cacheWriteLong: 4e6 },
  "two/m": { input: 1e4, output: 1e4 }
})

const start = (provider: string, model = "m") =>
  Step.event({ _tag: "Start", provider, model, protocol: "none" })

/** An answer of a provider with these tokens. */
const from = (provider: string, usage: Partial<Usage.Usage>, model?: string) =>
  ScriptedProvider.turn(start(provider, model), Step.text("ok"), Step.finish("stop", usage))

const calling = (provider: string, usage: Partial<Usage.Usage>) =>
  ScriptedProvider.turn(start(provider), Step.toolCall("a", {}), Step.finish("toolUse", usage))

const costOf = Effect.fnUntraced(function* (...setUp: Parameters<typeof play>) {
  const { events } = yield* play(...setUp)
  const { cost, costSource } = ofTag(events, "RunEnd")[0]?.usage ?? {}
  return { cost, costSource }
})

const warnings = () => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
  return { lines, layer: Logger.layer([logger]) }
}

describe("the cost of a run", () => {
  it.effect("is that of the model that finished the answer of another", () =>
    Effect.gen(function* () {
      const finish = {
        _tag: "Finish",
        stopReason: "stop",
        usage: Usage.make({ input: 2 }),
        responseModel: "n"
      } as const
      const { events } = yield* play(
        [ScriptedProvider.turn(start("one"), Step.text("ok"), Step.event(finish))],
        { layer: Prices.layer({ "one/m": { input: 1e6, output: 1 }, "one/n": { input: 3e6, output: 1 } }) }
      )
      assert.deepInclude(ofTag(events, "ModelCallEnd")[0], { responseModel: "n" })
      assert.strictEqual(ofTag(events, "RunEnd")[0]?.usage.cost, 6)
    })
  )

  it.effect("is computed for the provider and the model that answer, and marked", () =>
    Effect.gen(function* () {
      const { events, view } = yield* play(
        [calling("one", { input: 10, output: 1 }), from("two", { input: 100, output: 100 })],
        { tools: [say("a")], layer: prices, options: { model: "router/name" } }
      )
      const priced = { cost: 14, costSource: "computed" } as const
      assert.deepInclude(ofTag(events, "RunEnd")[0]?.usage, priced)
      assert.deepInclude(RunReport.fromEvents(events).usage, priced)
      assert.deepStrictEqual(
        ofTag(events, "ModelCallEnd").map(({ usage }) => usage?.cost),
        [12, 2]
      )
      assert.deepStrictEqual(
        view.messages.filter((message) => message.role === "assistant").map(({ usage }) => usage?.cost),
        [12, 2]
      )
    })
  )

  it.effect("is the one that the provider reports, where it reports one", () =>
    Effect.gen(function* () {
      const setUp = { tools: [say("a")], layer: prices }
      const reported = calling("one", { input: 10, cost: 0.5 })
      assert.deepStrictEqual(yield* costOf([from("one", { input: 10, cost: 0.5 })], setUp), {
        cost: 0.5,
        costSource: "reported"
      })
      assert.deepStrictEqual(yield* costOf([reported, from("one", { input: 10 })], setUp), {
        cost: 10.5,
        costSource: "mixed"
      })
      const limits = { prices: { input: 1e9, output: 1e9 } }
      assert.deepStrictEqual(yield* costOf([reported, reported], { ...setUp, options: { limits } }), {
        cost: 1,
        costSource: "reported"
      })
    })
  )

  it.effect("counts tokens of the cache at their own prices, and writes for an hour by the option", () =>
    Effect.gen(function* () {
      const usage = { input: 100, output: 0, cacheRead: 50, cacheWrite: 30 }
      const cost = (usage: Partial<Usage.Usage>, cacheRetention: "short" | "long") =>
        Effect.map(
          costOf([from("one", usage)], { layer: prices, options: { modelOptions: { cacheRetention } } }),
          ({ cost }) => cost
        )
      assert.strictEqual(yield* cost(usage, "short"), 20 + 5 + 60)
      assert.strictEqual(yield* cost(usage, "long"), 20 + 5 + 120)
      assert.strictEqual(yield* cost({ ...usage, cacheWriteLong: 10 }, "long"), 20 + 5 + 40 + 40)
    })
  )

  it.effect("is by limits.prices, where an application sets them", () =>
    Effect.gen(function* () {
      const limits = { prices: { input: 0.5e6, output: 0 } }
      assert.deepStrictEqual(
        yield* costOf([from("one", { input: 10 })], { layer: prices, options: { limits } }),
        { cost: 5, costSource: "computed" }
      )
    })
  )

  it.effect("is absent for a model without a price, and where no tokens are reported", () =>
    Effect.gen(function* () {
      const none = { cost: undefined, costSource: undefined }
      assert.deepStrictEqual(yield* costOf([from("one", { input: 10 })]), none)
      assert.deepStrictEqual(yield* costOf([from("one", { input: 10 }, "other")], { layer: prices }), none)
      assert.deepStrictEqual(yield* costOf([ScriptedProvider.text("ok")], { layer: prices }), none)
    })
  )

  it.effect("asks for the price once for an answer, with the model of the answer and the time", () =>
    Effect.gen(function* () {
      const asked: Array<Prices.Model> = []
      const find = (model: Prices.Model) => Effect.sync(() => void asked.push(model))
      const answer = ScriptedProvider.turn(
        Step.event({ _tag: "Start", provider: "one", model: "m", protocol: "none", responseModel: "m-1" }),
        Step.text("ok"),
        Step.finish("stop", { input: 1 })
      )
      yield* play([answer], { layer: Layer.succeed(Prices.Prices, { find }) })
      const model = { provider: "one", model: "m", responseModel: "m-1", at: 0, cacheRetention: undefined }
      assert.deepStrictEqual(asked, [model])
    })
  )

  it.effect("of an agent is in its result", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "m" })
      const { usage } = yield* agent.prompt("hi")
      assert.deepInclude(usage, { cost: 10, costSource: "computed" })
    }).pipe(Effect.provide([ScriptedProvider.layer([from("one", { input: 10 })]), prices]), Effect.scoped)
  )
})

describe("maxCost", () => {
  const ended = (exit: Effect.Success<ReturnType<typeof play>>["exit"]) => {
    const reason = reasonOf(exit)
    return reason?._tag === "LimitExceeded" ? [reason.limit, reason.value] : reason?._tag
  }

  it.effect("ends a run by the prices of the service (row 174)", () =>
    Effect.gen(function* () {
      const script = [
        calling("one", { input: 3 }),
        calling("two", { input: 100 }),
        calling("one", { input: 3 })
      ]
      const setUp = { tools: [say("a")], layer: prices, options: { limits: { maxCost: 4 } } }
      const { exit, requests } = yield* play(script, setUp)
      assert.strictEqual(requests.length, 2)
      assert.deepStrictEqual(ended(exit), ["maxCost", 4])
    })
  )

  it.effect("cuts an answer while it streams", () =>
    Effect.gen(function* () {
      const talking = ScriptedProvider.turn(start("one"), Step.text(Array(50).fill("four")), Step.finish())
      const setUp = { layer: prices, options: { limits: { maxCost: 10 } } }
      const { events, exit } = yield* play([talking], setUp)
      assert.deepStrictEqual(ended(exit), ["maxCost", 10])
      assert.isBelow(ofTag(events, "MessageDelta").length, 10)
    })
  )

  it.effect("counts a request that broke off before it began to be answered", () =>
    Effect.gen(function* () {
      const broken = ScriptedProvider.turn(
        Step.fail(new ProviderError.StreamTruncated({ detail: "planned" }))
      )
      const layer = Prices.layer({ "scripted/m": { input: 1e6, output: 0 } })
      const again = Retry.layer({ schedule: Schedule.recurs(5) })
      const setUp = { prompt: "x".repeat(400), layer, around: again, options: { limits: { maxCost: 250 } } }
      const { exit } = yield* play([broken, broken, broken, broken], setUp)
      assert.deepInclude(reasonOf(exit), { limit: "maxCost", estimated: true })
    })
  )

  it.effect("counts the runs that tools start, at the price of their model", () =>
    Effect.gen(function* () {
      const inner = yield* ScriptedProvider.make([from("one", { input: 7 })])
      const ask = Tool.make({
        name: "a",
        description: "Asks.",
        execute: () =>
          Loop.run("go", { messages: [] }, { model: "m" }).pipe(
            Effect.provide([inner.layer, ToolRegistry.layer()]),
            Effect.map(({ usage }) => String(usage.cost)),
            Effect.orDie
          )
      })
      const { exit, view } = yield* play([calling("two", { input: 100 }), from("two", { input: 1 })], {
        tools: [ask],
        layer: prices,
        options: { limits: { maxCost: 8 } }
      })
      assert.deepStrictEqual(ended(exit), ["maxCost", 8])
      assert.deepStrictEqual(
        view.messages.flatMap((m) => (m.role === "toolResult" ? [Message.textOf(m)] : [])),
        ["7"]
      )
    })
  )

  it.effect("says for which model it cannot hold, once, also after other answers were priced", () =>
    Effect.gen(function* () {
      const { layer, lines } = warnings()
      const unknown = ScriptedProvider.turn(
        start("three"),
        Step.toolCall("a", {}),
        Step.finish("toolUse", { input: 1 })
      )
      yield* play([calling("two", { input: 1 }), unknown, unknown, from("two", { input: 1 })], {
        tools: [say("a")],
        layer: Layer.merge(prices, layer),
        options: { limits: { maxCost: 8 } }
      })
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0], "maxCost cannot hold for three/m")
    })
  )

  it.effect("warns of nothing where every price is known, and where there is no limit", () =>
    Effect.gen(function* () {
      const { layer, lines } = warnings()
      const script = [calling("two", { input: 1 }), calling("two", { input: 1 }), from("two", { input: 1 })]
      const setUp = { tools: [say("a")], layer: Layer.merge(prices, layer) }
      yield* play(script, { ...setUp, options: { limits: { maxCost: 8 } } })
      yield* play(script, { ...setUp, layer })
      assert.deepStrictEqual(lines, [])
    })
  )
})

describe("Usage.add", () => {
  const computed = Usage.make({ cost: 1, costSource: "computed" })
  const reported = Usage.make({ cost: 1, costSource: "reported" })
  const sourceOf = (...usages: ReadonlyArray<Usage.Usage>) => usages.reduce(Usage.add, Usage.zero).costSource

  it("joins the sources of a cost", () => {
    assert.strictEqual(sourceOf(computed, computed), "computed")
    assert.strictEqual(sourceOf(reported, reported), "reported")
    assert.strictEqual(sourceOf(computed, reported), "mixed")
    assert.strictEqual(sourceOf(computed, Usage.make({ cost: 1 })), "mixed")
    assert.strictEqual(sourceOf(Usage.make({ input: 1 }), computed), "computed")
    assert.strictEqual(sourceOf(Usage.make({ cost: 1 }), Usage.make({ cost: 1 })), undefined)
  })
})

describe("Prices", () => {
  it.effect(
    "finds a price by provider and model before one by the model alone, and asks another service last",
    () =>
      Effect.gen(function* () {
        const prices = Prices.make(
          { m: { input: 1, output: 1 }, "one/m": { input: 2, output: 2, contextWindow: 9 } },
          Prices.make({ m: { input: 3, output: 3 }, n: { input: 4, output: 4 } })
        )
        const inputOf = (provider: string, model: string) =>
          Effect.map(prices.find({ provider, model }), (price) => price?.rates?.input)
        assert.strictEqual(yield* inputOf("one", "m"), 2)
        assert.strictEqual(yield* inputOf("two", "m"), 1)
        assert.strictEqual(yield* inputOf("two", "n"), 4)
        assert.strictEqual(yield* inputOf("two", "o"), undefined)
        assert.strictEqual((yield* prices.find({ provider: "one", model: "m" }))?.contextWindow, 9)
      })
  )

  it("splits impossible usages into parts that are not negative", () => {
    const usage = Usage.make({ input: 10, cacheRead: 8, cacheWrite: 8, cacheWriteLong: 99 })
    assert.deepStrictEqual(Prices.split(usage, undefined), {
      plain: 0,
      cacheRead: 8,
      cacheWrite: 0,
      cacheWriteLong: 2,
      output: 0
    })
  })
})
