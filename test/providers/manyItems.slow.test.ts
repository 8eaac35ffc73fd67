import { assert, describe, it } from "@effect/vitest"
import { answerOf } from "./reader.ts"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import type { Protocol } from "../../src/providers/Protocol.ts"

/** How a server makes an answer large, one event at a time. */
interface Shape {
  readonly name: string
  readonly read: (count: number) => void
}

const shapeOf = (
  name: string,
  protocol: Protocol,
  event: (index: number) => unknown,
  end: (count: number) => ReadonlyArray<unknown>
): Shape => ({
  name,
  read: (count) => {
    const answer = answerOf(protocol, { model: "m-1", seed: "s1" })
    const events = [...Array.from({ length: count }, (_, index) => event(index)), ...end(count)]
    const encoder = new TextEncoder()
    for (const one of events) answer.push(encoder.encode(`data: ${JSON.stringify(one)}\n\n`))
    answer.end()
    assert.strictEqual(answer.outcome, "complete")
  }
})

const chat = openAiChat("acme", common)
const delta = (delta: unknown) => ({ choices: [{ index: 0, delta }] })
const chatEnd = () => [{ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }]
const fn = { name: "f", arguments: "{}" }

const responses = openAiResponses("acme")
const call = (index: number) => ({ type: "function_call", call_id: `c${index}`, name: "f", arguments: "{}" })
const responsesEnd = () => [{ type: "response.completed", response: { id: "r" } }]
const made = (count: number, item: (index: number) => unknown) =>
  Array.from({ length: count }, (_, at) => item(at))

const anthropic = anthropicMessages("acme")
const block = (content: unknown, index: number) => ({
  type: "content_block_start",
  index,
  content_block: content
})
const anthropicEnd = () => [
  { type: "message_delta", delta: { stop_reason: "end_turn" } },
  { type: "message_stop" }
]
/** The first event begins the block that all others add to. */
const added = (content: unknown, each: (index: number) => object) => (index: number) =>
  index === 0 ? block(content, 0) : { type: "content_block_delta", index: 0, delta: each(index) }

const google = googleGenerate("acme")
const parts = (...parts: ReadonlyArray<unknown>) => ({ candidates: [{ content: { parts } }] })
const googleEnd = () => [{ candidates: [{ content: { parts: [] }, finishReason: "STOP" }] }]

const shapes: ReadonlyArray<Shape> = [
  shapeOf(
    "chat: calls",
    chat,
    (index) => delta({ tool_calls: [{ index, id: `c${index}`, function: fn }] }),
    chatEnd
  ),
  shapeOf(
    "chat: calls without an index",
    chat,
    (index) => delta({ tool_calls: [{ id: `c${index}`, function: fn }] }),
    chatEnd
  ),
  shapeOf(
    "chat: calls of one id",
    chat,
    (index) => delta({ tool_calls: [{ index, id: "c", function: fn }] }),
    chatEnd
  ),
  shapeOf(
    "chat: members of one detail",
    chat,
    (index) => delta({ reasoning_details: [{ type: "reasoning.text", [`m${index}`]: 1 }] }),
    chatEnd
  ),
  shapeOf(
    "responses: calls",
    responses,
    (index) => ({ type: "response.output_item.done", output_index: index, item: call(index) }),
    responsesEnd
  ),
  shapeOf(
    "responses: calls that are told twice",
    responses,
    (index) => ({
      type: `response.output_item.${index % 2 === 0 ? "added" : "done"}`,
      item: call(Math.floor(index / 2))
    }),
    responsesEnd
  ),
  shapeOf(
    "responses: calls of one id",
    responses,
    (index) => ({
      type: "response.output_item.done",
      output_index: index,
      item: { ...call(0), id: `i${index}` }
    }),
    responsesEnd
  ),
  shapeOf(
    "responses: texts by their ids, and items that go on",
    responses,
    (index) =>
      index % 2 === 0
        ? { type: "response.output_item.added", item: { type: "message", id: `i${index}` } }
        : { type: "response.output_text.delta", item_id: `i${index - 1}`, delta: "x" },
    responsesEnd
  ),
  shapeOf(
    "responses: words without a place among items that go on",
    responses,
    (index) =>
      index % 2 === 0
        ? { type: "response.output_item.added", item: { type: "web_search_call", id: `w${index}` } }
        : { type: "response.output_text.delta", delta: "x" },
    responsesEnd
  ),
  shapeOf(
    "responses: all at the end",
    responses,
    () => ({ type: "response.in_progress" }),
    (count) => [{ type: "response.completed", response: { id: "r", output: made(count, call) } }]
  ),
  shapeOf(
    "responses: all at the end once more, in reverse",
    responses,
    (index) => ({ type: "response.output_item.done", output_index: index, item: call(index) }),
    (count) => [
      { type: "response.completed", response: { output: made(count, (at) => call(count - 1 - at)) } }
    ]
  ),
  shapeOf(
    "responses: items without an id once more at the end",
    responses,
    (index) => ({ type: "response.output_item.added", output_index: index, item: { type: "message" } }),
    (count) => [
      { type: "response.completed", response: { output: made(count, () => ({ type: "message" })) } }
    ]
  ),
  shapeOf(
    "anthropic: calls",
    anthropic,
    (index) => block({ type: "tool_use", id: `t${index}`, name: "f", input: {} }, index),
    anthropicEnd
  ),
  shapeOf(
    "anthropic: citations",
    anthropic,
    added({ type: "text", text: "x" }, (index) => ({ type: "citations_delta", citation: { index } })),
    anthropicEnd
  ),
  shapeOf(
    "anthropic: members of one block",
    anthropic,
    added({ type: "compaction" }, (index) => ({ type: "other_delta", [`m${index}`]: "x" })),
    anthropicEnd
  ),
  shapeOf("google: calls", google, () => parts({ functionCall: { name: "f", args: {} } }), googleEnd),
  shapeOf(
    "google: citations",
    google,
    (index) => ({ candidates: [{ content: { parts: [] }, citationMetadata: { citations: [{ index }] } }] }),
    googleEnd
  ),
  shapeOf(
    "google: values of one call",
    google,
    (index) =>
      parts({
        functionCall: {
          ...(index === 0 ? { name: "f" } : {}),
          partialArgs: [{ jsonPath: `$.m${index}`, numberValue: index }],
          willContinue: true
        }
      }),
    () => [parts({ functionCall: {} }), ...googleEnd()]
  )
]

const timeOf = (run: () => void): number => {
  const began = performance.now()
  run()
  return performance.now() - began
}

describe("the time that an answer takes", () => {
  it.each(shapes)("grows no faster than its items: $name", ({ read }) => {
    read(1000)
    // Where it is quadratic, these take minutes. A machine with other work to do gets a second chance.
    const bounds = 2500
    const time = timeOf(() => read(20_000))
    assert.isBelow(time < bounds ? time : timeOf(() => read(20_000)), bounds)
  })
})
