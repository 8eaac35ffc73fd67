/**
 * Answers with a text or calls, as each of the four languages streams them.
 */
import { named, pieces, unnamed } from "../differential/streams/Fixture.ts"

/** A call of a tool. Ids are unique within a conversation. */
export interface Called {
  readonly id: string
  readonly name: string
  readonly params: object
}

/** The body of an answer: a text, and calls if there are any. */
export type Speech = (text: string, calls: ReadonlyArray<Called>) => string

interface Event {
  readonly type: string
}

const event = (type: string, fields: object = {}): Event => ({ type, ...fields })

const tokens = { input: 20, output: 10 }

const openAiChat: Speech = (text, calls) => {
  const chunk = (delta: object, finish: string | null = null) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1767225600,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }]
  })
  const usage = { prompt_tokens: tokens.input, completion_tokens: tokens.output, total_tokens: 30 }
  return unnamed(
    chunk({ role: "assistant", content: "" }),
    ...pieces(text, 12).map((content) => chunk({ content })),
    ...calls.flatMap(({ id, name, params }, index) => [
      chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
      ...pieces(JSON.stringify(params), 16).map((json) =>
        chunk({ tool_calls: [{ index, function: { arguments: json } }] })
      )
    ]),
    chunk({}, calls.length > 0 ? "tool_calls" : "stop"),
    { ...chunk({}), choices: [], usage },
    "[DONE]"
  )
}

const openAiResponses: Speech = (text, calls) => {
  const shell = { id: "msg_0", type: "message", role: "assistant" }
  const message = item(
    0,
    { ...shell, content: [] },
    { ...shell, content: [{ type: "output_text", text, annotations: [] }] },
    pieces(text, 12).map((delta) => event("response.output_text.delta", { content_index: 0, delta }))
  )
  const made = calls.map(({ id, name, params }, index) => {
    const shell = { id: `fc_${id}`, type: "function_call", call_id: id, name }
    const json = JSON.stringify(params)
    return item(
      index + 1,
      { ...shell, arguments: "" },
      { ...shell, arguments: json },
      pieces(json, 16).map((delta) => event("response.function_call_arguments.delta", { delta }))
    )
  })
  const usage = { input_tokens: tokens.input, output_tokens: tokens.output, total_tokens: 30 }
  const response = { id: "resp_1", object: "response", model: "m" }
  return named(
    event("response.created", { response: { ...response, status: "in_progress", output: [] } }),
    ...[message, ...made].flatMap(({ events }) => events),
    event("response.completed", {
      response: {
        ...response,
        status: "completed",
        output: [message, ...made].map(({ ended }) => ended),
        usage
      }
    })
  )
}

interface Begun {
  readonly id: string
  readonly [member: string]: unknown
}

/** One item of a response: its events, and what it is at the end. */
const item = (index: number, begun: Begun, ended: object, events: ReadonlyArray<Event>) => ({
  ended: { ...ended, status: "completed" },
  events: [
    event("response.output_item.added", { output_index: index, item: { ...begun, status: "in_progress" } }),
    ...events.map((each) => ({ ...each, item_id: begun.id, output_index: index })),
    event("response.output_item.done", { output_index: index, item: { ...ended, status: "completed" } })
  ]
})

const anthropic: Speech = (text, calls) => {
  const block = (index: number, block: object, deltas: ReadonlyArray<object>) => [
    event("content_block_start", { index, content_block: block }),
    ...deltas.map((delta) => event("content_block_delta", { index, delta })),
    event("content_block_stop", { index })
  ]
  const usage = { input_tokens: tokens.input, output_tokens: 1 }
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage }
  const stop_reason = calls.length > 0 ? "tool_use" : "end_turn"
  return named(
    event("message_start", { message }),
    ...block(
      0,
      { type: "text", text: "" },
      pieces(text, 12).map((piece) => ({ type: "text_delta", text: piece }))
    ),
    ...calls.flatMap(({ id, name, params }, index) =>
      block(
        index + 1,
        { type: "tool_use", id, name, input: {} },
        pieces(JSON.stringify(params), 16).map((partial_json) => ({ type: "input_json_delta", partial_json }))
      )
    ),
    event("message_delta", { delta: { stop_reason }, usage: { output_tokens: tokens.output } }),
    event("message_stop")
  )
}

const google: Speech = (text, calls) => {
  const chunk = (parts: ReadonlyArray<object>, rest: object = {}) => ({
    candidates: [{ content: { parts, role: "model" }, index: 0, ...rest }],
    usageMetadata: {
      promptTokenCount: tokens.input,
      candidatesTokenCount: tokens.output,
      totalTokenCount: 30
    },
    modelVersion: "m",
    responseId: "resp-1"
  })
  return unnamed(
    ...pieces(text, 12).map((piece) => chunk([{ text: piece }])),
    chunk(
      calls.map(({ id, name, params }) => ({ functionCall: { id, name, args: params } })),
      { finishReason: "STOP" }
    )
  )
}

/** By the path that a request goes to. */
export const speechOf = (path: string): Speech => {
  if (path.includes("streamGenerateContent")) return google
  if (path.endsWith("/messages")) return anthropic
  return path.endsWith("/responses") ? openAiResponses : openAiChat
}
