import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { ModelEvent } from "effect-agent"
import { NodeHttp } from "effect-agent/node"
import * as Body from "../../src/providers/internal/connection.ts"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import * as Failure from "../../src/providers/internal/reading.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import * as HttpConnection from "../../src/http/HttpConnection.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import * as VendorFailure from "../../src/http/VendorFailure.ts"
import { readerOf } from "../providers/reader.ts"
import { serve } from "../providers/server.ts"

/** Words of a server that are names of members of every object. */
const words = Object.getOwnPropertyNames(Object.prototype)

const call = { model: "m-1", seed: "s1" }
const chat = readerOf(openAiChat("acme", common), call)
const responses = readerOf(openAiResponses("acme"), call)
const anthropic = readerOf(anthropicMessages("acme"), call)
const google = readerOf(googleGenerate("acme"), call)

const isEvent = Schema.is(Schema.Array(ModelEvent.ModelEvent))

describe("a word that is the name of an inherited member", () => {
  it("is looked up among enough of them", () => {
    assert.includeMembers(words, ["constructor", "toString", "valueOf", "__proto__", "hasOwnProperty"])
  })

  it.each(words)("is no stop reason: %s", (word) => {
    const ofChat = chat.read({ choices: [{ index: 0, delta: { content: "hi" }, finish_reason: word }] })
    const ofAnthropic = anthropic.read(
      { type: "message_start", message: { id: "m" } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "hi" } },
      { type: "message_delta", delta: { stop_reason: word } },
      { type: "message_stop" }
    )
    for (const { events, outcome } of [ofChat, ofAnthropic]) {
      assert.strictEqual(outcome, "complete")
      assert.isTrue(isEvent(events))
      assert.deepInclude(events.at(-1), { _tag: "Finish", stopReason: "stop" })
    }
    // Google's unknown reasons are failures.
    const reason = google.failure({
      candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason: word }]
    })
    assert.deepInclude({ ...reason }, { _tag: "ServerError", detail: `The answer ended with ${word}` })
  })

  it.each(words)("is no kind of event, item or block: %s", (word) => {
    const ofResponses = responses.read(
      { type: word, delta: "hi", item: { type: word }, output_index: 0 },
      { type: "response.output_item.added", output_index: 0, item: { type: word, name: "f" } },
      { type: "response.output_item.done", output_index: 0, item: { type: word, name: "f" } },
      { type: "response.completed", response: { id: "r", status: word } }
    )
    const ofAnthropic = anthropic.read(
      { type: word, delta: { type: "text_delta", text: "no" } },
      { type: "content_block_start", index: 0, content_block: { type: word } },
      { type: "content_block_delta", index: 0, delta: { type: word, [word]: "x" } },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "message_stop" }
    )
    for (const { events, outcome } of [ofResponses, ofAnthropic]) {
      assert.strictEqual(outcome, "complete")
      assert.isTrue(isEvent(events))
      // The block goes back to the vendor as it came.
      assert.deepStrictEqual(
        events.map(({ _tag }) => _tag),
        ["Start", "TextStart", "TextEnd", "Finish"]
      )
    }
  })

  it.each(words)("is no unit of time and no code: %s", (word) => {
    if (!word.startsWith("_")) {
      assert.isUndefined(
        VendorFailure.retryAfter({}, { details: [{ retryDelay: `3${word}` }] }, `retry in 3 ${word}`)
      )
    }
    const reason = Failure.ofResponse({
      status: 400,
      headers: {},
      body: JSON.stringify({ error: { message: "no", code: word, type: word } }),
      model: "m-1",
      now: 0
    })
    assert.strictEqual(reason._tag, "InvalidRequest")
    const cause = Object.assign(new Error("broken"), { code: word })
    assert.deepInclude(
      { ...HttpConnection.reason(cause, "http://a.test", (text) => text) },
      { _tag: "Transport" }
    )
  })

  it.effect.each(words)("is no encoding: %s", (word) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.writeHead(200, { "content-encoding": word }).end())
      for (const client of [FetchHttpClient.layer, NodeHttp.layer]) {
        const response = yield* Effect.provide(HttpClient.get(server.baseUrl), client)
        assert.isFalse(Body.bodyOf(response).isDecoded)
      }
    })
  )
})
