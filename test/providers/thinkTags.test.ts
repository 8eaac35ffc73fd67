import { assert, describe, it } from "@effect/vitest"
import { Message, ModelEvent } from "effect-agent"
import { Protocols } from "effect-agent/providers"
import { readerOf } from "./reader.ts"

const delta = (fields: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason: finish }]
})
const end = [delta({}, "stop"), "[DONE]"]
const call = { model: "m", seed: "s" }
const { message } = readerOf(Protocols.openAiChat("acme"), call)
const said = (...pieces: ReadonlyArray<string>) =>
  message(...pieces.map((content) => delta({ content })), ...end).content.map((block) =>
    block.type === "text" || block.type === "thinking" ? [block.type, block.text] : [block.type]
  )
const split = [
  ["thinking", "plan"],
  ["text", "Hello"]
]

describe("tags of the model in a text", () => {
  it.each([
    ["a pair", "<think>plan</think>Hello"],
    ["a pair with lines", "\n<think>\nplan</think>\n\nHello"],
    ["a pair of another name", "<thinking>plan</thinking>Hello"],
    ["MiniMax's pair", "<mm:think>plan</mm:think>Hello"],
    ["a closing tag alone", "plan</think>Hello"],
    ["MiniMax's closing tag alone", "plan</mm:think>\n\nHello"]
  ])("make thinking: %s, however it is cut", (_, whole) => {
    assert.deepStrictEqual(said(whole), split)
    assert.deepStrictEqual(said(...whole), split)
    for (let at = 1; at < whole.length; at++)
      assert.deepStrictEqual(said(whole.slice(0, at), whole.slice(at)), split)
  })

  it("are text within a text, in code, and in a sentence about them", () => {
    for (const text of [
      "Hello <think>plan</think>",
      "Use `</think>` to close it.",
      "Use the tag </think> to close it.",
      "```\n</think>\n```",
      "a < b and a <th",
      "<thin",
      "<b>bold</b>"
    ]) {
      assert.deepStrictEqual(said(text), [["text", text]])
      assert.deepStrictEqual(said(...text), [["text", text]])
    }
  })

  it("are text where the server tells thinking from text, or does not have such models", () => {
    const content = "Its end is here.</think>"
    const { content: blocks } = message(delta({ reasoning_content: "hm" }), delta({ content }), ...end)
    assert.deepInclude(blocks[1], { type: "text", text: content })
    const plain = readerOf(Protocols.openAiChat("acme", { thinkTags: false }), call)
    const tagged = "<think>plan</think>Hello"
    assert.strictEqual(Message.textOf(plain.message(delta({ content: tagged }), ...end)), tagged)
  })

  it("lose nothing where a call, or the end, comes first", () => {
    const calls = delta({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] })
    assert.deepStrictEqual(
      message(delta({ content: "<think>plan" }), calls, ...end).content.map(({ type }) => type),
      ["thinking", "toolCall"]
    )
    assert.deepStrictEqual(said("<think>plan"), [["thinking", "plan"]])
  })

  it("take back the text that was thinking, and no other block", () => {
    const { read } = readerOf(Protocols.openAiChat("acme"), call)
    const { events } = read(delta({ content: "plan" }), delta({ content: "</think>Hello" }), ...end)
    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag),
      [
        "Start",
        "TextStart",
        "TextDelta",
        "Retracted",
        "Start",
        "ThinkingStart",
        "ThinkingDelta",
        "ThinkingEnd",
        "TextStart",
        "TextDelta",
        "TextEnd",
        "Finish"
      ]
    )
    assert.strictEqual(events.reduce(ModelEvent.append, ModelEvent.emptyReply).content.length, 2)
  })
})
