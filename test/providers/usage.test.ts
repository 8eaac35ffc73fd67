import { assert, describe, it } from "@effect/vitest"
import { Usage } from "effect-agent"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import { readerOf } from "./reader.ts"

const call = { model: "m-1", seed: "s1" }
const chat = readerOf(openAiChat("acme", common), call)
const responses = readerOf(openAiResponses("acme"), call)
const anthropic = readerOf(anthropicMessages("acme"), call)
const google = readerOf(googleGenerate("acme"), call)

/** The usage of an answer of each wire that tells these numbers, wherever the wire has a place for one. */
const wires = (count: unknown, cost: unknown = count) => ({
  chat: chat.message({
    choices: [{ index: 0, delta: { content: "hi" }, finish_reason: "stop" }],
    usage: {
      prompt_tokens: count,
      completion_tokens: count,
      total_tokens: count,
      prompt_tokens_details: { cached_tokens: count, cache_write_tokens: count },
      completion_tokens_details: { reasoning_tokens: count },
      cost
    }
  }).usage,
  responses: responses.message({
    type: "response.completed",
    response: {
      id: "r",
      usage: {
        input_tokens: count,
        output_tokens: count,
        total_tokens: count,
        input_tokens_details: { cached_tokens: count, cache_write_tokens: count },
        output_tokens_details: { reasoning_tokens: count },
        cost
      }
    }
  }).usage,
  anthropic: anthropic.message(
    { type: "message_start", message: { id: "m", usage: { input_tokens: count } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "hi" } },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage: {
        output_tokens: count,
        cache_read_input_tokens: count,
        cache_creation_input_tokens: count,
        output_tokens_details: { thinking_tokens: count },
        cost
      }
    },
    { type: "message_stop" }
  ).usage,
  google: google.message({
    candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason: "STOP" }],
    usageMetadata: {
      promptTokenCount: count,
      candidatesTokenCount: count,
      thoughtsTokenCount: count,
      cachedContentTokenCount: count,
      totalTokenCount: count
    }
  }).usage
})

describe("usage", () => {
  it.each([-1, -0.5, 1.5, 1e308, -1e308, 1e13, 2 ** 53, "7", null, {}, [7], true])(
    "of %j tokens is not believed, on any wire",
    (count) => {
      for (const [wire, usage = Usage.zero] of Object.entries(wires(count, -1))) {
        assert.deepStrictEqual(usage, Usage.zero, wire)
      }
    }
  )

  it.each([0, 1, 7, 1e9])("of %j tokens is", (count) => {
    for (const [wire, usage] of Object.entries(wires(count, 0.25))) {
      assert(usage !== undefined)
      assert.strictEqual(usage.reasoning, count, wire)
      assert.strictEqual(usage.cacheRead, count, wire)
      assert.isAtLeast(usage.output, count, wire)
      if (wire !== "google") assert.strictEqual(usage.cost, 0.25, wire)
    }
  })

  it.each([-0.01, -1, 1e10, 1e308, "1", null])("does not believe a cost of %j", (cost) => {
    for (const [wire, usage] of Object.entries(wires(7, cost))) assert.notProperty(usage, "cost", wire)
  })

  it("does not believe ticks of nonsense", () => {
    const cost = (ticks: number) =>
      responses.message({
        type: "response.completed",
        response: { id: "r", usage: { input_tokens: 1, output_tokens: 1, cost_in_usd_ticks: ticks } }
      }).usage?.cost
    assert.deepStrictEqual([cost(5e9), cost(-5e9), cost(1e308)], [0.5, undefined, undefined])
  })
})
