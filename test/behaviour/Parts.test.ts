import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Schema } from "effect"
import { AgentEvent, Message, ModelEvent } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Invariants from "./invariants.ts"
import { ofTag, play, reasonOf } from "./play.ts"

const source = {
  sourceType: "url",
  url: "https://weather.test",
  title: "Weather",
  citedText: "Rain"
} as const
const media = {
  source: { data: "aGVsbG8=", mediaType: "audio/wav" },
  id: "audio-1",
  transcript: "Take a coat."
}
const searched = { id: "s1", name: "web_search", params: { query: "Oslo" } }
const found = { id: "s1", name: "web_search", result: [{ title: "Weather" }], opaque: { page: 1 } }

const parts = ScriptedProvider.turn(
  Step.start,
  Step.hostedTool(searched),
  Step.hostedTool(found),
  Step.text("It rains."),
  Step.source(source),
  Step.media(media),
  Step.finish()
)

const content: Message.Assistant["content"] = [
  { type: "hostedTool", ...searched },
  { type: "hostedTool", ...found },
  { type: "text", text: "It rains." },
  { type: "source", ...source },
  { type: "media", ...media }
]

describe("sources, media and tools of the vendor", () => {
  it.effect("are blocks of the answer, deltas of the stream, and part of the next request", () =>
    Effect.gen(function* () {
      const { events, exit, requests, view } = yield* play([parts])
      assert.isTrue(Exit.isSuccess(exit))
      assert.deepStrictEqual(Invariants.broken(events), [])
      const answer = view.messages.at(-1)
      assert.deepStrictEqual(answer?.role === "assistant" ? answer.content : undefined, content)
      assert.deepStrictEqual(
        ofTag(events, "MessageDelta").map(({ delta }) => delta._tag),
        [
          "HostedToolStart",
          "HostedToolEnd",
          "HostedToolStart",
          "HostedToolEnd",
          "TextStart",
          "TextDelta",
          "TextEnd",
          "Source",
          "Media"
        ]
      )
      assert.strictEqual(ofTag(events, "ToolsDetected").length, 0)
      assert.strictEqual(requests.length, 1)
      const after = yield* play([ScriptedProvider.text("Yes.")], { messages: view.messages })
      assert.strictEqual(after.requests[0]?.messages[1], answer)
    })
  )

  it.effect("the end of a call has the headers, the rate limits and the probabilities of its tokens", () =>
    Effect.gen(function* () {
      const headers = { "x-request-id": "r1" }
      const rateLimits = {
        requests: { limit: 60, remaining: 59, resetAfter: Duration.seconds(1) },
        inputTokens: { remaining: 0 }
      }
      const logprobs = [
        { token: "Ra", logprob: -0.1, top: [{ token: "Sun", logprob: -2.5 }] },
        { token: "in", logprob: 0 }
      ]
      const start = { _tag: "Start", provider: "p", model: "m", protocol: "x" } as const
      const turn = ScriptedProvider.turn(
        Step.event({ ...start, headers, rateLimits }),
        Step.text("Rain"),
        Step.event({ _tag: "Finish", stopReason: "stop", logprobs })
      )
      const { events } = yield* play([turn])
      const [end] = ofTag(events, "ModelCallEnd")
      assert.deepInclude(end, { headers, rateLimits, logprobs })
      const codec = Schema.fromJsonString(Schema.toCodecJson(AgentEvent.AgentEvent))
      const text = yield* Schema.encodeUnknownEffect(codec)(end)
      assert.deepStrictEqual(yield* Schema.decodeEffect(codec)(text), end)
      const plain = yield* play([ScriptedProvider.text("Sun")])
      assert.doesNotHaveAnyKeys(ofTag(plain.events, "ModelCallEnd")[0], ["headers", "rateLimits", "logprobs"])
    })
  )

  it.effect("go through JSON with the events and the transcript", () =>
    Effect.gen(function* () {
      const { events, view } = yield* play([parts])
      const codec = Schema.fromJsonString(
        Schema.toCodecJson(
          Schema.Struct({
            events: Schema.Array(AgentEvent.AgentEvent),
            messages: Schema.Array(Message.Message)
          })
        )
      )
      const value = { events, messages: view.messages }
      const text = yield* Schema.encodeEffect(codec)(value)
      assert.deepStrictEqual(yield* Schema.decodeEffect(codec)(text), value)
    })
  )

  it.effect("leave transcripts of version 0.1.0 as they were", () =>
    Effect.gen(function* () {
      const stored = `[
        { "role": "user", "id": "1", "content": [{ "type": "file", "source": { "fileId": "f" } }], "timestamp": 0 },
        { "role": "assistant", "id": "2", "content": [
          { "type": "thinking", "text": "Hm", "opaque": { "provider": "p" } },
          { "type": "text", "text": "Hi" },
          { "type": "toolCall", "id": "c", "name": "t", "rawArguments": "{}", "params": {} }
        ], "stopReason": "toolUse", "provider": "p", "model": "m", "protocol": "x", "timestamp": 0 },
        { "role": "toolResult", "id": "3", "toolCallId": "c", "toolName": "t", "content": [
          { "type": "image", "source": { "url": "https://a.test/a.png" } }
        ], "isError": false, "outcome": "success", "timestamp": 0 }
      ]`
      const codec = Schema.fromJsonString(Schema.toCodecJson(Schema.Array(Message.Message)))
      assert.deepStrictEqual<unknown>(yield* Schema.decodeEffect(codec)(stored), JSON.parse(stored))
    })
  )

  it("fold in any order, also without a start", () => {
    const reply = (events: ReadonlyArray<ModelEvent.ModelEvent>) =>
      events.reduce(ModelEvent.append, ModelEvent.emptyReply)
    assert.deepStrictEqual(
      reply([
        { _tag: "Source", contentIndex: 1, source: { type: "source", ...source } },
        { _tag: "HostedToolEnd", contentIndex: 0, result: "Rain", isError: true }
      ]).content,
      [
        { type: "hostedTool", id: "", name: "", result: "Rain", isError: true },
        { type: "source", ...source }
      ]
    )
    assert.deepStrictEqual(reply([{ _tag: "HostedToolStart", contentIndex: 0, ...searched }]).content, [
      { type: "hostedTool", id: "s1", name: "web_search" }
    ])
  })

  it.effect("an answer of media says something, one of sources alone does not", () =>
    Effect.gen(function* () {
      const answer = (...steps: ReadonlyArray<Step.Step>) =>
        play([ScriptedProvider.turn(Step.start, ...steps, Step.finish())], {
          options: { emptyResponse: "fail" }
        })
      assert.isTrue(Exit.isSuccess((yield* answer(Step.media(media))).exit))
      const { exit } = yield* answer(Step.hostedTool(searched), Step.source(source))
      assert.strictEqual(reasonOf(exit)?._tag, "ProviderError")
    })
  )

  it.effect("count in the estimate of a budget", () =>
    Effect.gen(function* () {
      const { exit } = yield* play([parts], { options: { limits: { maxTotalTokens: 1000 } } })
      assert.strictEqual(reasonOf(exit)?._tag, "LimitExceeded")
    })
  )
})
