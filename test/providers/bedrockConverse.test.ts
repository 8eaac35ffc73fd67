import { assert, describe, it } from "@effect/vitest"
import { ModelEvent } from "effect-agent"
import { Framing, ReplyWriter } from "effect-agent/providers"
import { bedrockConverse } from "../../src/providers/internal/bedrock/protocol.ts"
import { Answer } from "../../src/providers/internal/answer.ts"
import { fixtures } from "../../harness/differential/streams/bedrock.ts"
import * as Wire from "./bedrock.ts"

const protocol = bedrockConverse("amazon-bedrock")

const readPieces = (pieces: ReadonlyArray<Uint8Array>) => {
  const call = { model: "us.anthropic.claude-opus-4-6-v1", seed: "seed" }
  const reply = new ReplyWriter.ReplyWriter(protocol, call)
  const begun = { call, reply, decoder: protocol.decoder(call, reply) }
  const answer = new Answer({ protocol, framing: Framing.awsEventStream, redact: (text) => text }, begun)
  for (const piece of pieces) answer.push(piece)
  answer.end()
  return { events: answer.take(), outcome: answer.outcome }
}

const message = (...events: ReadonlyArray<Wire.Event>) => {
  const read = readPieces([Wire.body(...events)])
  assert.strictEqual(read.outcome, "complete")
  const reply = read.events.reduce(ModelEvent.append, ModelEvent.emptyReply)
  return ModelEvent.toAssistant(reply, { id: "a", timestamp: 0, provider: "", model: "", protocol: "" })
}

/** Why an answer is none. It must not look like one either. */
const failure = (...events: ReadonlyArray<Wire.Event>) => {
  const read = readPieces([Wire.body(...events)])
  assert.deepStrictEqual(
    read.events.filter(({ _tag }) => _tag === "ToolCallEnd" || _tag === "Finish"),
    []
  )
  assert(typeof read.outcome !== "string", `the answer is ${read.outcome}`)
  return read.outcome
}

const calling = [
  Wire.start,
  Wire.delta(0, { reasoningContent: { text: "Which city? " } }),
  Wire.delta(0, { reasoningContent: { text: "Köln." } }),
  Wire.delta(0, { reasoningContent: { signature: "c2ln" } }),
  Wire.stop(0),
  ...Wire.text(1, "Let me", " look."),
  ...Wire.call(2, "tooluse_1", "weather", "", '{"city":', '"Köln"}'),
  ...Wire.call(3, "tooluse_2", "clock"),
  Wire.end("tool_use"),
  Wire.metadata
]

describe("answers of Converse", () => {
  it.each(fixtures)("says what is said: $name", ({ body, said }) => {
    const { events, outcome } = readPieces([Wire.framed(new TextEncoder().encode(body))])
    assert.strictEqual(outcome, "complete")
    const finish = events.at(-1)
    assert(finish?._tag === "Finish" && finish.usage !== undefined)
    const { total: _, ...usage } = finish.usage
    assert.deepStrictEqual(
      { stopReason: finish.stopReason, usage },
      { stopReason: said.stopReason, usage: said.usage }
    )
    const heard = (tag: "TextDelta" | "ThinkingDelta") =>
      events.flatMap((event) => (event._tag === tag ? [event.delta] : [])).join("")
    assert.strictEqual(heard("TextDelta"), said.text)
    assert.strictEqual(heard("ThinkingDelta"), said.thinking)
    const given = events.flatMap((event) =>
      event._tag === "ToolCallEnd" ? [JSON.parse(event.rawArguments)] : []
    )
    assert.deepStrictEqual(
      given,
      said.calls.map(({ params }) => params)
    )
  })

  it("has text, and tokens that include the cached ones", () => {
    const answer = message(Wire.start, ...Wire.text(0, "Grü", "ße 👋"), Wire.end("end_turn"), Wire.metadata)
    assert.deepStrictEqual(answer.content, [{ type: "text", text: "Grüße 👋" }])
    assert.strictEqual(answer.stopReason, "stop")
    assert.deepStrictEqual(answer.usage, {
      input: 112,
      output: 34,
      cacheRead: 90,
      cacheWrite: 10,
      total: 146
    })
  })

  it("has thinking with its signature, and calls with streamed arguments", () => {
    const { content, stopReason } = message(...calling)
    assert.strictEqual(stopReason, "toolUse")
    assert.deepStrictEqual(content, [
      {
        type: "thinking",
        text: "Which city? Köln.",
        opaque: { provider: "amazon-bedrock", signature: "c2ln" }
      },
      { type: "text", text: "Let me look." },
      {
        type: "toolCall",
        id: "tooluse_1",
        name: "weather",
        rawArguments: '{"city":"Köln"}',
        params: { city: "Köln" }
      },
      { type: "toolCall", id: "tooluse_2", name: "clock", rawArguments: "", params: {} }
    ])
  })

  it("keeps hidden thinking", () => {
    const answer = message(
      Wire.start,
      Wire.delta(0, { reasoningContent: { redactedContent: "aGlkZGVu" } }),
      Wire.stop(0),
      ...Wire.text(1, "Yes."),
      Wire.end("end_turn")
    )
    assert.deepStrictEqual(answer.content[0], {
      type: "thinking",
      text: "",
      redacted: true,
      opaque: { provider: "amazon-bedrock", redactedContent: "aGlkZGVu" }
    })
  })

  it("has the sources that its citations name", () => {
    const page = { documentPage: { documentIndex: 0, start: 3, end: 4 } }
    const cited = { title: "Report", sourceContent: [{ text: "It " }, { text: "rose." }], location: page }
    const web = { title: "News", location: { web: { url: "https://example.com/a", domain: "example.com" } } }
    const { content } = message(
      Wire.start,
      Wire.delta(0, { text: "It rose." }),
      Wire.delta(0, { citation: cited }),
      Wire.delta(0, { text: " So they say." }),
      Wire.delta(0, { citation: web }),
      Wire.stop(0),
      Wire.end("end_turn")
    )
    assert.deepStrictEqual(content, [
      { type: "text", text: "It rose. So they say." },
      {
        type: "source",
        sourceType: "document",
        title: "Report",
        citedText: "It rose.",
        opaque: { provider: "amazon-bedrock", citation: cited }
      },
      {
        type: "source",
        sourceType: "url",
        url: "https://example.com/a",
        title: "News",
        opaque: { provider: "amazon-bedrock", citation: web }
      }
    ])
  })

  it("has the tools that Nova runs, and the images that a model makes", () => {
    const toolUse = { toolUseId: "t1", name: "nova_grounding", type: "server_tool_use" }
    const toolResult = { toolUseId: "t1", type: "nova_grounding_result", status: "success" }
    const { content } = message(
      Wire.start,
      Wire.begin(0, { toolUse }),
      Wire.delta(0, { toolUse: { input: '{"query":"oslo"}' } }),
      Wire.stop(0),
      Wire.begin(1, { toolResult }),
      Wire.delta(1, { toolResult: [{ json: { hits: 2 } }] }),
      Wire.stop(1),
      Wire.begin(2, { image: { format: "png" } }),
      Wire.delta(2, { image: { source: { bytes: "AAEC" } } }),
      Wire.stop(2),
      Wire.end("end_turn")
    )
    assert.deepStrictEqual(content, [
      {
        type: "hostedTool",
        id: "t1",
        name: "nova_grounding",
        params: { query: "oslo" },
        opaque: { provider: "amazon-bedrock", toolUse }
      },
      {
        type: "hostedTool",
        id: "t1",
        name: "nova_grounding",
        result: [{ json: { hits: 2 } }],
        opaque: { provider: "amazon-bedrock", toolResult }
      },
      { type: "media", source: { data: "AAEC", mediaType: "image/png" } }
    ])
  })

  it.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["guardrail_intervened", "contentFilter"],
    ["content_filtered", "contentFilter"],
    ["a_reason_of_tomorrow", "stop"]
  ])("ends for %s with %s", (reason, stopReason) => {
    assert.strictEqual(message(Wire.start, ...Wire.text(0, "x"), Wire.end(reason)).stopReason, stopReason)
  })

  it("ignores events of tomorrow", () => {
    const answer = message(
      Wire.start,
      ["somethingNew", { deep: true }],
      ...Wire.text(0, "x"),
      Wire.end("end_turn")
    )
    assert.strictEqual(answer.content.length, 1)
  })
})

describe("answers of Converse that are none", () => {
  it.each([
    ["throttlingException", "RateLimited"],
    ["internalServerException", "ServerError"],
    ["modelStreamErrorException", "ServerError"],
    ["serviceUnavailableException", "Overloaded"],
    ["validationException", "InvalidRequest"]
  ])("fail with the %s in their middle", (name, tag) => {
    const reason = failure(Wire.start, Wire.delta(0, { text: "Hel" }), [name, { message: "Sorry." }])
    assert.strictEqual(reason._tag, tag)
    assert.include(reason.detail, "Sorry.")
  })

  it("fail with the overflow that a validation exception reports", () => {
    const reason = failure(["validationException", { message: "Input is too long for requested model." }])
    assert.strictEqual(reason._tag, "ContextOverflow")
  })

  it("fail where the model made no sense", () => {
    assert.strictEqual(failure(Wire.start, Wire.end("malformed_tool_use"))._tag, "ServerError")
  })

  it("fail with a call whose arguments have no end, unless the vendor stopped the model there", () => {
    const [begun] = Wire.call(0, "t", "weather")
    const half = [Wire.start, begun ?? Wire.start, Wire.delta(0, { toolUse: { input: '{"a":1}' } })]
    assert.strictEqual(failure(...half, Wire.end("tool_use"))._tag, "StreamTruncated")
    const blocked = readPieces([Wire.body(...half, Wire.end("guardrail_intervened"))])
    assert.deepStrictEqual(
      blocked.events.flatMap((event) => (event._tag === "Finish" ? [event.stopReason] : [])),
      ["contentFilter"]
    )
    assert.isFalse(blocked.events.some(({ _tag }) => _tag === "ToolCallEnd"))
  })

  it("fail with events out of order", () => {
    assert.strictEqual(failure(Wire.start, ...Wire.text(0, "x"), Wire.start)._tag, "StreamTruncated")
    for (const events of [
      [Wire.delta(0, { toolUse: { input: "{}" } })],
      [...Wire.call(0, "t", "weather"), Wire.delta(0, { toolUse: { input: "{}" } })],
      [Wire.begin(0, { toolUse: { toolUseId: "t", name: "a" } }), Wire.delta(0, { text: "x" })],
      [Wire.end("end_turn"), Wire.delta(0, { text: "x" })],
      [...Wire.call(0, "t", "weather").slice(0, 1), ["contentBlockDelta", "[]"] as const],
      // Between server-sent events a comment and a sentinel. Here they are pieces that cannot be read.
      [["contentBlockDelta", ": a comment"] as const, ...Wire.call(0, "t", "weather"), Wire.end("tool_use")],
      [["contentBlockDelta", "[DONE]"] as const, ...Wire.call(0, "t", "weather"), Wire.end("tool_use")]
    ]) {
      assert.strictEqual(failure(Wire.start, ...events)._tag, "Protocol")
    }
  })

  it("cut at any byte are incomplete, or as they were", () => {
    const whole = Wire.body(...calling)
    const full = readPieces([whole])
    const last = Wire.message(Wire.metadata).length
    for (let length = 0; length < whole.length; length++) {
      const { events, outcome } = readPieces([whole.subarray(0, length)])
      const isEnded = length === whole.length - last
      assert.strictEqual(outcome === "complete", isEnded, `byte ${length}`)
      if (!isEnded) assert.isFalse(events.some(({ _tag }) => _tag === "ToolCallEnd" || _tag === "Finish"))
    }
    assert.deepStrictEqual(readPieces(Array.from(whole, (_, at) => whole.subarray(at, at + 1))), full)
  })
})

describe("counting tokens", () => {
  it("reads the count", () => {
    assert.strictEqual(protocol.counting?.read({ inputTokens: 42 }), 42)
    assert.isUndefined(protocol.counting?.read({}))
  })
})
