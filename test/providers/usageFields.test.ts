import { assert, describe, it } from "@effect/vitest"
import { ModelEvent, Usage } from "effect-agent"
import { Framing, ReplyWriter } from "effect-agent/providers"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { bedrockConverse } from "../../src/providers/internal/bedrock/protocol.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { Answer } from "../../src/providers/internal/answer.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import type { Protocol } from "../../src/providers/Protocol.ts"
import * as Converse from "./bedrock.ts"
import { events as sse } from "./server.ts"

type Json = Readonly<Record<string, unknown>>

const replyOf = (
  protocol: Protocol,
  body: Uint8Array,
  framing: Framing.Framing = Framing.sse
): ModelEvent.Reply => {
  const call = { model: "m-1", seed: "s1" }
  const reply = new ReplyWriter.ReplyWriter(protocol, call)
  const answer = new Answer(
    { protocol, framing, redact: (text) => text },
    { call, reply, decoder: protocol.decoder(call, reply) }
  )
  answer.push(body)
  answer.end()
  assert.strictEqual(answer.outcome, "complete")
  return answer.take().reduce(ModelEvent.append, ModelEvent.emptyReply)
}
const streamed = (protocol: Protocol, ...events: ReadonlyArray<unknown>) =>
  replyOf(protocol, new TextEncoder().encode(sse(...events)))

const chat = (usage: Json, choice: Json = {}) =>
  streamed(
    openAiChat("acme", common),
    { choices: [{ index: 0, delta: { content: "hi" }, finish_reason: "stop", ...choice }] },
    { choices: [], usage }
  )
const responses = (response: Json) =>
  streamed(openAiResponses("acme"), { type: "response.completed", response: { id: "r", ...response } })
const anthropic = (usage: Json, delta: Json = { stop_reason: "end_turn" }, block: Json = {}) =>
  streamed(
    anthropicMessages("acme"),
    { type: "message_start", message: { id: "m", model: "m-1", usage: { input_tokens: 10 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "hi", ...block } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta, usage: { output_tokens: 5, ...usage } },
    { type: "message_stop" }
  )
const gemini = (usageMetadata: Json, finishReason = "STOP") =>
  streamed(googleGenerate("acme"), {
    candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason }],
    usageMetadata
  })
const converse = (metadata: Json, stop: Json = { stopReason: "end_turn" }) =>
  replyOf(
    bedrockConverse("acme"),
    Converse.body(
      Converse.start,
      ...Converse.text(0, "hi"),
      ["messageStop", stop],
      ["metadata", { usage: { inputTokens: 10, outputTokens: 5 }, ...metadata }]
    ),
    Framing.awsEventStream
  )

const tokens = { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050 }
const cached = { input: 1000, output: 50, cacheRead: 800 }
const written = { ...cached, cacheWrite: 100 }
const small = { input: 10, output: 5 }

describe("the usage of an answer", () => {
  it.each<readonly [server: string, reply: () => ModelEvent.Reply, usage: Partial<Usage.Usage> | undefined]>([
    ["OpenAI", () => chat({ ...tokens, prompt_tokens_details: { cached_tokens: 800 } }), cached],
    ["Kimi", () => chat({ ...tokens, cached_tokens: 800 }), cached],
    ["DeepSeek", () => chat({ ...tokens, prompt_cache_hit_tokens: 800 }), cached],
    [
      "LiteLLM",
      () =>
        chat({
          ...tokens,
          cache_read_input_tokens: 800,
          cache_creation_input_tokens: 100,
          prompt_tokens_details: { cached_tokens: null }
        }),
      written
    ],
    [
      "OpenRouter",
      () =>
        chat({
          ...tokens,
          prompt_tokens_details: { cached_tokens: 800, cache_write_tokens: 100 },
          server_tool_use: { web_search_requests: 2 }
        }),
      { ...written, hostedToolCalls: { web_search: 2 } }
    ],
    [
      "DashScope",
      () =>
        chat({ ...tokens, prompt_tokens_details: { cached_tokens: 800, cache_creation_input_tokens: 100 } }),
      written
    ],
    [
      "Vercel's gateway",
      () =>
        chat({ ...tokens, cache_creation_input_tokens: 100, prompt_tokens_details: { cached_tokens: 800 } }),
      written
    ],
    [
      "a gateway to Anthropic",
      () => chat({ ...tokens, prompt_tokens_details: { cached_tokens: 800, cache_creation_tokens: 100 } }),
      written
    ],
    [
      "a server with the names of Responses",
      () => chat({ input_tokens: 1000, output_tokens: 50, input_tokens_details: { cached_tokens: 800 } }),
      cached
    ],
    ["a chat server that counts nothing", () => chat({ prompt_tokens: null, total_tokens: 0 }), undefined],
    [
      "OpenAI, of audio",
      () =>
        chat({
          ...tokens,
          prompt_tokens_details: { audio_tokens: 7 },
          completion_tokens_details: { audio_tokens: 3 }
        }),
      { input: 1000, output: 50, inputAudio: 7, outputAudio: 3 }
    ],
    [
      "OpenAI, without audio",
      () => chat({ ...tokens, prompt_tokens_details: { audio_tokens: 0 } }),
      { input: 1000, output: 50 }
    ],
    [
      "Responses",
      () =>
        responses({
          usage: { input_tokens: 10, output_tokens: 5 },
          tool_usage: { image_gen: { input_tokens: 0 }, web_search: { num_requests: 3 } }
        }),
      { ...small, hostedToolCalls: { web_search: 3 } }
    ],
    [
      "xAI",
      () =>
        responses({
          usage: {
            input_tokens: 10,
            output_tokens: 5,
            server_side_tool_usage_details: { web_search_calls: 0, x_search_calls: 1 }
          }
        }),
      { ...small, hostedToolCalls: { x_search: 1 } }
    ],
    ["a Responses server that counts nothing", () => responses({ usage: { input_tokens: null } }), undefined],
    [
      "Anthropic",
      () =>
        anthropic({
          cache_read_input_tokens: 100,
          cache_creation_input_tokens: 30,
          cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
          server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 }
        }),
      {
        input: 140,
        output: 5,
        cacheRead: 100,
        cacheWrite: 30,
        cacheWriteLong: 20,
        hostedToolCalls: { web_search: 1 }
      }
    ],
    [
      "Anthropic, with requests of its own",
      () =>
        anthropic({
          iterations: [
            { type: "compaction", input_tokens: 100, output_tokens: 83, cache_read_input_tokens: 55_096 },
            { type: "message", input_tokens: 10, output_tokens: 5 },
            { type: "advisor_message", model: "m-2", input_tokens: 1000, output_tokens: 200 }
          ]
        }),
      { input: 56_206, output: 288, cacheRead: 55_096 }
    ],
    [
      "Google, with tools and audio",
      () =>
        gemini({
          promptTokenCount: 10,
          toolUsePromptTokenCount: 4000,
          candidatesTokenCount: 5,
          thoughtsTokenCount: 2,
          totalTokenCount: 4017,
          promptTokensDetails: [
            { modality: "AUDIO", tokenCount: 6 },
            { modality: "TEXT", tokenCount: 4 }
          ],
          candidatesTokensDetails: [{ modality: "AUDIO", tokenCount: 3 }]
        }),
      { input: 4010, output: 7, reasoning: 2, inputAudio: 6, outputAudio: 3 }
    ],
    [
      "Converse",
      () =>
        converse({
          usage: {
            inputTokens: 10,
            outputTokens: 5,
            cacheWriteInputTokens: 30,
            cacheDetails: [
              { ttl: "1h", inputTokens: 20 },
              { ttl: "5m", inputTokens: 10 }
            ]
          }
        }),
      { input: 40, output: 5, cacheWrite: 30, cacheWriteLong: 20 }
    ]
  ])("is counted as %s reports it", (_, reply, usage) => {
    assert.deepStrictEqual(reply().finish?.usage, usage === undefined ? undefined : Usage.make(usage))
  })

  it("adds up the calls of tools that the vendor ran", () => {
    const sum = [{ web_search: 1 }, { web_search: 2, web_fetch: 1 }]
      .map((hostedToolCalls) => Usage.make({ hostedToolCalls }))
      .reduce(Usage.add, Usage.zero)
    assert.deepStrictEqual(sum.hostedToolCalls, { web_search: 3, web_fetch: 1 })
    assert.deepStrictEqual(Usage.make({ hostedToolCalls: { web_search: -1 } }).hostedToolCalls, {
      web_search: 0
    })
  })
})

describe("the end of an answer", () => {
  it("says why Claude refuses, at Anthropic and at Bedrock", () => {
    const stop_details = {
      type: "refusal",
      category: "cyber",
      explanation: "It could enable harm.",
      recommended_model: "claude-opus-4-8",
      fallback_credit_token: "secret"
    }
    const refusal = {
      category: "cyber",
      explanation: "It could enable harm.",
      recommendedModel: "claude-opus-4-8"
    }
    const additionalModelResponseFields = { delta: { stop_details } }
    for (const { finish } of [
      anthropic({}, { stop_reason: "refusal", stop_details }),
      converse({}, { stopReason: "refusal", additionalModelResponseFields })
    ]) {
      assert.strictEqual(finish?.stopReason, "refusal")
      assert.deepStrictEqual(finish?.refusal, refusal)
    }
    for (const { finish } of [
      anthropic({}, { stop_reason: "end_turn", stop_details: null }),
      anthropic({}, { stop_reason: "refusal", stop_details: { category: null, explanation: null } }),
      converse({}, { stopReason: "refusal" })
    ])
      assert.notProperty(finish, "refusal")
  })

  it("names the model that took over from one that refused", () => {
    const block = { type: "fallback", from: { model: "m-1" }, to: { model: "m-2" } }
    const reply = anthropic({}, undefined, block)
    assert.strictEqual(reply.finish?.responseModel, "m-2")
    const fields = { id: "a", timestamp: 0, provider: "", model: "", protocol: "" }
    assert.strictEqual(ModelEvent.toAssistant(reply, fields).responseModel, "m-2")
  })

  it("names the tier that Bedrock and Google served", () => {
    assert.strictEqual(converse({ serviceTier: { type: "flex" } }).finish?.serviceTier, "flex")
    assert.strictEqual(
      gemini({ promptTokenCount: 1, serviceTier: "priority" }).finish?.serviceTier,
      "priority"
    )
    assert.strictEqual(
      gemini({ promptTokenCount: 1, trafficType: "PROVISIONED_THROUGHPUT" }).finish?.serviceTier,
      "PROVISIONED_THROUGHPUT"
    )
  })

  it("is a filter where Google's policies stop the model, and the limit where no token continues the answer", () => {
    for (const reason of ["ESCALATION", "PUP_LIMITED_DISABLED"])
      assert.strictEqual(gemini({}, reason).finish?.stopReason, "contentFilter")
    const { content, finish } = gemini({}, "CONTINUATION")
    assert.strictEqual(finish?.stopReason, "length")
    assert.deepStrictEqual(content, [{ type: "text", text: "hi" }])
  })

  it("has the probabilities of the tokens of a refusal", () => {
    const token = { token: "No", logprob: -0.1 }
    assert.deepStrictEqual(
      chat(tokens, { delta: { refusal: "No" }, logprobs: { content: null, refusal: [token] } }).finish
        ?.logprobs,
      [token]
    )
  })

  it("tells of an image that Bedrock could not make", () => {
    const { content } = replyOf(
      bedrockConverse("acme"),
      Converse.body(
        Converse.start,
        ["contentBlockStart", { contentBlockIndex: 0, start: { image: { format: "png" } } }],
        Converse.delta(0, { image: { error: { message: "Blocked" } } }),
        Converse.stop(0),
        Converse.end("end_turn"),
        Converse.metadata
      ),
      Framing.awsEventStream
    )
    assert.deepInclude(content[0], { type: "hostedTool", result: { message: "Blocked" }, isError: true })
  })

  it("has the media type of a drawing by OpenAI", () => {
    const { content } = responses({
      output: [
        { type: "image_generation_call", id: "ig", status: "completed", result: "AA==", output_format: "svg" }
      ]
    })
    assert.deepInclude(content.at(-1), { source: { data: "AA==", mediaType: "image/svg+xml" } })
  })
})
