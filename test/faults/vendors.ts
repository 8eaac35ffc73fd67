/**
 * The four languages: each vendor as an application sets it up, with its key in the environment and the retries that
 * `layerConfig` brings, and what its server says.
 */
import type { Config, Layer } from "effect"
import type { HttpClient } from "effect/http"
import type { Provider } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import type { Retry } from "effect-agent/resilience"

/** One server-sent event. `kind`: what it is for, in any language. */
export interface Piece {
  readonly kind: "begin" | "text" | "thinking" | "call" | "arguments" | "frame" | "finish" | "last" | "error"
  readonly name?: string
  readonly data: unknown
}

interface Called {
  readonly id: string
  readonly name: string
  /** Pieces of JSON. */
  readonly json: ReadonlyArray<string>
}

/** What an answer says. `finish`: default "stop", or "tools" where there are calls. */
export interface Said {
  readonly thinking?: ReadonlyArray<string>
  readonly text?: ReadonlyArray<string>
  readonly calls?: ReadonlyArray<Called>
  readonly finish?: "stop" | "tools" | "length"
}

export interface Options {
  readonly baseUrl: string
  readonly timeouts?: OpenAiCompatible.Timeouts
  readonly retry?: Retry.Options
}

export interface Vendor {
  readonly name: string
  readonly keyName: string
  readonly layerConfig: (
    options: Options
  ) => Layer.Layer<Provider.Provider, Config.ConfigError, HttpClient.HttpClient>
  readonly answer: (said: Said) => ReadonlyArray<Piece>
  /** Says in an answer that there will be none. */
  readonly error: (message: string) => Piece
}

const usage = { input: 10, output: 5 }

// ───────────────────────── OpenAI Chat Completions

const chunk = (kind: Piece["kind"], delta: object, finish: string | null = null, rest = {}): Piece => ({
  kind,
  data: { id: "chatcmpl-1", choices: [{ index: 0, delta, finish_reason: finish }], ...rest }
})

const chatCall = ({ id, json, name }: Called, index: number) => [
  chunk("call", { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
  ...json.map((text) => chunk("arguments", { tool_calls: [{ index, function: { arguments: text } }] }))
]

const chatFinish = { stop: "stop", tools: "tool_calls", length: "length" }

const chatUsage = { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: 15 }

const chatAnswer = ({ calls = [], finish, text = [], thinking = [] }: Said): ReadonlyArray<Piece> => [
  chunk("begin", { role: "assistant", content: "" }),
  ...thinking.map((piece) => chunk("thinking", { reasoning_content: piece })),
  ...text.map((content) => chunk("text", { content })),
  ...calls.flatMap(chatCall),
  chunk("finish", {}, chatFinish[finish ?? (calls.length > 0 ? "tools" : "stop")]),
  { kind: "finish", data: { id: "chatcmpl-1", choices: [], usage: chatUsage } },
  { kind: "last", data: "[DONE]" }
]

// ───────────────────────── Anthropic Messages

const named = (kind: Piece["kind"], type: string, fields: object = {}): Piece => ({
  kind,
  name: type,
  data: { type, ...fields }
})

const anthropicBlock = (
  index: number,
  kind: Piece["kind"],
  block: object,
  deltas: ReadonlyArray<Piece>
): ReadonlyArray<Piece> => [
  named(kind, "content_block_start", { index, content_block: block }),
  ...deltas,
  named("frame", "content_block_stop", { index })
]

const anthropicDelta = (index: number, kind: Piece["kind"], delta: object) =>
  named(kind, "content_block_delta", { index, delta })

const anthropicFinish = { stop: "end_turn", tools: "tool_use", length: "max_tokens" }

const anthropicAnswer = ({ calls = [], finish, text, thinking }: Said): ReadonlyArray<Piece> => {
  let index = 0
  const blocks: Array<Piece> = []
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    content: [],
    stop_reason: null,
    usage: { input_tokens: usage.input, output_tokens: 1 }
  }
  if (thinking !== undefined) {
    const deltas = thinking.map((piece) =>
      anthropicDelta(index, "thinking", { type: "thinking_delta", thinking: piece })
    )
    blocks.push(...anthropicBlock(index++, "frame", { type: "thinking", thinking: "" }, deltas))
  }
  if (text !== undefined) {
    const deltas = text.map((piece) => anthropicDelta(index, "text", { type: "text_delta", text: piece }))
    blocks.push(...anthropicBlock(index++, "frame", { type: "text", text: "" }, deltas))
  }
  for (const { id, json, name } of calls) {
    const deltas = json.map((piece) =>
      anthropicDelta(index, "arguments", { type: "input_json_delta", partial_json: piece })
    )
    blocks.push(...anthropicBlock(index++, "call", { type: "tool_use", id, name, input: {} }, deltas))
  }
  const reason = anthropicFinish[finish ?? (calls.length > 0 ? "tools" : "stop")]
  return [
    named("begin", "message_start", { message }),
    ...blocks,
    named("finish", "message_delta", {
      delta: { stop_reason: reason, stop_sequence: null },
      usage: { output_tokens: usage.output }
    }),
    named("last", "message_stop")
  ]
}

// ───────────────────────── OpenAI Responses

interface Item {
  readonly began: object
  readonly ended: object
  readonly pieces: ReadonlyArray<Piece>
}

const responsesText = (index: number, text: ReadonlyArray<string>): Item => {
  const shell = { id: `msg_${index}`, type: "message", role: "assistant" }
  const place = { item_id: shell.id, output_index: index, content_index: 0 }
  const part = { type: "output_text", text: text.join(""), annotations: [] }
  return {
    began: { ...shell, status: "in_progress", content: [] },
    ended: { ...shell, status: "completed", content: [part] },
    pieces: text.map((delta) => named("text", "response.output_text.delta", { ...place, delta }))
  }
}

const responsesThought = (index: number, thinking: ReadonlyArray<string>): Item => {
  const shell = { id: `rs_${index}`, type: "reasoning" }
  const place = { item_id: shell.id, output_index: index, summary_index: 0 }
  const summary = [{ type: "summary_text", text: thinking.join("") }]
  return {
    began: { ...shell, summary: [] },
    ended: { ...shell, summary },
    pieces: thinking.map((delta) =>
      named("thinking", "response.reasoning_summary_text.delta", { ...place, delta })
    )
  }
}

const responsesCall = (index: number, { id, json, name }: Called): Item => {
  const shell = { id: `fc_${index}`, type: "function_call", call_id: id, name }
  const place = { item_id: shell.id, output_index: index }
  return {
    began: { ...shell, arguments: "" },
    ended: { ...shell, arguments: json.join("") },
    pieces: json.map((delta) =>
      named("arguments", "response.function_call_arguments.delta", { ...place, delta })
    )
  }
}

const responsesEnd = {
  id: "resp_1",
  usage: { input_tokens: usage.input, output_tokens: usage.output, total_tokens: 15 }
}

const responsesAnswer = ({ calls = [], finish, text, thinking }: Said): ReadonlyArray<Piece> => {
  const items: Array<Item> = []
  if (thinking !== undefined) items.push(responsesThought(items.length, thinking))
  if (text !== undefined) items.push(responsesText(items.length, text))
  for (const call of calls) items.push(responsesCall(items.length, call))
  const output = items.map(({ ended }) => ended)
  return [
    named("begin", "response.created", { response: { id: "resp_1", status: "in_progress", output: [] } }),
    ...items.flatMap(({ began, ended, pieces }, index) => [
      named("frame", "response.output_item.added", { output_index: index, item: began }),
      ...pieces,
      // What a limit cut has no end of its own.
      ...(finish === "length"
        ? []
        : [named("frame", "response.output_item.done", { output_index: index, item: ended })])
    ]),
    finish === "length"
      ? named("last", "response.incomplete", {
          response: {
            ...responsesEnd,
            status: "incomplete",
            output,
            incomplete_details: { reason: "max_output_tokens" }
          }
        })
      : named("last", "response.completed", { response: { ...responsesEnd, status: "completed", output } })
  ]
}

// ───────────────────────── Google generateContent

const candidate = (kind: Piece["kind"], parts: ReadonlyArray<object>, finishReason?: string): Piece => ({
  kind,
  data: {
    candidates: [
      { index: 0, content: { role: "model", parts }, ...(finishReason === undefined ? {} : { finishReason }) }
    ],
    usageMetadata: { promptTokenCount: usage.input, candidatesTokenCount: usage.output, totalTokenCount: 15 },
    responseId: "g-1"
  }
})

const googleFinish = { stop: "STOP", tools: "STOP", length: "MAX_TOKENS" }

/** Its last event is that with the finish reason. */
const googleAnswer = ({ calls = [], finish = "stop", text = [], thinking = [] }: Said) => [
  ...thinking.map((piece) => candidate("thinking", [{ text: piece, thought: true }])),
  ...text.map((piece) => candidate("text", [{ text: piece }])),
  ...calls.map(({ id, json, name }) =>
    candidate("call", [{ functionCall: { id, name, args: JSON.parse(json.join("") || "{}") } }])
  ),
  candidate("last", [{ text: "" }], googleFinish[finish])
]

export const openAi: Vendor = {
  name: "openai, Chat Completions",
  keyName: "OPENAI_API_KEY",
  layerConfig: (options) => OpenAiCompatible.layerConfig(OpenAiCompatible.presets.openAi, options),
  answer: chatAnswer,
  error: (message) => ({ kind: "error", data: { error: { message, type: "server_error", code: 503 } } })
}

export const anthropic: Vendor = {
  name: "anthropic",
  keyName: "ANTHROPIC_API_KEY",
  layerConfig: Anthropic.layerConfig,
  answer: anthropicAnswer,
  error: (message) => named("error", "error", { error: { type: "overloaded_error", message } })
}

export const responses: Vendor = {
  name: "openai, Responses",
  keyName: "OPENAI_API_KEY",
  layerConfig: OpenAi.layerConfig,
  answer: responsesAnswer,
  error: (message) => named("error", "error", { code: "server_error", message, param: null })
}

export const google: Vendor = {
  name: "google",
  keyName: "GEMINI_API_KEY",
  layerConfig: Google.layerConfig,
  answer: googleAnswer,
  error: (message) => ({ kind: "error", data: { error: { code: 503, message, status: "UNAVAILABLE" } } })
}

export const vendors: ReadonlyArray<Vendor> = [openAi, anthropic, responses, google]
