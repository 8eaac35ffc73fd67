import { anthropic } from "@ai-sdk/anthropic"
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Agent, Message, ModelEvent } from "effect-agent"
import { AiSdk } from "effect-agent/ai-sdk"
import { events, serve, stream } from "../providers/server.ts"
import * as Fake from "./fakeModel.ts"
import { claude, gemini, openai, type Vendor } from "./vendors.ts"

/** Two prompts, of which the first gets this answer. */
const session = Effect.fnUntraced(function* (
  vendor: Vendor,
  body: string,
  options?: Partial<AiSdk.Options>,
  model?: string
) {
  const server = yield* serve((response, _, count) =>
    stream(response).end(count === 1 ? body : vendor.fixtures[0]?.body)
  )
  const agent = yield* Agent.make({ model: "any" }).pipe(
    Effect.provide(AiSdk.layer({ model: vendor.model(server.baseUrl, model), ...options }))
  )
  const { message } = yield* agent.prompt("When was Claude Shannon born?")
  yield* agent.prompt("And where?")
  const [first, second] = server.requests.map(({ body }) => JSON.parse(body))
  return { content: message?.content ?? [], first, second }
})

const types = (content: Message.Assistant["content"]) => content.map(({ type }) => type)

// https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool
const page = {
  type: "web_search_result",
  title: "Claude Shannon",
  url: "https://en.wikipedia.org/wiki/Claude_Shannon",
  encrypted_content: "c2VhbGVk",
  page_age: "April 30, 2025"
}
const citation = {
  type: "web_search_result_location",
  url: page.url,
  title: page.title,
  encrypted_index: "aW5kZXg=",
  cited_text: "Claude Elwood Shannon (April 30, 1916 …)"
}
const start = (index: number, content_block: object) => ({
  type: "content_block_start",
  index,
  content_block
})
const delta = (index: number, delta: object) => ({ type: "content_block_delta", index, delta })
const stop = (index: number) => ({ type: "content_block_stop", index })
const searched = events(
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5",
      content: [],
      stop_reason: null,
      usage: { input_tokens: 10, output_tokens: 1 }
    }
  },
  start(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
  delta(0, { type: "input_json_delta", partial_json: '{"query":"claude ' }),
  delta(0, { type: "input_json_delta", partial_json: 'shannon birth"}' }),
  stop(0),
  start(1, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [page] }),
  stop(1),
  start(2, { type: "text", text: "", citations: [] }),
  delta(2, { type: "text_delta", text: "In 1916." }),
  delta(2, { type: "citations_delta", citation }),
  stop(2),
  {
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 9 }
  },
  { type: "message_stop" }
)

// https://ai.google.dev/gemini-api/docs/google-search and …/image-generation
const grounded = events(
  {
    candidates: [
      {
        content: {
          role: "model",
          parts: [
            { text: "In 1916." },
            { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" }, thoughtSignature: "c2ln" }
          ]
        }
      }
    ]
  },
  {
    candidates: [
      {
        content: { role: "model", parts: [] },
        finishReason: "STOP",
        groundingMetadata: {
          webSearchQueries: ["claude shannon birth"],
          groundingChunks: [{ web: { uri: "https://example.com/shannon", title: "example.com" } }],
          groundingSupports: [{ segment: { endIndex: 8, text: "In 1916." }, groundingChunkIndices: [0] }]
        }
      }
    ],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
  }
)

describe("an answer after a search", () => {
  it.live("of Anthropic has the call, its result and the citations, and goes back whole", () =>
    Effect.gen(function* () {
      const providerTools = { web_search: anthropic.tools.webSearch_20250305({ maxUses: 1 }) }
      const { content, first, second } = yield* session(claude, searched, { providerTools })
      assert.deepStrictEqual(first.tools, [{ type: "web_search_20250305", name: "web_search", max_uses: 1 }])
      const [call, result] = content
      assert.deepInclude(call, {
        type: "hostedTool",
        id: "srvtoolu_1",
        name: "web_search",
        params: { query: "claude shannon birth" }
      })
      assert.deepInclude(result, { type: "hostedTool", id: "srvtoolu_1", name: "web_search" })
      const sources = content.filter((block) => block.type === "source")
      assert.isTrue(sources.every(({ url }) => url === page.url))
      assert.include(
        sources.map(({ citedText }) => citedText),
        citation.cited_text
      )
      assert.deepStrictEqual(second.messages[1].content.slice(0, 2), [
        {
          type: "server_tool_use",
          id: "srvtoolu_1",
          name: "web_search",
          input: { query: "claude shannon birth" }
        },
        { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [page] }
      ])
    })
  )

  it.live("of Google has its sources, and the picture goes back with its signature", () =>
    Effect.gen(function* () {
      const { content, second } = yield* session(gemini, grounded, {}, "gemini-3-pro-image-preview")
      assert.sameMembers(types(content), ["text", "media", "source"])
      const [media] = content.filter((block) => block.type === "media")
      assert.deepStrictEqual(media?.source, { data: "iVBORw0KGgo=", mediaType: "image/png" })
      const [source] = content.filter((block) => block.type === "source")
      assert.deepInclude(source, {
        sourceType: "url",
        url: "https://example.com/shannon",
        title: "example.com"
      })
      assert.deepStrictEqual(second.contents[1].parts, [
        { text: "In 1916." },
        { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" }, thoughtSignature: "c2ln" }
      ])
    })
  )

  it.live("of OpenAI has the call, its result and the sources", () =>
    Effect.gen(function* () {
      // https://platform.openai.com/docs/guides/tools-web-search
      const item = {
        type: "web_search_call",
        id: "ws_1",
        status: "completed",
        action: { type: "search", query: "claude shannon birth", sources: [] }
      }
      const annotation = {
        type: "url_citation",
        start_index: 0,
        end_index: 8,
        url: "https://example.com/shannon",
        title: "Shannon"
      }
      const answer = openai.fixtures[0]?.body ?? ""
      const at = answer.indexOf("\n\n") + 2
      const call = events(
        {
          type: "response.output_item.added",
          output_index: 9,
          item: { ...item, status: "in_progress", action: undefined }
        },
        { type: "response.output_item.done", output_index: 9, item },
        {
          type: "response.output_text.annotation.added",
          item_id: "msg_0",
          output_index: 0,
          content_index: 0,
          annotation_index: 0,
          annotation
        }
      )
      const { content } = yield* session(openai, answer.slice(0, at) + call + answer.slice(at))
      const [hosted, result] = content.filter((block) => block.type === "hostedTool")
      assert.deepInclude(hosted, { id: "ws_1", name: "web_search" })
      assert.deepInclude(result, { id: "ws_1", name: "web_search" })
      const [source] = content.filter((block) => block.type === "source")
      assert.deepInclude(source, { url: annotation.url, title: annotation.title })
    })
  )
})

describe("a part of a vendor's own", () => {
  const parts: ReadonlyArray<LanguageModelV4StreamPart> = [
    { type: "custom", kind: "fake.compaction", providerMetadata: { fake: { id: "cmp_1" } } },
    {
      type: "reasoning-file",
      mediaType: "image/png",
      data: { type: "data", data: new Uint8Array([1, 2, 3]) },
      providerMetadata: { fake: { signature: "s" } }
    },
    {
      type: "file",
      mediaType: "text/plain",
      data: { type: "url", url: new URL("https://example.com/a.txt") }
    },
    { type: "tool-call", toolCallId: "1", toolName: "search", input: "{}", providerExecuted: true },
    { type: "tool-result", toolCallId: "1", toolName: "search", result: "half", preliminary: true },
    { type: "tool-result", toolCallId: "1", toolName: "search", result: "none", isError: true },
    { type: "tool-approval-request", approvalId: "a", toolCallId: "1" },
    Fake.finish("stop")
  ]

  it.effect("goes back to its provider unchanged, and to no other", () =>
    Effect.gen(function* () {
      const { asked, model } = Fake.version4(...parts)
      const request = { model: "m", messages: [Message.user("Hi")], tools: [], options: {} }
      const reply = yield* Stream.runFold(
        AiSdk.make({ model }).stream(request),
        () => ModelEvent.emptyReply,
        ModelEvent.append
      )
      assert.deepStrictEqual(reply.finish?.unrepresented, ["toolApprovals"])
      const messages = [Message.assistant(reply.content)]
      yield* Stream.runDrain(AiSdk.make({ model }).stream({ ...request, messages }))
      yield* Stream.runDrain(AiSdk.make({ model, id: "another" }).stream({ ...request, messages }))
      assert.deepStrictEqual(asked[2]?.prompt, [])
      const url = "https://example.com/a.txt"
      assert.deepStrictEqual(asked[1]?.prompt[0]?.content, [
        { type: "custom", kind: "fake.compaction", providerOptions: { fake: { id: "cmp_1" } } },
        {
          type: "reasoning-file",
          mediaType: "image/png",
          data: { type: "data", data: "AQID" },
          providerOptions: { fake: { signature: "s" } }
        },
        { type: "file", mediaType: "text/plain", data: { type: "url", url: new URL(url), originalUrl: url } },
        { type: "tool-call", toolCallId: "1", toolName: "search", input: {}, providerExecuted: true },
        {
          type: "tool-result",
          toolCallId: "1",
          toolName: "search",
          output: { type: "error-json", value: "none" }
        }
      ])
    })
  )
})
