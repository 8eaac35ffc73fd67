import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { AgentEvent, Tool, Usage } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { ofTag, play, reasonOf } from "./behaviour/play.ts"

const most = Number.MAX_SAFE_INTEGER
const encode = Schema.encodeEffect(Schema.fromJsonString(Schema.toCodecJson(AgentEvent.AgentEvent)))
const encodeUsage = Schema.encodeEffect(Schema.fromJsonString(Usage.Usage))

/** A usage as a provider of one's own may give it, unread by `Usage.make`. */
const claimed = (usage: Partial<Usage.Usage>): Usage.Usage => ({ ...Usage.zero, ...usage })

describe("Usage", () => {
  it("keeps what can be counted, as it is (row 18)", () => {
    const usage = Usage.make({ input: 3, output: 4, cacheRead: 1, reasoning: 2, cost: 0.25 })
    assert.deepStrictEqual(usage, {
      input: 3,
      output: 4,
      cacheRead: 1,
      cacheWrite: 0,
      reasoning: 2,
      total: 7,
      cost: 0.25
    })
    assert.strictEqual(Usage.sane(usage), usage)
    assert.strictEqual(Usage.make({ input: most }).input, most)
  })

  it("corrects what cannot: negative, no number, or beyond counting", () => {
    for (const [number, tokens] of [
      [-1, 0],
      [-Infinity, 0],
      [NaN, 0],
      [1e308, most],
      [Infinity, most],
      [most + 1, most]
    ] as const) {
      const usage = Usage.sane(
        claimed({ input: number, output: number, cacheRead: number, cacheWrite: number, reasoning: number })
      )
      const { cacheRead, cacheWrite, input, output, reasoning } = usage
      assert.deepStrictEqual([input, output, cacheRead, cacheWrite, reasoning], Array(5).fill(tokens))
      assert.strictEqual(Usage.make({ input: number }).input, tokens)
      assert.strictEqual(Usage.make({ input: number }).total, tokens)
      assert.strictEqual(Usage.sane(claimed({ cost: number })).cost, tokens === 0 ? undefined : tokens)
    }
    assert.notProperty(Usage.sane(claimed({ cost: -0.5 })), "cost")
    assert.strictEqual(Usage.sane(claimed({ cost: 0, input: -1 })).cost, 0)
  })

  it("takes a total that is none as the sum of input and output (row 18)", () => {
    for (const total of [NaN, -7, -Infinity]) {
      assert.strictEqual(Usage.sane(claimed({ input: 3, output: 4, total })).total, 7)
    }
    assert.strictEqual(Usage.sane(claimed({ input: 3, output: 4, total: Infinity })).total, most)
  })

  it.effect("adds without overflow, and never to less than there was", () =>
    Effect.gen(function* () {
      const one = claimed({ input: 5, output: 5, total: 10, cost: 1, reasoning: 3 })
      for (const number of [1e308, Infinity, NaN, -5, -Infinity, most]) {
        const other = claimed({
          input: number,
          output: number,
          cacheRead: number,
          total: number,
          cost: number,
          reasoning: number
        })
        for (const sum of [
          Usage.add(one, other),
          Usage.add(other, one),
          Usage.add(Usage.add(other, other), one)
        ]) {
          yield* encodeUsage(sum)
          assert.isAtLeast(sum.total, 10)
          assert.isAtLeast(sum.input, 5)
          assert.isAtLeast(sum.cost ?? 0, 1)
          assert.isAtLeast(sum.reasoning ?? 0, 3)
          assert.isAtMost(sum.total, most)
        }
      }
      assert.deepStrictEqual(Usage.add(one, one), {
        ...Usage.zero,
        input: 10,
        output: 10,
        total: 20,
        cost: 2,
        reasoning: 6
      })
      assert.notProperty(Usage.add(Usage.zero, Usage.zero), "cost")
      assert.notProperty(Usage.add(Usage.zero, Usage.zero), "reasoning")
    })
  )
})

describe("a provider that claims an impossible usage", () => {
  const noop = Tool.make({ name: "noop", description: "", execute: () => Effect.void })
  const claiming = (usage: Usage.Usage, stopReason: "toolUse" | "stop"): ScriptedProvider.Turn =>
    ScriptedProvider.turn(
      Step.start,
      ...(stopReason === "toolUse" ? [Step.toolCall("noop", {})] : [Step.text("ok")]),
      Step.event({ _tag: "Finish", stopReason, usage })
    )

  it.effect("leaves every event encodable", () =>
    Effect.gen(function* () {
      for (const number of [1e308, Infinity, NaN, -5e6]) {
        const usage = claimed({ input: number, output: number, total: number, cost: number })
        const { events } = yield* play([claiming(usage, "toolUse"), claiming(usage, "stop")], {
          tools: [noop]
        })
        for (const event of events) yield* encode(event)
        assert.deepInclude(ofTag(events, "RunEnd")[0], { status: "completed" })
        const total = number > 0 ? most : 0
        assert.strictEqual(ofTag(events, "RunEnd")[0]?.usage.total, total)
        assert.strictEqual(ofTag(events, "ModelCallEnd")[0]?.usage?.total, total)
      }
    })
  )

  it.effect("is bounded by the limits: too much is too much, and less than nothing is estimated", () =>
    Effect.gen(function* () {
      for (const number of [1e308, Infinity, NaN, -5e6]) {
        const usage = claimed({ input: number, output: number, total: number, cost: number })
        const script = [claiming(usage, "toolUse"), claiming(usage, "toolUse"), claiming(usage, "stop")]
        const { events, exit } = yield* play(script, {
          tools: [noop],
          prompt: "x".repeat(4000),
          options: { limits: { maxTotalTokens: 1000 } }
        })
        assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "maxTotalTokens" })
        for (const event of events) yield* encode(event)
        const { cost: _, ...unpriced } = usage
        const costly = yield* play([claiming(unpriced, "toolUse"), claiming(unpriced, "stop")], {
          tools: [noop],
          prompt: "x".repeat(4000),
          options: { limits: { maxCost: 1, prices: { input: 1e308, output: 0 } } }
        })
        assert.deepInclude(reasonOf(costly.exit), { _tag: "LimitExceeded", limit: "maxCost" })
        for (const event of costly.events) yield* encode(event)
      }
    })
  )
})
