/**
 * Answers of Chat Completions as servers have sent them.
 */
import { Effect } from "effect"
import { OpenAiCompatible } from "effect-agent/providers"
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib"
import { events } from "../../../test/providers/server.ts"
import type { Report } from "./Report.ts"
import { type Answer, talk } from "./talk.ts"

const delta = (fields: object, finish: string | null = null, more: object = {}) => ({
  id: "c1",
  model: "m",
  choices: [{ index: 0, delta: fields, finish_reason: finish, ...more }]
})
const text = (content: unknown, finish: string | null = null) => delta({ content }, finish)
const call = (index: unknown, id: unknown, name: unknown, args: unknown) => ({
  index,
  id,
  type: "function",
  function: { name, arguments: args }
})
const piece = (...parts: Parameters<typeof call>) => delta({ tool_calls: [call(...parts)] })
const calls = delta({}, "tool_calls")
const stop = delta({}, "stop")
const [one, two] = ['{"v":"1"}', '{"v":"2"}']
const none = undefined
const twice = JSON.stringify(two)
const ran = {
  one: 'echo {"v":"1"}; "done"',
  two: 'echo {"v":"2"}; "done"',
  both: 'echo {"v":"1"}; echo {"v":"2"}; "done"'
}

type Row = readonly [source: string, input: string, answer: Answer | ReadonlyArray<unknown>, right: string]

/** Calls of the tool `echo`, and what the server says to their results: "done". */
const pieces: ReadonlyArray<Row> = [
  [
    "ollama/ollama#15457",
    "two calls at index 0 with ids of their own",
    [piece(0, "a", "echo", one), piece(0, "b", "echo", two), calls],
    ran.both
  ],
  [
    "ollama/ollama#15457",
    "two calls at index 0 without ids",
    [piece(0, none, "echo", one), piece(0, none, "echo", two), calls],
    ran.both
  ],
  [
    "ollama/ollama#15457",
    "two calls at index 0 with empty ids",
    [piece(0, "", "echo", one), piece(0, "", "echo", two), calls],
    ran.both
  ],
  [
    "ollama/ollama#15457",
    "the same in one chunk",
    [delta({ tool_calls: [call(0, "", "echo", one), call(0, "", "echo", two)] }), calls],
    ran.both
  ],
  [
    "vllm-project/vllm#18412",
    "two calls in one chunk without indexes and ids",
    [delta({ tool_calls: [call(none, none, "echo", one), call(none, none, "echo", two)] }), calls],
    ran.both
  ],
  [
    "ollama/ollama#15457",
    "two calls at index 0 with one id",
    [piece(0, "x", "echo", one), piece(0, "x", "echo", two), calls],
    ran.both
  ],
  [
    "BerriAI/litellm#20480",
    "its id on each piece",
    [piece(0, "x", "echo", '{"v"'), piece(0, "x", none, ':"2"}'), calls],
    ran.two
  ],
  [
    "",
    "its id and its name on each piece",
    [piece(0, "x", "echo", '{"v"'), piece(0, "x", "echo", ':"2"}'), calls],
    ran.two
  ],
  [
    "",
    "another id on each piece",
    [piece(0, "x1", "echo", '{"v"'), piece(0, "x2", none, ':"2"}'), calls],
    ran.two
  ],
  [
    "",
    "another id on each piece, with its name",
    [piece(0, "x1", "echo", '{"v"'), piece(0, "x2", "echo", ':"2"}'), calls],
    ran.two
  ],
  [
    "",
    "another id on each piece, with an empty name",
    [piece(0, "x1", "echo", '{"v"'), piece(0, "x2", "", ':"2"}'), calls],
    ran.two
  ],
  [
    "BerriAI/litellm#20480",
    "the whole arguments again, encoded twice",
    [piece(0, "x", "echo", '{"v"'), piece(0, "x", none, ':"2"}'), piece(0, "x", "echo", twice), calls],
    ran.two
  ],
  [
    "BerriAI/litellm#20480",
    "the whole arguments again",
    [piece(0, "x", "echo", '{"v"'), piece(0, "x", none, ':"2"}'), piece(0, "x", "echo", two), calls],
    ran.two
  ],
  ["ogx-ai/ogx#5462", "arguments that are null", [piece(0, "x", "echo", null), calls], 'echo {}; "done"'],
  ["vercel/ai#5658", "arguments that are empty", [piece(0, "x", "echo", ""), calls], 'echo {}; "done"'],
  [
    "openai/openai-agents-js#712",
    "{} before the arguments",
    [piece(0, "x", "echo", "{}"), piece(0, none, none, two), calls],
    ran.two
  ],
  ["", "arguments that are an object", [piece(0, "x", "echo", { v: "1" }), calls], ran.one],
  ["MoonshotAI/kimi-cli#2513", "arguments encoded twice", [piece(0, "x", "echo", twice), calls], ran.two],
  ["vercel/ai#12218", "finish_reason stop", [piece(0, "x", "echo", one), stop], ran.one],
  ["", "no finish_reason", [piece(0, "x", "echo", one)], ran.one],
  [
    "earendil-works/pi#2119",
    "a text that ends for calls, twice",
    [text("The answer."), calls],
    '"done" in 2 requests'
  ],
  [
    "",
    "a function_call of the old protocol",
    [delta({ function_call: { name: "echo", arguments: one } }), delta({}, "function_call")],
    ran.one
  ],
  ["", "a name in two pieces", [piece(0, "x", "ec", ""), piece(0, none, "ho", one), calls], ran.one],
  [
    "",
    "a call in the last chunk",
    [text(null), delta({ tool_calls: [call(0, "x", "echo", one)] }, "tool_calls")],
    ran.one
  ],
  [
    "",
    "a message beside an empty delta",
    [
      {
        choices: [
          { index: 0, delta: {}, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }
        ]
      }
    ],
    '"hello"'
  ],
  [
    "",
    "a function that is null in the first piece",
    [
      delta({ tool_calls: [{ index: 0, id: "x", type: "function", function: null }] }),
      piece(0, none, "echo", one),
      calls
    ],
    ran.one
  ],
  ["", "index 1 first", [piece(1, "x", "echo", one), calls], ran.one],
  [
    "",
    "an index as text",
    [piece("0", "x", "echo", '{"v"'), piece("0", none, none, ':"1"}'), calls],
    ran.one
  ],
  ["", "one call for a list", [delta({ tool_calls: call(0, "x", "echo", one) }), calls], ran.one],
  ["openonion/connectonion#1356", "an empty name", [piece(0, "x", "", one), calls], '"done" in 2 requests'],
  ["", "a name behind its namespace", [piece(0, "x", "functions.echo", one), calls], ran.one],
  [
    "movieclaw/movieclaw#224",
    "a name with tokens of Harmony",
    [piece(0, "x", "echo<|channel|>json", one), calls],
    ran.one
  ],
  ["", "a name with a line end", [piece(0, "x", "echo\n", one), calls], ran.one],
  ["", "a name in capitals", [piece(0, "x", "ECHO", one), calls], '"done" in 2 requests'],
  [
    "archestra-ai/archestra",
    "a call in the text of thinking",
    [delta({ reasoning_content: '<tool_call>{"name":"echo"}</tool_call>' }), stop],
    '""'
  ]
]

const hello = [delta({ role: "assistant", content: "He" }), text("llo"), stop]
const plain = events(...hello)
const labelled = (type: string): Answer => ({ body: plain, headers: { "content-type": type } })
const encoded = (coding: string, compress: (bytes: Buffer) => Uint8Array): Answer => ({
  body: compress(Buffer.from(plain)),
  headers: { "content-encoding": coding }
})
const json = (value: unknown): Answer => ({
  body: JSON.stringify(value),
  headers: { "content-type": "application/json" }
})

const frames: ReadonlyArray<Row> = [
  ["", "no [DONE]", plain, '"Hello"'],
  ["", "CRLF", plain.replaceAll("\n", "\r\n"), '"Hello"'],
  ["", "no space behind data:", plain.replaceAll("data: ", "data:"), '"Hello"'],
  ["", "comments", `: OPENROUTER PROCESSING\n\n${plain}: x\n\n`, '"Hello"'],
  ["", "null", ["null", ...hello], '"Hello"'],
  ["", "empty data", ["", ...hello], '"Hello"'],
  ["", "an empty object", [{}, ...hello], '"Hello"'],
  ["", "a word in quotes", ['"ping"', ...hello], '"Hello"'],
  ["", "a word", ["keep-alive", ...hello], '"Hello"'],
  ["", "a named ping", `event: ping\ndata: ping\n\n${plain}`, '"Hello"'],
  ["", "a named event of an empty object", `event: keepalive\ndata: {}\n\n${plain}`, '"Hello"'],
  ["", "a heartbeat", `event: heartbeat\ndata: {"type":"heartbeat"}\n\n${plain}`, '"Hello"'],
  [
    "",
    "the verdict on the prompt first, as Azure sends it",
    [{ choices: [], id: "", prompt_filter_results: [{}] }, ...hello],
    '"Hello"'
  ],
  ["", "text before the events", `Waiting for model...\n\n${plain}`, '"Hello"'],
  [
    "",
    "data: twice",
    plain.replaceAll("data: ", "data: data: "),
    'acme: StreamTruncated: No chunk of the answer can be read: Unexpected token \'d\', "data: {"id"... is not valid JSON: data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"He"},"finish_reason":null}]}'
  ],
  [
    "",
    "two chunks on a line",
    `data: ${JSON.stringify(text("A"))}${JSON.stringify(text("B", "stop"))}\n\n`,
    'acme: StreamTruncated: No chunk of the answer can be read: Unexpected non-whitespace character after JSON at position 92 (line 1 column 93): {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"A"},"finish_reason":null}]}{"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"B"},"finish_reason":"stop"}]}'
  ],
  ["", "[done]", [...hello, "[done]"], '"Hello"'],
  [
    "",
    "a chunk that is cut",
    [text("He"), '{"choices":[{"index":0,"delta":{"content":"l', text("llo", "stop")],
    '"Hello"'
  ],
  [
    "",
    "a line end within a text",
    'data: {"choices":[{"index":0,"delta":{"content":"a\ndata: b"},"finish_reason":"stop"}]}\n\n',
    'acme: StreamTruncated: No chunk of the answer can be read: Bad control character in string literal in JSON at position 44 (line 1 column 45): {"choices":[{"index":0,"delta":{"content":"a\nb"},"finish_reason":"stop"}]}'
  ],
  [
    "",
    "a control character within a text",
    'data: {"choices":[{"index":0,"delta":{"content":"a\tb"},"finish_reason":"stop"}]}\n\n',
    'acme: StreamTruncated: No chunk of the answer can be read: Bad control character in string literal in JSON at position 44 (line 1 column 45): {"choices":[{"index":0,"delta":{"content":"a\tb"},"finish_reason":"stop"}]}'
  ],
  [
    "",
    "NaN",
    'data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":NaN,"finish_reason":"stop"}]}\n\n',
    'acme: StreamTruncated: No chunk of the answer can be read: Unexpected token \'N\', ..."logprobs":NaN,"finis"... is not valid JSON: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":NaN,"finish_reason":"stop"}]}'
  ],
  ["", "events that are called JSON", labelled("application/json"), '"Hello"'],
  ["", "events that are called text", labelled("text/plain"), '"Hello"'],
  ["", "events that are called nothing", labelled(""), '"Hello"'],
  [
    "",
    "JSON in place of events",
    json({
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "whole", tool_calls: [call(none, "a", "echo", one)] },
          finish_reason: "tool_calls"
        }
      ]
    }),
    ran.one
  ],
  ["", "gzip", encoded("gzip", gzipSync), '"Hello"'],
  ["", "brotli", encoded("br", brotliCompressSync), '"Hello"'],
  ["", "zstd", encoded("zstd", zstdCompressSync), '"Hello"'],
  [
    "diegosouzapw/OmniRoute#8210",
    "an error in place of an answer",
    json({ error: { message: "model overloaded, try later", code: 503 } }),
    "acme: Overloaded: model overloaded, try later"
  ],
  [
    "",
    "an error in words",
    "data: Error: upstream timeout\n\n",
    "acme: ServerError: Error: upstream timeout"
  ],
  [
    "",
    "detail",
    json({ detail: "Not authenticated" }),
    "acme: Unauthenticated: Not authenticated. Check the API key that the provider is given."
  ],
  [
    "",
    "success: false",
    json({ success: false, message: "insufficient balance", code: 1008 }),
    "acme: QuotaExceeded: insufficient balance"
  ],
  [
    "",
    "base_resp",
    json({ base_resp: { status_code: 1008, status_msg: "insufficient balance" } }),
    "acme: QuotaExceeded: insufficient balance"
  ],
  [
    "",
    "base_resp in an event",
    [{ id: "x", choices: null, base_resp: { status_code: 1002, status_msg: "rate limit" } }],
    "acme: RateLimited: rate limit"
  ],
  [
    "",
    "code and msg",
    json({ code: 500, msg: "404 NOT_FOUND", success: false }),
    "acme: ServerError: 404 NOT_FOUND"
  ],
  [
    "open-octo/octo-agent#910",
    "an error behind a text",
    [
      text("a"),
      {
        choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }],
        error: { code: 502, message: "Provider disconnected unexpectedly" }
      }
    ],
    "acme: ServerError: Provider disconnected unexpectedly"
  ],
  [
    "OleksandrChekhovskyi/hax#15",
    "native_finish_reason: network_error",
    [delta({ content: "" }, "stop", { native_finish_reason: "network_error" })],
    "acme: ServerError: The answer ended with network_error"
  ],
  ["", "stop on each chunk", [text("He", "stop"), text("llo", "stop")], '"Hello"'],
  ["", "an empty finish_reason on each chunk", [text("He", ""), text("llo", ""), stop], '"Hello"'],
  ["", "eos", [text("Hello", "eos")], '"Hello"'],
  [
    "vllm-project/vllm#57082",
    "abort",
    [text("Hel", "abort")],
    "acme: ServerError: The answer ended with abort"
  ],
  ["", "content_filter without a text", [delta({}, "content_filter")], '"" (contentFilter)'],
  ["", "error without an error", [text("x", "error")], "acme: ServerError: The answer ended with error"],
  ["", "null for role and content", [delta({ role: null, content: null }), ...hello], '"Hello"'],
  ["", "content that is an object", [text({ type: "text", text: "obj" }), stop], '"obj"'],
  ["", "content that is a list", [text([{ type: "text", text: "arr" }]), stop], '"arr"'],
  ["", "choices: null", [{ id: "x", choices: null }, ...hello], '"Hello"'],
  ["", "a refusal", [delta({ refusal: "I cannot" }), stop], '"I cannot" (refusal)'],
  [
    "",
    "thinking and text by turns",
    [delta({ reasoning_content: "a" }), text("b"), delta({ reasoning_content: "c" }), text("d"), stop],
    '"bd"'
  ],
  ["", "thinking and text in one chunk", [delta({ reasoning_content: "a", content: "b" }), stop], '"b"'],
  [
    "",
    "line ends between thinking and a call",
    [delta({ reasoning_content: "a" }), text("\n\n"), piece(0, "x", "echo", one), calls],
    ran.one
  ],
  ["mistralai/mistral-vibe#1116", "thinking alone", [delta({ reasoning_content: "hm" }), stop], '""'],
  ["", "no answer", [text(""), stop], '""'],
  ["", "thinking that is cut", [delta({ reasoning_content: "long" }), delta({}, "length")], '"" (length)']
]

const said = (first: Answer) =>
  Effect.map(
    talk({
      layer: (origin) => OpenAiCompatible.layer({ id: "acme", baseUrl: `${origin}/v1` }),
      model: "m",
      answers: [first, events(text("done", "stop"), "[DONE]")]
    }),
    ({ line }) => line
  )

export const reports: ReadonlyArray<Report> = [...pieces, ...frames].map(
  ([source, input, answer, right]) => ({
    source,
    input: `Chat: ${input}`,
    seen: said(typeof answer === "object" && "length" in answer ? events(...answer) : answer),
    right
  })
)
