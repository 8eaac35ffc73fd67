import { assert, describe, it } from "@effect/vitest"
import { ProviderError } from "effect-agent"
import { answerOf } from "./reader.ts"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"

const nested = (levels: number, inner = "") => `${"[".repeat(levels)}${inner}${"]".repeat(levels)}`

/** How an answer ends that has this as the data of its one event. */
const outcomeOf = (data: string) => {
  const answer = answerOf(openAiChat("acme", common), { model: "m-1", seed: "s1" })
  answer.push(new TextEncoder().encode(`data: ${data}\n\n`))
  answer.end()
  return typeof answer.outcome === "string" ? answer.outcome : answer.outcome.detail
}

describe("Answer", () => {
  it("refuses data nested deeper than anything means, before anybody walks it", () => {
    assert.include(outcomeOf(nested(50_000)), "Nested more than 256 deep")
    assert.include(outcomeOf(`{"choices":${nested(257)}}`), "Nested more than 256 deep")
    assert.include(
      outcomeOf(`{"choices":${'{"a":'.repeat(300)}1${"}".repeat(300)}}`),
      "Nested more than 256 deep"
    )
  })

  it("takes data nested as deep as it may be", () => {
    assert.include(outcomeOf(nested(256)), "Not a chunk")
    assert.include(outcomeOf(nested(257)), "Nested more than 256 deep")
    // Too short to close what it opens.
    assert.include(outcomeOf("[".repeat(257)), "Unexpected end of JSON input")
  })

  it("does not count brackets inside of strings", () => {
    const text = JSON.stringify(`${nested(300)} "quoted" \\" ${nested(300)}`)
    assert.strictEqual(
      outcomeOf(`{"choices":[{"delta":{"content":${text}},"finish_reason":"stop"}]}`),
      "complete"
    )
  })

  it("takes events out of a list once, and a list of lists for no event", () => {
    const event = '{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}'
    assert.strictEqual(outcomeOf(`[${event}]`), "complete")
    assert.include(outcomeOf(nested(20, event)), "Not a chunk")
  })

  it("takes what half a million deltas come in, and not three times as much", () => {
    const wordy = (megabytes: number) => {
      const answer = answerOf(openAiChat("acme", common), { model: "m-1", seed: "s1" })
      const megabyte = new TextEncoder().encode(`: ${"x".repeat(2 ** 20)}\n\n`)
      for (let count = 0; count < megabytes; count++) answer.push(megabyte)
      return answer.outcome
    }
    assert.strictEqual(wordy(128), "open")
    assert.strictEqual(Object(wordy(300)).kind, "tooLarge")
  })

  it("refuses the deep arguments of a call that comes as JSON", () => {
    const answer = answerOf(googleGenerate("google"), { model: "m-1", seed: "s1" })
    const call = `{"functionCall":{"name":"look","args":{"x":${nested(20_000)}}}}`
    answer.push(new TextEncoder().encode(`data: {"candidates":[{"content":{"parts":[${call}]}}]}\n\n`))
    assert.isTrue(answer.over)
    assert.isEmpty(answer.take())
  })

  it("takes no text between events for JSON that nests deeper", () => {
    const stray = (text: string) => {
      const answer = answerOf(openAiChat("acme", common), { model: "m-1", seed: "s1" })
      answer.push(new TextEncoder().encode(`oops\n${text}\n\n`))
      answer.end()
      return typeof answer.outcome === "string" ? answer.outcome : answer.outcome.detail
    }
    assert.match(stray(nested(30_000)), /^Not an event stream: oops/)
    assert.match(stray(`${'{"error":'.repeat(5000)}1${"}".repeat(5000)}`), /^Not an event stream: oops/)
    assert.strictEqual(stray('{"error":{"message":"busy"}}'), "busy")
  })

  it("keeps no input of a tool of the vendor's that nests deeper than anything means", () => {
    const answer = answerOf(anthropicMessages("acme"), { model: "m-1", seed: "s1" })
    const input = `{"query":${nested(20_000)}}`
    const events = [
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "server_tool_use", id: "s", input: {} }
      },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: input } },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "message_stop" }
    ]
    for (const event of events) answer.push(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`))
    assert.strictEqual(answer.outcome, "complete")
    // The next request writes it.
    assert.isBelow(JSON.stringify(answer.take()).length, 1000)
  })

  it("keeps what the server told when the connection breaks before it could end the event", () => {
    const cut = (said: string) => {
      const answer = answerOf(openAiChat("acme", common), { model: "m-1", seed: "s1" })
      const hello = '{"choices":[{"delta":{"content":"Hi"}}]}'
      answer.push(new TextEncoder().encode(`data: ${hello}\n\n${said}`))
      answer.cut(new ProviderError.Transport({ kind: "reset", detail: "reset" }))
      return typeof answer.outcome === "string" ? answer.outcome : answer.outcome._tag
    }
    const limited = '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}'
    assert.strictEqual(cut(`event: error\ndata: ${limited}\n`), "RateLimited")
    assert.strictEqual(cut(`data: ${limited}`), "RateLimited")
    assert.strictEqual(cut(limited), "RateLimited")
    assert.strictEqual(cut(""), "Transport")
    assert.strictEqual(cut('data: {"choices":[{"delta"'), "Transport")
    assert.strictEqual(cut('data: {"odd":1}\n'), "Transport")
    assert.strictEqual(cut('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}'), "complete")
  })
})
