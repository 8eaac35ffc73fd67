/**
 * Answers of the Responses API, the Messages API and Gemini as servers have sent them.
 */
import { Effect } from "effect"
import { events } from "../../../test/providers/server.ts"
import * as Api from "../../conformance/Api.ts"
import type { Report } from "./Report.ts"
import { talk } from "./talk.ts"

type Events = ReadonlyArray<object>
/** The last column shows of the second request what became of the first answer. */
type Row = readonly [
  source: string,
  input: string,
  answer: Events,
  right: string,
  again?: (body: any) => unknown
]

const of = (type: string, fields: object = {}) => ({ type: `response.${type}`, ...fields })
const created = of("created", { response: { id: "r1", model: "gpt-5.5", status: "in_progress" } })
const completed = (fields: object = {}) =>
  of("completed", {
    response: {
      id: "r1",
      model: "gpt-5.5",
      status: "completed",
      output: [],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
      ...fields
    }
  })
const failed = (code: string, message: string) =>
  of("failed", { response: { id: "r1", status: "failed", error: { code, message } } })
const incomplete = (reason: string) =>
  of("incomplete", { response: { id: "r1", status: "incomplete", incomplete_details: { reason } } })
const begun = (output_index: number, item: object) => of("output_item.added", { output_index, item })
const ended = (output_index: number, item: object) => of("output_item.done", { output_index, item })
const message = (at: number, text: string, more: object = {}): Events => [
  begun(at, { type: "message", id: `msg_${at}`, role: "assistant", content: [] }),
  of("output_text.delta", { output_index: at, content_index: 0, item_id: `msg_${at}`, delta: text }),
  ended(at, {
    type: "message",
    id: `msg_${at}`,
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
    ...more
  })
]
const called = (at: number, json: string, ids: object = {}): Events => {
  const item = { type: "function_call", id: `fc_${at}`, call_id: `call_${at}`, name: "echo", ...ids }
  return [
    begun(at, { ...item, arguments: "" }),
    of("function_call_arguments.delta", { output_index: at, item_id: item.id, delta: json }),
    of("function_call_arguments.done", { output_index: at, item_id: item.id, arguments: json }),
    ended(at, { ...item, arguments: json, status: "completed" })
  ]
}
const thought = (at: number, more: object): Events => [
  ended(at, { type: "reasoning", id: `rs_${at}`, summary: [], ...more })
]
const whole = {
  type: "message",
  id: "m",
  role: "assistant",
  content: [{ type: "output_text", text: "Hello" }]
}
const itemTypes = ({ input }: any) => input.map((item: any) => item.phase ?? item.role ?? item.type)
const idLengths = ({ input }: any) =>
  input
    .flatMap(({ call_id, id }: any) => [call_id, id])
    .every((id: string | undefined) => (id ?? "").length <= 64)
const [one, two] = ['{"v":"1"}', '{"v":"2"}']

const responses: ReadonlyArray<Row> = [
  ["", "a call", [created, ...called(0, one), completed()], 'echo {"v":"1"}; "done"'],
  [
    "",
    "failed: context_length_exceeded",
    [created, failed("context_length_exceeded", "Your input exceeds the context window of this model.")],
    "vendor: ContextOverflow: Your input exceeds the context window of this model."
  ],
  [
    "",
    "an error event with its error inside",
    [
      {
        type: "error",
        error: {
          type: "invalid_request_error",
          code: "context_length_exceeded",
          message: "Your input exceeds the context window of this model."
        }
      }
    ],
    "vendor: ContextOverflow: Your input exceeds the context window of this model."
  ],
  [
    "",
    "an error event that is its error",
    [
      {
        type: "error",
        code: "rate_limit_exceeded",
        message: "Rate limit reached. Please try again in 1.5s.",
        param: null
      }
    ],
    "vendor: RateLimited: Rate limit reached. Please try again in 1.5s."
  ],
  [
    "",
    "failed: server_error",
    [created, ...message(0, "par"), failed("server_error", "An error occurred.")],
    "vendor: ServerError: An error occurred."
  ],
  [
    "",
    "incomplete: max_output_tokens",
    [created, ...message(0, "par"), incomplete("max_output_tokens")],
    '"par" (length)'
  ],
  [
    "",
    "incomplete: content_filter",
    [created, ...message(0, "par"), incomplete("content_filter")],
    '"par" (contentFilter)'
  ],
  [
    "",
    "incomplete within a call",
    [created, ...called(0, one).slice(0, 2), incomplete("max_output_tokens")],
    '"done" in 2 requests'
  ],
  [
    "",
    "cancelled",
    [created, ...message(0, "par"), completed({ status: "cancelled" })],
    "vendor: ServerError: The answer ended as cancelled"
  ],
  [
    "",
    "a text without items",
    [
      created,
      of("output_text.delta", { delta: "Hel" }),
      of("output_text.delta", { delta: "lo" }),
      completed({ output: [whole] })
    ],
    '"Hello"'
  ],
  [
    "",
    "an answer in its last event alone",
    [
      created,
      completed({
        output: [whole, { type: "function_call", id: "f", call_id: "c", name: "echo", arguments: one }]
      })
    ],
    'echo {"v":"1"}; "done"'
  ],
  [
    "",
    "arguments in the end of the item alone",
    [
      created,
      begun(0, { type: "function_call", id: "fc_0", call_id: "c0", name: "echo", arguments: "" }),
      ended(0, { type: "function_call", id: "fc_0", call_id: "c0", name: "echo", arguments: one }),
      completed()
    ],
    'echo {"v":"1"}; "done"'
  ],
  [
    "",
    "two calls at one place",
    [created, ...called(0, one), ...called(0, two, { id: "fc_x", call_id: "call_x" }), completed()],
    'echo {"v":"1"}; echo {"v":"2"}; "done"'
  ],
  [
    "can1357/oh-my-pi#457",
    "ids longer than 64 characters",
    [
      created,
      ...called(0, one, { id: `fc_${"x".repeat(400)}`, call_id: `call_${"y".repeat(100)}` }),
      completed()
    ],
    'echo {"v":"1"}; "done" → true',
    idLengths
  ],
  [
    "",
    "thinking without its encrypted content",
    [
      created,
      ...thought(0, { summary: [{ type: "summary_text", text: "plan" }] }),
      ...called(1, one),
      completed()
    ],
    'echo {"v":"1"}; "done" → ["user","function_call","function_call_output"]',
    itemTypes
  ],
  [
    "Wei-Shaw/sub2api#5178",
    "thinking with its content",
    [
      created,
      ...thought(0, { content: [{ type: "reasoning_text", text: "plan" }], encrypted_content: null }),
      ...called(1, one),
      completed()
    ],
    'echo {"v":"1"}; "done" → ["user","reasoning","function_call","function_call_output"]',
    itemTypes
  ],
  [
    "",
    "a commentary before a call",
    [created, ...message(0, "I look.", { phase: "commentary" }), ...called(1, one), completed()],
    'echo {"v":"1"}; "done" → ["user","commentary","function_call","function_call_output"]',
    itemTypes
  ],
  [
    "",
    "a commentary before the answer",
    [
      created,
      ...message(0, "I look. ", { phase: "commentary" }),
      ...message(1, "Final.", { phase: "final_answer" }),
      completed()
    ],
    '"I look. Final."'
  ],
  [
    "",
    "two thoughts",
    [
      created,
      ...thought(0, { encrypted_content: "A" }),
      ...thought(1, { encrypted_content: "B" }),
      ...message(2, "x"),
      completed()
    ],
    '"x"'
  ],
  ["", "a thought alone", [created, ...thought(0, { encrypted_content: "A" }), completed()], '""']
]

// ───────────────────────── Messages

const start = {
  type: "message_start",
  message: {
    id: "m",
    type: "message",
    role: "assistant",
    model: "m",
    content: [],
    stop_reason: null,
    usage: { input_tokens: 10, output_tokens: 1 }
  }
}
const block = (index: number, content_block: object, ...deltas: ReadonlyArray<object>): Events => [
  { type: "content_block_start", index, content_block },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index }
]
const said = (index: number, text: string) =>
  block(index, { type: "text", text: "" }, { type: "text_delta", text })
const use = (index: number, json: string, more: object = {}) =>
  block(
    index,
    { type: "tool_use", id: "t1", name: "echo", input: {}, ...more },
    ...(json === "" ? [] : [{ type: "input_json_delta", partial_json: json }])
  )
const think = (signature: object, ...deltas: ReadonlyArray<object>) =>
  block(
    0,
    { type: "thinking", thinking: "", ...signature },
    { type: "thinking_delta", thinking: "plan" },
    ...deltas
  )
const over = (stop_reason: string): Events => [
  { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } },
  { type: "message_stop" }
]
const secondTypes = ({ messages }: any) =>
  messages[1].content.map(({ signature, type }: any) =>
    signature === undefined ? type : `${type} ${JSON.stringify(signature)}`
  )

const messages: ReadonlyArray<Row> = [
  [
    "",
    "thinking with a signature",
    [
      start,
      ...think({ signature: "" }, { type: "signature_delta", signature: "SIG" }),
      ...use(1, one),
      ...over("tool_use")
    ],
    'echo {"v":"1"}; "done" → ["thinking \\"SIG\\"","tool_use"]',
    secondTypes
  ],
  [
    "omnimind-ai/OmniBot#307",
    "thinking with an empty signature",
    [start, ...think({ signature: "" }), ...use(1, one), ...over("tool_use")],
    'echo {"v":"1"}; "done" → ["thinking \\"\\"","tool_use"]',
    secondTypes
  ],
  [
    "NousResearch/hermes-agent#16149",
    "thinking without a signature",
    [start, ...think({}), ...use(1, one), ...over("tool_use")],
    'echo {"v":"1"}; "done" → ["thinking \\"\\"","tool_use"]',
    secondTypes
  ],
  [
    "",
    "index 0 for each block",
    [start, ...said(0, "Hi "), ...use(0, one), ...over("tool_use")],
    'echo {"v":"1"}; "done"'
  ],
  [
    "",
    "the input twice",
    [start, ...use(0, one, { input: { v: "1" } }), ...over("tool_use")],
    'echo {"v":"1"}; "done"'
  ],
  [
    "",
    "the input in the start alone",
    [start, ...use(0, "", { input: { v: "1" } }), ...over("tool_use")],
    'echo {"v":"1"}; "done"'
  ],
  ["", "end_turn behind a call", [start, ...use(0, one), ...over("end_turn")], 'echo {"v":"1"}; "done"'],
  [
    "earendil-works/pi#2119",
    "tool_use without a call",
    [start, ...said(0, "preamble"), ...over("tool_use")],
    '"done" in 2 requests'
  ],
  ["", "an empty text", [start, ...said(0, ""), ...over("end_turn")], '""'],
  ["", "no message_stop", [start, ...said(0, "x"), ...over("end_turn").slice(0, 1)], '"x"'],
  [
    "",
    "events that nobody knows",
    [start, { type: "ping" }, { type: "vendor_event", foo: 1 }, ...said(0, "x"), ...over("end_turn")],
    '"x"'
  ],
  [
    "",
    "an error behind a text",
    [start, ...said(0, "x"), { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }],
    "vendor: Overloaded: Overloaded"
  ],
  [
    "",
    "an error of length",
    [
      {
        type: "error",
        error: {
          type: "invalid_request_error",
          message: "prompt is too long: 210000 tokens > 200000 maximum"
        }
      }
    ],
    "vendor: ContextOverflow: prompt is too long: 210000 tokens > 200000 maximum"
  ],
  [
    "",
    "model_context_window_exceeded",
    [start, ...said(0, "part"), ...over("model_context_window_exceeded")],
    '"part" (length)'
  ],
  [
    "",
    "one id for two calls",
    [start, ...use(0, one), ...use(1, two), ...over("tool_use")],
    'echo {"v":"1"}; echo {"v":"2"}; "done"'
  ],
  [
    "",
    "a name with a space",
    [start, ...use(0, one, { name: "echo " }), ...over("tool_use")],
    'echo {"v":"1"}; "done"'
  ],
  [
    "",
    "a name in another case",
    [start, ...use(0, one, { name: "Echo" }), ...over("tool_use")],
    '"done" in 2 requests'
  ],
  ["", "arguments that are null", [start, ...use(0, "null"), ...over("tool_use")], 'echo {}; "done"']
]

// ───────────────────────── Gemini

const chunk = (parts: ReadonlyArray<object>, finishReason: string | null = "STOP") => ({
  candidates: [{ content: { role: "model", parts }, ...(finishReason === null ? {} : { finishReason }) }],
  usageMetadata: {
    promptTokenCount: 17,
    candidatesTokenCount: 5,
    thoughtsTokenCount: 3,
    totalTokenCount: 25
  },
  modelVersion: "gemini-3-pro"
})
const functionCall = (name: string, more: object = { args: { v: "1" } }) => [
  chunk([{ functionCall: { name, ...more } }])
]
const parts = ({ contents }: any) =>
  contents[1].parts.map((part: any) => `${Object.keys(part).join()} ${part.thoughtSignature ?? ""}`.trim())

const gemini: ReadonlyArray<Row> = [
  [
    "langchain-ai/langchainjs#10159",
    "usage in each chunk",
    [chunk([{ text: "a" }], null), chunk([{ text: "b" }], null), chunk([{ text: "c" }])],
    '"abc"'
  ],
  [
    "langchain-ai/langgraph#6574",
    "MALFORMED_FUNCTION_CALL",
    [chunk([], "MALFORMED_FUNCTION_CALL")],
    "google: ServerError: The answer ended with MALFORMED_FUNCTION_CALL"
  ],
  [
    "",
    "UNEXPECTED_TOOL_CALL",
    [chunk([{ text: "x" }], "UNEXPECTED_TOOL_CALL")],
    "google: ServerError: The answer ended with UNEXPECTED_TOOL_CALL"
  ],
  ["", "no part", [chunk([])], '""'],
  ["", "no content", [{ candidates: [{ finishReason: "STOP" }] }], '""'],
  ["openonion/connectonion#1356", "a call without a name", functionCall(""), '"done" in 2 requests'],
  ["", "a name behind default_api:", functionCall("default_api:echo"), 'echo {"v":"1"}; "done"'],
  ["", "a name behind default_api.", functionCall("default_api.echo"), 'echo {"v":"1"}; "done"'],
  ["", "no args", functionCall("echo", {}), 'echo {}; "done"'],
  ["", "a thought alone", [chunk([{ text: "thinking", thought: true }])], '""'],
  [
    "HKUDS/nanobot#5230",
    "a signature in a part of its own",
    [chunk([{ text: "hi" }], null), chunk([{ text: "", thoughtSignature: "S" }])],
    '"hi"; "done" → ["text","text,thoughtSignature S"]',
    parts
  ],
  [
    "can1357/oh-my-pi#10172",
    "a signature on the first of two calls",
    [
      chunk([
        { functionCall: { name: "echo", args: { v: "1" } }, thoughtSignature: "S1" },
        { functionCall: { name: "echo", args: { v: "2" } } }
      ])
    ],
    'echo {"v":"1"}; echo {"v":"2"}; "done" → ["functionCall,thoughtSignature S1","functionCall"]',
    parts
  ]
]

const languages = [
  {
    name: "Responses",
    rows: responses,
    model: "gpt-5.5",
    layer: (origin: string) => Api.openAiResponses.layer(`${origin}/v1`),
    done: [created, ...message(0, "done"), completed()]
  },
  {
    name: "Messages",
    rows: messages,
    model: "m",
    layer: Api.anthropic.layer,
    done: [start, ...said(0, "done"), ...over("end_turn")]
  },
  {
    name: "Gemini",
    rows: gemini,
    model: "gemini-3-pro",
    layer: (origin: string) => Api.google.layer(`${origin}/v1beta`),
    done: [chunk([{ text: "done" }])]
  }
]

export const reports: ReadonlyArray<Report> = languages.flatMap(({ done, layer, model, name, rows }) =>
  rows.map(([source, input, answer, right, again]) => ({
    source,
    input: `${name}: ${input}`,
    seen: Effect.map(
      talk({
        layer,
        model,
        answers: [events(...answer), events(...done)],
        prompts: again === parts && right.startsWith('"') ? ["hi", "again"] : ["hi"]
      }),
      ({ bodies, line }) => (again === undefined ? line : `${line} → ${JSON.stringify(again(bodies[1]))}`)
    ),
    right
  }))
)
