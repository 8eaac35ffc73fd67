import { assert, describe, it } from "@effect/vitest"
import { ModelEvent } from "effect-agent"
import { StreamTruncated } from "../../src/ProviderError.ts"
import * as Api from "../../harness/conformance/Api.ts"

const data = (...events: ReadonlyArray<unknown>) =>
  events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("")
const chunk = (delta: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason: finish }]
})
const call = (json: string) =>
  chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: json } }] })

const read = (api: Api.Api, body: string, isLenient = true) => {
  const answer = api.open("m", isLenient)
  answer.push(new TextEncoder().encode(body))
  answer.end()
  const { content, finish } = answer.take().reduce(ModelEvent.append, ModelEvent.emptyReply)
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("")
  return {
    content,
    finish,
    text,
    outcome: typeof answer.outcome === "string" ? answer.outcome : answer.outcome._tag
  }
}

describe("the lenient reading of an answer", () => {
  it("leaves out a chunk that cannot be read, and names it (row 53)", () => {
    const body = data(chunk({ content: "a" }), "{bad json", "hello", 7, chunk({ content: "b" }, "stop"))
    const { finish, outcome, text } = read(Api.openAiChat, body)
    assert.deepStrictEqual([outcome, text], ["complete", "ab"])
    assert.deepStrictEqual(finish?.unrepresented, [
      "a chunk that cannot be read: {bad json",
      "a chunk that cannot be read: hello",
      "a chunk that cannot be read: 7"
    ])
    assert.strictEqual(read(Api.openAiChat, body, false).outcome, "Protocol")
  })

  const endless: ReadonlyArray<readonly [Api.Api, string]> = [
    [Api.openAiChat, data(chunk({ content: "Hi" }))],
    [
      Api.anthropic,
      data(
        { type: "message_start", message: { id: "m" } },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "Hi" } }
      )
    ],
    [Api.openAiResponses, data({ type: "response.output_text.delta", output_index: 0, delta: "Hi" })],
    [Api.google, data({ candidates: [{ content: { parts: [{ text: "Hi" }] } }] })]
  ]
  it.each(endless)("takes an end without a stop reason, and names it (row 60)", (api, body) => {
    const { finish, outcome, text } = read(api, body)
    assert.deepStrictEqual([outcome, text, finish?.stopReason], ["complete", "Hi", "stop"])
    assert.deepStrictEqual(finish?.unrepresented, ["an end without a stop reason"])
    assert.strictEqual(read(api, body, false).outcome, "StreamTruncated")
  })

  it("takes no end for one where nothing was said, a call lacks arguments, or the connection broke", () => {
    for (const body of ["", data("{bad"), data(call("")), data(call('{"a":'))])
      assert.include(["StreamTruncated", "Protocol"], read(Api.openAiChat, body).outcome)
    assert.strictEqual(read(Api.openAiChat, data(call('{"a":1}'))).outcome, "complete")
    const broken = Api.openAiChat.open("m", true)
    broken.push(new TextEncoder().encode(data(chunk({ content: "Hi" }))))
    broken.cut(new StreamTruncated({ detail: "gone" }))
    assert.notStrictEqual(broken.outcome, "complete")
  })

  it("forgives no failure that the server reports", () => {
    for (const failure of ["Error: upstream timeout", { error: { message: "boom" } }])
      assert.notStrictEqual(read(Api.openAiChat, data(chunk({ content: "a" }), failure)).outcome, "complete")
  })
})

describe("any reading of an answer", () => {
  it.each(["null", '"ping"', "ping", "keep-alive", "[done]"])("passes over %s", (word) => {
    const body = data(chunk({ content: "a" }, "stop"), word)
    assert.deepInclude(read(Api.openAiChat, body, false), { outcome: "complete", text: "a" })
    if (word === "[done]") return
    assert.deepInclude(read(Api.openAiChat, data(word) + body, false), { outcome: "complete", text: "a" })
  })
})
