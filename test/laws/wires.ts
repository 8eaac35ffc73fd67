/** The protocols of vendors, each with a provider at an address and the answers of its server. */
import { Layer, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import type { Provider } from "effect-agent"
import { AmazonBedrock, Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { body as awsBody } from "../providers/bedrock.ts"
import { events } from "../providers/server.ts"

const apiKey = Redacted.make("k")
/** The signature, or the hidden form, of the thinking in an answer. */
export const signed = "c2lnbmVk"

export interface Wire {
  readonly model: string
  readonly layer: (origin: string) => Layer.Layer<Provider.Provider>
  /** An answer with thinking that has a signature. */
  readonly answer: (text: string) => string | Uint8Array
  /** An answer that calls the tool `look` with arguments as JSON. */
  readonly call: (args: string) => string | Uint8Array
  /** A call and a result in a request. */
  readonly pair: readonly [call: RegExp, result: RegExp]
  readonly contentType?: string
}

const http = Layer.provide(FetchHttpClient.layer)
const named = (...all: ReadonlyArray<{ readonly type: string; readonly [member: string]: unknown }>) =>
  all.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join("")
const thought = { type: "reasoning", id: "rs_1", summary: [] }
const called = { type: "function_call", id: "fc_1", call_id: "c1", name: "look", status: "completed" }
const said = { type: "message", id: "msg_1", role: "assistant", status: "completed", content: [] }

export const wires: Readonly<Record<string, Wire>> = {
  "Chat Completions": {
    model: "m",
    layer: (baseUrl) =>
      OpenAiCompatible.layer({
        id: "acme",
        baseUrl: `${baseUrl}/v1`,
        apiKey,
        compat: { replayThinking: "reasoning_content" }
      }).pipe(http),
    answer: (words) =>
      events(
        { id: "c", choices: [{ index: 0, delta: { reasoning_content: signed } }] },
        { id: "c", choices: [{ index: 0, delta: { content: words } }] },
        { id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
        "[DONE]"
      ),
    call: (args) =>
      events(
        {
          id: "c",
          choices: [
            {
              index: 0,
              delta: {
                tool_calls: [
                  { index: 0, id: "c1", type: "function", function: { name: "look", arguments: args } }
                ]
              }
            }
          ]
        },
        { id: "c", choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
        "[DONE]"
      ),
    pair: [/"tool_calls":/g, /"role":"tool"/g]
  },
  Responses: {
    model: "gpt-5.5",
    layer: (baseUrl) => OpenAi.layer({ baseUrl: `${baseUrl}/v1`, apiKey }).pipe(http),
    answer: (words) =>
      named(
        { type: "response.created", response: { id: "r", model: "gpt-5.5" } },
        { type: "response.output_item.added", output_index: 0, item: thought },
        {
          type: "response.output_item.done",
          output_index: 0,
          item: { ...thought, encrypted_content: signed }
        },
        { type: "response.output_item.added", output_index: 1, item: said },
        { type: "response.output_text.delta", output_index: 1, content_index: 0, delta: words },
        {
          type: "response.output_item.done",
          output_index: 1,
          item: { ...said, content: [{ type: "output_text", text: words, annotations: [] }] }
        },
        { type: "response.completed", response: { id: "r", status: "completed", output: [] } }
      ),
    call: (args) =>
      named(
        { type: "response.created", response: { id: "r", model: "gpt-5.5" } },
        { type: "response.output_item.added", output_index: 0, item: { ...called, arguments: "" } },
        { type: "response.output_item.done", output_index: 0, item: { ...called, arguments: args } },
        { type: "response.completed", response: { id: "r", status: "completed", output: [] } }
      ),
    pair: [/"type":"function_call"/g, /"type":"function_call_output"/g]
  },
  Messages: {
    model: "claude-sonnet-4-5",
    layer: (baseUrl) => Anthropic.layer({ baseUrl, apiKey }).pipe(http),
    answer: (words) =>
      named(
        { type: "message_start", message: { id: "m", model: "claude-sonnet-4-5", usage: {}, content: [] } },
        { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "plan" } },
        { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: signed } },
        { type: "content_block_stop", index: 0 },
        { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: words } },
        { type: "content_block_stop", index: 1 },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 3 } },
        { type: "message_stop" }
      ),
    call: (args) =>
      named(
        { type: "message_start", message: { id: "m", model: "claude-sonnet-4-5", usage: {}, content: [] } },
        {
          type: "content_block_start",
          index: 0,
          content_block: { type: "tool_use", id: "toolu_1", name: "look", input: {} }
        },
        { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: args } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 3 } },
        { type: "message_stop" }
      ),
    pair: [/"type":"tool_use"/g, /"type":"tool_result"/g]
  },
  Gemini: {
    model: "gemini-3-pro",
    layer: (baseUrl) => Google.layer({ baseUrl: `${baseUrl}/v1beta`, apiKey }).pipe(http),
    answer: (words) =>
      events({
        candidates: [
          { content: { parts: [{ text: words, thoughtSignature: signed }] }, finishReason: "STOP" }
        ]
      }),
    call: (args) =>
      events({
        candidates: [
          {
            content: { parts: [{ functionCall: { name: "look", args: JSON.parse(args) } }] },
            finishReason: "STOP"
          }
        ]
      }),
    pair: [/"functionCall"/g, /"functionResponse"/g]
  },
  Converse: {
    model: "anthropic.claude-sonnet-4-5-20250929-v1:0",
    layer: (baseUrl) => AmazonBedrock.layer({ region: "eu-west-1", baseUrl, apiKey }).pipe(http),
    contentType: "application/vnd.amazon.eventstream",
    answer: (words) =>
      awsBody(
        ["messageStart", { role: "assistant" }],
        ["contentBlockDelta", { contentBlockIndex: 0, delta: { reasoningContent: { text: "plan" } } }],
        ["contentBlockDelta", { contentBlockIndex: 0, delta: { reasoningContent: { signature: signed } } }],
        ["contentBlockStop", { contentBlockIndex: 0 }],
        ["contentBlockDelta", { contentBlockIndex: 1, delta: { text: words } }],
        ["contentBlockStop", { contentBlockIndex: 1 }],
        ["messageStop", { stopReason: "end_turn" }],
        ["metadata", { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }]
      ),
    call: (args) =>
      awsBody(
        ["messageStart", { role: "assistant" }],
        [
          "contentBlockStart",
          { contentBlockIndex: 0, start: { toolUse: { toolUseId: "c1", name: "look" } } }
        ],
        ["contentBlockDelta", { contentBlockIndex: 0, delta: { toolUse: { input: args } } }],
        ["contentBlockStop", { contentBlockIndex: 0 }],
        ["messageStop", { stopReason: "tool_use" }],
        ["metadata", { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }]
      ),
    pair: [/"toolUse"/g, /"toolResult"/g]
  }
}
